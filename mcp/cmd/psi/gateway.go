// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"cmp"
	"context"
	"flag"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/config"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/middleware"
)

func gatewayCommand() *command {
	g := &gateway{}
	c := &command{
		name: "gateway", usage: "FILE|SERVER [NAME ...]", summary: "serve the servers of a file at one endpoint", connects: true, noResult: true,
		help: `gateway serves all servers of a configuration file at one endpoint, whatever revisions they and
its clients speak. The tool "search" of the server "notes" is the tool "notes_search" of the
gateway. With names, it serves only these servers; it leaves out disabled ones, and tools that
the file excludes with excludeTools, or does not include in includeTools. It leaves out servers
that cannot be used, with a warning, unless they are named. A server may come and go: the
gateway connects again, and starts a command again.

A single SERVER is served without a prefix. This gives an endpoint to a server that is a
command and, with -stdio, makes a remote server with a login available to hosts that can only
start commands.

At an address that other machines can reach, callers need a bearer token: the value of the
environment variable ` + tokenVariable + `, which has at least 16 bytes.`,
		example: `$ psi gateway -http 127.0.0.1:0 servers.json
$ psi gateway -stdio http://127.0.0.1:8080/mcp
`,
		flags: func(f *flag.FlagSet) {
			f.StringVar(&g.addr, "http", "127.0.0.1:8080", "serve at http://`address`/mcp")
			f.BoolVar(&g.stdio, "stdio", false, "serve on standard input and output instead")
			f.Var(&g.hidden, "hide", "hide tools, prompts and resources whose names or URIs match this `pattern`, such as *_delete_*; may be repeated")
		},
	}
	c.run = func(ctx context.Context, e *env, words []string) error {
		if err := g.check(c.name); err != nil {
			return err
		}
		e.stdinServes = g.stdio
		e.onClose(g.close)
		handler, err := g.handler(ctx, e, c, words)
		if err != nil {
			return err
		}
		return g.serve(ctx, e, handler)
	}
	return c
}

// A gateway serves several servers as one.
type gateway struct {
	serving

	hidden listFlag

	upstreams []*mcp.Upstream
}

// close stops the servers concurrently, because a server that is a command may take several
// seconds to stop, and a host does not wait for long.
func (g *gateway) close() {
	var closing sync.WaitGroup
	for _, up := range g.upstreams {
		closing.Go(func() { _ = up.Close() })
	}
	closing.Wait()
}

// check validates the flags and the token.
func (g *gateway) check(command string) error {
	return cmp.Or(checkPatterns(command, "-hide", g.hidden), g.serving.check(command))
}

// handler returns a handler for the servers named by the words, and starts connecting to
// them.
func (g *gateway) handler(ctx context.Context, e *env, c *command, words []string) (mcp.Handler, error) {
	var handler mcp.Handler
	if isFile := e.server == nil && len(words) > 0 && strings.HasSuffix(words[0], ".json") && !isURL(words[0]); isFile {
		mux, err := g.mount(ctx, e, words[0], words[1:])
		if err != nil {
			return nil, err
		}
		handler = mux
	} else {
		t, rest, err := e.transport(ctx, c, words)
		switch {
		case err != nil:
			return nil, err
		case len(rest) > 0:
			return nil, c.wrongWords("want one server, or a file whose name ends in .json")
		}
		handler = g.upstream(ctx, e, "server", t)
	}
	return middleware.Visible(func(_ context.Context, _ mcp.Kind, name string) bool {
		return !matchesAny(g.hidden, name)
	})(handler), nil
}

// mount mounts the servers of a file: the named ones, or all enabled ones if there are no
// names. A server that cannot be used is left out, unless it is named.
func (g *gateway) mount(ctx context.Context, e *env, file string, names []string) (*mcp.Mux, error) {
	files, err := e.configFiles(file, nil)
	if err != nil {
		return nil, err
	}
	servers := slices.DeleteFunc(slices.Clone(files[0].Servers), func(s *config.Server) bool { return s.Disabled })
	if len(names) > 0 {
		servers = nil
	}
	for _, name := range names {
		s, err := files[0].Server(name)
		if err != nil {
			return nil, &usageError{err}
		}
		servers = append(servers, s)
	}
	if len(servers) == 0 {
		return nil, usagef("gateway: the file has no server that is enabled")
	}
	var usable []*config.Server
	var transports []transport.Transport
	for _, s := range servers { // all, before the first server is started
		t, err := e.mountable(ctx, s, usable)
		switch {
		case err == nil:
			usable, transports = append(usable, s), append(transports, t)
		case len(names) > 0 || ctx.Err() != nil:
			return nil, err
		default:
			e.log.Warn("a server is left out", "error", err)
		}
	}
	if len(usable) == 0 {
		return nil, usagef("gateway: no server of the file can be used")
	}
	version, _ := buildVersion()
	mux := mcp.NewMux("psi gateway", version, &mcp.MuxOptions{
		Instructions: "Several servers, distinguished by the prefixes of their names.", Logger: e.log,
	})
	for i, s := range usable {
		mux.Mount(prefixOf(s.Name), selected(s)(g.upstream(ctx, e, s.Name, transports[i])))
	}
	return mux, nil
}

// mountable returns the transport to a server that can be mounted beside others.
func (e *env) mountable(ctx context.Context, s *config.Server, others []*config.Server) (transport.Transport, error) {
	if err := checkPrefix(s, others); err != nil {
		return nil, err
	}
	return e.configTransport(ctx, s)
}

// prefixOf returns the prefix of a server: its name, with the characters that tool names
// cannot contain replaced.
func prefixOf(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && (r == '-' || '0' <= r && r <= '9' || 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z') {
			return r
		}
		return '_'
	}, name) + "_"
}

// checkPrefix returns an error if the prefix of a server begins with that of another server, or
// the reverse, because it would be ambiguous to which of them a tool belongs. Another
// separator was rejected: it would rename tools when a server is added, and patterns of -hide
// would silently no longer match.
func checkPrefix(s *config.Server, others []*config.Server) error {
	prefix := prefixOf(s.Name)
	if len(prefix) > 64 {
		return usagef("gateway: the name of the server %.80q is longer than 63 characters", s.Name)
	}
	for _, other := range others {
		if p := prefixOf(other.Name); strings.HasPrefix(prefix, p) || strings.HasPrefix(p, prefix) {
			return usagef("gateway: tools of %q would begin with %q and those of %q with %q, so that a name could belong to both: rename one of the servers",
				s.Name, prefix, other.Name, p)
		}
	}
	return nil
}

// selected returns middleware that hides the tools of a server that its configuration
// excludes.
func selected(s *config.Server) mcp.Middleware {
	return middleware.Visible(func(_ context.Context, kind mcp.Kind, name string) bool {
		return kind != mcp.KindTool || s.UsesTool(name)
	})
}

// upstream returns a server that may disconnect and reconnect. Questions of the server are
// forwarded to the callers of the gateway, who are all the same user.
func (g *gateway) upstream(ctx context.Context, e *env, name string, t transport.Transport) *mcp.Upstream {
	client := e.newClient(&mcp.ClientOptions{Forward: true, KeepAlive: 30 * time.Second})
	// ctx does not stop the server, because requests in flight need it until the end.
	up := client.Maintain(context.WithoutCancel(ctx), e.wrapped(t), &mcp.UpstreamOptions{Logger: e.log.With("server", name), MaxDowntime: -1})
	g.upstreams = append(g.upstreams, up)
	return up
}
