// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/go-psi/psi/internal/nearest"
	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/mcp/config"
	"github.com/go-psi/psi/mcp/transport"
)

func serversCommand() *command {
	var file string
	return &command{
		name: "servers", summary: "list the servers in configuration files",
		help: `servers lists the servers whose names psi knows: those in the file of -config or, without it, in
the files of the user's hosts, such as Claude Desktop, VS Code and Cursor.`,
		example: `$ psi servers -config servers.json
kitchen  http   servers.json
pantry   stdio  servers.json
`,
		flags: func(f *flag.FlagSet) { f.StringVar(&file, "config", "", "list those of this `file`") },
		run: func(_ context.Context, e *env, _ []string) error {
			files, err := e.configFiles(file, e.log.Warn)
			if err != nil {
				return err
			}
			table, servers := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0), 0
			for _, f := range files {
				servers += len(f.Servers)
				for _, s := range f.Servers {
					state := ""
					if s.Disabled {
						state = "\tdisabled"
					}
					fmt.Fprintf(table, "%s\t%s\t%s%s\n", printable.Line(s.Name), cmp.Or(s.Type, "malformed"), printable.Line(f.Path), state)
				}
			}
			if servers == 0 {
				fmt.Fprintln(e.stderr, "psi: there are no servers; see -config")
			}
			return table.Flush()
		},
	}
}

// namedTransport returns the transport to the server with the given name.
func (e *env) namedTransport(ctx context.Context, name string) (transport.Transport, error) {
	files, err := e.configFiles(e.client.config, e.log.Info)
	if err != nil {
		return nil, err
	}
	var found []*config.Server
	var names, paths []string
	for _, f := range files {
		for _, s := range f.Servers {
			names = append(names, s.Name)
			if s.Name == name {
				found, paths = append(found, s), append(paths, f.Path)
			}
		}
	}
	switch {
	case len(found) > 1:
		return nil, usagef("several files have a server %q: choose one with -config %s", name, strings.Join(paths, " or "))
	case len(found) == 0:
		if url := urlOf(name); url != "" {
			return e.urlTransport(url)
		}
		return nil, usagef("%q is neither a URL nor the name of a server in a configuration file%s; psi servers lists the names, and a command stands after --. A project file such as .mcp.json is read only with -config", name, nearest.Hint(name, names))
	}
	return e.configTransport(ctx, found[0])
}

// schemeless matches a URL without its scheme, and captures the host.
var schemeless = regexp.MustCompile(`^(?:(\[[0-9a-fA-F:]+\]|\w[\w.-]*):[0-9]+(?:/|$)|(localhost|\w[\w-]*(?:\.[\w-]+)+)/)`)

// urlOf returns the URL that a word would be with a scheme, or "".
func urlOf(word string) string {
	match := schemeless.FindStringSubmatch(word)
	if match == nil {
		return ""
	}
	host := strings.Trim(match[1]+match[2], "[]")
	if _, err := netip.ParseAddr(host); err == nil || network.IsLoopback(host) {
		return "http://" + word
	}
	return "https://" + word
}

// configTransport returns the transport to a server in a configuration file.
func (e *env) configTransport(ctx context.Context, s *config.Server) (transport.Transport, error) {
	opts := &config.Options{Input: e.term.input, Command: e.commandOptions(), HTTP: e.httpOptions, Logger: e.log}
	if e.stdinServes {
		opts.Input = nil
	}
	t, err := s.Transport(ctx, opts)
	if err != nil {
		return nil, &usageError{err}
	}
	return t, nil
}

// configFiles returns the file at path or, if path is "", the files of the user's hosts, as they
// apply in the working directory. Host files that cannot be read are passed to log and omitted.
func (e *env) configFiles(path string, log func(msg string, args ...any)) ([]*config.File, error) {
	if path != "" {
		f, err := config.Load(path)
		if err != nil {
			return nil, &usageError{err}
		}
		return []*config.File{f.ForDirectory("")}, nil
	}
	var files []*config.File
	for _, l := range config.Locations() {
		f, err := config.Load(l.Path)
		switch {
		case err == nil:
			files = append(files, f.ForDirectory(""))
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, config.ErrNoServers):
			log("the configuration of a host is left out", "host", l.Host, "error", err)
		}
	}
	return files, nil
}

// input asks for an input of a configuration file. If the answer is empty, it returns the
// default.
func (t *terminal) input(ctx context.Context, in config.Input) (string, error) {
	t.asking.Lock()
	defer t.asking.Unlock()
	t.printf("%s\n", printable.Line(cmp.Or(in.Description, in.ID)))
	for i, option := range in.Options {
		t.printf("  %d  %s\n", i+1, printable.Line(option))
	}
	if in.Password {
		t.printf("(What you write is shown.)\n")
	}
	line, action, err := t.ask(ctx)
	switch {
	case err != nil:
		return "", err
	case action != "accept":
		return "", errors.New("no answer was given")
	case line == "":
		return in.Default, nil
	}
	if len(in.Options) == 0 || slices.Contains(in.Options, line) {
		return line, nil
	}
	if n, err := strconv.Atoi(line); err == nil && 1 <= n && n <= len(in.Options) {
		return in.Options[n-1], nil
	}
	return "", fmt.Errorf("want one of %s", strings.Join(in.Options, ", "))
}
