// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"

	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// A config is a configuration file. Members that only other hosts know are ignored.
type config struct {
	Servers map[string]server `json:"mcpServers"`
}

// A server is a command, with Args, Env and Dir, or a URL, with Headers. ${NAME} in a value
// of Env or Headers is the environment variable NAME, so that files need no secrets.
type server struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
	Dir     string            `json:"cwd"`

	Type    string            `json:"type"` // "sse" for HTTP+SSE; otherwise it may be missing
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"`
}

func readConfig(path string) (*config, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the user's own words
	if err != nil {
		return nil, err
	}
	var cfg config
	if err := json.Unmarshal(text, &cfg); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(cfg.Servers) == 0 {
		return nil, fmt.Errorf(`%s: expected servers below "mcpServers"`, path)
	}
	return &cfg, nil
}

// transport returns the transport to the server. Nothing is started or connected yet.
func (s *server) transport() (transport.Transport, error) {
	switch {
	case (s.Command == "") == (s.URL == ""):
		return nil, errors.New("expected either a command or a url")
	case s.Command != "":
		return s.start(), nil
	}
	opts := &mcphttp.TransportOptions{Header: http.Header{}}
	for name, value := range s.Headers {
		opts.Header.Set(name, os.ExpandEnv(value))
	}
	if s.Type == "sse" {
		return mcphttp.NewSSETransport(s.URL, opts), nil
	}
	return mcphttp.NewTransport(s.URL, opts), nil
}

// start returns the transport to a command. It gets the variables of Environ and those of the
// file, and not the secrets of this process. Its standard error is logged.
func (s *server) start() transport.Transport {
	cmd := exec.Command(s.Command, s.Args...) //nolint:gosec,noctx // the user's own file; Close ends it
	cmd.Dir = s.Dir
	cmd.Env = mcpstdio.Environ()
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		cmd.Env = append(cmd.Env, name+"="+os.ExpandEnv(s.Env[name]))
	}
	return mcpstdio.NewCommand(cmd, nil)
}
