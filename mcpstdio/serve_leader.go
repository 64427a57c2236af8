// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio

import (
	"errors"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp/transport"
)

// A leader is a goroutine that reads a stream in the Leader/Followers pattern (Schmidt and
// others, 2000): one goroutine at a time, the leader, reads a message and serves it itself,
// so that a short request costs no hand-over between goroutines. If serving takes longer
// than a moment, a timer makes the leader resign: another goroutine becomes the leader and
// continues reading, and the first ends when its message is served. If all requests are
// short, the first leader leads forever.
type leader struct {
	server *streamServer
	timer  *time.Timer // nil before the first message

	mu   sync.Mutex
	busy bool // it serves a message and has not resigned
}

// moment is how long a leader serves most messages before it resigns.
const moment = time.Millisecond

// lead reads and serves messages until the leader has resigned or the stream has ended.
func (s *streamServer) lead() {
	l := &leader{server: s}
	for {
		data, err := s.stream.Read(s.ctx)
		broken, isMessageError := errors.AsType[*transport.MessageError](err)
		switch {
		case isMessageError:
			s.serveUnreadable(broken)
		case err != nil:
			s.endedBy = err
			close(s.ended)
			return
		case !l.serve(data):
			return
		}
	}
}

// serveUnreadable answers a message that the stream could not return.
func (s *streamServer) serveUnreadable(err error) {
	if s.enter() {
		c := s.server.AcceptUnreadable(err)
		s.start(c)
		s.serve(c, func() {})
	}
}

// serve accepts and serves one message, and reports whether l still leads. It does not
// resign before the message is accepted, because the next leader may read its cancellation.
func (l *leader) serve(data []byte) bool {
	c := l.server.accept(data)
	l.start(momentFor(c))
	l.server.serve(c, l.resign)
	return l.finish()
}

func (l *leader) start(wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy = true
	if l.timer == nil {
		l.timer = time.AfterFunc(wait, l.resign)
	} else {
		l.timer.Reset(wait)
	}
}

// finish stops the timer and reports whether l still leads.
func (l *leader) finish() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	leads := l.busy
	l.busy = false
	l.timer.Stop()
	return leads
}

// resign makes another goroutine the leader. A timer that fires late makes l resign during
// its next message, which is too early but harmless.
func (l *leader) resign() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy {
		l.busy = false
		l.server.startLeader()
	}
}

// startLeader starts the next leader, unless too many messages are being served. In that
// case, the peer sends more than it reads, and has to wait.
func (s *streamServer) startLeader() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaders = s.active < s.maxActive(); s.leaders {
		go s.lead()
	}
}
