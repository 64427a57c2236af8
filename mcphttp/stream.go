// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// stream is an event stream of the legacy era. What is sent on it is kept, and
// written to the HTTP response that is attached to it, if one is: the one that
// began it, or one of a client that came back for it.
type stream struct {
	session *session
	number  int64
	opts    *Options

	mu     sync.Mutex
	out    *output         // nil while nobody is attached
	about  context.Context // of what is attached
	broken func()          // called when nothing more is written to out; may be nil
	first  uint64          // position of what was first kept; 0 before there is something
	begun  bool
	done   bool
	log    *list.Element // among those of the caller; nil before something was kept
}

// of makes st the next stream of the session.
func (st *stream) of(s *session, opts *Options, out *output) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	st.session, st.number, st.opts, st.out = s, s.last, opts, out
}

// resumes reports whether the stream begins with an event that has nothing but an
// id, and may be cut.
func (st *stream) resumes() bool { return st.session.legacy.Resumes() }

// Send implements [mcp.Sender]. Without a client there is nobody to wait for: the
// message is kept until somebody comes for it.
func (st *stream) Send(ctx context.Context, message []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.done {
		return mcp.ErrNotDelivered
	}
	st.begin(ctx)
	if err := st.session.events.asked(ctx, st.session.id, message); err != nil {
		st.opts.Logger.WarnContext(ctx, "mcphttp: the answer to a question cannot be relayed by other replicas", "session", st.session.logged(), "error", err)
	}
	return st.send(ctx, recordMessage, message)
}

// begin puts the stream among those that can be come back to, and primes it.
func (st *stream) begin(ctx context.Context) {
	if st.begun {
		return
	}
	st.begun = true
	st.session.enter(st)
	if st.number == ownStream && !st.session.events.shared {
		st.primed(eventID(ownStream, 0)) // thousands may only ever wait: nothing is kept for them
		return
	}
	st.primeAgain(ctx)
}

// primeAgain says where the stream goes on, to who knows no event of it.
func (st *stream) primeAgain(ctx context.Context) {
	if !st.resumes() {
		return
	}
	if id, err := st.keep(ctx, recordPrime, nil); err == nil {
		st.primed(id)
	}
}

// primed gives the client an id to come back with before there is a message. It goes
// out with what follows.
func (st *stream) primed(id string) {
	if st.out != nil && st.resumes() {
		_ = st.write(func(o *output) error { return o.prime(id, st.opts.Retry) }) // a client that is gone needs none
	}
}

var errNotKept = errors.New("mcphttp: the session has ended, or the event has more bytes than may be kept of one caller (Options.ReplayPerCaller)")

// keep keeps an event and returns its id.
func (st *stream) keep(ctx context.Context, kind byte, message []byte) (id string, err error) {
	if !st.session.mayKeep(ctx, st, len(message)) {
		return "", errNotKept
	}
	position, err := st.session.events.append(ctx, st.session.id, st.number, kind, message)
	if err != nil {
		return "", err
	}
	if st.first == 0 {
		st.first = position
	}
	return eventID(st.number, position), nil
}

func (st *stream) send(ctx context.Context, kind byte, message []byte) error {
	id, err := st.keep(ctx, kind, message)
	if err != nil && st.session.events.mayWarn() {
		st.opts.Logger.WarnContext(ctx, "mcphttp: an event was not kept, for a client that comes back; others of the next minute are not reported", "session", st.session.logged(), "error", err)
	}
	if st.out == nil {
		return err
	}
	if st.write(func(o *output) error { return o.event(id, message) }) != nil {
		return err // it is kept
	}
	return nil
}

// write writes to the attached response, and detaches it if that fails.
func (st *stream) write(event func(*output) error) error {
	if st.out == nil {
		return mcp.ErrNotDelivered
	}
	err := st.out.locked(event)
	if err != nil {
		st.dismiss()
	}
	return err
}

// locked calls write with the lock, which it gives back also if a writer panics.
func (o *output) locked(write func(*output) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return write(o)
}

// dismiss takes off what is attached, and tells it that nothing more is said there.
func (st *stream) dismiss() {
	if st.broken != nil {
		go st.broken()
	}
	st.out, st.about, st.broken = nil, nil, nil
}

// finish sends the last message, if there is one, and ends the stream.
func (st *stream) finish(ctx context.Context, message []byte) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.done {
		return
	}
	switch {
	case !st.begun:
		st.whole(message)
		return
	case len(message) > 0:
		_ = st.send(ctx, recordLast, message)
	}
	st.done = true
	st.session.leave(ctx, st)
	st.dismiss()
}

// whole writes a stream of one event, at once. Nobody can come back for it, who has
// not seen an id before: it is not kept, and has none.
func (st *stream) whole(message []byte) {
	st.done = true
	if st.out == nil {
		return
	}
	st.out.mu.Lock()
	defer st.out.mu.Unlock()
	st.out.hold()
	if len(message) > 0 {
		_ = st.out.event("", message) // a client that is gone needs no answer
	}
	st.out.release()
}

// abandon ends a stream on which nothing was said, and reports whether it did.
func (st *stream) abandon() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.begun {
		st.done = true
	}
	return st.done
}

// heartbeat writes a comment, which is not kept.
func (st *stream) heartbeat() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.done || st.out == nil {
		return
	}
	st.begin(st.about)
	_ = st.write((*output).comment)
}

// attach replays to out what came after a position and makes it the response of
// the stream, in place of the one before. Then broken is called when the stream has
// ended, or is not written there any more. An error means that nothing was written.
func (st *stream) attach(ctx context.Context, out *output, position uint64, broken func()) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := st.replay(ctx, out, position); err != nil {
		return err
	}
	st.dismiss()
	st.out, st.about, st.broken = out, ctx, broken
	if st.done {
		go broken()
	}
	return nil
}

// replay writes what came after a position. A store does not know what it has lost
// after position 0, if it has lost everything.
func (st *stream) replay(ctx context.Context, out *output, position uint64) error {
	e := st.session.events
	if position == 0 && !e.shared {
		if ok, err := e.whole(ctx, st.session.id, st.number, st.first); !ok {
			return cmp.Or(err, store.ErrTrimmed)
		}
	}
	_, _, err := e.replay(ctx, st.session.id, st.number, position, out)
	return err
}

// detach takes out off the stream, if it is still the one attached. Its owner knows.
func (st *stream) detach(out *output) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.out == out {
		st.out, st.about, st.broken = nil, nil, nil
	}
}

// replay writes the events of a stream after a position, and returns that of the last one
// and whether it ends the stream.
func (e *events) replay(ctx context.Context, session string, stream int64, position uint64, out *output) (last uint64, done bool, err error) {
	out.mu.Lock()
	defer out.mu.Unlock()
	for {
		records, err := e.logs.Read(ctx, logName(session, stream), position, 0)
		if err != nil || len(records) == 0 {
			return position, done, err
		}
		for _, r := range records {
			position = r.Position
			if len(r.Data) == 0 || r.Data[0] == recordPrime {
				continue
			}
			if err := out.event(eventID(stream, position), r.Data[1:]); err != nil {
				return position, done, err
			}
			done = r.Data[0] == recordLast
		}
	}
}

func (s *session) enter(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.number == ownStream {
		return
	}
	if s.streams == nil {
		s.streams = map[int64]*stream{}
	}
	s.streams[st.number] = st
}

// leave takes out a stream that is done. Its events are kept, unless the session has
// ended: then they go as well.
func (s *session) leave(ctx context.Context, st *stream) {
	s.mu.Lock()
	delete(s.streams, st.number)
	over := s.over
	s.mu.Unlock()
	if over {
		_ = s.events.drop(ctx, s.id, st.number) // otherwise they expire
	}
}

func (s *session) streamOf(number int64) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[number]
}

// refused is the [mcp.Sender] of a client that takes no stream: nothing can be
// said to it but the answer.
type refused struct{}

func (refused) Send(context.Context, []byte) error { return mcp.ErrNotDelivered }

type streamKey struct{}

// ErrNoStream is returned by [CloseStream] if there is no stream that could be
// closed and come back to.
var ErrNoStream = errors.New("mcphttp: the request has no stream that its client could come back to")

// CloseStream closes the connection on which the client waits for the answer to
// the request of ctx, but not the request: the client comes back for the answer.
// It spares a long request a long connection. The client must speak 2025-11-25
// and accept event streams; otherwise CloseStream returns [ErrNoStream].
func CloseStream(ctx context.Context) error {
	st, _ := ctx.Value(streamKey{}).(*stream)
	if st == nil || !st.resumes() {
		return ErrNoStream
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.done {
		return ErrNoStream
	}
	if st.out != nil && !st.out.shared {
		st.out.mu.Lock()
		st.out.announceClose()
		st.out.mu.Unlock()
	}
	st.begin(ctx)
	if st.out != nil {
		st.out.mu.Lock()
		st.out.open()
		_ = st.out.flush() // a client that is gone needs nothing
		st.out.disconnect()
		st.out.mu.Unlock()
		st.dismiss()
	}
	return nil
}

// announceClose tells the client, if the head of the stream is not out yet, that
// its connection will be closed. One that does not know reads the stream to its
// end and sends its next request, which is then lost.
func (o *output) announceClose() {
	if !o.streaming {
		o.w.Header().Set("Connection", "close")
	}
}

// disconnect ends the response although its handler goes on.
func (o *output) disconnect() {
	o.err = mcp.ErrNotDelivered
	conn, rw, err := o.control.Hijack()
	if err != nil { // HTTP/2, which resets the stream when its time is up
		_ = o.control.SetWriteDeadline(time.Unix(1, 0))
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(o.timeout))
	_, _ = rw.WriteString("0\r\n\r\n") // the end of a chunked body
	_ = rw.Flush()
	_ = conn.Close()
}
