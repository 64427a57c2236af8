// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

// Options configure [Server.Transport]. Nil means the zero Options.
type Options struct {
	// LookupEnv returns the value of an environment variable, for ${NAME}. Nil means
	// os.LookupEnv.
	LookupEnv func(name string) (value string, ok bool)
	// Workspace is ${workspaceFolder}. "" means the working directory.
	Workspace string
	// Input asks the user for an input of VS Code. It is called again for an input of a file
	// only if it returned an error. If Input is nil, servers with inputs cannot be used.
	Input func(ctx context.Context, in Input) (string, error)

	// Command configures the transports of commands. It may be nil.
	Command *mcpstdio.CommandOptions
	// HTTP returns the options of the transport to a URL, for example with a client that
	// logs in. login is the server's OAuth, with its variables replaced, or nil. Headers in
	// the file override headers in the options. HTTP may be nil, and may return nil.
	HTTP func(url string, login *OAuth) (*mcphttp.TransportOptions, error)

	// Logger receives warnings about parts of the server that are left out. They contain no
	// values of variables. Nil means slog.Default.
	Logger *slog.Logger
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.LookupEnv == nil {
		opts.LookupEnv = os.LookupEnv
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	return opts
}

// Transport returns the transport to the server, with all variables replaced. It does not
// start the command or connect. It returns an error if the server is invalid in its file or a
// variable has no value. ctx is passed to [Options].Input. opts may be nil.
func (s *Server) Transport(ctx context.Context, opts *Options) (transport.Transport, error) {
	// Warnings are logged here, not returned by Parse: a host that uses one server of a file
	// wants its warnings, and cannot forget to show them.
	if s == nil {
		return nil, errNoServer
	}
	if s.err != nil {
		return nil, s.err
	}
	x := &expander{server: s, opts: opts.withDefaults()}
	for _, warning := range s.warnings {
		x.warn(ctx, warning)
	}
	if s.Command != "" {
		return x.command(ctx)
	}
	if s.URL == "" {
		return nil, s.errorf("", "want a command or a url")
	}
	return x.http(ctx)
}

func (x *expander) warn(ctx context.Context, err error) {
	x.opts.Logger.WarnContext(ctx, "config: a part of a server is left out", "error", err)
}

// command returns the transport to a command.
func (x *expander) command(ctx context.Context) (transport.Transport, error) {
	s := x.server
	args := make([]string, len(s.Args))
	for i, arg := range s.Args {
		args[i] = x.expand(ctx, "args", arg)
	}
	program, dir := x.expand(ctx, "command", s.Command), x.expand(ctx, "cwd", s.Dir)
	env, err := x.environ(ctx)
	if err = errors.Join(x.err, err); err != nil {
		return nil, err
	}
	cmd := exec.Command(lookUp(program, env), args...) //nolint:gosec,noctx // what the file is for; Close ends it
	cmd.Args[0], cmd.Env = program, env
	if dir != "" {
		if cmd.Dir, err = x.path(dir); err != nil {
			return nil, s.errorf("cwd", "%w", err)
		}
	}
	return mcpstdio.NewCommand(cmd, x.opts.Command), nil
}

// lookUp returns the path of a program. Like the hosts, it searches the PATH of the command's
// environment, which a file may set because the PATH of the host lacks the program. A program
// that is not found there is returned unchanged, to be looked up as usual.
func lookUp(program string, env []string) string {
	if program != filepath.Base(program) {
		return program
	}
	for _, pair := range slices.Backward(env) {
		name, path, _ := strings.Cut(pair, "=")
		if name != "PATH" && (runtime.GOOS != "windows" || !strings.EqualFold(name, "PATH")) {
			continue
		}
		for _, dir := range filepath.SplitList(path) {
			if file, err := exec.LookPath(filepath.Join(dir, program)); err == nil && filepath.IsAbs(dir) {
				return file
			}
		}
		break
	}
	return program
}

// environ returns the environment of the command. If a variable appears more than once, the
// last value is used.
func (x *expander) environ(ctx context.Context) ([]string, error) {
	s := x.server
	env := slices.DeleteFunc(mcpstdio.Environ(), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.Contains(s.unset, name)
	})
	if s.EnvFile != "" {
		more, err := x.readEnvFile(ctx, x.expand(ctx, "envFile", s.EnvFile))
		if err != nil {
			return nil, s.errorf("envFile", "%w", err)
		}
		env = append(env, more...)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		value := x.expand(ctx, "env."+name, s.Env[name])
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return nil, s.errorf("env."+name, "not a variable of an environment")
		}
		env = append(env, name+"="+value)
	}
	return env, nil
}

// http returns the transport to a URL.
func (x *expander) http(ctx context.Context) (transport.Transport, error) {
	s := x.server
	to := x.expand(ctx, "url", s.URL)
	header := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		value := x.expand(ctx, "headers."+name, s.Headers[name])
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, s.errorf("headers."+name, "not a header of HTTP")
		}
		header.Set(name, value)
	}
	login := x.oauth(ctx)
	if x.err != nil {
		return nil, x.err
	}
	if u, err := url.Parse(to); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, s.errorf("url", "want a URL that begins with https:// or http://")
	}
	var opts mcphttp.TransportOptions
	if x.opts.HTTP != nil {
		more, err := x.opts.HTTP(to, login)
		if err != nil {
			return nil, s.errorf("", "%w", err)
		}
		if more != nil {
			opts = *more
		}
	}
	opts.Header = opts.Header.Clone()
	if opts.Header == nil {
		opts.Header = http.Header{}
	}
	maps.Copy(opts.Header, header)
	if s.Type == "sse" {
		return mcphttp.NewSSETransport(to, &opts), nil
	}
	return mcphttp.NewTransport(to, &opts), nil
}
