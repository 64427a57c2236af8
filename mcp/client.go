// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"
)

// ClientOptions configure a [Client]. Nil means the zero ClientOptions.
type ClientOptions struct {
	// Title, Description, WebsiteURL and Icons say more of the client than its
	// name and version.
	Title, Description, WebsiteURL string
	Icons                          []Icon

	// Elicit answers elicitation/create in form mode, ElicitURL in URL mode, and
	// Sample sampling/createMessage. A client can be asked what it has a function
	// for, and declares nothing else. An error refuses the question: the call that
	// the server asked about then ends, a tool with a failed result that says why,
	// anything else with an error. In the legacy era the server decides that, and
	// servers made with this package decide so.
	//
	// ElicitURL gets only URLs that are https, or http to this machine, and have no
	// user information. It shows the user where they lead and asks before it opens
	// one.
	Elicit    func(ctx context.Context, p *ElicitParams) (*ElicitResult, error)
	ElicitURL func(ctx context.Context, p *ElicitParams) (*ElicitResult, error)
	Sample    func(ctx context.Context, p *CreateMessageParams) (*CreateMessageResult, error)
	// SampleTools declares that Sample can use tools.
	SampleTools bool
	// Roots are what roots/list answers at first; nil declares that there are
	// none to ask for. They are file:// URIs. [Conn.AddRoots] and [Conn.RemoveRoots] change them.
	Roots []Root
	// Answering is wrapped around the functions above, the first outermost. The
	// requests it sees are elicitation/create, sampling/createMessage, roots/list.
	Answering []Middleware
	// Capabilities are declared besides what follows from the functions:
	// extensions and experimental features.
	Capabilities *ClientCapabilities
	// Forward is for gateways: what there is no function for is declared all the
	// same, and the question goes to the sender of the request that [Conn.ServeMCP]
	// got, as an [*InputRequired].
	//
	// To a server of the legacy era make one connection for each caller. What such a
	// server keeps for a session, all callers of the connection share: roots that it
	// has asked for once, subscriptions, whatever its tools remember. And on a
	// stream, such as that of a command, its questions and log messages do not say
	// which call they are about: they are passed on only while a single call is under
	// way, and none that another caller gave up less than ten minutes ago. Otherwise
	// the question is refused, and the refusal says why. Callers are told apart by
	// their principals and, without one, by their sessions; callers with neither count
	// as different each time.
	Forward bool
	// MaxRounds is how often a server may ask about one request, MaxQuestions how
	// much at once; a server that asks more gets an error, and so does the caller. No
	// more than four questions about one request are answered at the same time. 0
	// means 32 rounds of 16 questions.
	MaxRounds, MaxQuestions int
	// MaxPages is how many pages of a list the iterators read, such as [Conn.Tools],
	// which end with [ErrTooManyPages] then. 0 means 1000, a negative value no bound.
	MaxPages int
	// ManualInput leaves questions unanswered: calls return *InputRequired.
	ManualInput bool

	// The following are called, one after the other and off the goroutine that
	// reads, when the server says so.
	ToolsChanged     func(ctx context.Context, c *Conn)
	PromptsChanged   func(ctx context.Context, c *Conn)
	ResourcesChanged func(ctx context.Context, c *Conn)
	ResourceUpdated  func(ctx context.Context, c *Conn, uri string)
	Log              func(ctx context.Context, c *Conn, p *LogParams)
	// Notification gets what none of the above is for.
	Notification func(ctx context.Context, c *Conn, method string, req *Request)

	// LogLevel is the least level of log messages that the client wants; "" means
	// that it wants none. That a server of the legacy era refuses it is logged, and
	// otherwise without effect.
	LogLevel LoggingLevel
	// Version pins the protocol version, without probing. "" finds it out.
	Version string
	// ProbeTimeout bounds connecting: it is how long a server may take to answer for
	// the first time, to start and to be downloaded included. It does not decide which
	// revision is spoken. 0 means 2 minutes, negative no bound but that of the context.
	ProbeTimeout time.Duration
	// CallTimeout bounds a call. Progress begins it anew, and so does an answer to a
	// question of the server, before which it stands still; in the legacy era, where
	// a question need not name its call, for all calls that wait. MaxCallTime
	// bounds all of it. 0 means no bound.
	CallTimeout, MaxCallTime time.Duration
	// KeepAlive is how often a connection asks its server for a sign of life, as
	// [Conn.Ping] does. Any answer is one, an error included. A connection whose server
	// misses three in a row is closed, and [Conn.Wait] says so. 0 means never: a
	// connection that is not used costs nothing.
	KeepAlive time.Duration
	// Logger gets what there is to say to the operator. Nil means slog.Default.
	Logger *slog.Logger
}

// A Client connects to servers of every revision. It is safe for concurrent use.
type Client struct {
	info     Implementation
	opts     ClientOptions
	caps     *ClientCapabilities
	verdicts *verdicts

	infoJSON, ownCapsJSON []byte // of every request of the modern era
}

// NewClient makes a client of that name and version; opts may be nil.
func NewClient(name, version string, opts *ClientOptions) *Client {
	c := &Client{verdicts: new(verdicts)}
	if opts != nil {
		c.opts = *opts
	}
	o := &c.opts
	c.info = Implementation{Name: name, Version: version, Title: o.Title, Description: o.Description, WebsiteURL: o.WebsiteURL, Icons: o.Icons}
	o.MaxRounds = cmp.Or(max(o.MaxRounds, 0), maxRounds)
	o.MaxQuestions = cmp.Or(max(o.MaxQuestions, 0), maxQuestions)
	o.MaxPages = cmp.Or(o.MaxPages, 1000)
	o.ProbeTimeout = cmp.Or(o.ProbeTimeout, 2*time.Minute)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	c.caps = c.capabilities()
	c.infoJSON, c.ownCapsJSON = mustMarshal(&c.info), mustMarshal(c.ownCapabilities())
	return c
}

// capabilities are those that follow from what is installed.
func (c *Client) capabilities() *ClientCapabilities {
	o := &c.opts
	caps := &ClientCapabilities{}
	if o.Capabilities != nil {
		*caps = *o.Capabilities
	}
	if o.Elicit != nil || o.ElicitURL != nil || o.Forward {
		caps.Elicitation = &ElicitationCapability{}
	}
	if o.Elicit != nil || o.Forward {
		caps.Elicitation.Form = &struct{}{}
	}
	if o.ElicitURL != nil || o.Forward {
		caps.Elicitation.URL = &struct{}{}
	}
	if o.Sample != nil || o.Forward {
		caps.Sampling = &SamplingCapability{}
	}
	if o.Sample != nil && o.SampleTools || o.Sample == nil && o.Forward {
		caps.Sampling.Tools = &struct{}{}
	}
	if o.Roots != nil || o.Forward {
		caps.Roots = &RootsCapability{}
	}
	return caps
}

// Connect connects to a server and finds out which revision to speak, by what the server
// answers: one that is slow is waited for, until ClientOptions.ProbeTimeout. It remembers
// what the server said for the transport, and asks again if that is no longer true. The
// context bounds connecting only.
func (c *Client) Connect(ctx context.Context, t Transport) (*Conn, error) {
	if c.opts.Version != "" {
		return c.ConnectWith(ctx, t, c.opts.Version)
	}
	conn, guess, err := c.connect(ctx, t, c.verdicts.of(t))
	switch {
	case err != nil:
	case guess:
		c.verdicts.set(t, "")
	default:
		c.verdicts.set(t, conn.Version())
	}
	return conn, err
}

// ConnectWith is Connect to a server that is known to speak a version, as
// [Conn.Version] told earlier, without a probe. If it turns out not to, what it
// speaks is found out once. An empty version is not known.
func (c *Client) ConnectWith(ctx context.Context, t Transport, version string) (*Conn, error) {
	conn, _, err := c.connect(ctx, t, version)
	return conn, err
}

// connect is ConnectWith. It reports whether the version is a guess.
func (c *Client) connect(ctx context.Context, t Transport, version string) (_ *Conn, guess bool, _ error) {
	if err := checkRoots(c.opts.Roots); err != nil {
		return nil, false, err
	}
	ctx, stop := withConnectClock(ctx, c.opts.ProbeTimeout)
	defer stop()
	conn, guess, err := c.connectWith(ctx, t, version)
	if err != nil {
		return nil, false, err
	}
	conn.notes.start()
	if c.opts.KeepAlive > 0 {
		go conn.keepAlive(c.opts.KeepAlive) // it lasts as long as the connection
	}
	return conn, guess, nil
}

func (c *Client) connectWith(ctx context.Context, t Transport, version string) (_ *Conn, guess bool, _ error) {
	pinned := c.opts.Version != ""
	switch {
	case slices.Contains(ModernVersions(), version):
		if pinned {
			conn, err := c.connectModern(ctx, t)
			return conn, false, err
		}
	case slices.Contains(LegacyVersions(), version):
		conn, err := c.connectLegacy(ctx, t, version)
		if other, _ := answersAsOlder(err); err == nil || pinned || !other && CodeOf(err) != CodeUnsupportedVersion {
			return conn, false, err
		}
	case version != "":
		return nil, false, UnsupportedVersion(version)
	}
	return c.probe(ctx, t)
}
