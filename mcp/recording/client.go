// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// Drive connects to a server and sends it the messages of the recorded client, each after
// the server messages that precede it. It compares what the server sends with the
// recording, as [Compare] does. It returns the first difference as a [*DifferenceError], or
// the error of a connection. Server messages that are not in the recording are ignored.
//
// States, cursors and task IDs that the server chose in the recording are replaced by the
// ones that it chooses during the replay. Redacted values are sent as they are in the
// recording.
func (r *Replay) Drive(ctx context.Context, t transport.Transport) error {
	r.mustBeMade()
	if t == nil {
		return errors.New("recording: Replay.Drive: the transport is nil")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	clients := map[string]*fakeClient{}
	defer func() {
		for _, c := range clients {
			c.close()
		}
	}()
	for _, e := range inOrder(r.sessions) {
		c := clients[e.Session]
		if c == nil {
			c = newFakeClient(r)
			clients[e.Session] = c
			if err := c.connect(ctx, t, e); err != nil {
				return err
			}
		}
		if err := c.play(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// inOrder returns the entries of all sessions, ordered by line.
func inOrder(sessions []*session) []*Entry {
	var all []*Entry
	for _, s := range sessions {
		all = append(all, s.entries...)
	}
	slices.SortStableFunc(all, func(a, b *Entry) int { return cmp.Compare(a.Line, b.Line) })
	return all
}

// fakeClient plays the client of a recording on one connection.
type fakeClient struct {
	replay     *Replay
	conn       transport.Conn
	connectErr error
	version    string // of the session
	calls      map[transport.ID]*fakeCall
	wanted     *normalizer // of the recording
	got        *normalizer // of the server
	chosen     *choices

	mu       sync.Mutex
	received []receivedMessage
	arrived  chan struct{} // closed when received changes
}

// A fakeCall is a call in progress.
type fakeCall struct {
	request *transport.Message
	cancel  context.CancelFunc
	done    chan struct{} // closed when answer and err are set
	answer  *transport.Message
	err     error
}

// A receivedMessage is a server message as a recorder would have written it.
type receivedMessage struct {
	transport.Message
	plain transport.Message // not redacted
}

func newFakeClient(r *Replay) *fakeClient {
	return &fakeClient{
		replay: r, calls: map[transport.ID]*fakeCall{}, wanted: newNormalizer(), got: newNormalizer(),
		chosen: newChoices(), arrived: make(chan struct{}),
	}
}

// connect opens the connection. It returns an error only if the connection did not fail in
// the recording.
func (c *fakeClient) connect(ctx context.Context, t transport.Transport, first *Entry) error {
	c.conn, c.connectErr = t.Connect(ctx, c.receive)
	if isConnectFailure(first) || c.connectErr == nil {
		return nil
	}
	return fmt.Errorf("recording: line %d: not connected: %w", first.Line, c.connectErr)
}

// isConnectFailure reports whether an entry records a failed attempt to connect.
func isConnectFailure(e *Entry) bool {
	return e.Failure != nil && e.Failure.ID.IsZero() && e.Failure.Kind != Lost
}

func (c *fakeClient) close() {
	for _, call := range c.calls {
		call.cancel()
	}
	if c.conn != nil {
		_ = c.conn.Close() // the recording does not say how it ends
	}
}

// receive is the [transport.Receiver] of the connection.
func (c *fakeClient) receive(m *transport.Message) {
	if m.Err != nil || m.Lost {
		return
	}
	redacted, err := c.replay.redacted(encode(m))
	if err != nil {
		return // it was parsed before
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = append(c.received, receivedMessage{redacted, *m})
	close(c.arrived)
	c.arrived = make(chan struct{})
}

// play performs the action of an entry, or waits for the server to perform it.
func (c *fakeClient) play(ctx context.Context, e *Entry) error {
	switch f := e.Failure; {
	case isConnectFailure(e):
		return c.expectNoConnection(e)
	case c.conn == nil:
		return fmt.Errorf("recording: line %d: session %q continues, but was not connected", e.Line, e.Session)
	case e.Omitted > 0:
		return fmt.Errorf("recording: line %d: %w", e.Line, errOmitted)
	case f != nil && f.Kind == Closed:
		_ = c.conn.Close() // as the client did
		return nil
	case f != nil && f.Kind == Cancelled:
		return c.cancelCall(ctx, e)
	case f != nil && f.Kind == Lost:
		return nil
	case f != nil:
		return c.expectFailure(ctx, e)
	case e.Direction == ToServer:
		return c.send(ctx, e)
	case e.parsed.IsResponse():
		return c.expectResponse(ctx, e)
	}
	return c.expectMessage(ctx, e)
}

func (c *fakeClient) expectNoConnection(e *Entry) error {
	if c.connectErr == nil {
		return &DifferenceError{Line: e.Line, Missing: "the server can be connected to, and could not in the recording"}
	}
	return nil
}

// send sends a message of the recording.
func (c *fakeClient) send(ctx context.Context, e *Entry) error {
	m := e.parsed
	if m.Params != nil {
		m.Params = c.chosen.replaced(m.Params, callKey(&e.parsed))
	}
	if m.IsResponse() {
		m.ID = c.chosen.id(m.ID)
	}
	out := c.outgoing(e, &m)
	if !m.IsRequest() {
		if err := c.conn.Send(ctx, out); err != nil {
			return fmt.Errorf("recording: line %d: %w", e.Line, err)
		}
		return nil
	}
	calling, cancel := context.WithCancel(ctx)
	call := &fakeCall{request: &e.parsed, cancel: cancel, done: make(chan struct{})}
	c.calls[m.ID.Canonical()] = call
	go func() { // runs until the call is answered, or cancelled at the end of the Replay
		defer close(call.done)
		call.answer, call.err = c.conn.Call(calling, out)
	}()
	return nil
}

// outgoing returns a message with the details that a transport needs.
func (c *fakeClient) outgoing(e *Entry, m *transport.Message) *transport.Outgoing {
	out := &transport.Outgoing{ID: m.ID, Method: m.Method, Version: c.version, Body: encode(m)}
	if v := text(jsonscan.Member(jsonscan.Member(m.Params, "_meta"), mcp.MetaProtocolVersion)); v != "" {
		out.Version = v
	}
	if req, err := core.NewRequest(m); err == nil && core.IsNamed(m.Method) {
		out.Name = req.Name()
	}
	for key, value := range e.Header {
		out.Headers = append(out.Headers, transport.HeaderParam{Key: key, Value: value})
	}
	return out
}

// text returns the string in raw, or "" if raw is not a string.
func text(raw json.RawMessage) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return jsonscan.Text(raw)
}

// driveWait is how long Drive waits for each server message. A server that answers later is
// as good as one that does not, and the context of Drive can end it sooner.
const driveWait = 10 * time.Second

// await waits until a call is done.
func (c *fakeClient) await(ctx context.Context, e *Entry, id transport.ID) (*fakeCall, error) {
	call := c.calls[id.Canonical()]
	if call == nil {
		return nil, fmt.Errorf("recording: line %d: request %s is not before it", e.Line, id)
	}
	ctx, cancel := context.WithTimeout(ctx, driveWait)
	defer cancel()
	select {
	case <-call.done:
		delete(c.calls, id.Canonical())
		return call, nil
	case <-ctx.Done():
		return nil, &DifferenceError{Line: e.Line, Missing: fmt.Sprintf("the server does not answer request %s within %v", id, driveWait)}
	}
}

// cancelCall cancels a call, as the client did.
func (c *fakeClient) cancelCall(ctx context.Context, e *Entry) error {
	if call := c.calls[e.Failure.ID.Canonical()]; call != nil {
		call.cancel()
	}
	_, err := c.await(ctx, e, e.Failure.ID)
	return err
}

// expectFailure waits until a call fails as in the recording.
func (c *fakeClient) expectFailure(ctx context.Context, e *Entry) error {
	call, err := c.await(ctx, e, e.Failure.ID)
	switch {
	case err != nil:
		return err
	case call.err == nil:
		return &DifferenceError{Line: e.Line, Missing: fmt.Sprintf("the server answers request %s, which failed in the recording", e.Failure.ID)}
	case kindOf(call.err) != e.Failure.Kind:
		return &DifferenceError{Line: e.Line, Path: "failure.kind", Want: string(e.Failure.Kind), Got: string(kindOf(call.err)) + ": " + call.err.Error()}
	}
	return nil
}

// expectResponse waits for a response and compares it.
func (c *fakeClient) expectResponse(ctx context.Context, e *Entry) error {
	call, err := c.await(ctx, e, e.parsed.ID)
	if err != nil {
		return err
	}
	if call.err != nil {
		return fmt.Errorf("recording: line %d: request %s fails: %w", e.Line, e.parsed.ID, call.err)
	}
	got, err := c.replay.redacted(encode(call.answer))
	if err != nil {
		return fmt.Errorf("recording: line %d: the response to request %s: %w", e.Line, e.parsed.ID, err)
	}
	c.learnVersion(call)
	c.chosen.learn(callKey(call.request), e.parsed.Result, call.answer.Result)
	return c.compare(e, &got)
}

// compare returns the difference between an entry and a server message, or nil.
func (c *fakeClient) compare(e *Entry, got *transport.Message) error {
	want := c.wanted.message(ToClient, &e.parsed)
	if d := differ("", want, c.got.message(ToClient, got), c.replay.opts.Ignore); d != nil {
		d.Line = e.Line
		return d
	}
	return nil
}

// expectMessage waits for a request or notification from the server. Messages on different
// streams may arrive in any order.
func (c *fakeClient) expectMessage(ctx context.Context, e *Entry) error {
	ctx, cancel := context.WithTimeout(ctx, driveWait)
	defer cancel()
	for {
		c.mu.Lock()
		found, nearest := c.takeLocked(e)
		arrived := c.arrived
		c.mu.Unlock()
		if found {
			return nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			if nearest != nil {
				return nearest
			}
			return &DifferenceError{Line: e.Line, Missing: fmt.Sprintf("the server does not send %s within %v", e.summary(), driveWait)}
		}
	}
}

// takeLocked removes the first received message that matches an entry. If there is none, it
// returns the difference from the first message with the same method.
func (c *fakeClient) takeLocked(e *Entry) (found bool, nearest error) {
	for i := range c.received {
		m := &c.received[i]
		if m.Method != e.parsed.Method {
			continue
		}
		wanted, got := c.wanted.clone(), c.got.clone()
		err := c.compare(e, &m.Message)
		if err == nil {
			if m.IsRequest() {
				c.chosen.addID(e.parsed.ID, m.ID)
			}
			c.chosen.learn("", e.parsed.Params, m.plain.Params)
			c.received = slices.Delete(c.received, i, i+1)
			return true, nil
		}
		c.wanted, c.got = wanted, got // undo the comparison
		nearest = cmp.Or(nearest, err)
	}
	return false, nearest
}
