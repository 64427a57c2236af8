// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/internal/strictjson"
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

	file  *File    // nil if the Server was not parsed from a file
	unset []string // variables that are null in "env"
	err   error    // why the server cannot be used
}

// wireServer is a server as it appears in files.
type wireServer struct {
	Type          string                    `json:"type"`
	Transport     string                    `json:"transport"` // used by some hosts instead of type
	Command       string                    `json:"command"`
	Args          []string                  `json:"args"`
	Env           map[string]jsontext.Value `json:"env"`
	EnvFile       string                    `json:"envFile"`
	Dir           string                    `json:"cwd"`
	URL           string                    `json:"url"`
	ServerURL     string                    `json:"serverUrl"` // Windsurf
	HTTPURL       string                    `json:"httpUrl"`   // Gemini CLI
	Headers       map[string]string         `json:"headers"`
	Disabled      bool                      `json:"disabled"`
	Enabled       *bool                     `json:"enabled"`
	IncludeTools  []string                  `json:"includeTools"`
	ExcludeTools  []string                  `json:"excludeTools"`
	DisabledTools []string                  `json:"disabledTools"`
}

// types maps the values of "type" in files to the values of [Server].Type.
var types = map[string]string{
	"": "", "stdio": "stdio", "local": "stdio", "sse": "sse",
	"http": "http", "streamable-http": "http", "streamable_http": "http", "streamableHttp": "http", "streamable": "http",
}

// parseServer decodes one server of the file.
func (f *File) parseServer(name string, raw jsontext.Value) *Server {
	s := &Server{Name: name, file: f}
	var w wireServer
	if err := strictjson.Unmarshal(raw, &w); err != nil {
		s.err = s.errorf("", "%s", problem(raw, err))
		return s
	}
	s.Command, s.Args, s.EnvFile, s.Dir = w.Command, w.Args, w.EnvFile, w.Dir
	s.URL, s.Headers = cmp.Or(w.HTTPURL, w.URL, w.ServerURL), w.Headers
	s.Disabled = w.Disabled || w.Enabled != nil && !*w.Enabled
	s.IncludeTools, s.ExcludeTools = w.IncludeTools, slices.Concat(w.ExcludeTools, w.DisabledTools)
	s.err = cmp.Or(s.setEnv(w.Env), s.setType(cmp.Or(w.Type, w.Transport)))
	return s
}

// UsesTool reports whether the host uses a tool of the server: the tool is not in
// ExcludeTools, and it is in IncludeTools unless IncludeTools is nil.
func (s *Server) UsesTool(name string) bool {
	return !slices.Contains(s.ExcludeTools, name) && (s.IncludeTools == nil || slices.Contains(s.IncludeTools, name))
}

// setType sets the type to the given one or, if it is empty, infers it from the other fields.
func (s *Server) setType(given string) error {
	kind, known := types[given]
	switch {
	case !known:
		return s.errorf("type", "%q is not supported; want stdio, http or sse", given)
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

// setEnv sets the environment. Values may be strings, numbers or booleans. A variable that is
// null is removed from the default environment of the command.
func (s *Server) setEnv(env map[string]jsontext.Value) error {
	if len(env) > 0 {
		s.Env = map[string]string{}
	}
	for name, value := range env {
		switch value.Kind() {
		case '"':
			var text string
			if err := strictjson.Unmarshal(value, &text); err != nil {
				return s.errorf("env."+name, "%s", strictjson.Problem(err))
			}
			s.Env[name] = text
		case '0', 't', 'f':
			s.Env[name] = string(value)
		case 'n':
			s.unset = append(s.unset, name)
		default:
			return s.errorf("env."+name, "want a string")
		}
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
