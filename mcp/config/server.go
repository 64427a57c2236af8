// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// A Server is a server in a [File]: either a command or a URL. Variables in its fields have
// not been replaced; [Server.Transport] replaces them. The zero Server is neither a command
// nor a URL.
type Server struct {
	Name string
	Type string // "stdio", "http" or "sse"; "" if unknown

	// Command is the program of a server on standard input and output. Dir is its working
	// directory; "" means the directory of this process, and relative paths are relative to
	// [Options].Workspace. EnvFile names a file with lines of the form NAME=value. Env takes
	// precedence over it.
	Command      string
	Args         []string
	Env          map[string]string
	EnvFile, Dir string

	// URL is the URL of an HTTP server. Headers are sent with every request.
	URL     string
	Headers map[string]string

	// Disabled means that the host does not use the server. Transport ignores it.
	Disabled bool
	// IncludeTools are the names of the tools that the host uses. Nil means all tools except
	// ExcludeTools; see [Server.UsesTool]. Transport ignores them.
	IncludeTools, ExcludeTools []string

	// OAuth configures the login at a URL. Nil means that the file says nothing about it.
	OAuth *OAuth
	// Place is the path of the member that lists the server in its file, such as "mcpServers".
	// See [Location].
	Place string
	// Members are all members of the server in its file, so that a host can read its own
	// settings, with their variables. Nil if the Server was not parsed from a file.
	Members map[string]json.RawMessage

	file     *File    // nil if the Server was not parsed from a file
	unset    []string // variables that are null in "env"
	err      error    // why the server cannot be used
	warnings []error  // what was left out; logged by Transport
}

// types maps the values of "type" in files to the values of [Server].Type.
var types = map[string]string{
	"": "", "stdio": "stdio", "local": "stdio", "sse": "sse", "remote": "http",
	"http": "http", "streamable-http": "http", "streamable_http": "http", "streamableHttp": "http", "streamable": "http",
}

// parseServer parses one server of the file.
func (f *File) parseServer(name string, raw jsontext.Value) *Server {
	s := &Server{Name: name, file: f}
	o, err := parseObject(raw)
	if err != nil {
		s.fail("", err)
		return s
	}
	s.Members = rawMembers(o)
	s.read("", o, members, s.fail)
	if s.err == nil {
		s.err = s.setType()
	}
	return s
}

// fail records why the server cannot be used.
func (s *Server) fail(member string, err error) {
	if s.err == nil {
		s.err = s.errorf(member, "%w", err)
	}
}

// warnf records that a part of the server was left out. The member may be "".
func (s *Server) warnf(member, format string, args ...any) {
	s.warnings = append(s.warnings, s.errorf(member, format, args...))
}

// UsesTool reports whether the host uses a tool of the server: the tool is not in
// ExcludeTools, and it is in IncludeTools unless IncludeTools is nil.
func (s *Server) UsesTool(name string) bool {
	return !slices.Contains(s.ExcludeTools, name) && (s.IncludeTools == nil || slices.Contains(s.IncludeTools, name))
}

// setType replaces the type in the file with one of this package or, if it is empty, infers it
// from the other fields.
func (s *Server) setType() error {
	given := s.Type
	kind, known := types[given]
	s.Type = ""
	switch {
	case !known:
		return s.errorf("type", "%.80q is not supported; want stdio, http or sse", given)
	case s.Command == "" && s.URL == "":
		return s.errorf("", "want a command or a url")
	case s.Command != "" && s.URL != "":
		return s.errorf("", "want either a command or a url, not both")
	case kind == "stdio" && s.Command == "":
		return s.errorf("command", "a server of the type %q must have one", given)
	case kind != "stdio" && kind != "" && s.URL == "":
		return s.errorf("url", "a server of the type %q must have one", given)
	case kind != "":
		s.Type = kind
	case s.Command != "":
		s.Type = "stdio"
	default:
		s.Type = "http"
	}
	return nil
}

// errorf returns an error that names the file, the server and the member, which may be "".
func (s *Server) errorf(member, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	if member != "" {
		err = fmt.Errorf("%s: %w", member, err)
	}
	if s.Name != "" {
		err = fmt.Errorf("server %q: %w", s.Name, err)
	}
	if s.file != nil {
		err = fmt.Errorf("%s: %w", s.file.Path, err)
	}
	return fmt.Errorf("config: %w", err)
}

var errNoServer = errors.New("config: the server is nil")
