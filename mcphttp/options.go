// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"log/slog"
	"math"
	"net/http"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
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

	// Sessions configures the sessions of the legacy era. Clients of 2026-07-28 have none.
	Sessions SessionOptions

	// Logger receives diagnostic messages. Nil means the logger of the handler, if it is an
	// [mcp.Mux], an [mcp.Conn] or an [mcp.Upstream], with or without [mcp.Chain], and otherwise
	// slog.Default.
	Logger *slog.Logger
}

// SessionOptions configure the sessions of the legacy era. The zero SessionOptions keep them
// in the memory of this process.
type SessionOptions struct {
	// Stateless serves clients of the legacy era without sessions: initialize is answered
	// without a session ID, every request stands for itself, on any replica and without a
	// store, and a session ID that a platform has chosen is ignored. GET and DELETE are
	// refused with 405. A tool that asks a question gets the error that it gets for a client
	// without the capability. A log level has no effect beyond its request, and subscriptions
	// are refused. A call ends with its connection.
	Stateless bool
	// Shared lets other replicas pass on the requests of a session to the process that has
	// it, and continue the session if that process is gone. Nil means that a session is
	// served by this process alone: clients whose requests reach another one start again.
	Shared *SharedSessions
	// Idle is how long a session may be idle, with neither a request in flight nor a stream,
	// before it ends. A shared session may be stored longer. 0 means 30 minutes.
	Idle time.Duration
	// Max is the maximum number of sessions, and MaxPerCaller the maximum for one caller: a
	// principal or, without authentication, an IP address (for IPv6, a /64 network; behind a
	// proxy, the proxy's address, unless middleware sets http.Request.RemoteAddr).
	//
	// If a caller exceeds its maximum, its session that has been idle longest is ended or,
	// if none is idle, one whose clients have all disconnected. If the total is exceeded,
	// the caller with the most sessions loses one. If no session can be ended, the request
	// is refused with 503, and so are requests for further streams of an [SSEHandler],
	// whose sessions are never idle. 0 means 10,000 sessions in total and, for each caller,
	// a tenth of Max, but at least 100.
	Max, MaxPerCaller int
	// KeepAlive is the interval between pings on the standalone stream of a session. After
	// three consecutive pings without an answer, the session is closed. If it is shared, the
	// client can continue it. 0 means no pings.
	KeepAlive time.Duration
	// AskTimeout bounds the time a client may take to answer a question. 0 means one hour,
	// negative no limit.
	AskTimeout time.Duration
	// Replay is the maximum number of bytes of events that are kept in memory for one caller
	// (see MaxPerCaller), whose clients can resume their streams with Last-Event-ID. Beyond
	// that, and beyond fixed limits for a stream, a session and all of them, the first events
	// of the stream that has been silent longest are dropped. A stream that has been silent for
	// some minutes cannot be resumed. 0 means 8 MiB.
	Replay int
}

// SharedSessions is what replicas need to serve sessions together. A session has one owner, the
// process in whose memory it is. Another replica passes its requests on to
// [Handler.PeerHandler] of the owner. If the owner cannot be reached within a few seconds,
// shuts down or has lost the session, the other replica becomes the owner and continues with
// what is stored: the version, the client, its capabilities, its log level and its
// subscriptions. Requests in flight on a process that dies end with their connections.
//
// All fields are required, but for Transport.
type SharedSessions struct {
	// Values is the store that all replicas share, such as one of package
	// mcp/store/redisstore.
	Values store.Values
	// URL is where the other replicas reach the PeerHandler of this process, and of no other,
	// such as "http://10.1.2.3:8081/": each replica has a URL of its own.
	URL string
	// Keys are secrets of at least 16 random bytes that all replicas share. The first one
	// seals what is stored and passed on, all of them open it: to replace a key, first add
	// the new one behind the old one everywhere, then exchange the two, then remove the old
	// one.
	Keys [][]byte
	// Transport connects to other replicas, for example with certificates of a private
	// authority. NewHandler makes a copy. Nil means a transport without a proxy.
	Transport *http.Transport
}

// These limits are never reached, and are small enough not to overflow in calculations.
const (
	forever     = 100 * 365 * 24 * time.Hour
	unlimited   = math.MaxInt32
	unlimited64 = int64(1) << 62
)

func (o *Options) withDefaults(h mcp.Handler) Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.MaxBody = withDefault(opts.MaxBody, 16<<20, unlimited64)
	opts.Heartbeat = withDefault(opts.Heartbeat, 15*time.Second, 0)
	opts.WriteTimeout = withDefault(opts.WriteTimeout, 30*time.Second, forever)
	opts.BodyTimeout = withDefault(opts.BodyTimeout, time.Minute, 0)
	s := &opts.Sessions
	s.Idle = withDefault(s.Idle, 30*time.Minute, forever)
	s.Max = withDefault(s.Max, 10_000, unlimited)
	s.MaxPerCaller = withDefault(s.MaxPerCaller, max(100, s.Max/10), unlimited)
	s.Replay = withDefault(s.Replay, 8<<20, unlimited)
	s.KeepAlive = max(s.KeepAlive, 0)
	if opts.Logger == nil {
		opts.Logger = core.LoggerOf(h)
	}
	return opts
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
