// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptrace

import (
	"context"
	"encoding/json"
	"time"

	"github.com/go-psi/psi/mcp/transport"
)

// A ClientTrace is a set of hooks that a client runs at events that its results do not show.
// Any hook may be nil. Hooks may be called concurrently, and after the traced call has
// returned. They must not block, because the client waits for them, and must not modify
// their arguments.
//
// A trace in the context passed to Connect or Maintain of a client applies to
// the connection: to all events that have no trace of their own. A trace in the context of a
// call applies to the call. Without a trace, nothing is called or allocated.
type ClientTrace struct {
	// ProbeSent is called before a server/discover or initialize request is sent to find out
	// which revision the server speaks.
	ProbeSent func(ProbeInfo)
	// EraChosen is called when the revision of a connection has been chosen.
	EraChosen func(EraInfo)
	// CacheHit is called when a cached value is used instead of sending a request.
	CacheHit func(CacheInfo)
	// Question is called before the client, or its middleware, answers a question of the
	// server. Answered is called afterwards.
	Question func(QuestionInfo)
	Answered func(QuestionInfo)
	// Round is called before a request is sent again with the answers to questions. Legacy
	// servers ask while they serve the request, which is not sent again.
	Round func(RoundInfo)
	// Retry is called before a failed request is sent again.
	Retry func(RetryInfo)
	// Reconnect is called before a connection, session or stream that has ended is reopened.
	Reconnect func(ReconnectInfo)
	// Challenge is called when an HTTP server rejects a request because of its sender.
	Challenge func(ChallengeInfo)
	// WireWrite is called with each message before it is passed to the transport, and
	// WireRead with each message that the transport has read, in the form of the negotiated
	// revision. A message that cannot be attributed to a call belongs to the connection.
	WireWrite func(WireInfo)
	WireRead  func(WireInfo)
}

// EraInfo describes the choice of a connection's revision.
type EraInfo struct {
	Version string
	// Reason is a human-readable explanation of the choice.
	Reason string
	// Guess reports that the server did not state its revision. A guess is not cached.
	Guess bool
}

// ProbeInfo describes a request that finds out which revision a server speaks.
type ProbeInfo struct {
	Method string // server/discover or initialize
}

// CacheInfo describes a cached value.
type CacheInfo struct {
	// Kind is "version" for the version of a legacy server, "schema" for the output schema of
	// a tool, "token" for a stored token of package oauth, or a method for a result cached by
	// package middleware.
	Kind string
	// Name is the name of the tool or prompt, or the URI of the resource, or the URL of the
	// server; it is "" if there is none.
	Name string
}

// QuestionInfo describes a question of a server.
type QuestionInfo struct {
	Method string
	Params json.RawMessage
	// Answer is the answer. If there is no answer, Err is the reason. Duration is the time
	// that answering took. All three are zero before the question is answered.
	Answer   json.RawMessage
	Err      error
	Duration time.Duration
}

// RoundInfo describes a request that is sent again with answers.
type RoundInfo struct {
	Method, Name string
	// Round counts how often the request is sent. It is 2 when the request is first repeated.
	Round int
	// Questions is the number of questions that were answered.
	Questions int
}

// RetryInfo describes a request that is sent again after it failed.
type RetryInfo struct {
	// Method and Name are those of the request. They are "" for an HTTP request of package
	// oauth.
	Method, Name string
	// Err is the reason why the request failed.
	Err error
	// Delay is how long the client has waited since the request failed.
	Delay time.Duration
}

// ReconnectInfo describes a connection, session or stream that is reopened.
type ReconnectInfo struct {
	// Kind is "connection", "session" or "stream".
	Kind string
	// Err is the reason why the previous one ended or could not be opened.
	Err error
}

// ChallengeInfo describes an HTTP response that rejects a request.
type ChallengeInfo struct {
	Status int                 // 401 or 403
	Header map[string][]string // the response header, including WWW-Authenticate
}

// WireInfo describes a message that is sent or received.
type WireInfo struct {
	ID     transport.ID // zero for a notification
	Method string       // "" for a response
	// About is the ID of the request whose stream carried a message of the server. It is zero
	// if there is no such stream.
	About transport.ID
	// Message is the message as JSON. If a message of the server could not be read, Message is
	// nil and Err is the reason.
	Message json.RawMessage
	Err     error
}

type clientTraceKey struct{}

// WithClientTrace returns a context with the trace t. If ctx already has a trace, the hooks of
// both are called, those of t first. If t is nil, WithClientTrace returns ctx.
func WithClientTrace(ctx context.Context, t *ClientTrace) context.Context {
	if t == nil {
		return ctx
	}
	if before := ClientTraceFromContext(ctx); before != nil {
		t = t.followedBy(before)
	}
	return context.WithValue(ctx, clientTraceKey{}, t)
}

// ClientTraceFromContext returns the trace of a context, or nil if it has none. It is meant for
// middleware and transports, which call the hooks that are not nil.
func ClientTraceFromContext(ctx context.Context) *ClientTrace {
	t, _ := ctx.Value(clientTraceKey{}).(*ClientTrace)
	return t
}

// followedBy returns a trace that calls the hooks of t and then those of next.
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

// inTurn returns a function that calls first and then second. Either may be nil.
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
