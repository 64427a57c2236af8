// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// Transport returns a transport to a server that answers as recorded. Each connection plays
// the next session of the recording. A message that is not in the recording fails with an
// error that names the line. [Replay.Err] returns this error, too.
//
// The server sends its recorded messages without delay, but not before the client messages
// that precede them. Unsolicited messages, such as a change of the tool list for a legacy
// client, may therefore arrive earlier than in the recording.
func (r *Replay) Transport() transport.Transport {
	r.mustBeMade()
	return &fakeTransport{r}
}

type fakeTransport struct{ replay *Replay }

func (t *fakeTransport) Connect(_ context.Context, receive transport.Receiver) (transport.Conn, error) {
	s, err := t.replay.nextSession()
	if err != nil {
		return nil, t.replay.fail(err)
	}
	if f := s.entries[0].Failure; f != nil && f.ID.IsZero() && f.Kind != Lost {
		return nil, f.error()
	}
	c := &fakeServer{
		replay: t.replay, entries: s.entries, receive: receive,
		matched: make([]bool, len(s.entries)), changed: make(chan struct{}), calls: map[transport.ID]chan outcome{},
	}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	if !t.replay.opts.AnyOrder {
		all := &script{lines: make([]int, len(s.entries)), names: newNames()}
		for i := range all.lines {
			all.lines[i] = i
		}
		c.whole = all
		c.start(all)
	}
	return c, nil
}

// An outcome is the result of a call: an answer or an error.
type outcome struct {
	answer *transport.Message
	err    error
}

// fakeServer is a connection to the server of a recording.
type fakeServer struct {
	replay  *Replay
	entries []*Entry
	receive transport.Receiver
	whole   *script // nil if messages may come in any order

	ctx    context.Context //nolint:containedctx // it is the lifetime of the connection
	cancel context.CancelCauseFunc

	receiving sync.Mutex // held while receive runs
	mu        sync.Mutex
	matched   []bool        // client messages and cancellations, by entry
	changed   chan struct{} // closed when matched changes
	calls     map[transport.ID]chan outcome
}

// A script is a sequence of entries that the server plays, by index.
type script struct {
	lines []int
	names *names
}

// start runs a script in a goroutine.
func (c *fakeServer) start(s *script) {
	go func() { // runs until it is done or the connection has ended
		for _, i := range s.lines {
			switch e := c.entries[i]; {
			case e.Direction == ToClient:
				c.play(e, s.names)
			case !c.await(i):
				return
			}
		}
		c.abandon(s)
	}()
}

// await waits until the client has sent the message of an entry. It returns false if the
// connection ends first.
func (c *fakeServer) await(i int) bool {
	for {
		c.mu.Lock()
		matched, changed := c.matched[i], c.changed
		c.mu.Unlock()
		if matched {
			return c.ctx.Err() == nil
		}
		select {
		case <-changed:
		case <-c.ctx.Done():
			return false
		}
	}
}

// play sends the message of an entry to the client, or makes a call fail.
func (c *fakeServer) play(e *Entry, names *names) {
	switch f := e.Failure; {
	case f != nil && f.Kind == Lost:
		c.deliver(transport.Message{Lost: true})
	case f != nil:
		if f.Ended {
			c.cancel(f.error())
		}
		c.answer(names.live(f.ID), outcome{err: f.error()})
	case e.Omitted > 0:
		c.answer(names.live(e.parsed.ID), outcome{err: c.replay.fail(fmt.Errorf("recording: line %d: %w", e.Line, errOmitted))})
	case e.parsed.IsResponse():
		m := names.response(&e.parsed)
		c.answer(m.ID, outcome{answer: m})
	default:
		m := names.notification(&e.parsed)
		m.About = names.live(e.About)
		c.deliver(m)
	}
}

func (c *fakeServer) deliver(m transport.Message) {
	c.receiving.Lock()
	defer c.receiving.Unlock()
	if c.ctx.Err() == nil {
		c.receive(&m)
	}
}

// answer completes a call.
func (c *fakeServer) answer(id transport.ID, o outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if call := c.calls[id]; call != nil {
		call <- o
		delete(c.calls, id)
	}
}

// abandon fails the calls of a script that have no response in the recording.
func (c *fakeServer) abandon(s *script) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for live := range s.names.all() {
		if call := c.calls[live]; call != nil {
			call <- outcome{err: fmt.Errorf("recording: the recording ends before the response to request %s", live)}
			delete(c.calls, live)
		}
	}
}

// Call implements [transport.Conn].
func (c *fakeServer) Call(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	call := make(chan outcome, 1)
	line, err := c.accept(m, call)
	if err != nil {
		return nil, err
	}
	select {
	case o := <-call:
		return o.answer, o.err
	case <-ctx.Done():
		c.giveUp(m.ID, c.entries[line].parsed.ID)
		return nil, context.Cause(ctx)
	case <-c.ctx.Done():
		select {
		case o := <-call:
			return o.answer, o.err
		default:
			return nil, c.Err()
		}
	}
}

// giveUp records that the client no longer waits for a response.
func (c *fakeServer) giveUp(live, recorded transport.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, live)
	for i, e := range c.entries {
		if e.Direction == ToServer && e.Failure != nil && e.Failure.ID == recorded {
			c.matchLocked(i)
		}
	}
}

func (c *fakeServer) matchLocked(i int) {
	c.matched[i] = true
	close(c.changed)
	c.changed = make(chan struct{})
}

// Send implements [transport.Conn].
func (c *fakeServer) Send(_ context.Context, m *transport.Outgoing) error {
	_, err := c.accept(m, nil)
	return err
}

// accept finds the entry of a client message. The outcome of a request is sent to call.
func (c *fakeServer) accept(m *transport.Outgoing, call chan outcome) (line int, err error) {
	if c.ctx.Err() != nil {
		return 0, c.Err()
	}
	got, err := c.replay.redacted(m.Body)
	if err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	line, again, err := c.find(&got)
	if err != nil {
		return 0, c.replay.fail(err)
	}
	s := c.whole
	if s == nil && m.Method != "" {
		s = &script{lines: c.entriesOf(line), names: newNames()}
		defer c.start(s)
	}
	if call != nil {
		c.calls[m.ID] = call
	}
	if m.Method != "" {
		s.names.add(&c.entries[line].parsed, &got)
	}
	if !again {
		c.matchLocked(line)
	}
	return line, nil
}

// find returns the entry of a client message, and whether it was matched before.
func (c *fakeServer) find(got *transport.Message) (line int, again bool, err error) {
	candidates := c.candidates(got)
	var nearest error
	for _, i := range candidates {
		err := c.differs(c.entries[i], got)
		if err == nil {
			return i, c.matched[i], nil
		}
		isSameMethod := c.entries[i].parsed.Method == got.Method
		if nearest == nil && (c.whole != nil || isSameMethod) {
			nearest = err
		}
	}
	if nearest != nil {
		return 0, false, nearest
	}
	return 0, false, &DifferenceError{Missing: "the client sends " + (&Entry{parsed: *got}).summary() + ", which the recording does not have"}
}

// candidates returns the entries that a client message may match.
func (c *fakeServer) candidates(got *transport.Message) []int {
	var open, before []int
	for i, e := range c.entries {
		isMessage := e.Direction == ToServer && e.Failure == nil
		switch {
		case c.whole != nil && e.Direction == ToClient && len(open) > 0:
			return open
		case !isMessage:
		case !c.matched[i]:
			open = append(open, i)
		case c.whole == nil && got.Method != "":
			before = append(before, i)
		}
	}
	slices.Reverse(before)
	return append(open, before...)
}

// differs returns the difference between an entry and a client message, or nil.
func (c *fakeServer) differs(e *Entry, got *transport.Message) error {
	want := matchable(&e.parsed)
	if e.Omitted > 0 {
		return fmt.Errorf("recording: line %d: %w", e.Line, errOmitted)
	}
	if d := differ("", want, matchable(got), c.replay.opts.Ignore); d != nil {
		d.Line = e.Line
		return d
	}
	return nil
}

// matchable returns the parts of a client message that must match the recording. Metadata
// is left out because it describes the client and not the message, and request IDs because
// the client chooses them.
func matchable(m *transport.Message) map[string]any {
	flat := new(normalizer).message(ToServer, m)
	if m.Method == "" {
		return flat
	}
	delete(flat, "id")
	params, _ := flat["params"].(map[string]any)
	delete(params, "_meta")
	if m.Method == mcp.NotificationCancelled {
		delete(params, "requestId")
	}
	deleteClient(m.Method, params)
	if len(params) == 0 {
		delete(flat, "params")
	}
	return flat
}

// entriesOf returns the entries that form the server's part in a request or notification:
// its responses and other messages about the request, the client's answers, and later
// entries that belong to no other message.
func (c *fakeServer) entriesOf(line int) []int {
	lines := []int{line}
	owners := map[ownerKey]int{} // of requests, by ID
	latest := -1                 // entries that name no request belong to the latest client message
	find := func(d Direction, id transport.ID) int {
		if i, ok := owners[ownerKey{d, id.Canonical()}]; ok {
			return i
		}
		return latest
	}
	for i, e := range c.entries {
		m := &e.parsed
		var of int
		switch {
		case e.Failure != nil:
			of = find(ToServer, e.Failure.ID)
		case m.IsResponse():
			of = find(opposite(e.Direction), m.ID)
		case e.Direction == ToServer:
			latest, of = i, i
		default:
			of = find(ToServer, aboutOf(e))
		}
		if m.IsRequest() {
			owners[ownerKey{e.Direction, m.ID.Canonical()}] = of
		}
		if of == line && i != line {
			lines = append(lines, i)
		}
	}
	return lines
}

// An ownerKey identifies a request by direction and ID.
type ownerKey struct {
	direction Direction
	id        transport.ID
}

// aboutOf returns the ID of the request that a server message is about, or zero.
func aboutOf(e *Entry) transport.ID {
	if !e.About.IsZero() || e.parsed.Method != mcp.NotificationProgress {
		return e.About
	}
	about, _ := transport.ParseID(jsonscan.Member(e.parsed.Params, mcp.MetaProgressToken))
	return about
}

// Close implements [transport.Conn].
func (c *fakeServer) Close() error {
	c.cancel(transport.ErrClosed)
	return nil
}

// Done implements [transport.Conn].
func (c *fakeServer) Done() <-chan struct{} { return c.ctx.Done() }

// Err implements [transport.Conn].
func (c *fakeServer) Err() error { return context.Cause(c.ctx) }

// Info implements [transport.Conn]. The connection is a byte stream if the recorded one was.
func (c *fakeServer) Info() transport.Info {
	return transport.Info{Ordered: slices.ContainsFunc(c.entries, func(e *Entry) bool { return e.Stream })}
}
