// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command client talks to an MCP server of any revision: it lists what the server
// has, calls tools, reads resources and gets prompts, and asks at the terminal what
// the server wants to know.
//
//	go run ./examples/client http://127.0.0.1:8080/mcp list
//	go run ./examples/client http://127.0.0.1:8080/mcp call add '{"a":2,"b":3}'
//	go run ./examples/client -legacy 2025-06-18 http://127.0.0.1:8080/mcp prompt explain topic=monads
//	go run ./examples/client call order '{"pizza":"funghi"}' -- go run ./examples/quickstart
//
// What follows a -- is the command of a server on standard input and output.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"slices"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

const usage = `usage: client [-modern | -legacy version] URL [subcommand]
       client [-modern | -legacy version] [subcommand] -- command [argument ...]

subcommands:
  list [tools | prompts | resources]   this is the default
  call TOOL [JSON]
  read URI
  prompt NAME [key=value ...]

flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "client:", clean(err.Error()))
		os.Exit(1)
	}
}

// run does what the arguments say. Results go to out; questions, progress and logs
// go to errOut, and their answers come from in.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) error {
	version, transport, rest, err := parse(args, errOut)
	if err != nil {
		return err
	}
	do, err := parseCommand(rest, out)
	if err != nil {
		return err
	}
	term := &terminal{in: in, out: errOut}
	client := mcp.NewClient("psi-example-client", "v1.0.0", &mcp.ClientOptions{
		Elicit:    term.elicit,
		ElicitURL: term.elicitURL,
		Version:   version,
		Logger:    slog.New(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	conn, err := client.Connect(ctx, transport)
	if err != nil {
		return err
	}
	err = do(mcp.WithProgress(ctx, term.progress), conn)
	term.endProgress()
	return errors.Join(err, conn.Close())
}

// parse finds the server, the version to speak, which is "" unless a flag says it,
// and what is left of the arguments.
func parse(args []string, errOut io.Writer) (version string, t mcp.Transport, rest []string, err error) {
	var command []string
	if i := slices.Index(args, "--"); i >= 0 { // before package flag sees it, which would drop it
		args, command = args[:i], args[i+1:]
	}
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.Usage = func() {
		fmt.Fprint(errOut, usage)
		flags.PrintDefaults()
	}
	modern := flags.Bool("modern", false, "speak "+mcp.LatestVersion+", without finding out whether the server does")
	flags.StringVar(&version, "legacy", "", "speak this `version`, one of those with a handshake")
	if err := flags.Parse(args); err != nil {
		return "", nil, nil, err
	}
	rest = flags.Args()
	switch {
	case *modern && version != "":
		return "", nil, nil, errors.New("-modern and -legacy exclude each other")
	case version != "" && !slices.Contains(mcp.LegacyVersions(), version):
		return "", nil, nil, fmt.Errorf("-legacy %s: expected one of %q", version, mcp.LegacyVersions())
	case *modern:
		version = mcp.LatestVersion
	}
	switch {
	case len(command) > 0:
		cmd := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // the user's own words; Close ends it
		return version, mcpstdio.NewCommand(cmd, &mcpstdio.CommandOptions{Stderr: errOut}), rest, nil
	case len(rest) > 0:
		return version, mcphttp.NewTransport(rest[0], nil), rest[1:], nil
	}
	flags.Usage()
	return "", nil, nil, flag.ErrHelp
}
