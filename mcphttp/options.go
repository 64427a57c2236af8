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

// Options configure a [Handler]. Nil means the zero Options. For every number and duration,
// 0 means the default, and a negative value means no limit or turns the feature off.
type Options struct {
	// MaxBody is the maximum size of a request body, in bytes. 0 means 16 MiB.
	MaxBody int64
	// Heartbeat is the interval between comments on an idle stream, which keep proxies from
	// closing it. 0 means 15 seconds.
	Heartbeat time.Duration
	// WriteTimeout bounds the time to write one response or one event of a stream. A client
	// that reads more slowly is disconnected. The time taken by the handler does not count.
	// WriteTimeout overrides http.Server.WriteTimeout, even a shorter one, which would
	// otherwise end every stream and every slow response. For this, middleware that wraps
	// the response writer must give it an Unwrap method; see [http.ResponseController]. 0
	// means 30 seconds.
	WriteTimeout time.Duration
	// BodyTimeout bounds the time to read a request body. If it is exceeded, the request is
	// refused with 408. It overrides http.Server.ReadTimeout, which applies if BodyTimeout
	// is negative. 0 means one minute.
	BodyTimeout time.Duration

	// AllowedHosts and AllowedOrigins list the permitted values of the Host and Origin
	// headers. Hosts have the form "mcp.example.com", which matches any port, or
	// "mcp.example.com:8443". Origins have the form "https://app.example.com", followed by
	// a port or ":*" if the port is not the default of the scheme. "*" allows every value.
	// In "*.example.com" and "https://*.example.com", "*" stands for exactly one label: list
	// only domains below which all names are yours, not those of a hosting service.
	//
	// Without AllowedHosts, a request that arrives on a loopback address must name a
	// loopback host, so that a web page cannot reach the server by resolving its own name
	// to 127.0.0.1. If a proxy on the same machine forwards the public name, list that
	// name. On other addresses any host is allowed, because a server cannot know its names.
	//
	// An Origin is allowed if it is listed, or if its host is the host of the request and
	// that host is listed, an IP address or a loopback host. Any other name could belong to
	// a page whose owner resolved it to this server (DNS rebinding). If the server's own
	// host also serves pages, list its name in AllowedHosts.
	AllowedHosts, AllowedOrigins []string

	// SessionIdle is how long a session of the legacy era may be idle, with neither a
	// request in flight nor a stream, before it ends. 0 means 30 minutes.
	SessionIdle time.Duration
	// MaxSessions is the maximum number of sessions, and MaxSessionsPerCaller the maximum
	// for one caller: a principal or, without authentication, an IP address (for IPv6, a
	// /64 network; behind a proxy, the proxy's address, unless middleware sets
	// http.Request.RemoteAddr).
	//
	// If a caller exceeds its maximum, its session that has been idle longest is ended or,
	// if none is idle, one whose clients have all disconnected. If the total is exceeded,
	// the caller with the most sessions loses one. If no session can be ended, the request
	// is refused with 503, and so are requests for further streams of an [SSEHandler],
	// whose sessions are never idle. 0 means 10,000 sessions in total and, for each caller,
	// a tenth of MaxSessions, but at least 100.
	MaxSessions, MaxSessionsPerCaller int
	// KeepAlive is the interval between pings on the standalone stream of a session. After
	// three consecutive pings without an answer, the session is closed. With a Store, it
	// can continue at another replica. 0 means no pings.
	KeepAlive time.Duration
	// AskTimeout bounds the time a client may take to answer a question. 0 means one hour,
	// negative no limit.
	AskTimeout time.Duration

	// Store holds sessions and the events of their streams, so that other replicas can
	// continue them. Answers and cancellations are relayed to the replica that serves the
	// request. If that replica is killed, the request fails within 15 seconds for a client
	// that resumes its stream. A session is stored for up to twice SessionIdle, and other
	// replicas notice within SessionIdle/2 that it was ended. Nil means that sessions and
	// events are held in the memory of this process.
	Store store.Store
	// Replay bounds the events kept for each stream, for clients that resume it with
	// Last-Event-ID. The zero value means 256 events, 4 MiB, 5 minutes.
	Replay store.Retention
	// ReplayPerCaller is the maximum number of bytes of events kept in this process for all
	// streams of one caller; see MaxSessionsPerCaller. Beyond that, the events of the
	// stream that has been silent longest are dropped. 0 means 8 MiB.
	ReplayPerCaller int
	// Retry is how long clients are told to wait before resuming a stream. 0 means one second.
	Retry time.Duration

	// Logger receives diagnostic messages. Nil means slog.Default.
	Logger *slog.Logger
}

// These limits are never reached, and are small enough not to overflow in calculations.
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

// endpoint returns an endpoint that serves h. The defaults of o must have been applied.
func (o *Options) endpoint(h mcp.Handler) *endpoint.Endpoint {
	g := newGuard(o)
	return endpoint.New(h, endpoint.Options{
		MaxBody: o.MaxBody, Heartbeat: o.Heartbeat, WriteTimeout: o.WriteTimeout, BodyTimeout: o.BodyTimeout, Logger: o.Logger,
	}, g.refusal)
}

// withDefault returns standard if value is 0, off if it is negative, and value otherwise.
func withDefault[T int | int64 | time.Duration](value, standard, off T) T {
	switch {
	case value == 0:
		return standard
	case value < 0:
		return off
	}
	return value
}
