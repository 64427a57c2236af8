// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"unicode"

	"github.com/go-psi/psi/mcp/config"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// transport returns the transport to the server named on the command line, and the
// remaining words. It does not start or connect to anything.
func (e *env) transport(ctx context.Context, c *command, words []string) (t transport.Transport, rest []string, err error) {
	if e.given != nil {
		return e.given, words, nil
	}
	if e.server != nil {
		t, err = e.commandTransport()
		return t, words, err
	}
	if len(words) == 0 {
		return nil, nil, c.wrongWords("which server? give a URL, a name, or -- and a command")
	}
	if isURL(words[0]) {
		t, err = e.urlTransport(words[0])
	} else {
		t, err = e.namedTransport(ctx, words[0])
	}
	return t, words[1:], err
}

func isURL(word string) bool { return strings.Contains(word, "://") }

// commandTransport returns the transport to the command after --. The command gets the
// whole environment, as if the user's shell had started it, except for variables that
// concern only psi.
func (e *env) commandTransport() (transport.Transport, error) {
	if len(e.server) == 0 {
		return nil, usagef("no command follows the --")
	}
	return mcpstdio.NewCommand(serverCommand(e.server), e.commandOptions()), nil
}

// serverCommand returns the command of a server that the user has given.
func serverCommand(words []string) *exec.Cmd {
	cmd := exec.Command(words[0], words[1:]...) //nolint:gosec,noctx // the user's own words; Close ends it
	cmd.Env = slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, tokenVariable+"=") })
	return cmd
}

func (e *env) commandOptions() *mcpstdio.CommandOptions {
	return &mcpstdio.CommandOptions{Logger: e.log}
}

func (e *env) urlTransport(word string) (transport.Transport, error) {
	opts, err := e.httpOptions(word, nil)
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(word); err == nil && (u.Path == "" || u.Path == "/") && u.RawQuery == "" {
		e.bare = word
	}
	return mcphttp.NewTransport(word, opts), nil
}

// httpOptions returns the options of the transport to a URL. login is what a configuration file
// says about the login, or nil.
func (e *env) httpOptions(url string, login *config.OAuth) (*mcphttp.TransportOptions, error) {
	header, err := parseHeaders(e.client.headers)
	if err != nil {
		return nil, err
	}
	client, err := e.httpClient(url, login)
	if err != nil {
		return nil, err
	}
	return &mcphttp.TransportOptions{Header: header, Client: client, Logger: e.log}, nil
}

// parseHeaders returns the headers of -header flags.
func parseHeaders(lines []string) (http.Header, error) {
	header := http.Header{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(name, " \t") || strings.ContainsFunc(line, unicode.IsControl) {
			return nil, usagef("-header %q is not of the form \"Name: value\"", line)
		}
		header.Add(name, strings.TrimSpace(value))
	}
	return header, nil
}
