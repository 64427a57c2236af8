// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/config"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// An env holds what a subcommand works with: its input and outputs, the client flags, and
// the functions to run at the end.
type env struct {
	stdin  io.Reader
	stdout io.Writer // for results, below the progress bar
	stderr io.Writer // for questions, progress and logs
	term   *terminal // asks and draws on stderr
	log    *slog.Logger
	server []string // the command after --, or nil if there is none
	client clientFlags

	// stdinServes reports whether the input belongs to a client, so that the user cannot be
	// asked.
	stdinServes bool
	// given, if not nil, replaces the server named on the command line.
	given transport.Transport
	// bare is the URL that the user gave, if it has no path, as the URLs of endpoints have.
	bare string
	// login has the token of the server, if it has a URL.
	login *oauth.Transport
	// wrap, if not nil, is applied to the transport of every connection.
	wrap    func(transport.Transport) transport.Transport
	closers []func() // run by close, last first
}

// clientFlags are the flags of the subcommands that talk to a server.
type clientFlags struct {
	config   string
	headers  listFlag
	login    bool
	oauth    config.OAuth // replaces what a configuration file says
	timeout  time.Duration
	protocol string
	log      string
	json     bool
	verbose  bool
}

func newEnv(stdin io.Reader, stdout, stderr io.Writer) *env {
	e := &env{stdin: stdin, stderr: stderr, term: newTerminal(stdin, stderr)}
	e.stdout = results{e.term, stdout}
	e.log = slog.New(&logHandler{term: e.term, verbose: &e.client.verbose})
	return e
}

// flagSet returns the flags of a command.
func (e *env) flagSet(c *command) *flag.FlagSet {
	f := flag.NewFlagSet(c.name, flag.ContinueOnError)
	f.SetOutput(io.Discard) // errors are reported by run
	f.Usage = func() {}
	if c.connects {
		e.client.add(f)
	}
	if c.connects && !c.noResult {
		e.client.addResult(f)
	}
	if c.flags != nil {
		c.flags(f)
	}
	return f
}

func (o *clientFlags) add(f *flag.FlagSet) {
	f.StringVar(&o.config, "config", "", "look up the name of the server in this `file`")
	f.Var(&o.headers, "header", "send this header, `\"Name: value\"`, with every HTTP request; may be repeated")
	f.BoolVar(&o.login, "login", false, "log in with a browser if the server wants it, even if psi is not used in a terminal")
	f.StringVar(&o.oauth.ClientID, "client-id", "", "log in as this `client`, which was registered with the authorization server in advance")
	f.IntVar(&o.oauth.CallbackPort, "callback-port", 0, "log in with the redirect URI http://localhost:`port`/callback")
	f.Var((*listFlag)(&o.oauth.Scopes), "scope", "log in with this `scope`; may be repeated")
	f.StringVar(&o.oauth.AuthorizationServerMetadata, "auth-server-metadata", "", "log in at the authorization server with this metadata `URL`, whatever the server says")
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute, "how long a call may take without progress")
	f.StringVar(&o.protocol, "protocol", "", "speak this `version` of the protocol, without finding out which one the server speaks")
	f.BoolVar(&o.verbose, "v", false, "show the messages on the wire, and the standard error of a command")
}

// addResult adds the flags of commands that show a server's response.
func (o *clientFlags) addResult(f *flag.FlagSet) {
	f.StringVar(&o.log, "log", "", "show the log messages of the server from this `level` on, such as info")
	f.BoolVar(&o.json, "json", false, "write the result as JSON, for scripts")
}

// A listFlag is a flag that may be repeated.
type listFlag []string

func (l *listFlag) String() string     { return strings.Join(*l, ", ") }
func (l *listFlag) Set(v string) error { *l = append(*l, v); return nil }

// onClose registers fn to be called after the command has run.
func (e *env) onClose(fn func()) { e.closers = append(e.closers, fn) }

func (e *env) close() {
	for _, fn := range slices.Backward(e.closers) {
		fn()
	}
	e.closers = nil
	e.term.close()
}

// connect connects to the server named on the command line: the command after --, or the
// first word. It returns the remaining words. The connection is closed after the command
// has run.
func (e *env) connect(ctx context.Context, c *command, words []string) (conn *mcp.Conn, rest []string, err error) {
	t, rest, err := e.transport(ctx, c, words)
	if err != nil {
		return nil, nil, err
	}
	conn, err = e.dial(ctx, t, &mcp.ClientOptions{
		Elicit: e.term.elicit, ElicitURL: e.term.elicitURL, Extensions: []*mcp.ClientExtension{tasks.Client()},
	})
	return conn, rest, err
}

// newClient returns a client with the given options and the flags of the command line.
func (e *env) newClient(opts *mcp.ClientOptions) *mcp.Client {
	o := *opts
	o.Version, o.CallTimeout, o.Logger = e.client.protocol, e.client.timeout, e.log
	o.LogLevel = mcp.LoggingLevel(e.client.log)
	o.Log = func(_ context.Context, _ *mcp.Conn, p *mcp.LoggingMessageParams) { e.term.serverLog(p) }
	version, _ := buildVersion()
	return mcp.NewClient("psi", version, &o)
}

// dial opens a connection over a transport. It is closed after the command has run.
func (e *env) dial(ctx context.Context, t transport.Transport, opts *mcp.ClientOptions) (*mcp.Conn, error) {
	conn, err := e.newClient(opts).Connect(ctx, e.wrapped(t))
	if status, ok := errors.AsType[*mcphttp.StatusError](err); ok && status.Status == http.StatusNotFound && e.bare != "" {
		return nil, fmt.Errorf("%w; did you mean %s/mcp?", err, strings.TrimSuffix(e.bare, "/"))
	}
	if err != nil {
		return nil, err
	}
	e.onClose(func() { _ = conn.Close() }) // the command already has its result
	return conn, nil
}

// wrapped applies wrap and, with -v, logging to a transport.
func (e *env) wrapped(t transport.Transport) transport.Transport {
	if e.wrap != nil {
		t = e.wrap(t)
	}
	if e.client.verbose {
		t = transport.WithLogging(t, e.log)
	}
	return t
}
