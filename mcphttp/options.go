// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// Options configure a [Handler]. Nil means the zero Options.
type Options struct {
	// MaxBody is how many bytes the body of a request may have. 0 means 16 MiB.
	MaxBody int64
	// Heartbeat is the time between two comments on a stream that is silent
	// otherwise, so that nobody between server and client takes it for dead. 0
	// means 15 seconds, negative none.
	Heartbeat time.Duration
	// WriteTimeout is how long the write of one answer, or of one event of a stream,
	// may take; an event shortly after another one has up to an eighth less. A client
	// that reads more slowly is cut off. It replaces http.Server.WriteTimeout, which
	// would end every stream: the time that a handler takes before it answers does not
	// count. 0 means 30 seconds.
	WriteTimeout time.Duration
	// BodyTimeout is how long the body of a request may take to arrive; one that takes
	// longer is refused with 408. It replaces http.Server.ReadTimeout. 0 means one
	// minute, negative leaves it to http.Server.
	BodyTimeout time.Duration

	// AllowedHosts and AllowedOrigins are what the Host and Origin headers may
	// be: hosts as "mcp.example.com", which means any port, or with a port as
	// "mcp.example.com:8443"; origins as "https://app.example.com", with a port
	// or ":*" if it is not the scheme's. "*" allows everything.
	//
	// Without AllowedHosts, a request that arrives on a loopback address must
	// name a loopback host: a web page that has its own name resolved to
	// 127.0.0.1 cannot reach the server. A proxy on the same machine that passes
	// on the public name needs that name here. On other addresses, every host may
	// be named, for a server cannot know its names.
	//
	// An Origin is allowed if it is listed, or is the host that the request names
	// and that host is listed, too, or is an address or a loopback host: any other
	// name could be that of a page which had it resolved to this server (DNS
	// rebinding). So a page that is served beside the server needs the server's
	// name in AllowedHosts.
	AllowedHosts, AllowedOrigins []string

	// SessionIdle is how long a session of the legacy era may be idle: without a
	// request being served and without a stream. 0 means 30 minutes.
	SessionIdle time.Duration
	// MaxSessions is how many sessions there may be at once, and MaxSessionsPerCaller
	// how many of them one caller may have: a principal or, without authentication, an
	// address (of IPv6, a network of 64 bits; behind a proxy, the proxy's, unless
	// middleware sets http.Request.RemoteAddr).
	//
	// A caller who opens one too many loses the session that is idle for longest, or
	// that only an absent client could come back to. Where there are too many in all,
	// the caller with the most sessions loses one. If there is none to lose, no more
	// are opened: their requests get 503, as do those for more streams of an
	// [SSEHandler], whose sessions are never idle. 0 means 10,000, and for each
	// caller a tenth of MaxSessions, but at least 100.
	MaxSessions, MaxSessionsPerCaller int
	// KeepAlive, MaxRounds and AskTimeout are as in [mcp.LegacyOptions].
	KeepAlive  time.Duration
	MaxRounds  int
	AskTimeout time.Duration

	// Store keeps sessions and the events of their streams, so that another
	// replica can go on with them; answers and cancellations find the replica that
	// serves their request. A session lives in it for up to twice SessionIdle, and
	// that one replica has ended it is known to the others within half of that. Nil
	// means that sessions stay in this process, and events in its memory.
	Store store.Store
	// Replay bounds the events that are kept of one stream, for a client that
	// comes back with Last-Event-ID. The zero value means 256 events, 4 MiB, 5
	// minutes.
	Replay store.Retention
	// ReplayPerCaller is how many bytes of events are kept of one caller, of all of
	// their streams in this process. Beyond it, the events of the stream that said
	// nothing for longest are forgotten. A caller is as in MaxSessionsPerCaller. 0
	// means 8 MiB.
	ReplayPerCaller int
	// Retry is how long a client is told to wait before it comes back to a
	// stream. 0 means one second.
	Retry time.Duration

	// Logger gets what there is to say to the operator. Nil means slog.Default.
	Logger *slog.Logger
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	opts.MaxBody = cmp.Or(opts.MaxBody, 16<<20)
	opts.Heartbeat = cmp.Or(opts.Heartbeat, 15*time.Second)
	opts.WriteTimeout = cmp.Or(opts.WriteTimeout, 30*time.Second)
	opts.BodyTimeout = cmp.Or(opts.BodyTimeout, time.Minute)
	opts.SessionIdle = cmp.Or(opts.SessionIdle, 30*time.Minute)
	opts.MaxSessions = cmp.Or(opts.MaxSessions, 10_000)
	opts.MaxSessionsPerCaller = cmp.Or(opts.MaxSessionsPerCaller, max(100, opts.MaxSessions/10))
	opts.ReplayPerCaller = cmp.Or(opts.ReplayPerCaller, 8<<20)
	opts.Retry = cmp.Or(opts.Retry, time.Second)
	if opts.Replay == (store.Retention{}) {
		opts.Replay = store.Retention{Records: 256, Bytes: 4 << 20, TTL: 5 * time.Minute}
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	return opts
}

// questionLifetime returns how long the store keeps which replica has asked a question.
func (o *Options) questionLifetime() time.Duration {
	switch {
	case o.AskTimeout > 0:
		return o.AskTimeout
	case o.AskTimeout < 0: // no limit, but a store needs one
		return 24 * time.Hour
	}
	return time.Hour
}

func (o *Options) legacy(id string, p *mcp.Principal) *mcp.LegacyOptions {
	return &mcp.LegacyOptions{
		ID: id, Principal: p, MaxRounds: o.MaxRounds, AskTimeout: o.AskTimeout, KeepAlive: o.KeepAlive, Logger: o.Logger,
	}
}
