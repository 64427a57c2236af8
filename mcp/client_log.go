// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"context"
)

type callLogKey struct{}

// A callLog is what a caller wants of the log messages about its calls.
type callLog struct {
	level LoggingLevel
	fn    func(p *LoggingMessageParams) // nil means nothing of its own
}

// WithLog returns a context for calls whose log messages are passed to fn instead of
// ClientOptions.Log: in order, in a goroutine other than the one that reads, and not after
// the call has returned. The level is the lowest that the server sends; "" means
// ClientOptions.LogLevel. A nil fn undoes what an earlier WithLog has done. If several calls to
// a legacy server are in flight at once, it may send messages that name none of them:
// ClientOptions.Log is called for these as well.
func WithLog(ctx context.Context, level LoggingLevel, fn func(p *LoggingMessageParams)) context.Context {
	if fn == nil {
		level = ""
	}
	return context.WithValue(ctx, callLogKey{}, callLog{level, fn})
}

func callLogOf(ctx context.Context) callLog {
	l, _ := ctx.Value(callLogKey{}).(callLog)
	return l
}

// logLevel returns the level of log messages to ask for: that of the caller, that of the
// sender of a request that is forwarded, or that of the client.
func (c *Conn) logLevel(ctx context.Context, req *Request) LoggingLevel {
	return cmp.Or(callLogOf(ctx).level, req.LogLevel(), c.client.opts.LogLevel)
}

// logListener returns the function for the log messages of a call: that of the caller, or one
// that passes them to the sender of a request that is forwarded. It is nil if they are for
// ClientOptions.Log only.
func (c *Conn) logListener(ctx context.Context, req *Request) func(p *LoggingMessageParams) {
	level := c.logLevel(ctx, req)
	switch own := callLogOf(ctx); {
	case own.fn != nil:
		return func(p *LoggingMessageParams) {
			if p.Level.reaches(level) { // a legacy server may send more
				own.fn(p)
			}
		}
	case req.LogLevel() != "":
		return func(p *LoggingMessageParams) { req.notifyLog(ctx, p) }
	}
	return nil
}

// receiveLog passes a log message to the listener of the call that it is about, and reports
// whether the client's own function need not be called. If the stream and the message do
// not name the call, the message is passed on only if it can be about one call alone.
func (c *Conn) receiveLog(note *Request, about ID) (handled bool) {
	var p LoggingMessageParams
	if note.Decode(&p) != nil {
		return false
	}
	own := c.client.opts.LogLevel
	if about.IsZero() {
		_ = p.Meta.Get(MetaProgressToken, &about)
	}
	if id, err := c.inFlight.Attribute(about); err == nil {
		if l := c.listenerOf(id); l != nil && l.log != nil {
			l.queue.add(len(note.Params()), func() { l.log(&p) })
			handled = own == "" || l.ownsLog
		}
	}
	return handled || !p.Level.reaches(own)
}

// reaches reports whether a message of level l is to be sent to a peer that wants messages
// from level lowest on. It is true if one of the levels is unknown.
func (l LoggingLevel) reaches(lowest LoggingLevel) bool {
	level, ok := l.Level()
	bound, bounded := lowest.Level()
	return !ok || !bounded || level >= bound
}

// notifyLog passes a log message on to the sender of the request, if it wants messages of
// that level.
func (r *Request) notifyLog(ctx context.Context, p *LoggingMessageParams) {
	if r.LogLevel() == "" || !p.Level.reaches(r.LogLevel()) {
		return
	}
	params := *p
	params.Meta = withoutKey(p.Meta, MetaProgressToken)
	r.addProgressToken(&params)
	_ = r.Notify(ctx, NotificationMessage, &params) // the sender may not listen
}

// addProgressToken adds the progress token of the request, if it has one, to a log message.
// Where all calls share a stream, nothing else says which call a message is about.
func (r *Request) addProgressToken(p *LoggingMessageParams) {
	if token := r.ProgressToken(); !token.IsZero() {
		p.Meta.Set(MetaProgressToken, token)
	}
}
