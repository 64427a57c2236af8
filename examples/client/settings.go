// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os/exec"
	"slices"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

const usage = `usage: client [-login] [-modern | -legacy version] URL [subcommand]
       client [-modern | -legacy version] [subcommand] -- command [argument ...]

subcommands:
  list [tools | prompts | resources]   this is the default
  call TOOL [JSON]
  read URI
  prompt NAME [key=value ...]

flags:
`

// settings are what the arguments say.
type settings struct {
	version string   // to speak, "" for whichever the server does
	login   bool     // if the server wants to know who calls
	url     string   // of the server, "" if it is a command
	command []string // with its arguments
	rest    []string // the subcommand
}

func parse(args []string, errOut io.Writer) (*settings, error) {
	set := &settings{}
	if i := slices.Index(args, "--"); i >= 0 { // before package flag sees it, which would drop it
		args, set.command = args[:i], args[i+1:]
	}
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.Usage = func() {
		fmt.Fprint(errOut, usage)
		flags.PrintDefaults()
	}
	modern := flags.Bool("modern", false, "speak "+mcp.LatestVersion+", without finding out whether the server does")
	flags.StringVar(&set.version, "legacy", "", "speak this `version`, one of those with a handshake")
	flags.BoolVar(&set.login, "login", false, "log in with a browser if the server wants it, and remember that")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	set.rest = flags.Args()
	if len(set.command) == 0 {
		if len(set.rest) == 0 {
			flags.Usage()
			return nil, flag.ErrHelp
		}
		set.url, set.rest = set.rest[0], set.rest[1:]
	}
	switch {
	case *modern && set.version != "":
		return nil, errors.New("-modern and -legacy exclude each other")
	case set.version != "" && !slices.Contains(mcp.LegacyVersions(), set.version):
		return nil, fmt.Errorf("-legacy %s: expected one of %q", set.version, mcp.LegacyVersions())
	case set.login && set.url == "":
		return nil, errors.New("-login is for a server at a URL")
	case *modern:
		set.version = mcp.LatestVersion
	}
	return set, nil
}

// transport is the way to the server; end is called when it is not needed any more.
func (set *settings) transport(term *terminal, logger *slog.Logger) (t mcp.Transport, end func(), err error) {
	end = func() {}
	if set.url == "" {
		cmd := exec.Command(set.command[0], set.command[1:]...) //nolint:gosec,noctx // the user's own words; Close ends it
		return mcpstdio.NewCommand(cmd, &mcpstdio.CommandOptions{Stderr: term.out}), end, nil
	}
	opts := &mcphttp.TransportOptions{Logger: logger}
	if set.login {
		auth, err := term.authorized(set.url, logger)
		if err != nil {
			return nil, nil, err
		}
		opts.Client, end = &http.Client{Transport: auth}, func() { _ = auth.Close() }
	}
	return mcphttp.NewTransport(set.url, opts), end, nil
}
