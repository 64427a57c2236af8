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

	// Elicit answers elicitation/create in form mode, ElicitURL in URL mode, and Sample
	// sampling/createMessage. The client declares a capability for each non-nil function.
	// Returning an error declines the request: the call that the server asked about then
	// fails, a tool with a failed result that contains the error text, any other request
	// with an error. On legacy connections the server decides that; servers made with
	// this package do the same.
	//
	// ElicitURL is called only for URLs that are https, or http to this machine, and have
	// no user information. It should show the URL to the user and ask before opening it.
	Elicit    func(ctx context.Context, p *ElicitParams) (*ElicitResult, error)
	ElicitURL func(ctx context.Context, p *ElicitParams) (*ElicitResult, error)
	Sample    func(ctx context.Context, p *CreateMessageParams) (*CreateMessageResult, error)
	// SampleTools declares that Sample can use tools.
	SampleTools bool
	// Roots are the file:// URIs with which a connection answers roots/list at first.
	// [Conn.AddRoots] and [Conn.RemoveRoots] change them. Nil means that the client does
	// not declare roots.
	Roots []Root
	// AnswerMiddleware is middleware applied to the functions above, outermost first. It
	// sees elicitation/create, sampling/createMessage and roots/list requests.
	AnswerMiddleware []Middleware
	// Capabilities are declared in addition to those that follow from the functions:
	// extensions, experimental features, and questions that the program answers itself.
	// If a server asks a question that is declared but has no function, the call returns
	// an [*InputRequiredError], except on legacy connections.
	Capabilities *ClientCapabilities
	// Extensions are extensions of the protocol that the client speaks, such as that of
	// [github.com/go-psi/psi/mcp/tasks]. They are declared with every request.
	Extensions []ClientExtension
	// Forward is for gateways. The client declares the capabilities of the functions that
	// are nil as well, and passes questions for them, as an [*InputRequired], to the sender
	// of the request that [Conn.ServeMCP] was called with.
	//
	// Open one connection per caller to a legacy server. All callers of a connection share
	// the server's session: roots that the server has asked for once, subscriptions, and
	// what its tools remember. On a stream, such as that of a command, the server's
	// questions and log messages do not name the call they belong to. They are passed on
	// only while a single call is in flight, and no other caller has abandoned a call in
	// the last ten minutes. Otherwise the question is refused with the reason. Callers are
	// distinguished by their principals or, without one, by their sessions. Callers
	// without either are treated as different each time.
	Forward bool
	// MaxRounds bounds how often a server may ask about one request, and MaxQuestions how
	// many questions it may ask at once. A server that exceeds them gets an error, and so
	// does the caller. At most four questions about one request are answered at the same
	// time. 0 or less means 32 rounds of 16 questions.
	MaxRounds, MaxQuestions int
	// MaxPages bounds how many pages of a list the iterators read, such as [Conn.Tools].
	// They end with [ErrTooManyPages] then. 0 means 1000; a negative value means no bound.
	MaxPages int

	// Log is called for log messages for which [WithLog] has no function, Notification for
	// other notifications that belong neither to a call nor to a subscription made with
	// [Conn.Listen]. Calls do not overlap. The functions may use the connection.
	Log          func(ctx context.Context, c *Conn, p *LoggingMessageParams)
	Notification func(ctx context.Context, c *Conn, note *Request)

	// LogLevel is the lowest level of log messages that the server sends. "" means that
	// it sends none. If a legacy server rejects the level, the client logs a warning and
	// continues.
	LogLevel LoggingLevel
	// Version pins the protocol version, without probing. "" means that the client
	// probes.
	Version string
	// ConnectTimeout bounds how long a server may take to answer its first request,
	// including the time to start or to be downloaded. It does not influence which
	// revision is chosen. 0 means 2 minutes; a negative value means no bound except the
	// context.
	ConnectTimeout time.Duration
	// CallTimeout bounds how long a server may take to answer a call. Progress
	// notifications restart the timeout. It is paused while the client answers a question
	// of the server; on legacy connections every pending call is paused, because such
	// questions are not tied to one call. 0 means no bound except the context.
	CallTimeout time.Duration
	// KeepAlive is the interval at which a connection pings its server; see [Conn.Ping].
	// If three pings in a row are not answered, the connection is closed and its Err
	// returns [ErrNoAnswer]. 0 means never: an idle connection causes no traffic.
	KeepAlive time.Duration
	// Logger receives diagnostic messages. Nil means slog.Default.
	Logger *slog.Logger
}

// A ClientExtension is the client's side of an extension of the protocol.
type ClientExtension interface {
	// ID returns the identifier of the extension, such as "io.modelcontextprotocol/tasks".
	ID() string
	// Settings returns the settings that the client declares, a JSON object; nil means none.
	Settings() json.RawMessage
	// Middleware returns middleware for the requests of a connection. It sees each request
	// after the middleware of [Conn.Use], and before the server can ask questions about it.
	Middleware(c *Conn) Middleware
}

// An ExtensionResults is a [ClientExtension] that has types for its results. Without it,
// results of methods and result types that package mcp does not know are kept in the Extra of
// an [EmptyResult].
type ExtensionResults interface {
	ClientExtension
	// NewResult returns a pointer to decode the result of a method into, nil if the result is
	// not one of the extension. ResultType is "" if the result does not say.
	NewResult(method, resultType string) Result
}

// A Client connects to servers of every revision. It is safe for concurrent use. It must be
// made by [NewClient].
type Client struct {
	info     Implementation
	opts     ClientOptions
	versions versionCache

	infoJSON, ownCapsJSON []byte // part of every request
}

// NewClient returns a client with the given name and version. Opts may be nil. It panics if
// the name is empty or a middleware is nil.
func NewClient(name, version string, opts *ClientOptions) *Client {
	mustBeNamed("NewClient", name)
	c := new(Client)
	if opts != nil {
		c.opts = *opts
	}
	o := &c.opts
	c.info = Implementation{Name: name, Version: version, Title: o.Title, Description: o.Description, WebsiteURL: o.WebsiteURL, Icons: o.Icons}
	o.MaxRounds = cmp.Or(max(o.MaxRounds, 0), maxRounds)
	o.MaxQuestions = cmp.Or(max(o.MaxQuestions, 0), maxQuestions)
	o.MaxPages = cmp.Or(o.MaxPages, 1000)
	o.ConnectTimeout = cmp.Or(o.ConnectTimeout, 2*time.Minute)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	mustBeMiddleware("NewClient", o.AnswerMiddleware)
	c.infoJSON, c.ownCapsJSON = mustMarshal(&c.info), mustMarshal(o.capabilities(false))
	return c
}

// capabilities returns the capabilities to declare: those of the options and of the
// functions, and if all is true those of functions that are nil as well.
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
		if o.Sample == nil || o.SampleTools {
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

// mustBeMade panics if NewClient did not make the client.
func (c *Client) mustBeMade() {
	made.Check(c != nil && c.info.Name != "", "mcp: a Client", "NewClient")
}

// Connect connects to a server. It finds out which revision to speak from the server's
// answers, and waits for a slow server until [ClientOptions].ConnectTimeout has passed. It
// remembers the version for the transport, and probes again when the version is not valid
// any more. The context bounds connecting only.
func (c *Client) Connect(ctx context.Context, t transport.Transport) (*Conn, error) {
	c.mustBeMade()
	return c.connectRemembered(ctx, t)
}

const makeTransport = "make one with mcphttp.NewTransport, mcpstdio.NewCommand or mcp.InProcess"

var errNoTransport = errors.New("mcp: Connect: the transport is nil; " + makeTransport)

// ConnectVersion connects to a server that is known to speak a version, from an earlier
// [Conn.Version], without probing. If the server turns out to speak another one, the client
// probes once, unless [ClientOptions].Version is set. An empty version means that it is not
// known.
func (c *Client) ConnectVersion(ctx context.Context, t transport.Transport, version string) (*Conn, error) {
	c.mustBeMade()
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
			err = noAnswerError(context.Cause(ctx), time.Since(start), "")
		}
		return nil, err
	}
	if err := conn.discover(ctx); err != nil {
		if ctx.Err() != nil {
			err = noAnswerError(context.Cause(ctx), time.Since(start), peerOf(conn.wire))
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
