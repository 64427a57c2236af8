// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/mcp/transport"
)

// ClientOptions configure a [Client]. Nil means the zero ClientOptions.
type ClientOptions struct {
	// Title, Description, WebsiteURL and Icons are optional descriptive fields sent to
	// the server.
	Title, Description, WebsiteURL string
	Icons                          []Icon

	// Elicit answers elicitation/create in form mode, ElicitURL answers it in URL mode, and
	// Sample answers sampling/createMessage. The client declares a capability for each non-nil
	// function. c is the connection whose server asks: show the user who asks, for example the
	// name in [Conn.ServerInfo]. The functions may be called concurrently, with a context that
	// ends when the answer is no longer wanted. If a function returns an error, the request is
	// declined and the call that the server asked about fails: a tool call returns a failed
	// result that contains the error text, and any other call returns an error. On legacy
	// connections the server decides the outcome; servers built with this package do the same.
	//
	// ElicitURL is called only for https URLs, and http URLs to this machine, without user
	// information. It should show the URL to the user and ask before opening it. It is also
	// called for the pages that a server of 2025-11-25 requires with the error -32042; the
	// call is then repeated.
	//
	// A server may ask 32 times about one request, with 16 questions at once, of which at most
	// four are answered concurrently. Beyond that, the call fails. A legacy server asks one
	// question at a time, and gets an error for each excess question: for more than 16 open
	// ones for each call, and for more than 512 since the last tools/call, prompts/get or
	// resources/read began.
	Elicit    func(ctx context.Context, c *Conn, p *ElicitParams) (*ElicitResult, error)
	ElicitURL func(ctx context.Context, c *Conn, p *ElicitParams) (*ElicitResult, error)
	// Sample is like Elicit.
	//
	// Deprecated: the specification has deprecated sampling. Servers call the API of a model
	// provider instead. It works while a supported revision has sampling.
	Sample func(ctx context.Context, c *Conn, p *CreateMessageParams) (*CreateMessageResult, error)
	// Roots are the initial roots, with file:// URIs, that a connection returns for
	// roots/list. [Conn.AddRoots] and [Conn.RemoveRoots] change them. Nil means that the
	// client does not declare roots.
	//
	// Deprecated: the specification has deprecated roots. It works while a supported revision
	// has them.
	Roots []Root
	// Middleware is middleware for the requests that the client's connections send, including
	// the server/discover of the handshake, outermost first. [Conn.Use] adds middleware to one
	// connection, inside of it.
	Middleware []Middleware
	// AnswerMiddleware is middleware applied to the functions above, outermost first. It
	// sees elicitation/create, sampling/createMessage and roots/list requests.
	AnswerMiddleware []Middleware
	// Capabilities are declared in addition to those implied by the functions: extensions,
	// experimental features, tools in Sample, and questions that the program answers itself. If a server
	// asks a question that is declared but has no function, the call returns an
	// [*InputRequiredError], except on legacy connections.
	Capabilities *ClientCapabilities
	// Extensions are the protocol extensions that the client supports, such as
	// [github.com/go-psi/psi/mcp/tasks]. They are declared with every request.
	Extensions []*ClientExtension
	// Forward is for gateways. The client also declares the capabilities of nil functions,
	// and returns questions for them, as an [*InputRequired], to the sender of the request
	// passed to [Conn.ServeMCP].
	//
	// Open one connection per caller to a legacy server. All callers of a connection share the
	// server's session: the roots that the server requested, subscriptions, and any state kept
	// by its tools. On a stream, such as a command's, the server's questions and log messages
	// do not identify the call they belong to. They are passed on only while a single call is
	// in flight and no other caller has abandoned a call recently; otherwise the question is
	// rejected with the reason. A call whose questions its caller has not answered does not
	// count for that caller's other calls. Callers are distinguished by their principals or,
	// without one, by their sessions. Callers without either are treated as different each
	// time: give the peer of a stream a principal.
	Forward bool
	// AnswerAnytime also answers the questions that a legacy server asks before the first
	// call, or more than a minute after the last one. Otherwise only roots/list is answered.
	AnswerAnytime bool

	// Notification is called for notifications that belong neither to a call nor to a
	// subscription made with [Conn.Listen]. Calls of Notification and Log do not overlap. The
	// context ends with the connection, which the functions may use.
	Notification func(ctx context.Context, c *Conn, note *Request)
	// Log is called for log messages without a [WithLog] function.
	//
	// Deprecated: the specification has deprecated logging by the protocol. It works while a
	// supported revision has log messages.
	Log func(ctx context.Context, c *Conn, p *LoggingMessageParams)

	// LogLevel is the minimum level of the log messages that the server is asked to send.
	// "" means that it sends none. If a legacy server rejects the level, the client logs a
	// warning and continues.
	LogLevel LoggingLevel
	// Version pins the protocol version and disables probing. "" means that the client
	// probes.
	Version string
	// ConnectTimeout limits how long a server may take to answer its first request,
	// including the time to download or start it. It does not influence which revision is
	// chosen. 0 means 2 minutes; a negative value means no limit other than the context.
	ConnectTimeout time.Duration
	// CallTimeout limits how long a server may take to answer a call. Progress
	// notifications restart the timeout. It is paused while the client answers a question
	// of the server; on legacy connections every pending call is paused, because such
	// questions are not tied to one call. 0 means no limit other than the context.
	CallTimeout time.Duration
	// KeepAlive is the interval at which a connection pings its server; see [Conn.Ping]. If
	// three consecutive pings are not answered, the connection is closed and its Err method
	// returns [ErrNoAnswer]. 0 means never, so an idle connection causes no traffic.
	KeepAlive time.Duration
	// Logger receives diagnostic messages. Nil means slog.Default.
	Logger *slog.Logger

	// Limits that only tests lower.
	maxRounds, maxQuestions, maxPages int
}

// A ClientExtension is the client side of a protocol extension.
type ClientExtension struct {
	// ID is the identifier of the extension, such as "io.modelcontextprotocol/tasks".
	ID string
	// Settings are the settings that the client declares, a JSON object. Nil means none.
	Settings json.RawMessage
	// Middleware returns middleware for the requests of a connection. It sees each request
	// after the middleware added by [Conn.Use] and before the server can ask questions
	// about the request. Nil means none.
	Middleware func(c *Conn) Middleware
	// NewResult returns a pointer to decode the result of a method into, or nil if the
	// result does not belong to the extension. resultType is "" if the result does not
	// specify one. Results of unknown methods and result types are decoded as an
	// [EmptyResult] that holds their members in Extra. NewResult may be nil.
	NewResult func(method, resultType string) Result
}

// A Client connects to servers of any revision. It must be created with [NewClient]. It is
// safe for concurrent use.
type Client struct {
	info     Implementation
	opts     ClientOptions
	versions versionCache

	infoJSON, ownCapsJSON []byte // sent with every request
}

// NewClient returns a client with the given name and version. opts may be nil. It panics if
// the name is empty or a middleware is nil.
func NewClient(name, version string, opts *ClientOptions) *Client {
	mustBeNamed("NewClient", name)
	c := new(Client)
	if opts != nil {
		c.opts = *opts
	}
	o := &c.opts
	c.info = Implementation{Name: name, Version: version, Title: o.Title, Description: o.Description, WebsiteURL: o.WebsiteURL, Icons: o.Icons}
	o.maxRounds, o.maxQuestions = cmp.Or(o.maxRounds, maxRounds), cmp.Or(o.maxQuestions, maxQuestions)
	o.maxPages = cmp.Or(o.maxPages, 1000)
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 2*time.Minute)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	mustBeMiddleware("NewClient", o.AnswerMiddleware)
	c.infoJSON, c.ownCapsJSON = mustMarshal(&c.info), mustMarshal(o.capabilities(false))
	return c
}

// capabilities returns the capabilities to declare: those in the options and those of the
// non-nil functions or, if all is true, of all functions.
func (o *ClientOptions) capabilities(all bool) *ClientCapabilities {
	caps := &ClientCapabilities{}
	if o.Capabilities != nil {
		*caps = *o.Capabilities
	}
	if form, url := all || o.Elicit != nil, all || o.ElicitURL != nil; form || url {
		elicitation := *orEmpty(caps.Elicitation)
		if form {
			elicitation.Form = &struct{}{}
		}
		if url {
			elicitation.URL = &struct{}{}
		}
		caps.Elicitation = &elicitation
	}
	if all || o.Sample != nil {
		sampling := *orEmpty(caps.Sampling)
		if o.Sample == nil {
			sampling.Tools = &struct{}{}
		}
		caps.Sampling = &sampling
	}
	if all || o.Roots != nil {
		caps.Roots = &RootsCapability{}
	}
	for _, x := range o.Extensions {
		caps.declare(x)
	}
	return caps
}

// samplesTools reports whether Sample supports tools.
func (o *ClientOptions) samplesTools() bool {
	return o.Capabilities != nil && o.Capabilities.Sampling != nil && o.Capabilities.Sampling.Tools != nil
}

// mustBeMade panics unless the Client was created by NewClient.
func (c *Client) mustBeMade() {
	made.Check(c != nil && c.info.Name != "", "mcp: a Client", "NewClient")
}

// Connect connects to a server. It determines from the server's responses which revision the
// server speaks, and waits for a slow server until [ClientOptions].ConnectTimeout has passed.
// It remembers the version for the transport, and probes again when the version is no longer
// valid. ctx applies only to connecting.
func (c *Client) Connect(ctx context.Context, t transport.Transport) (*Conn, error) {
	c.mustBeMade()
	return c.connectRemembered(ctx, t)
}

const makeTransport = "make one with mcphttp.NewTransport, mcpstdio.NewCommand or mcp.InProcess"

var errNoTransport = errors.New("mcp: Connect: the transport is nil; " + makeTransport)

// connect connects to a server that is known to speak a version. If it turns out to speak
// another one, the client probes once, unless [ClientOptions].Version is set. An empty version
// means unknown.
func (c *Client) connect(ctx context.Context, t transport.Transport, version string) (*Conn, error) {
	if t == nil {
		return nil, errNoTransport
	}
	if err := checkRoots(c.opts.Roots); err != nil {
		return nil, err
	}
	if known := allVersions(); version != "" && !slices.Contains(known, version) {
		return nil, fmt.Errorf("mcp: Connect: this client speaks %s: %w", strings.Join(known, ", "), newUnsupportedVersionError(version))
	}
	start := time.Now()
	ctx, stop := withConnectTimeout(ctx, c.opts.ConnectTimeout)
	defer stop()
	conn := newConn(c)
	if err := conn.open(ctx, t, version); err != nil {
		if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
			err = noAnswerError(ctx, time.Since(start), "")
		}
		return nil, err
	}
	if err := conn.discover(ctx); err != nil {
		if ctx.Err() != nil {
			err = noAnswerError(ctx, time.Since(start), conn.wire.Info().Peer)
		}
		_ = conn.Close() // the error to report is err
		return nil, err
	}
	conn.notes.start()
	if c.opts.KeepAlive > 0 {
		go conn.keepAlive(c.opts.KeepAlive) // until the connection ends
	}
	return conn, nil
}
