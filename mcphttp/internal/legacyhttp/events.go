// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyhttp

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp/internal/endpoint"
)

// eventLog stores the events sent on streams, for clients that resume them. Every stream
// has its own log in the store, named after its session, so that a client that does not
// know the session cannot name the log.
type eventLog struct {
	store       store.Store
	retention   store.Retention
	perCaller   int           // maximum size of the events kept for one caller, in bytes
	shared      bool          // the store is shared with other processes
	replica     string        // the name of this process
	askTimeout  time.Duration // how long a question may wait for its answer
	presence    *presence     // of the replicas
	lastWarning atomic.Int64  // time of the last warning, in Unix seconds
}

// mayWarn reports whether a warning may be logged. It allows one per minute.
func (e *eventLog) mayWarn() bool {
	now, last := time.Now().Unix(), e.lastWarning.Load()
	return now-last >= 60 && e.lastWarning.CompareAndSwap(last, now)
}

// streamName returns the name of a stream of a session: a number and, with a shared store,
// the replica that writes it.
func (e *eventLog) streamName(number int64) string {
	name := strconv.FormatInt(number, 10)
	if e.shared {
		name += "." + e.replica
	}
	return name
}

// ownerOf returns the replica that writes a stream, or "" if the name contains none.
func ownerOf(stream string) string {
	_, owner, _ := strings.Cut(stream, ".")
	return owner
}

func logName(session, stream string) string { return "psi/events/" + session + "/" + stream }

// eventID returns the ID of an event: "stream-position".
func eventID(stream string, position uint64) string {
	return stream + "-" + strconv.FormatUint(position, 10)
}

var eventPattern = regexp.MustCompile(`^(\d{1,19}(?:\.[A-Z0-9]{1,26})?)-(\d{1,20})$`)

func parseEventID(id string) (stream string, position uint64, ok bool) {
	parts := eventPattern.FindStringSubmatch(id)
	if parts == nil {
		return
	}
	position, err := strconv.ParseUint(parts[2], 10, 64)
	return parts[1], position, err == nil
}

// The first byte of a record is its kind.
const (
	recordPrime   = 'p' // the stream starts or is resumed here; followed by its will, if any
	recordMessage = 'm'
	recordLast    = 'l' // the last message of the stream
)

// append stores a record and returns its position.
func (e *eventLog) append(ctx context.Context, session, stream string, kind byte, message []byte) (uint64, error) {
	data := append(append(make([]byte, 0, len(message)+1), kind), message...)
	ctx, cancel := storeContext(ctx)
	defer cancel()
	return e.store.Append(ctx, logName(session, stream), data, e.retention)
}

// read returns records of a stream; see [store.Logs].
func (e *eventLog) read(ctx context.Context, session, stream string, position uint64, limit int) ([]store.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return e.store.Read(ctx, logName(session, stream), position, limit)
}

// drop removes logs from the store. If it returns an error, the remaining logs expire.
func (e *eventLog) drop(ctx context.Context, logs ...*keptLog) error {
	if len(logs) == 0 {
		return nil
	}
	ctx, cancel := storeContext(ctx)
	defer cancel()
	for _, l := range logs {
		if err := e.store.Drop(ctx, logName(l.session.id(), l.stream)); err != nil {
			return err
		}
	}
	return nil
}

// isComplete reports whether the first record of a stream is still stored. first is the
// position of that record, or 0 if there was none.
func (e *eventLog) isComplete(ctx context.Context, session, stream string, first uint64) (bool, error) {
	if first == 0 {
		return true, nil
	}
	records, err := e.read(ctx, session, stream, 0, 1)
	return len(records) > 0 && records[0].Position == first, err
}

// readWill returns the will of a stream. It is empty if the stream has none or the will has
// been trimmed.
func (e *eventLog) readWill(ctx context.Context, session, stream string) ([]byte, error) {
	records, err := e.read(ctx, session, stream, 0, 1)
	switch {
	case errors.Is(err, store.ErrTrimmed):
		return nil, nil
	case err != nil || len(records) == 0 || len(records[0].Data) == 0 || records[0].Data[0] != recordPrime:
		return nil, err
	}
	return records[0].Data[1:], nil
}

// replay writes the events of a stream after position to out. It returns the position of
// the last event and whether that event ends the stream.
func (e *eventLog) replay(ctx context.Context, session, stream string, position uint64, out *endpoint.EventWriter) (last uint64, done bool, err error) {
	for {
		records, err := e.read(ctx, session, stream, position, 0)
		if err != nil || len(records) == 0 {
			return position, done, err
		}
		for _, r := range records {
			position = r.Position
			if len(r.Data) == 0 || r.Data[0] == recordPrime {
				continue
			}
			if err := out.Send(endpoint.MessageEvent(eventID(stream, position), r.Data[1:])); err != nil {
				return position, done, err
			}
			done = r.Data[0] == recordLast
		}
	}
}

// keptLogs are the logs of one caller that may have events in the store, ordered by the
// time of their last event. Their total size is bounded: the log with the oldest last event
// is dropped first.
type keptLogs struct {
	mu    sync.Mutex
	bytes int
	logs  list.List // of *keptLog
}

// keptLog is one of these logs. Its size is an upper bound, because the store may have
// trimmed the log.
type keptLog struct {
	session *session
	stream  string
	bytes   int
	last    time.Time // of the last event
}

// recordOverhead is the number of bytes counted for a record in addition to its data.
const recordOverhead = 200

// add counts an event of a stream and reports whether it may be kept. The caller must drop
// the returned logs.
func (k *keptLogs) add(e *eventLog, st *stream, size int) (dropped []*keptLog, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	k.removeExpiredLocked(now.Add(-cmp.Or(e.retention.TTL, time.Hour)))
	if size+recordOverhead > e.perCaller {
		return nil, false
	}
	if st.log == nil || st.log.Value == nil {
		st.log = k.logs.PushBack(&keptLog{session: st.session, stream: st.name})
	}
	k.logs.MoveToBack(st.log)
	l := keptLogOf(st.log)
	l.last = now
	k.bytes -= l.bytes
	l.bytes = min(l.bytes+size+recordOverhead, e.maxLogSize())
	k.bytes += l.bytes
	for first := k.logs.Front(); k.bytes > e.perCaller; first = k.logs.Front() {
		dropped = append(dropped, keptLogOf(first))
		k.removeLocked(first)
	}
	return dropped, true
}

// maxLogSize returns the maximum size of a log, beyond which the store trims it.
func (e *eventLog) maxLogSize() int {
	return min(e.perCaller, cmp.Or(e.retention.Bytes, e.perCaller)+cmp.Or(e.retention.Records, e.perCaller/recordOverhead)*recordOverhead)
}

func keptLogOf(e *list.Element) *keptLog {
	l, _ := e.Value.(*keptLog)
	return l
}

// size returns the number of bytes counted for a log, or 0 if the log was removed.
func (k *keptLogs) size(e *list.Element) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := keptLogOf(e); l != nil {
		return l.bytes
	}
	return 0
}

// removeLocked removes a log. It sets the element's value to nil to inform the stream.
func (k *keptLogs) removeLocked(e *list.Element) {
	k.bytes -= keptLogOf(e).bytes
	k.logs.Remove(e)
	e.Value = nil
}

// removeExpiredLocked removes the logs whose events have expired in the store.
func (k *keptLogs) removeExpiredLocked(before time.Time) {
	for first := k.logs.Front(); first != nil && keptLogOf(first).last.Before(before); first = k.logs.Front() {
		k.removeLocked(first)
	}
}

// removeSession removes and returns the logs of a session.
func (k *keptLogs) removeSession(s *session) (removed []*keptLog) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for e := k.logs.Front(); e != nil; {
		next := e.Next()
		if l := keptLogOf(e); l.session == s {
			removed = append(removed, l)
			k.removeLocked(e)
		}
		e = next
	}
	return removed
}

// mayKeep counts an event of a stream and reports whether it may be kept. No events are
// kept after the session has ended.
func (s *session) mayKeep(ctx context.Context, st *stream, size int) bool {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return false
	}
	dropped, ok := s.caller.kept.add(s.events, st, size)
	s.mu.Unlock()
	_ = s.events.drop(ctx, dropped...) // otherwise they expire
	return ok
}

// stopKeeping returns the logs of the session. No events are kept after the call.
func (s *session) stopKeeping() []*keptLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return s.caller.kept.removeSession(s)
}

// addStream gives the stream of a request a name and registers it, so that clients can resume it.
func (s *session) addStream(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.name == standaloneStream {
		return
	}
	if s.streams == nil {
		s.streams = map[string]*stream{}
	}
	s.lastStream++
	st.name = s.events.streamName(s.lastStream)
	s.streams[st.name] = st
}

// removeStream removes a stream that is done. Its events stay in the store, unless the
// session has ended.
func (s *session) removeStream(ctx context.Context, st *stream) {
	s.mu.Lock()
	delete(s.streams, st.name)
	ended := s.ended
	s.mu.Unlock()
	if ended {
		_ = s.events.drop(ctx, &keptLog{session: s, stream: st.name}) // otherwise they expire
	}
}

// streamOf returns the stream with the given name if its request is in flight, or nil.
func (s *session) streamOf(name string) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[name]
}
