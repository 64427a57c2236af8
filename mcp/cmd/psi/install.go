// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/nearest"
	"github.com/go-psi/psi/mcp/config"
)

// An installation is what psi install and psi uninstall are told to do.
type installation struct {
	hostFlags

	env, headers listFlag
	yes          bool // write without asking
}

func (in *installation) hostFlagSet(f *flag.FlagSet) {
	f.Var(&in.hosts, "host", "the `host`, such as claude-desktop; may be repeated")
	f.StringVar(&in.config, "config", "", "use this `file`, such as .mcp.json of a project")
	f.BoolVar(&in.yes, "yes", false, "write without asking")
}

func installCommand() *command {
	in := &installation{}
	c := &command{
		name: "install", usage: "NAME [URL] [-- COMMAND [ARGUMENT ...]]", summary: "add a server to the configuration of a host", takesCommand: true,
		help: `install adds a server to the configuration file of a host such as Claude Desktop, Claude Code,
Cursor, VS Code, Windsurf or Zed, or changes the server of that name. It shows the difference and
asks before it writes. Everything else in the file stays as it is, comments and order included, and
a copy of the file as it was is kept beside it. A file that is not valid is left alone.

The server is a URL, or the command after --. Hosts start commands in a directory of their own,
so psi writes the whole path of the program. Without -host and -config, the host is the one that is
in use on this machine, if there is one only.`,
		example: `$ psi install kitchen -host cursor -config mcp.json -yes -env PATH -- ./server
$ psi install notes -config .mcp.json -yes https://notes.example.com/mcp -header 'Authorization: Bearer ${TOKEN}'
`,
		flags: func(f *flag.FlagSet) {
			in.hostFlagSet(f)
			f.Var(&in.env, "env", "set this variable, `NAME=value`, for the command; NAME alone takes the value from the environment; may be repeated")
			f.Var(&in.headers, "header", "send this header, `\"Name: value\"`, to the URL; may be repeated")
		},
	}
	c.run = func(ctx context.Context, e *env, words []string) error {
		if len(words) == 0 || len(words) > 2 {
			return c.wrongWords("want the name of the server, and its URL, or -- and its command")
		}
		server, err := in.server(words[0], words[1:], e.server)
		if err != nil {
			return err
		}
		locations, err := in.locations(c.name)
		if err == nil && locations == nil {
			locations, err = inUse()
		}
		if err != nil {
			return err
		}
		for _, l := range locations {
			if err := e.install(ctx, l, server, in.yes); err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

func (e *env) install(ctx context.Context, l config.Location, s *config.Server, yes bool) error {
	f, err := readHostFile(l)
	if err != nil {
		return err
	}
	err = e.change(ctx, f, yes, func(data []byte) ([]byte, error) {
		after, err := l.Set(data, s)
		if errors.Is(err, config.ErrNoURLs) {
			err = fmt.Errorf("install: %s can only start commands; this one connects to the URL:\npsi install %s -host %s -- psi gateway -stdio %s",
				l.Host, s.Name, hostKey(l.Host), s.URL)
		}
		return after, err
	})
	if err == nil {
		e.examine(ctx, l, s.Name)
	}
	return err
}

// examine shows what psi doctor finds about a server without starting it.
func (e *env) examine(ctx context.Context, l config.Location, name string) {
	d := &doctor{env: e, static: true}
	d.checkAll(ctx, []config.Location{l}, name)
	for _, f := range d.found {
		e.term.printf("%s\n", f)
	}
}

// serverName matches the names that all hosts accept.
var serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// server returns the server to add, which has a URL or a command.
func (in *installation) server(name string, urls, command []string) (*config.Server, error) {
	s := &config.Server{Name: name}
	switch {
	case !serverName.MatchString(name):
		return nil, usagef("install: %q is not a name that all hosts accept: want letters, digits, - and _, at most 64", name)
	case command == nil && len(urls) == 0:
		return nil, usagef("install: which server? give its URL, or -- and its command")
	case command != nil && len(urls) > 0:
		return nil, usagef("install: want either a URL or a command, not both")
	case len(urls) > 0 && in.env != nil:
		return nil, usagef("install: -env is for commands; a URL has -header")
	case command != nil && in.headers != nil:
		return nil, usagef("install: -header is for a URL; a command has -env")
	case command != nil && len(command) == 0:
		return nil, usagef("no command follows the --")
	}
	var err error
	if command == nil {
		s.URL, err = serverURL(urls[0])
	} else if s.Command, err = programPath(command[0]); err == nil {
		s.Args = command[1:]
	}
	if err != nil {
		return nil, err
	}
	if s.Env, err = variables(in.env); err != nil {
		return nil, err
	}
	header, err := parseHeaders(in.headers)
	for name, values := range header {
		if s.Headers == nil {
			s.Headers = map[string]string{}
		}
		s.Headers[name] = strings.Join(values, ", ")
	}
	return s, err
}

// serverURL returns the URL that a word is, with its scheme.
func serverURL(word string) (string, error) {
	if u, err := url.Parse(word); err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") {
		return word, nil
	}
	if meant := urlOf(word); meant != "" {
		return meant, nil
	}
	return "", usagef("install: %q is not an https:// or http:// URL; a command comes after --", word)
}

// programPath returns the whole path of a program, which hosts need.
func programPath(program string) (string, error) {
	found, err := exec.LookPath(program)
	switch {
	case errors.Is(err, exec.ErrDot):
		return "", usagef("install: write %s for the program in this directory", "."+string(filepath.Separator)+program)
	case err != nil:
		return "", usagef("install: %w; hosts need a program that exists: build it, or give its path", err)
	}
	return filepath.Abs(found)
}

// variables returns the variables of -env flags, or nil if there are none.
func variables(pairs []string) (map[string]string, error) {
	var all map[string]string
	for _, pair := range pairs {
		name, value, given := strings.Cut(pair, "=")
		if !given {
			if value, given = os.LookupEnv(name); !given {
				return nil, usagef("install: -env %s: the environment does not have it", name)
			}
		}
		if name == "" || strings.Contains(value, "\x00") {
			return nil, usagef("install: -env wants NAME=value")
		}
		if all == nil {
			all = map[string]string{}
		}
		all[name] = value
	}
	return all, nil
}

// inUse returns the file of the only host that is in use on this machine.
func inUse() ([]config.Location, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	var found []config.Location
	for _, l := range config.Locations() {
		_, err := os.Stat(l.Path)
		if dir := filepath.Dir(l.Path); err != nil && dir != home {
			_, err = os.Stat(dir) // the host may have no servers so far
		}
		if err == nil {
			found = append(found, l)
		}
	}
	switch len(found) {
	case 1:
		return found, nil
	case 0:
		return nil, usagef("no host was found; choose one with -host: %s", strings.Join(hostKeys(config.Locations()), ", "))
	}
	return nil, usagef("which host? choose with -host: %s", strings.Join(hostKeys(found), ", "))
}

func uninstallCommand() *command {
	in := &installation{}
	c := &command{
		name: "uninstall", usage: "NAME", summary: "remove a server from the configuration of a host",
		help: `uninstall removes a server from the configuration file of a host, as psi install adds it: it shows
the difference, asks, keeps a copy of the file as it was, and leaves everything else in it alone.
Without -host and -config, the host is the one that has the server, if there is one only.`,
		example: "$ psi uninstall pantry -config servers.json -yes\n",
		flags:   in.hostFlagSet,
	}
	c.run = func(ctx context.Context, e *env, words []string) error {
		if len(words) != 1 {
			return c.wrongWords("want the name of the server")
		}
		locations, err := in.locations(c.name)
		if err == nil && locations == nil {
			locations, err = having(words[0])
		}
		if err != nil {
			return err
		}
		for _, l := range locations {
			f, err := readHostFile(l)
			if err == nil {
				err = e.change(ctx, f, in.yes, func(data []byte) ([]byte, error) { return l.Remove(data, words[0]) })
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return c
}

// having returns the file of the only host that has a server.
func having(name string) ([]config.Location, error) {
	var found []config.Location
	var names []string
	for _, l := range config.Locations() {
		f, err := config.Load(l.Path)
		if err != nil {
			continue // psi doctor says why
		}
		for _, s := range f.Servers {
			names = append(names, s.Name)
		}
		if slices.ContainsFunc(f.Servers, func(s *config.Server) bool { return s.Name == name }) {
			found = append(found, l)
		}
	}
	switch len(found) {
	case 1:
		return found, nil
	case 0:
		return nil, usagef("uninstall: no host has a server %q%s; psi servers lists them", name, nearest.Hint(name, names))
	}
	return nil, usagef("uninstall: several hosts have a server %q; choose with -host: %s", name, strings.Join(hostKeys(found), ", "))
}
