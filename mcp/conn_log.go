// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "context"

// logKey is of the function that takes the messages about a call, where it is not the
// sender of the call's request that wants them.
type logKey struct{}

// logged takes a notifications/message, and reports whether there is nobody else to
// tell. In both eras it may come on a stream that does not say which call it is about;
// then it is told only if it can be about no other call than one.
func (c *Conn) logged(note *Request, about ID) (taken bool) {
	var p LogParams
	if note.Decode(&p) != nil {
		return false
	}
	own := c.client.opts.LogLevel
	if about.IsZero() {
		_ = p.Meta.Get(MetaProgressToken, &about)
	}
	if id, err := c.underWay.only(about); err == nil {
		if l := c.listenerOf(id); l != nil && l.log != nil {
			l.queue.add(0, func() { l.log(&p) })
			taken = own == ""
		}
	}
	return taken || !p.Level.reaches(own)
}

// reaches reports whether a message of level l is one of those that least asks for. It
// is true if either is no level.
func (l LoggingLevel) reaches(least LoggingLevel) bool {
	level, ok := l.Level()
	bound, bounded := least.Level()
	return !ok || !bounded || level >= bound
}

// notifyLog passes a message on to the sender of the request, if it wants any of that
// level.
func (r *Request) notifyLog(ctx context.Context, p *LogParams) {
	if r.LogLevel() == "" || !p.Level.reaches(r.LogLevel()) {
		return
	}
	params := *p
	params.Meta = withoutKey(p.Meta, MetaProgressToken)
	r.label(&params)
	_ = r.Notify(ctx, NotificationMessage, &params) // its sender may not listen
}

// label puts the progress token of the request, if it has one, into a message: where all
// calls share a stream, nothing else says which of them a message is about.
func (r *Request) label(p *LogParams) {
	if token := r.ProgressToken(); !token.IsZero() {
		p.Meta.Set(MetaProgressToken, token)
	}
}

// wantLevel asks a server of the legacy era, whose level is that of the session, for the
// messages that the sender of a request wants. It never asks for less, which others may
// want: what is passed on is what each sender asked for.
func (e *legacyClient) wantLevel(ctx context.Context, level LoggingLevel) {
	if level == "" || e.conn.Server().Capabilities.Logging == nil {
		return
	}
	e.mu.Lock()
	known := e.level != "" && level.reaches(e.level)
	if !known {
		e.level = level
	}
	e.mu.Unlock()
	if known {
		return
	}
	if err := e.command(ctx, legacySetLevel, map[string]LoggingLevel{"level": level}); err != nil {
		e.conn.client.opts.Logger.WarnContext(ctx, "mcp: the level of log messages that a caller wants was not set", "level", level, "error", err)
	}
}
