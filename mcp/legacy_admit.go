// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"sync"
)

// Serve takes one message of the session. What a request makes the server say on
// the way, questions included, goes to out; Serve returns the response, appended
// to dst, when the handler is done. It returns dst as it is if there is nothing
// to answer: m is no request, or was cancelled.
func (l *Legacy) Serve(ctx context.Context, dst []byte, m Message, out Sender) []byte {
	if !m.isCall() {
		l.take(ctx, m)
		return dst
	}
	a := l.Admit(ctx, m)
	return a.Serve(dst, out)
}

// isCall reports whether a message is to be answered.
func (m *Message) isCall() bool { return m.Request != nil && !m.Request.IsNotification() }

// take takes a message that is not answered.
func (l *Legacy) take(ctx context.Context, m Message) {
	if m.Response != nil {
		l.answered(m.Response)
		return
	}
	l.notified(ctx, m.Request)
}

// Admitted is a message, or a batch of some, that the session knows of and that is
// to be served: a cancellation that comes before that finds its request. It must
// be served, once.
type Admitted struct {
	legacy *Legacy
	ctx    context.Context
	cancel context.CancelCauseFunc // of a request that is in flight
	m      Message
	err    error      // of what is refused
	batch  []Admitted // nil if it is a single message
}

// Admit takes a message without serving it, for transports that read on
// meanwhile.
func (l *Legacy) Admit(ctx context.Context, m Message) Admitted {
	a := Admitted{legacy: l, ctx: ctx, m: m}
	if m.isCall() {
		a.err = l.begin(&a)
	}
	return a
}

// Serve serves what was admitted, as [Legacy.Serve] does. The responses to a batch
// are an array.
func (a *Admitted) Serve(dst []byte, out Sender) []byte {
	switch {
	case a.batch != nil:
		return a.serveBatch(dst, out)
	case a.err != nil:
		return AppendErrorResponse(dst, a.m.ID, a.err)
	case !a.m.isCall():
		a.legacy.take(a.ctx, a.m)
		return dst
	}
	defer a.done()
	res, err := a.legacy.serveRequest(a.ctx, a.m.Request, out)
	if wasCancelled(a.ctx) {
		return dst
	}
	return AppendResponse(dst, a.m.Request, res, err)
}

// maxInFlight is how many requests of one connection or session may be served at once
// if nothing else is said.
const maxInFlight = 1024

func duplicateID(id ID) error {
	return Errorf(CodeInvalidRequest, "the id %s belongs to a request that is not answered yet", id)
}

func tooMany(limit int) error {
	return Errorf(CodeInternalError, "%d requests are being served, which is the limit; send this one again later", limit)
}

// begin enters a request among those in flight and fills in what the session
// knows of its sender.
func (l *Legacy) begin(a *Admitted) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	req := a.m.Request
	if l.inflight.find(req.ID) != nil {
		return duplicateID(req.ID)
	}
	if len(l.inflight) >= l.most {
		return tooMany(l.most)
	}
	a.ctx, a.cancel = context.WithCancelCause(a.ctx)
	if l.isClosed() {
		a.cancel(ErrClosed)
	}
	l.inflight.add(req.ID, a.cancel)
	l.fillIn(req)
	return nil
}

func (a *Admitted) done() {
	a.cancel(nil)
	l := a.legacy
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inflight.remove(a.m.Request.ID)
}

// maxBatch bounds how many messages a batch may have.
const maxBatch = 100

// AdmitBatch takes an array of messages, as [Legacy.Admit] takes one. All of them are
// those of the sender of the array.
func (l *Legacy) AdmitBatch(ctx context.Context, data []byte, from Origin) Admitted {
	items, err := SplitBatch(data)
	if err == nil && len(items) > maxBatch {
		err = Errorf(CodeInvalidRequest, "a batch of %d messages is over the limit of %d", len(items), maxBatch)
	}
	if err != nil {
		return Admitted{err: err}
	}
	batch := make([]Admitted, len(items))
	for i, item := range items {
		batch[i] = l.admitItem(ctx, item, from)
	}
	return Admitted{batch: batch}
}

func (l *Legacy) admitItem(ctx context.Context, item []byte, from Origin) Admitted {
	m, err := ParseMessage(item)
	switch {
	case err != nil && m.Request != nil && m.Request.IsNotification():
		return Admitted{batch: []Admitted{}} // nothing to do and nothing to say
	case err != nil && m.Response == nil: // a response that cannot be read fails its question
		return Admitted{m: m, err: err}
	case m.IsInitialize():
		return Admitted{m: m, err: Errorf(CodeInvalidRequest, "initialize must not be in a batch")}
	}
	if m.Request != nil {
		from.mark(m.Request)
	}
	return l.Admit(ctx, m)
}

func (a *Admitted) serveBatch(dst []byte, out Sender) []byte {
	responses := make([][]byte, len(a.batch))
	var wg sync.WaitGroup
	for i := range a.batch {
		wg.Go(func() { responses[i] = a.batch[i].Serve(nil, out) })
	}
	wg.Wait()
	return appendArray(dst, responses)
}

func appendArray(dst []byte, items [][]byte) []byte {
	start := len(dst)
	for _, item := range items {
		if len(item) == 0 {
			continue
		}
		separator := byte(',')
		if len(dst) == start {
			separator = '['
		}
		dst = append(append(dst, separator), item...)
	}
	if len(dst) == start {
		return dst
	}
	return append(dst, ']')
}
