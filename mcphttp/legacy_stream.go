// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// stream is an event stream of a session: the stream of one request, or the standalone
// stream. Its events are kept and written to the attached HTTP response: the response that
// started the stream, or the response to a client that resumes it.
//
// Locks are acquired in this order: stream.mu, session.mu, sessions.mu. The locks of
// eventWriter and kept come last.
type stream struct {
	session  *session
	name     string // set when it is registered
	call     *reply // the call that the stream answers; nil for the standalone stream
	sessions *sessions

	mu         sync.Mutex
	out        *eventWriter // nil while no client is attached
	broken     error        // of a response writer that panicked, until the client reconnects
	onDetach   func()       // called in its own goroutine when nothing more is written to out; may be nil
	position   uint64       // of the last event; 0 before the first
	registered bool         // clients can resume the stream
	isPrimed   bool         // the client has an ID from which to resume, or will get one
	done       bool         // nothing more is sent
}

// isResumable reports whether the client may resume the stream after its connection was
// closed. Such a stream starts with an event that has an ID but no message.
func (st *stream) isResumable() bool {
	return st.session.legacy.Resumes() && !st.session.isTransient
}

// Send implements [server.Sender]. While no client is attached, messages are only kept.
// Requests on the standalone stream, which are pings, are then not delivered.
func (st *stream) Send(ctx context.Context, message []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.done || st.out == nil && st.call == nil && isRequest(message) {
		return mcp.ErrNotDelivered
	}
	st.registerLocked()
	return st.sendLocked(ctx, message)
}

func isRequest(message []byte) bool {
	m, err := transport.ParseMessage(message)
	return err == nil && m.IsRequest()
}

// registerLocked registers the stream, if it is not, so that clients can resume it.
func (st *stream) registerLocked() {
	if !st.registered {
		st.registered = true
		st.session.addStream(st)
	}
}

// primeLocked gives a client that has received no event an ID from which to resume, unless
// it has one. No event has an ID before that.
func (st *stream) primeLocked() error {
	if st.isPrimed {
		return nil
	}
	id := eventID(st.name, st.position)
	if st.isResumable() && (st.call != nil || st.position > 0) { // nothing is kept for idle standalone streams: there may be thousands
		var err error
		if id, err = st.keepLocked(nil); err != nil {
			return err
		}
	}
	st.isPrimed = true
	st.writePrimeLocked(id)
	return nil
}

func (st *stream) writePrimeLocked(id string) {
	if st.isResumable() {
		_ = st.writeLocked((*eventWriter).Write, primeEvent(id)) // it is flushed with the next event
	}
}

var (
	errNotKept      = errors.New("mcphttp: the event has more bytes than may be kept for one caller (SessionOptions.Replay)")
	errSessionEnded = errors.New("mcphttp: the session has ended")
)

// keepLocked keeps an event and returns its ID.
func (st *stream) keepLocked(message []byte) (id string, err error) {
	if err := st.sessions.kept.add(st.session, st.name, keptEvent{st.position + 1, bytes.Clone(message)}); err != nil {
		return "", err
	}
	st.position++
	return eventID(st.name, st.position), nil
}

// sendLocked keeps a message and writes it to the attached response. It returns an error if
// neither was possible, or if the response writer panicked: unlike a client that has
// disconnected, the client of that response will not come back for the message.
func (st *stream) sendLocked(ctx context.Context, message []byte) error {
	if st.session.isTransient { // no client can come back
		return st.writeLocked((*eventWriter).Send, messageEvent("", message))
	}
	id, err := "", st.primeLocked()
	if err == nil {
		id, err = st.keepLocked(message)
	}
	if errors.Is(err, errNotKept) && st.sessions.mayWarn() { // no client comes back to a session that has ended
		st.sessions.logger.WarnContext(ctx, "mcphttp: an event was not kept for a client that reconnects; further ones within a minute are not reported", "session", st.session.logID(), "error", err)
	}
	if st.out == nil {
		return cmp.Or(err, st.broken)
	}
	if st.writeLocked((*eventWriter).Send, messageEvent(id, message)) != nil {
		return cmp.Or(err, st.broken)
	}
	return nil
}

// writeLocked writes an event to the attached response, and detaches the response if that fails.
func (st *stream) writeLocked(write func(*eventWriter, *sse.Message) error, event *sse.Message) error {
	if st.out == nil {
		return mcp.ErrNotDelivered
	}
	err := write(st.out, event)
	if err != nil {
		st.dropClientLocked()
	}
	if errors.Is(err, errPanicked) {
		st.broken = err
	}
	return err
}

// dropClientLocked detaches the attached response and calls its onDetach.
func (st *stream) dropClientLocked() {
	if st.onDetach != nil {
		go st.onDetach() // it may need the lock
	}
	st.out, st.onDetach = nil, nil
	st.setAbsentLocked(!st.done)
}

// setAbsentLocked records whether the call, if any, has lost its client.
func (st *stream) setAbsentLocked(isAbsent bool) {
	if st.call != nil {
		st.sessions.setAbsent(st.call, isAbsent)
	}
}

// finish sends the last message, unless it is empty, and ends the stream.
func (st *stream) finish(ctx context.Context, message []byte) {
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case st.done:
		return
	case !st.registered:
		st.finishAloneLocked(message)
	default:
		if len(message) > 0 {
			_ = st.sendLocked(ctx, message) // a disconnected client needs no response
		}
		st.session.removeStream(st)
	}
	st.done = true
	st.dropClientLocked()
}

// finishAloneLocked writes a stream that has at most one event. The event is not kept,
// because without an earlier event no client can resume the stream.
func (st *stream) finishAloneLocked(message []byte) {
	switch {
	case st.out == nil:
	case len(message) == 0:
		st.out.Start()
	default:
		_ = st.out.Write(messageEvent("", message)) // a disconnected client needs no response
	}
}

// closeUnused ends the stream if nothing was sent on it, and reports whether it is done.
func (st *stream) closeUnused() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.registered {
		st.done = true
	}
	return st.done
}

// Beat implements [beater]. Heartbeats are not kept.
func (st *stream) Beat() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.done || st.out == nil {
		return
	}
	st.registerLocked()
	_ = st.primeLocked()                                                                           // the next event tries again
	_ = st.writeLocked(func(o *eventWriter, _ *sse.Message) error { return o.SendComment() }, nil) // a disconnected client needs none
}

// attach replays to out the events after position and makes out the response of the stream,
// in place of the previous one. onDetach is called when nothing more is written to out. If
// attach fails, out is not attached.
func (st *stream) attach(out *eventWriter, position uint64, onDetach func()) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := st.replayLocked(out, position); err != nil {
		return err
	}
	st.dropClientLocked()
	st.out, st.onDetach, st.broken = out, onDetach, nil
	st.setAbsentLocked(false)
	if st.done {
		st.dropClientLocked()
	}
	return nil
}

// errTrimmed is returned if a client cannot resume a stream from where it left.
var errTrimmed = errors.New("mcphttp: the events are gone, or never were")

// replayLocked writes the events after position to out.
func (st *stream) replayLocked(out *eventWriter, position uint64) error {
	if position == st.position {
		return nil
	}
	events, ok := st.sessions.kept.after(st.session, st.name, position)
	if !ok {
		return errTrimmed
	}
	return replay(out, st.name, events)
}

// detach detaches out, if it is attached, without calling onDetach.
func (st *stream) detach(out *eventWriter) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.out == out {
		st.out, st.onDetach = nil, nil
		st.setAbsentLocked(!st.done)
	}
}

// CloseConnection closes the connection on which the client reads the stream. The client
// reconnects for the rest. The connection is hijacked, because a goroutine for every legacy
// request would make all of them more expensive. Over HTTP/2, the stream is reset.
func (st *stream) CloseConnection(context.Context) error {
	if !st.isResumable() {
		return ErrNoStream
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.done {
		return ErrNoStream
	}
	if st.out != nil {
		st.out.AnnounceClose()
	}
	st.registerLocked()
	if st.primeLocked() != nil {
		return ErrNoStream
	}
	if st.out != nil {
		st.out.Disconnect()
		st.dropClientLocked()
	}
	return nil
}

// retryDelay is how long clients are told to wait before they resume a stream.
const retryDelay = time.Second

// primeEvent returns an event without a message. It gives the client an ID from which to
// resume the stream and the time to wait before that.
func primeEvent(id string) *sse.Message {
	event := &sse.Message{ID: sse.ID(id), Retry: retryDelay}
	event.AppendData("\n") // an empty data field; without it, browsers ignore the event
	return event
}

// typedEvent returns an event with a type.
func typedEvent(kind, data string) *sse.Message {
	event := &sse.Message{Type: sse.Type(kind)}
	event.AppendData(data)
	return event
}

// addStream gives the stream of a request a name and registers it, so that clients can resume it.
func (s *session) addStream(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.call == nil {
		return
	}
	if s.streams == nil {
		s.streams = map[string]*stream{}
	}
	s.lastStream++
	st.name = st.sessions.streamName(s.lastStream)
	s.streams[st.name] = st
}

// removeStream removes a stream that is done. Its events are kept.
func (s *session) removeStream(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.streams, st.name)
}

// streamOf returns the stream with the given name if its request is in flight, or nil.
func (s *session) streamOf(name string) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[name]
}

// streamName returns the name of a stream of a session. If other replicas may continue the
// session, the name contains the process, whose memory has the events.
func (ss *sessions) streamName(number int64) string {
	name := strconv.FormatInt(number, 10)
	if ss.peers != nil {
		name += "." + ss.peers.self.Process
	}
	return name
}

// Streams returns the event streams of the sessions, sorted by session and name.
func (h *legacyHandler) Streams() (all []seam.Stream) {
	for _, s := range h.sessions.all() {
		for _, st := range s.allStreams() {
			all = append(all, st.describe())
		}
	}
	slices.SortFunc(all, func(a, b seam.Stream) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// allStreams returns the streams that clients can resume.
func (s *session) allStreams() (all []*stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.standalone.stream; st != nil {
		all = append(all, st)
	}
	for _, st := range s.streams {
		all = append(all, st)
	}
	return all
}

// describe describes the stream. If st.mu is held, which can last as long as a write,
// describe does not wait and reports that a client is attached.
func (st *stream) describe() seam.Stream {
	d := seam.Stream{Session: st.session.logID(), Name: st.name, IsStandalone: st.call == nil, Attached: true}
	if !st.mu.TryLock() {
		return d
	}
	defer st.mu.Unlock()
	d.Attached = st.out != nil
	d.Kept = st.sessions.kept.size(st.session, st.name)
	return d
}
