// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"log/slog"
	"math"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp/internal/endpoint"
)

// Options configure a [Handler]. Nil means the zero Options. Of every number and duration,
// 0 means the default, and a negative one that there is no limit, or that the feature is
// off.
type Options struct {
	// MaxBody is the maximum size of a request body, in bytes. 0 means 16 MiB.
	MaxBody int64
	// Heartbeat is the interval between comments on a silent stream, which keep proxies
	// from closing it. 0 means 15 seconds.
	Heartbeat time.Duration
	// WriteTimeout bounds the write of one response, or of one event of a stream. A client
	// that reads more slowly is disconnected. The time that a handler takes does not count.
	// It replaces http.Server.WriteTimeout, however short that is, which would end every
	// stream and slow answer. Middleware that wraps the response writer must give it an
	// Unwrap method for that; see [http.ResponseController]. 0 means 30 seconds.
	WriteTimeout time.Duration
	// BodyTimeout bounds the time in which a request body must arrive; otherwise the
	// request is refused with 408. It replaces http.Server.ReadTimeout, which applies if
	// BodyTimeout is negative. 0 means one minute.
	BodyTimeout time.Duration

	// AllowedHosts and AllowedOrigins list the values that the Host and Origin headers
	// may have: hosts such as "mcp.example.com", with any port, or
	// "mcp.example.com:8443"; origins such as "https://app.example.com", followed by a
	// port or ":*" if the port is not the default of the scheme. "*" allows everything.
	//
	// Without AllowedHosts, a request that arrives on a loopback address must name a
	// loopback host, so that a web page cannot reach the server by having its own name
	// resolved to 127.0.0.1. If a proxy on the same machine passes the public name on,
	// list that name. On other addresses any host is allowed, because a server cannot
	// know its names.
	//
	// An Origin is allowed if it is listed, or if it is the host that the request names
	// and that host is listed, an address or a loopback host. Any other name could belong
	// to a page that had it resolved to this server (DNS rebinding). So if pages are
	// served beside the server, list the server's name in AllowedHosts.
	AllowedHosts, AllowedOrigins []string

	// SessionIdle is how long a session of the legacy era may have neither a request in
	// flight nor a stream before it ends. 0 means 30 minutes.
	SessionIdle time.Duration
	// MaxSessions is the maximum number of sessions, and MaxSessionsPerCaller that of the
	// sessions of one caller: a principal or, without authentication, an address (of
	// IPv6, a network of 64 bits; behind a proxy, the proxy's, unless middleware sets
	// http.Request.RemoteAddr).
	//
	// A caller that opens one too many loses the session that has been idle for longest,
	// or one that only an absent client could resume. If there are too many in total, the
	// caller with the most sessions loses one. If none can be ended, no more are opened:
	// such requests get 503, as do those for more streams of an [SSEHandler], whose
	// sessions are never idle. 0 means 10,000, and for each caller a tenth of
	// MaxSessions, but at least 100.
	MaxSessions, MaxSessionsPerCaller int
	// KeepAlive is the interval between pings on the standalone stream of a session, which is
	// closed after three in a row without an answer. With a Store, it can go on at another
	// replica. 0 means no pings.
	KeepAlive time.Duration
	// AskTimeout bounds the time in which a client must answer a question. 0 means one hour,
	// negative no limit.
	AskTimeout time.Duration

	// Store keeps sessions and the events of their streams where other replicas can
	// continue them. Answers and cancellations find the replica that serves their
	// request. A request whose replica was killed fails within a quarter of a minute for a
	// client that resumes its stream. A session is stored for up to twice SessionIdle, and other replicas notice
	// within SessionIdle/2 that it was ended. Nil means that sessions and events stay in
	// the memory of this process.
	Store store.Store
	// Replay bounds the events that are kept of one stream, for clients that resume it
	// with Last-Event-ID. The zero value means 256 events, 4 MiB, 5 minutes.
	Replay store.Retention
	// ReplayPerCaller is how many bytes of events are kept of all streams of one caller
	// in this process; see MaxSessionsPerCaller. Beyond that, the events of the stream
	// that has been silent for longest are dropped. 0 means 8 MiB.
	ReplayPerCaller int
	// Retry is how long clients are told to wait before they resume a stream. 0 means one
	// second.
	Retry time.Duration

	// Logger receives diagnostic messages. Nil means slog.Default.
	Logger *slog.Logger
}

// These limits are never reached, and small enough to calculate with.
const (
	forever     = 100 * 365 * 24 * time.Hour
	unlimited   = math.MaxInt32
	unlimited64 = int64(1) << 62
)

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.MaxBody = withDefault(opts.MaxBody, 16<<20, unlimited64)
	opts.Heartbeat = withDefault(opts.Heartbeat, 15*time.Second, 0)
	opts.WriteTimeout = withDefault(opts.WriteTimeout, 30*time.Second, forever)
	opts.BodyTimeout = withDefault(opts.BodyTimeout, time.Minute, 0)
	opts.SessionIdle = withDefault(opts.SessionIdle, 30*time.Minute, forever)
	opts.MaxSessions = withDefault(opts.MaxSessions, 10_000, unlimited)
	opts.MaxSessionsPerCaller = withDefault(opts.MaxSessionsPerCaller, max(100, opts.MaxSessions/10), unlimited)
	opts.ReplayPerCaller = withDefault(opts.ReplayPerCaller, 8<<20, unlimited)
	opts.Retry = withDefault(opts.Retry, time.Second, 0)
	opts.KeepAlive = max(opts.KeepAlive, 0)
	if opts.Replay == (store.Retention{}) {
		opts.Replay = store.Retention{Records: 256, Bytes: 4 << 20, TTL: 5 * time.Minute}
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	return opts
}

// endpoint returns an endpoint that serves h with these options, which have their defaults.
func (o *Options) endpoint(h mcp.Handler) *endpoint.Endpoint {
	g := newGuard(o)
	return endpoint.New(h, endpoint.Options{
		MaxBody: o.MaxBody, Heartbeat: o.Heartbeat, WriteTimeout: o.WriteTimeout, BodyTimeout: o.BodyTimeout, Logger: o.Logger,
	}, g.refusal)
}

// withDefault returns standard for 0, off for a negative value, and otherwise the value.
func withDefault[T int | int64 | time.Duration](value, standard, off T) T {
	switch {
	case value == 0:
		return standard
	case value < 0:
		return off
	}
	return value
}
