// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptrace

import (
	"context"
	"encoding/json"
	"time"

	"github.com/go-psi/psi/mcp/transport"
)

// A ClientTrace is a set of functions that a client calls when something happens that its
// results do not show. Any of them may be nil. They may be called by several goroutines at
// once, also after the call that is traced has returned, and must not block: the client
// waits for them. What they are given must not be changed.
//
// A trace in the context of the methods Connect, ConnectVersion and Maintain of a client is
// that of the connection: of everything that has no trace of its own. A trace in the context
// of a call is that of the call. Without a trace nothing is called, and nothing allocated.
type ClientTrace struct {
	// ProbeSent is called before a request is sent to find out which revision the server
	// speaks: server/discover, or initialize.
	ProbeSent func(method string)
	// EraChosen is called once it is decided which revision a connection speaks.
	EraChosen func(EraInfo)
	// CacheHit is called when something remembered is used instead of asking for it.
	CacheHit func(CacheInfo)
	// Question is called before a function of the client, or its middleware, answers a
	// question of the server, and Answered after that.
	Question func(QuestionInfo)
	Answered func(QuestionInfo)
	// Round is called before a request is sent again with the answers to questions. Legacy
	// servers ask while they serve a request, which is not sent again.
	Round func(RoundInfo)
	// Retry is called before a request that failed is sent again.
	Retry func(RetryInfo)
	// Reconnect is called before a connection, a session or a stream that has ended is opened
	// again.
	Reconnect func(ReconnectInfo)
	// Challenge is called when an HTTP server refuses a request because of its sender.
	Challenge func(ChallengeInfo)
	// WireWrite is called with each message before the transport gets it, and WireRead with
	// each one that the transport has read, as they are in the revision that is spoken.
	// A message that belongs to no call, or does not say to which, is one of the connection.
	WireWrite func(WireInfo)
	WireRead  func(WireInfo)
}

// EraInfo says which revision a connection speaks.
type EraInfo struct {
	Version string
	// Reason is why, for people.
	Reason string
	// Guess reports that the server has not said it explicitly. It is not remembered then.
	Guess bool
}

// CacheInfo describes what was remembered.
type CacheInfo struct {
	// Kind is "version" for that of a legacy server, "schema" for the output schema of a tool,
	// a method for a result in a cache of package middleware, and "token" for a stored token
	// of package oauth.
	Kind string
	// Name is that of the tool, prompt or resource, or the URL of a server; "" if there is no name.
	Name string
}

// QuestionInfo describes a question of a server.
type QuestionInfo struct {
	Method string
	Params json.RawMessage
	// Answer is the answer, Err the reason if there is no answer, and Duration how long it took. They are
	// zero before the question is answered.
	Answer   json.RawMessage
	Err      error
	Duration time.Duration
}

// RoundInfo describes a request that is sent again with answers.
type RoundInfo struct {
	Method, Name string
	// Round is how often the request is sent, 2 the first time that it is sent again.
	Round int
	// Questions is how many were answered.
	Questions int
}

// RetryInfo describes a request that is sent again after it failed.
type RetryInfo struct {
	// Method and Name are those of the request. They are "" for an HTTP request of package
	// oauth.
	Method, Name string
	Err          error
	// Delay is how long the client has waited since the request failed.
	Delay time.Duration
}

// ReconnectInfo describes what is opened again.
type ReconnectInfo struct {
	// Kind is "connection", "session" or "stream".
	Kind string
	// Err is why the last one ended or could not be opened.
	Err error
}

// ChallengeInfo describes a refusal.
type ChallengeInfo struct {
	Status int                 // 401 or 403
	Header map[string][]string // of the response, with WWW-Authenticate
}

// WireInfo describes a message on its way.
type WireInfo struct {
	ID     transport.ID // zero for a notification
	Method string       // "" for a response
	// About is the ID of the request whose stream carried a message of the server, zero if
	// it came on no such stream.
	About transport.ID
	// Message is the message as JSON. It is nil if the server's message could not be read, and
	// Err says why.
	Message json.RawMessage
	Err     error
}

type clientTraceKey struct{}

// WithClientTrace returns a context with a trace. If ctx has one already, the functions of
// both are called, those of t first. A nil t means none.
func WithClientTrace(ctx context.Context, t *ClientTrace) context.Context {
	if t == nil {
		return ctx
	}
	if before := ClientTraceFromContext(ctx); before != nil {
		t = t.followedBy(before)
	}
	return context.WithValue(ctx, clientTraceKey{}, t)
}

// ClientTraceFromContext returns the trace of a context, nil if it has none. Middleware and
// transports call its functions, those that are not nil.
func ClientTraceFromContext(ctx context.Context) *ClientTrace {
	t, _ := ctx.Value(clientTraceKey{}).(*ClientTrace)
	return t
}

// followedBy returns a trace that calls the functions of t and then those of next.
func (t *ClientTrace) followedBy(next *ClientTrace) *ClientTrace {
	return &ClientTrace{
		ProbeSent: inTurn(t.ProbeSent, next.ProbeSent),
		EraChosen: inTurn(t.EraChosen, next.EraChosen),
		CacheHit:  inTurn(t.CacheHit, next.CacheHit),
		Question:  inTurn(t.Question, next.Question),
		Answered:  inTurn(t.Answered, next.Answered),
		Round:     inTurn(t.Round, next.Round),
		Retry:     inTurn(t.Retry, next.Retry),
		Reconnect: inTurn(t.Reconnect, next.Reconnect),
		Challenge: inTurn(t.Challenge, next.Challenge),
		WireWrite: inTurn(t.WireWrite, next.WireWrite),
		WireRead:  inTurn(t.WireRead, next.WireRead),
	}
}

// inTurn returns a function that calls two others, either of which may be nil.
func inTurn[T any](first, second func(T)) func(T) {
	switch {
	case first == nil:
		return second
	case second == nil:
		return first
	}
	return func(info T) {
		first(info)
		second(info)
	}
}
