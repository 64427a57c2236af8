// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"cmp"
	"container/list"
	"context"
	"sync"
	"time"
)

// kept are the streams of one caller of which there may be events in the store, in
// order of their last event. What a caller can have kept is bounded: the stream that
// said nothing for longest is forgotten first.
type kept struct {
	mu    sync.Mutex
	bytes int
	logs  list.List // of *keptLog
}

// keptLog is one of these streams. It counts at least what the store keeps of it.
type keptLog struct {
	session *session
	stream  int64
	bytes   int
	last    time.Time
}

// recordSize is what a record counts beside its data.
const recordSize = 200

// add counts an event of a stream. It returns the streams that have to be dropped for it,
// and reports whether it may be kept.
func (k *kept) add(e *events, st *stream, size int) (dropped []*keptLog, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	k.expire(now.Add(-cmp.Or(e.keep.TTL, time.Hour)))
	if size+recordSize > e.perCaller {
		return nil, false
	}
	if st.log == nil || st.log.Value == nil {
		st.log = k.logs.PushBack(&keptLog{session: st.session, stream: st.number})
	}
	k.logs.MoveToBack(st.log)
	l := logOf(st.log)
	l.last = now
	k.bytes -= l.bytes
	l.bytes = min(l.bytes+size+recordSize, e.mostOfLog())
	k.bytes += l.bytes
	for first := k.logs.Front(); k.bytes > e.perCaller; first = k.logs.Front() {
		dropped = append(dropped, logOf(first))
		k.remove(first)
	}
	return dropped, true
}

func logOf(e *list.Element) *keptLog {
	l, _ := e.Value.(*keptLog)
	return l
}

// remove takes out a log. Its stream, which may go on, sees that it was.
func (k *kept) remove(e *list.Element) {
	k.bytes -= logOf(e).bytes
	k.logs.Remove(e)
	e.Value = nil
}

// expire takes out the logs whose events have expired in the store.
func (k *kept) expire(before time.Time) {
	for first := k.logs.Front(); first != nil && logOf(first).last.Before(before); first = k.logs.Front() {
		k.remove(first)
	}
}

// take takes out the streams of a session.
func (k *kept) take(s *session) (streams []int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for e := k.logs.Front(); e != nil; {
		next := e.Next()
		if l := logOf(e); l.session == s {
			streams = append(streams, l.stream)
			k.remove(e)
		}
		e = next
	}
	return streams
}

// mostOfLog is what one log can count: more than that, the store does not keep.
func (e *events) mostOfLog() int {
	return min(e.perCaller, cmp.Or(e.keep.Bytes, e.perCaller)+cmp.Or(e.keep.Records, e.perCaller/recordSize)*recordSize)
}

// mayKeep counts an event of a stream, unless the session has ended, and reports whether
// it may be kept.
func (s *session) mayKeep(ctx context.Context, st *stream, size int) bool {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return false
	}
	dropped, ok := s.caller.kept.add(s.events, st, size)
	s.mu.Unlock()
	for _, l := range dropped {
		_ = s.events.drop(ctx, l.session.id, l.stream) // otherwise it expires
	}
	return ok
}

// end returns the streams of a session that has ended of which there may be events.
// From now on, none are kept.
func (s *session) end() (streams []int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.caller.kept.take(s)
}

func (e *events) drop(ctx context.Context, session string, stream int64) error {
	return e.logs.Drop(context.WithoutCancel(ctx), logName(session, stream))
}
