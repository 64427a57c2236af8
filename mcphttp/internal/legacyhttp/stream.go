// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyhttp

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/go-psi/psi/internal/legacyserver"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp/internal/endpoint"
)

// stream is an event stream of a session: the stream of one request, or the standalone
// stream. Its events are stored in the event log and written to the attached HTTP response:
// the response that started the stream, or the response to a client that resumes it.
//
// Locks are acquired in this order: stream.mu, session.mu, sessions.mu. The locks of
// EventWriter and keptLogs come last. The store is called with stream.mu held, so that
// events are stored in the order in which they are written.
type stream struct {
	session *session
	name    string             // set when it is registered
	call    *legacyserver.Call // the call that the stream answers; nil for the standalone stream
	opts    *Options

	mu         sync.Mutex
	out        *endpoint.EventWriter // nil while no client is attached
	broken     error                 // of a response writer that panicked, until the client reconnects
	onDetach   func()                // called in its own goroutine when nothing more is written to out; may be nil
	firstKept  uint64                // position of the first event that was kept; 0 before that
	registered bool                  // clients can resume the stream from this process
	isPrimed   bool                  // the log has been started: later events have an ID
	done       bool                  // nothing more is sent
	hasEnd     bool                  // the log has the last message
	log        *list.Element         // in the keptLogs of the caller; nil before an event was kept
}

// isResumable reports whether the client may resume the stream after its connection was
// closed. Such a stream starts with an event that has an ID but no message.
func (st *stream) isResumable() bool { return st.session.legacy.Resumes() }

// Send implements [serving.Sender]. While no client is attached, messages are only stored.
// Requests on the standalone stream, which are pings, are then not delivered.
func (st *stream) Send(ctx context.Context, message []byte) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.done || st.out == nil && st.call == nil && isRequest(message) {
		return mcp.ErrNotDelivered
	}
	st.registerLocked()
	if err := st.session.events.noteQuestion(ctx, st.session.id(), message); err != nil {
		st.opts.Logger.WarnContext(ctx, "mcphttp: a question was not asked, because other replicas could not relay the answer", "session", st.session.logID(), "error", err)
		return errNotNoted
	}
	return st.sendLocked(ctx, recordMessage, message)
}

var errNotNoted = &mcp.Error{Code: mcp.CodeInternalError, Message: "the client cannot be asked now; try again later", Cause: mcp.ErrNotDelivered}

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

// primeLocked starts the log, unless it has been started, with the will of the stream, for
// other replicas, and an ID for a client that has received no event. No event has an ID
// before that, so every stream that is resumed has a will.
func (st *stream) primeLocked(ctx context.Context) error {
	if st.isPrimed {
		return nil
	}
	id, will := eventID(standaloneStream, 0), st.will()
	switch {
	case st.name == standaloneStream && !st.session.events.shared && st.firstKept == 0: // there may be thousands of idle streams: nothing is stored for them
	case len(will) > 0 || st.isResumable():
		var err error
		if id, err = st.keepLocked(ctx, recordPrime, will); err != nil {
			return err
		}
	}
	st.isPrimed = true
	st.writePrimeLocked(id)
	return nil
}

func (st *stream) writePrimeLocked(id string) {
	if st.isResumable() {
		_ = st.writeLocked((*endpoint.EventWriter).Write, primeEvent(id, st.opts.Retry)) // it is flushed with the next event
	}
}

var errNotKept = errors.New("mcphttp: the session has ended, or the event has more bytes than may be kept for one caller (Options.ReplayPerCaller)")

// keepLocked stores an event and returns its ID.
func (st *stream) keepLocked(ctx context.Context, kind byte, message []byte) (id string, err error) {
	if !st.session.mayKeep(ctx, st, len(message)) {
		return "", errNotKept
	}
	position, err := st.session.events.append(ctx, st.session.id(), st.name, kind, message)
	if err != nil {
		return "", err
	}
	if st.firstKept == 0 {
		st.firstKept = position
	}
	st.hasEnd = kind == recordLast
	return eventID(st.name, position), nil
}

// sendLocked stores a message and writes it to the attached response. It returns an error
// if neither was possible, or if the response writer panicked: unlike a client that has
// disconnected, the client of that response will not come back for the message.
func (st *stream) sendLocked(ctx context.Context, kind byte, message []byte) error {
	id, err := "", st.primeLocked(ctx)
	if err == nil {
		id, err = st.keepLocked(ctx, kind, message)
	}
	if err != nil && st.session.events.mayWarn() {
		st.opts.Logger.WarnContext(ctx, "mcphttp: an event was not kept for a client that reconnects; further ones within a minute are not reported", "session", st.session.logID(), "error", err)
	}
	if st.out == nil {
		return cmp.Or(err, st.broken)
	}
	if st.writeLocked((*endpoint.EventWriter).Send, endpoint.MessageEvent(id, message)) != nil {
		return cmp.Or(err, st.broken)
	}
	return nil
}

// writeLocked writes an event to the attached response, and detaches the response if that fails.
func (st *stream) writeLocked(write func(*endpoint.EventWriter, *sse.Message) error, event *sse.Message) error {
	if st.out == nil {
		return mcp.ErrNotDelivered
	}
	err := write(st.out, event)
	if err != nil {
		st.dropClientLocked()
	}
	if errors.Is(err, endpoint.ErrPanicked) {
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
}

// finish sends the last message, unless it is empty, and ends the stream. It returns false
// if the message could not be stored and another replica may be waiting for it.
func (st *stream) finish(ctx context.Context, message []byte) (ok bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	switch {
	case st.done:
		return true
	case !st.registered:
		st.finishAloneLocked(message)
	default:
		if len(message) > 0 {
			_ = st.sendLocked(ctx, recordLast, message) // a disconnected client needs no response
		}
		st.session.removeStream(ctx, st)
	}
	st.done = true
	st.dropClientLocked()
	return st.hasEnd || !st.isPrimed || !st.session.events.shared || len(message) == 0
}

// finishAloneLocked writes a stream that has at most one event. The event is not stored,
// because without an earlier event no client can resume the stream.
func (st *stream) finishAloneLocked(message []byte) {
	switch {
	case st.out == nil:
	case len(message) == 0:
		st.out.Start()
	default:
		_ = st.out.Write(endpoint.MessageEvent("", message)) // a disconnected client needs no response
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

// Beat implements [endpoint.Beater]. Heartbeats are not stored.
func (st *stream) Beat() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.done || st.out == nil {
		return
	}
	st.registerLocked()
	_ = st.primeLocked(context.Background())                                                                // the next event tries again
	_ = st.writeLocked(func(o *endpoint.EventWriter, _ *sse.Message) error { return o.SendComment() }, nil) // a disconnected client needs none
}

// attach replays to out the events after position and makes out the response of the stream,
// in place of the previous one. onDetach is called when nothing more is written to out. If
// attach fails, out is not attached.
func (st *stream) attach(ctx context.Context, out *endpoint.EventWriter, position uint64, onDetach func()) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if err := st.replayLocked(ctx, out, position); err != nil {
		return err
	}
	st.dropClientLocked()
	st.out, st.onDetach, st.broken = out, onDetach, nil
	if st.done {
		st.dropClientLocked()
	}
	return nil
}

// replayLocked writes the events after position to out. A store that has lost all events of
// a stream does not report that for position 0, so isComplete checks it.
func (st *stream) replayLocked(ctx context.Context, out *endpoint.EventWriter, position uint64) error {
	e := st.session.events
	if position == 0 && !e.shared {
		if ok, err := e.isComplete(ctx, st.session.id(), st.name, st.firstKept); !ok {
			return cmp.Or(err, store.ErrTrimmed)
		}
	}
	_, _, err := e.replay(ctx, st.session.id(), st.name, position, out)
	return err
}

// detach detaches out, if it is attached, without calling onDetach.
func (st *stream) detach(out *endpoint.EventWriter) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.out == out {
		st.out, st.onDetach = nil, nil
	}
}

// ErrNoStream is the error of CloseConnection if the client could not resume the stream.
var ErrNoStream = errors.New("mcphttp: the request has no stream that its client could come back to")

// CloseConnection closes the connection on which the client reads the stream. The client
// reconnects for the rest.
func (st *stream) CloseConnection(ctx context.Context) error {
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
	if st.primeLocked(ctx) != nil {
		return ErrNoStream
	}
	if st.out != nil {
		st.out.Disconnect()
		st.dropClientLocked()
	}
	return nil
}

// primeEvent returns an event without a message. It gives the client an ID from which to
// resume the stream and the time to wait before that.
func primeEvent(id string, retry time.Duration) *sse.Message {
	event := &sse.Message{ID: sse.ID(id), Retry: retry}
	event.AppendData("\n") // an empty data field; without it, browsers ignore the event
	return event
}

// typedEvent returns an event with a type.
func typedEvent(kind, data string) *sse.Message {
	event := &sse.Message{Type: sse.Type(kind)}
	event.AppendData(data)
	return event
}

// Streams returns the event streams of the sessions, sorted by session and name.
func (h *Handler) Streams() (all []seam.Stream) {
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
	if st.log != nil {
		d.Kept = st.session.caller.kept.size(st.log)
	}
	return d
}
