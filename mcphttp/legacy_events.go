// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"container/list"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits on the events that are kept for clients that resume a stream, in addition to
// SessionOptions.Replay, which bounds the bytes of one caller.
const (
	maxStreamEvents  = 256 // for one stream
	maxSessionEvents = 4 << 20
	maxAllEvents     = 64 << 20 // for all callers of an endpoint
	eventLifetime    = 5 * time.Minute
)

// eventOverhead is the number of bytes counted for an event in addition to its message.
const eventOverhead = 200

// A keptEvent is a message that was sent on a stream, or the position from which a client may
// resume the stream before it has received a message.
type keptEvent struct {
	position uint64 // in the stream; the first event has position 1
	message  []byte // nil if there is none
}

func (e *keptEvent) size() int { return len(e.message) + eventOverhead }

// An eventLog has the last events of one stream. It exists while it has events, even after
// the stream has ended.
type eventLog struct {
	session *session
	stream  string
	events  []keptEvent
	last    time.Time // when the last event was added
	shelves [3]*shelf // of the session, its caller, and all callers
	places  [3]*list.Element
}

// A shelf counts the bytes of some logs. The log whose last event is oldest is in front, and
// loses its first events when there are too many bytes.
type shelf struct {
	limit, bytes int
	logs         list.List // of *eventLog
}

// kept are the events of all sessions of an endpoint, in memory. Its lock guards all shelves
// and logs; no other lock is acquired while it is held.
type kept struct {
	mu  sync.Mutex
	all shelf
}

// add keeps an event. It returns errSessionEnded after the session has ended, and errNotKept
// for an event that exceeds a limit alone.
func (k *kept) add(s *session, stream string, e keptEvent) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	k.expireLocked(now)
	switch {
	case s.kept.ended:
		return errSessionEnded
	case e.size() > min(s.caller.kept.limit, s.kept.limit):
		return errNotKept
	}
	l := s.kept.logs[stream]
	if l == nil {
		l = &eventLog{session: s, stream: stream, shelves: [3]*shelf{&s.kept.shelf, &s.caller.kept, &k.all}}
		for i, shelf := range l.shelves {
			l.places[i] = shelf.logs.PushBack(l)
		}
		if s.kept.logs == nil {
			s.kept.logs = map[string]*eventLog{}
		}
		s.kept.logs[stream] = l
	}
	l.events, l.last = append(l.events, e), now
	for i, shelf := range l.shelves {
		shelf.bytes += e.size()
		shelf.logs.MoveToBack(l.places[i])
	}
	if len(l.events) > maxStreamEvents {
		l.trimLocked()
	}
	for _, shelf := range l.shelves {
		for shelf.bytes > shelf.limit {
			shelf.firstLocked().trimLocked()
		}
	}
	return nil
}

// firstLocked returns the log in front, or nil if the shelf is empty.
func (s *shelf) firstLocked() *eventLog {
	if front := s.logs.Front(); front != nil {
		l, _ := front.Value.(*eventLog)
		return l
	}
	return nil
}

// trimLocked removes the first event of a log, and the log with its last event.
func (l *eventLog) trimLocked() {
	size := l.events[0].size()
	l.events[0] = keptEvent{} // the array may live on
	l.events = l.events[1:]
	for i, shelf := range l.shelves {
		shelf.bytes -= size
		if len(l.events) == 0 {
			shelf.logs.Remove(l.places[i])
		}
	}
	if len(l.events) == 0 {
		delete(l.session.kept.logs, l.stream)
	}
}

func (l *eventLog) removeLocked() {
	for len(l.events) > 0 {
		l.trimLocked()
	}
}

// expireLocked removes the logs without a recent event.
func (k *kept) expireLocked(now time.Time) {
	for l := k.all.firstLocked(); l != nil && now.Sub(l.last) >= eventLifetime; l = k.all.firstLocked() {
		l.removeLocked()
	}
}

// expire removes the logs without a recent event.
func (k *kept) expire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expireLocked(time.Now())
}

// after returns the events of a stream after a position. It returns false if some of them
// are gone, or if the stream never had an event at that position.
func (k *kept) after(s *session, stream string, position uint64) (events []keptEvent, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expireLocked(time.Now())
	l := s.kept.logs[stream]
	if l == nil {
		return nil, false
	}
	first, last := l.events[0].position, l.events[len(l.events)-1].position
	if position+1 < first || position > last {
		return nil, false
	}
	return append([]keptEvent(nil), l.events[position+1-first:]...), true
}

// end removes the events of a session, which keeps none from then on.
func (k *kept) end(s *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.kept.ended = true
	for _, l := range s.kept.logs {
		l.removeLocked()
	}
}

// size returns the number of bytes counted for the events of a stream.
func (k *kept) size(s *session, stream string) (size int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := s.kept.logs[stream]; l != nil {
		for i := range l.events {
			size += l.events[i].size()
		}
	}
	return size
}

// sessionEvents are the events of one session, guarded by the lock of kept.
type sessionEvents struct {
	shelf

	logs  map[string]*eventLog // by stream; nil before the first event
	ended bool                 // no more events are kept
}

// replay writes the events to out.
func replay(out *eventWriter, stream string, events []keptEvent) error {
	for _, e := range events {
		if e.message == nil {
			continue
		}
		if err := out.Send(messageEvent(eventID(stream, e.position), e.message)); err != nil {
			return err
		}
	}
	return nil
}

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

// processOf returns the process that writes a stream, or "" if the name contains none.
func processOf(stream string) string {
	_, process, _ := strings.Cut(stream, ".")
	return process
}
