// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// A Conn is a client's connection to a server. It speaks either era, and looks
// the same in both. It is safe for concurrent use. Calls end at the latest with
// the test, and if the server cannot be reached any more with [mcp.ErrClosed].
type Conn struct {
	client *Client
	tb     testing.TB
	wire   wire
	era    era
	ctx    context.Context
	cancel context.CancelCauseFunc
	close  sync.Once
	notes  chan Notification
	work   sync.WaitGroup

	mu       sync.Mutex
	last     int64
	level    mcp.LoggingLevel
	calls    map[mcp.ID]*call
	progress map[mcp.ID]func(*mcp.ProgressParams)
}

// wire carries messages. What comes back goes to [Conn.receive].
type wire interface {
	// start is called once, before anything else.
	start(c *Conn)
	// send sends a message. It returns an error if the message is a request that
	// will not be answered, but need not wait for the answer.
	send(ctx context.Context, m *message) error
	// listen opens the stream for what the server says of its own accord, which
	// in the legacy era HTTP needs.
	listen(ctx context.Context) error
	// aborts reports whether a request is cancelled by ending send.
	aborts() bool
	// close ends the connection and waits for what start has begun.
	close(ctx context.Context)
}

// message is a message on its way to the server.
type message struct {
	id     mcp.ID // zero unless it is a request
	method string // "" for a response
	name   string
	data   []byte
}

// call is a request that waits for its response.
type call struct {
	answer   chan *mcp.Response // of one place
	note     func(Notification) // takes its notifications, if not nil
	answered bool               // guarded by the connection's mu
}

// maxNotes is how many notifications a test may leave unread.
const maxNotes = 4096

func newConn(tb testing.TB, cl *Client, w wire) *Conn {
	c := &Conn{
		client: cl, tb: tb, wire: w, level: cl.LogLevel,
		notes:    make(chan Notification, maxNotes),
		calls:    map[mcp.ID]*call{},
		progress: map[mcp.ID]func(*mcp.ProgressParams){},
	}
	c.ctx, c.cancel = context.WithCancelCause(tb.Context())
	c.era = eraOf(c)
	w.start(c)
	return c
}

// Version is the protocol revision that is spoken.
func (c *Conn) Version() string { return c.era.version() }

// Notifications are what the server told, in order, beginning with the oldest that
// was not received yet. What belongs to a request is there before its result is.
func (c *Conn) Notifications() <-chan Notification { return c.notes }

// Close ends the connection and waits until nothing of it goes on. The end of the
// test does the same.
func (c *Conn) Close() {
	c.close.Do(func() {
		c.wire.close(context.WithoutCancel(c.ctx))
		c.cancel(mcp.ErrClosed)
		c.work.Wait()
	})
}

// Notify sends a notification.
func (c *Conn) Notify(ctx context.Context, method string, params any) error {
	p, err := newParams(params)
	if err != nil {
		return err
	}
	c.era.addMeta(p)
	return c.sendNotification(ctx, method, p.encode())
}

func (c *Conn) sendNotification(ctx context.Context, method string, params json.RawMessage) error {
	return c.wire.send(ctx, &message{method: method, data: mcp.AppendNotification(nil, method, params)})
}

// Request sends a request and returns the result. A question of the server is
// answered on the way. The error is an [*mcp.Error] if the server answered with
// one. When ctx is done before the answer is there, the request is cancelled and
// the error is the context's cause.
func (c *Conn) Request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	p, err := newParams(params)
	if err != nil {
		return nil, err
	}
	if fn := progressFrom(ctx); fn != nil {
		token := c.nextID()
		p.setDefault(mcp.MetaProgressToken, token)
		defer c.expectProgress(token, fn)()
	}
	c.era.addMeta(p)
	return c.era.request(ctx, method, p)
}

func (c *Conn) nextID() mcp.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	return mcp.IntID(c.last)
}

// roundTrip sends one request and waits for its response. Its notifications go to
// note, if that is not nil and they can be told from others.
func (c *Conn) roundTrip(ctx context.Context, method string, p *params, note func(Notification)) (json.RawMessage, error) {
	id := c.nextID()
	m, err := requestMessage(id, method, p.encode())
	if err != nil {
		return nil, err
	}
	waiting := &call{answer: make(chan *mcp.Response, 1), note: note}
	c.expect(id, waiting)
	defer c.forget(id)
	sending, stop := context.WithCancel(c.ctx)
	defer stop()
	sent := make(chan error, 1)
	c.work.Go(func() { sent <- c.wire.send(sending, m) })
	for {
		select {
		case r := <-waiting.answer:
			return c.outcome(ctx, r, sent)
		case err := <-sent:
			if err != nil {
				return nil, err
			}
			sent = nil
		case <-ctx.Done():
			c.abandon(id)
			return nil, context.Cause(ctx)
		case <-c.ctx.Done():
			return nil, context.Cause(c.ctx)
		}
	}
}

// requestMessage lets package mcp read the params, which knows what the request
// is about.
func requestMessage(id mcp.ID, method string, params json.RawMessage) (*message, error) {
	req, err := mcp.NewRequest(method, params)
	if err != nil {
		return nil, err
	}
	data := mustMarshal(struct {
		Version string          `json:"jsonrpc"`
		ID      mcp.ID          `json:"id"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params,omitzero"`
	}{"2.0", id, method, params})
	return &message{id: id, method: method, name: req.Name(), data: data}, nil
}

// outcome waits for the end of what carried the response, so that a test which
// goes on meets a quiet server.
func (c *Conn) outcome(ctx context.Context, r *mcp.Response, sent <-chan error) (json.RawMessage, error) {
	if sent != nil {
		select {
		case <-sent: //nolint:errcheck // with the response there, how it ended does not matter
		case <-ctx.Done():
		case <-c.ctx.Done():
		}
	}
	if r.Error != nil {
		return nil, r.Error
	}
	return r.Result, nil
}

// abandon cancels a request.
func (c *Conn) abandon(id mcp.ID) {
	if c.wire.aborts() {
		return // ending send has done it
	}
	params := mustMarshal(&mcp.CancelledParams{RequestID: id, Reason: "the caller has gone"})
	_ = c.sendNotification(c.ctx, mcp.NotificationCancelled, params)
}

func (c *Conn) expect(id mcp.ID, waiting *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[id] = waiting
}

func (c *Conn) forget(id mcp.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

func (c *Conn) callOf(id mcp.ID) *call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[id]
}

// receive takes a message of the server. A wire that knows to which request it
// belongs says so by id.
func (c *Conn) receive(data []byte, id mcp.ID) {
	m, err := mcp.ParseMessage(data)
	switch {
	case err != nil:
		c.tb.Errorf("mcptest: the server sent %.200q: %v", data, err)
	case m.Response != nil:
		if m.Response.ID.IsZero() {
			m.Response.ID = id
		}
		c.answered(m.Response)
	case m.Request.IsNotification():
		c.notified(Notification{m.Request.Method, m.Request.Params()})
	default:
		c.work.Go(func() { c.asked(m.Request) })
	}
}

// answered takes a response. One that nobody waits for is late, which can happen
// to what was cancelled.
func (c *Conn) answered(r *mcp.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.calls[r.ID]
	switch {
	case waiting == nil:
	case waiting.answered:
		c.tb.Errorf("mcptest: the server answered request %s twice", r.ID)
	default:
		waiting.answered = true
		waiting.answer <- r
	}
}

// isOpen reports whether a request still waits for its response.
func (c *Conn) isOpen(id mcp.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := c.calls[id]
	return waiting != nil && !waiting.answered
}

func (c *Conn) notified(n Notification) {
	if waiting := c.callOf(subscriptionOf(n)); waiting != nil && waiting.note != nil {
		waiting.note(n)
	}
	if n.Method == mcp.NotificationProgress {
		c.progressed(n)
	}
	select {
	case c.notes <- n:
	default:
		c.tb.Errorf("mcptest: over %d notifications were not received by the test", maxNotes)
	}
}

// asked answers a request of the server, which only the legacy era has.
func (c *Conn) asked(req *mcp.Request) {
	result, err := c.era.answer(c.ctx, req)
	var data []byte
	if err != nil {
		var coded *mcp.Error
		if !errors.As(err, &coded) {
			coded = mcp.Errorf(-1, "%w", err)
		}
		data = mcp.AppendErrorResponse(nil, req.ID, coded)
	} else {
		data = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, mustMarshal(result))
	}
	if err := c.wire.send(c.ctx, &message{data: data}); err != nil && c.ctx.Err() == nil {
		c.tb.Errorf("mcptest: answering %s: %v", req.Method, err)
	}
}
