// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient

import (
	"context"
	"fmt"
	"time"

	"github.com/go-psi/psi/mcp/transport"
)

const (
	// maxAsking is the number of questions that the client answers concurrently.
	maxAsking = 4
	// maxAskedSize is the size of the params of open questions, in bytes: of those that the
	// client answers, and of those about one call that are passed on. One question alone
	// may be larger: the transport bounds each message.
	maxAskedSize = 16 << 20
	// askTime is how long after a call a server may still ask, for tools that return before
	// their work is done.
	askTime = time.Minute
)

// admission limits the questions that the client answers itself. In the older revisions a
// server may ask at any time, and the user or the model of the client must not be at its
// disposal. An admission is guarded by session.mu.
type admission struct {
	calls int       // in progress, about which a server may ask
	last  time.Time // when the last of them ended; zero if there was none
	asked int       // since the last call of the program began
	open  int       // not yet answered
	size  int       // of the params of those, in bytes
}

// startCall opens the admission for questions until the returned function is called. A call of
// the program starts the count of questions anew, but not if it is repeated.
func (s *session) startCall(method string, isRepeated bool) (end func()) {
	if !s.conn.opts.MayAsk(method) {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.admission.calls++
	if !isRepeated {
		s.admission.asked = 0
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.admission.calls--
		s.admission.last = time.Now()
	}
}

// admit counts a question, or returns the reason why it is refused. Whether a call is in progress does
// not matter for roots: servers request them after the handshake and when they change, and they
// cost neither the user nor the model anything.
func (s *session) admit(own *question, method string) *transport.Error {
	o := &s.conn.opts
	s.mu.Lock()
	defer s.mu.Unlock()
	a := &s.admission
	mayAskNow := a.calls > 0 || !a.last.IsZero() && time.Since(a.last) < askTime || method == methodListRoots || o.AnswerAnytime
	switch {
	case !mayAskNow:
		return &transport.Error{Code: codeInvalidRequest, Message: "no call is in progress: ask while a tools/call, prompts/get or resources/read is served"}
	case a.asked >= o.MaxRounds*o.MaxQuestions:
		return &transport.Error{Code: codeInternalError, Message: fmt.Sprintf("%d questions were asked since the last call began, which is the limit", a.asked)}
	case a.open >= o.MaxQuestions*max(a.calls, 1):
		return tooMany(o.MaxQuestions)
	case a.open > 0 && a.size+own.size > maxAskedSize:
		return tooLarge()
	}
	a.asked++
	a.open++
	a.size += own.size
	own.isAdmitted = true
	return nil
}

func tooLarge() *transport.Error {
	return &transport.Error{Code: codeInternalError, Message: fmt.Sprintf("the questions that are not answered yet have more than %d MiB; wait for answers", maxAskedSize>>20)}
}

// answerInTurn calls answer as soon as fewer than maxAsking admitted questions are being
// answered, unless the question is withdrawn while it waits.
func (s *session) answerInTurn(ctx context.Context, answer func(context.Context)) {
	select {
	case s.turns <- struct{}{}:
	default:
		select {
		case s.turns <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
	defer func() { <-s.turns }()
	answer(ctx)
}
