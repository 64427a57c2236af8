// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// saidTopic is where replicas tell each other what was said in a session that may
// belong to a call which another replica serves: an answer to a question, or a
// cancellation.
const saidTopic = "psi/said"

// said is the message on the topic.
type said struct {
	From    string     `json:"from"`         // the replica, which knows already
	To      string     `json:"to,omitempty"` // the replica that asked; "" for a cancellation
	Session string     `json:"session"`
	Key     string     `json:"key,omitempty"`    // where the answer is
	Cancel  *cancelled `json:"cancel,omitempty"` // or what is cancelled
}

type cancelled struct {
	RequestID mcp.ID `json:"requestId"`
	Reason    string `json:"reason,omitempty"`
}

// What a client can make replicas say to each other.
const (
	saidTime   = time.Minute // how long an answer is kept for the replica that asked
	maxSaid    = 1 << 20     // bytes of an answer
	maxSaidID  = 256         // bytes of the id of a request
	maxReason  = 200         // bytes of the reason of a cancellation
	maxCancels = 100         // cancellations of one session in a minute
)

// askedKey is where the replica that asks a question leaves its name. Whoever takes it
// passes on the answer: there is one for each question.
func askedKey(session string, question mcp.ID) string {
	return "psi/asked/" + session + "/" + question.String()
}

// asked notes the question, if a message is one, for the replicas at which its answer
// may arrive.
func (e *events) asked(ctx context.Context, session string, message []byte) error {
	if !e.shared {
		return nil
	}
	m, err := mcp.ParseMessage(message)
	if err != nil || m.Request == nil || m.Request.IsNotification() {
		return nil
	}
	ctx, cancel := storing(ctx)
	defer cancel()
	_, err = e.logs.Put(ctx, askedKey(session, m.Request.ID), []byte(e.replica), 0, e.askTime)
	return err
}

// pass deals with what other replicas may have to know of a message that is no request:
// whether it was said here, or must be said there.
func (ss *sessions) pass(ctx context.Context, s *session, m *mcp.Message) {
	here := s.legacy.Awaits(m)
	var err error
	ctx, cancel := storing(ctx)
	defer cancel()
	switch {
	case ss.opts.Store == nil:
	case m.Response != nil:
		err = ss.passAnswer(ctx, s, m.Response, here)
	case m.Request.Method == mcp.NotificationCancelled && !here:
		err = ss.passCancel(ctx, s, m.Request)
	}
	if err != nil {
		ss.opts.Logger.WarnContext(ctx, "mcphttp: an answer or a cancellation was not relayed", "session", s.logged(), "error", err)
	}
}

// passAnswer passes on the answer to a question that another replica has asked. What
// nobody has asked, or was answered already, goes no further.
func (ss *sessions) passAnswer(ctx context.Context, s *session, r *mcp.Response, here bool) error {
	key := askedKey(s.id, r.ID)
	if store.CheckKey(key) != nil {
		return nil //nolint:nilerr // no question has such an id
	}
	replica, err := ss.opts.Store.Take(ctx, key)
	if here || errors.Is(err, store.ErrNotFound) {
		return nil // without the store, too, it is served here
	}
	if err != nil {
		return err
	}
	body, err := encodeAnswer(r)
	if err != nil {
		return err
	}
	note := said{From: ss.name, To: string(replica), Session: s.id, Key: "psi/said/" + rand.Text()}
	if _, err := ss.opts.Store.Put(ctx, note.Key, body, 0, saidTime); err != nil {
		return err
	}
	return ss.publish(ctx, &note)
}

func encodeAnswer(r *mcp.Response) ([]byte, error) {
	if n := len(r.Result); n > maxSaid || r.Error != nil && len(r.Error.Data)+len(r.Error.Message) > maxSaid {
		return mcp.AppendErrorResponse(nil, r.ID, mcp.Errorf(mcp.CodeInternalError,
			"the answer came to another replica than the one that asked, and is longer than the %d bytes that are passed on", maxSaid)), nil
	}
	return json.Marshal(struct {
		Version string     `json:"jsonrpc"`
		ID      mcp.ID     `json:"id"`
		Result  jsonRaw    `json:"result,omitempty"`
		Error   *mcp.Error `json:"error,omitempty"`
	}{"2.0", r.ID, r.Result, r.Error})
}

// passCancel passes on a cancellation. No store knows which requests there are: this is
// bounded by size and number.
func (ss *sessions) passCancel(ctx context.Context, s *session, req *mcp.Request) error {
	var p mcp.CancelledParams
	if req.Decode(&p) != nil || len(p.RequestID.String()) > maxSaidID || !s.mayCancel(time.Now()) {
		return nil //nolint:nilerr // it cancels nothing
	}
	reason := strings.ToValidUTF8(p.Reason[:min(len(p.Reason), maxReason)], "")
	return ss.publish(ctx, &said{From: ss.name, Session: s.id, Cancel: &cancelled{p.RequestID, reason}})
}

// window counts what happens in a minute.
type window struct {
	begun time.Time
	count int
}

// mayCancel counts a cancellation that is passed on.
func (s *session) mayCancel(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancels == nil || now.Sub(s.cancels.begun) >= time.Minute {
		s.cancels = &window{begun: now}
	}
	s.cancels.count++
	return s.cancels.count <= maxCancels
}

func (ss *sessions) publish(ctx context.Context, what *said) error {
	note, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return ss.opts.Store.Publish(ctx, saidTopic, note)
}

// listenLocked begins to hear what the others say; quietLocked ends it.
func (ss *sessions) listenLocked() {
	if ss.opts.Store == nil || ss.quiet != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ss.quiet = cancel
	go ss.hear(ctx)
}

func (ss *sessions) quietLocked() {
	if ss.quiet != nil {
		ss.quiet()
		ss.quiet = nil
	}
}

// hearAgain is the time before a subscription that has failed is made again.
const hearAgain = time.Second

// hear takes what the others say until ctx is done.
func (ss *sessions) hear(ctx context.Context) {
	for ctx.Err() == nil {
		if err := ss.hearOnce(ctx); err != nil && ctx.Err() == nil {
			ss.opts.Logger.WarnContext(ctx, "mcphttp: answers that go to other replicas are not heard of", "error", err)
		}
		timer := time.NewTimer(hearAgain)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

func (ss *sessions) hearOnce(ctx context.Context) error {
	sub, err := ss.opts.Store.Subscribe(ctx, saidTopic)
	if err != nil {
		return err
	}
	defer sub.Close()
	for {
		note, err := sub.Next(ctx)
		switch {
		case errors.Is(err, store.ErrOverflow):
			continue // what is lost is lost
		case err != nil:
			return err
		}
		var what said
		if json.Unmarshal(note, &what) == nil && what.From != ss.name && (what.To == "" || what.To == ss.name) {
			ss.heard(ctx, &what)
		}
	}
}

// heard gives what was said to the session, if it lives in this process.
func (ss *sessions) heard(ctx context.Context, what *said) {
	ss.mu.Lock()
	s := ss.byID[what.Session]
	ss.mu.Unlock()
	if s == nil {
		return
	}
	if what.Cancel != nil {
		params, err := json.Marshal(what.Cancel)
		if err == nil {
			s.hear(ctx, mcp.AppendNotification(nil, mcp.NotificationCancelled, params))
		}
		return
	}
	if answer, err := ss.opts.Store.Take(ctx, what.Key); err == nil {
		s.hear(ctx, answer)
	}
}

// hear takes an answer or a cancellation.
func (s *session) hear(ctx context.Context, message []byte) {
	m, err := mcp.ParseMessage(message)
	if err == nil && (m.Request == nil || m.Request.Method == mcp.NotificationCancelled) {
		s.legacy.Serve(ctx, nil, m, refused{})
	}
}
