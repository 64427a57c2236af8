// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	mathrand "math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/digest"
	"github.com/go-psi/psi/internal/legacyserver"
	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/transport"
)

// This file shares sessions with other processes (replicas) through Options.Store: their
// state, and the answers and cancellations that arrive at one replica for a request that
// another one serves.

// sessionRecord is what the store keeps of a session.
type sessionRecord struct {
	State   legacyserver.State `json:"state"`
	Issuer  string             `json:"issuer,omitempty"`
	Subject string             `json:"subject,omitempty"`
	Known   bool               `json:"known,omitempty"` // there is a principal
}

// principal returns the caller that the session is bound to.
func (r *sessionRecord) principal() *mcp.Principal {
	if !r.Known {
		return nil
	}
	return &mcp.Principal{Issuer: r.Issuer, Subject: r.Subject}
}

func sessionKey(id string) string { return "psi/session/" + id }

// storedLifetime is how long a session lives in the store without being extended. A used
// session is extended after one and a half times SessionIdle at most.
func (ss *sessions) storedLifetime() time.Duration { return 2 * ss.opts.SessionIdle }

// storeTimeout bounds writes to the store that must not be lost when the client goes.
const storeTimeout = 10 * time.Second

func storeContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
}

// save writes the state of a session to a shared store. It is called after a request that
// may have changed the state.
func (ss *sessions) save(ctx context.Context, s *session) {
	if ss.opts.Store == nil {
		return
	}
	rec := sessionRecord{State: s.legacy.State()}
	if p := s.legacy.Public().Principal(); p != nil {
		rec.Known, rec.Issuer, rec.Subject = true, p.Issuer, p.Subject
	}
	ctx, cancel := storeContext(ctx)
	defer cancel()
	data, err := json.Marshal(rec)
	if err == nil {
		err = store.Update(ctx, ss.opts.Store, sessionKey(s.id), ss.storedLifetime(), func([]byte) ([]byte, error) { return data, nil })
	}
	if err != nil {
		ss.opts.Logger.WarnContext(ctx, "mcphttp: a session was not saved", "session", s.logID(), "error", err)
	}
}

var errStore = mcp.Errorf(mcp.CodeInternalError, "the session could not be looked up; try again later")

// restore returns a session that another replica has opened, nil if there is none. An
// error means that the client should try again.
func (ss *sessions) restore(r *http.Request, id string) (*session, error) {
	if ss.opts.Store == nil || store.CheckKey(sessionKey(id)) != nil {
		return nil, nil //nolint:nilerr // no session has such an ID
	}
	ctx := r.Context()
	data, _, err := ss.opts.Store.Get(ctx, sessionKey(id))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		if ctx.Err() == nil { // otherwise the client has gone
			ss.opts.Logger.WarnContext(ctx, "mcphttp: a session was not restored", "session", digest.Session(id), "error", err)
		}
		return nil, errStore
	}
	var rec sessionRecord
	if json.Unmarshal(data, &rec) != nil {
		return nil, nil //nolint:nilerr // a record that cannot be read is no session
	}
	if !rec.principal().Is(principalOf(r)) {
		return nil, nil
	}
	return ss.adopt(r, id, &rec)
}

// adopt adds a session that another replica has opened, unless another request has done so
// meanwhile; release must follow.
func (ss *sessions) adopt(r *http.Request, id string, rec *sessionRecord) (*session, error) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if s, known := ss.findLocalLocked(r, id); known {
		return s, nil
	}
	if err := ss.makeRoomLocked(callerOf(r)); err != nil {
		return nil, err
	}
	opts := ss.opts.legacy(id, principalOf(r))
	opts.State = &rec.State
	s := ss.addLocked(id, r, opts)
	s.lastStream = adoptedStreamBase()
	return s, nil
}

// adoptedStreamBase returns the number that the streams of an adopted session follow. It
// is random, so that they differ from those of other replicas.
func adoptedStreamBase() int64 { return 1<<32 + mathrand.Int64N(1<<61) } //nolint:gosec // it must be unique, not secret

// extendInStore keeps sessions in use from expiring in the store. It ends those that are
// not there any more, because another replica has ended them.
func (ss *sessions) extendInStore(used []*session) {
	if len(used) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), ss.opts.SessionIdle/2) // then it is called again
	defer cancel()
	for _, s := range used {
		err := store.Update(ctx, ss.opts.Store, sessionKey(s.id), ss.storedLifetime(), func(old []byte) ([]byte, error) {
			if old == nil {
				return nil, store.ErrNotFound
			}
			return old, nil
		})
		switch {
		case errors.Is(err, store.ErrNotFound):
			s.legacy.Close()
		case err != nil:
			ss.opts.Logger.WarnContext(ctx, "mcphttp: a session was not kept alive", "session", s.logID(), "error", err)
		}
	}
}

// end ends a session in all replicas.
func (ss *sessions) end(ctx context.Context, s *session) {
	s.legacy.Close()
	ss.remove(s)
	ss.discard(ctx, s)
}

// cleanUp is called in a goroutine of its own when a session has ended.
func (ss *sessions) cleanUp(s *session) {
	ss.remove(s)
	ss.mu.Lock()
	isMovable := s.isMovable
	ss.mu.Unlock()
	if !isMovable {
		ss.discard(context.Background(), s)
	}
}

// discard removes a session that has ended in all replicas, and its events, from the
// store.
func (ss *sessions) discard(ctx context.Context, s *session) {
	ctx, cancel := storeContext(ctx)
	defer cancel()
	s.discardOnce.Do(func() {
		if ss.opts.Store != nil {
			if _, err := ss.opts.Store.Take(ctx, sessionKey(s.id)); err != nil && !errors.Is(err, store.ErrNotFound) {
				ss.opts.Logger.WarnContext(ctx, "mcphttp: a session was not removed", "session", s.logID(), "error", err)
			}
		}
		for _, stream := range s.stopKeeping() {
			if err := ss.events.drop(ctx, s.id, stream); err != nil {
				ss.opts.Logger.WarnContext(ctx, "mcphttp: events were not removed", "session", s.logID(), "error", err)
				return // they expire
			}
		}
	})
}

// relayTopic is the topic on which replicas relay answers and cancellations.
const relayTopic = "psi/said"

// relayedMessage is a message on relayTopic.
type relayedMessage struct {
	From    string        `json:"from"`         // the sending replica
	To      string        `json:"to,omitempty"` // the replica that asked; empty for a cancellation
	Session string        `json:"session"`
	Key     string        `json:"key,omitempty"`    // of the answer in the store
	Cancel  *cancellation `json:"cancel,omitempty"` // instead of Key
}

type cancellation struct {
	RequestID mcp.ID `json:"requestId"`
	Reason    string `json:"reason,omitempty"`
}

// These bound what clients can make replicas send to each other.
const (
	relayedAnswerLifetime = time.Minute // in the store
	maxRelayedAnswer      = 1 << 20     // bytes
	maxRelayedID          = 256         // bytes of the ID of a cancelled request
	maxRelayedReason      = 200         // bytes of the reason of a cancellation
	maxRelayedCancels     = 100         // cancellations of one session in a minute
)

// questionKey is the key under which the replica that asks a question stores its name.
// The replica that takes it relays the answer, so there is one answer to each question.
func questionKey(session string, question mcp.ID) string {
	return "psi/asked/" + session + "/" + question.String()
}

// noteQuestion stores which replica asks, if message is a question, for the replicas at
// which the answer may arrive.
func (e *eventLog) noteQuestion(ctx context.Context, session string, message []byte) error {
	if !e.shared {
		return nil
	}
	m, err := transport.ParseMessage(message)
	if err != nil || !m.IsRequest() {
		return nil
	}
	ctx, cancel := storeContext(ctx)
	defer cancel()
	_, err = e.store.Put(ctx, questionKey(session, m.ID), []byte(e.replica), 0, e.askTimeout)
	return err
}

// relay passes an answer or a cancellation on if another replica serves its request.
func (ss *sessions) relay(ctx context.Context, s *session, m *transport.Message) {
	if ss.opts.Store == nil {
		return
	}
	isLocal := s.legacy.Awaits(m)
	var err error
	ctx, cancel := storeContext(ctx)
	defer cancel()
	switch {
	case m.IsResponse():
		err = ss.relayAnswer(ctx, s, m, isLocal)
	case m.Method == mcp.NotificationCancelled && !isLocal:
		err = ss.relayCancellation(ctx, s, m)
	}
	if err != nil {
		ss.opts.Logger.WarnContext(ctx, "mcphttp: an answer or a cancellation was not relayed", "session", s.logID(), "error", err)
	}
}

// relayAnswer relays the answer to a question that another replica has asked. It ignores
// an answer to a question that was not asked, or was answered before.
func (ss *sessions) relayAnswer(ctx context.Context, s *session, r *transport.Message, isLocal bool) error {
	key := questionKey(s.id, r.ID)
	if store.CheckKey(key) != nil {
		return nil //nolint:nilerr // no question has such an ID
	}
	replica, err := ss.opts.Store.Take(ctx, key)
	if isLocal || errors.Is(err, store.ErrNotFound) {
		return nil // a local answer is served here even if the store fails
	}
	if err != nil {
		return err
	}
	body, err := encodeAnswer(r)
	if err != nil {
		return err
	}
	note := relayedMessage{From: ss.replica, To: string(replica), Session: s.id, Key: "psi/said/" + rand.Text()}
	if _, err := ss.opts.Store.Put(ctx, note.Key, body, 0, relayedAnswerLifetime); err != nil {
		return err
	}
	return ss.publish(ctx, &note)
}

func encodeAnswer(r *transport.Message) ([]byte, error) {
	if n := len(r.Result); n > maxRelayedAnswer || r.Error != nil && len(r.Error.Data)+len(r.Error.Message) > maxRelayedAnswer {
		return core.AppendError(nil, r.ID, mcp.Errorf(mcp.CodeInternalError,
			"the answer came to another replica than the one that asked, and is longer than the %d bytes that are passed on", maxRelayedAnswer)), nil
	}
	return json.Marshal(struct {
		Version string           `json:"jsonrpc"`
		ID      mcp.ID           `json:"id"`
		Result  json.RawMessage  `json:"result,omitempty"`
		Error   *transport.Error `json:"error,omitempty"`
	}{"2.0", r.ID, r.Result, r.Error})
}

// relayCancellation relays a cancellation to all replicas. The store does not know which
// requests are in flight, so size and number are bounded instead.
func (ss *sessions) relayCancellation(ctx context.Context, s *session, m *transport.Message) error {
	var p mcp.CancelledParams
	if m.Params == nil || strictjson.Unmarshal(m.Params, &p) != nil || len(p.RequestID.String()) > maxRelayedID || !s.mayRelayCancel(time.Now()) {
		return nil //nolint:nilerr // it cancels nothing
	}
	reason := strings.ToValidUTF8(p.Reason[:min(len(p.Reason), maxRelayedReason)], "")
	return ss.publish(ctx, &relayedMessage{From: ss.replica, Session: s.id, Cancel: &cancellation{p.RequestID, reason}})
}

// window counts events in a minute.
type window struct {
	start time.Time
	count int
}

// mayRelayCancel counts a cancellation and reports whether it may be relayed.
func (s *session) mayRelayCancel(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancels == nil || now.Sub(s.cancels.start) >= time.Minute {
		s.cancels = &window{start: now}
	}
	s.cancels.count++
	return s.cancels.count <= maxRelayedCancels
}

func (ss *sessions) publish(ctx context.Context, m *relayedMessage) error {
	note, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return ss.opts.Store.Publish(ctx, relayTopic, note)
}

// startReceivingLocked starts the goroutine that receives what other replicas relay. It
// runs while there are sessions in this process.
func (ss *sessions) startReceivingLocked() {
	if ss.opts.Store == nil || ss.stopReceiving != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ss.stopReceiving = cancel
	go ss.receiveRelayed(ctx)
}

func (ss *sessions) stopReceivingLocked() {
	if ss.stopReceiving != nil {
		ss.stopReceiving()
		ss.stopReceiving = nil
	}
}

// resubscribeDelay is the time after which a subscription that has failed is repeated.
const resubscribeDelay = time.Second

// receiveRelayed serves what other replicas relay until ctx is done.
func (ss *sessions) receiveRelayed(ctx context.Context) {
	for ctx.Err() == nil {
		if err := ss.receiveOnce(ctx); err != nil && ctx.Err() == nil {
			ss.opts.Logger.WarnContext(ctx, "mcphttp: answers that go to other replicas are not heard of", "error", err)
		}
		timer := time.NewTimer(resubscribeDelay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

func (ss *sessions) receiveOnce(ctx context.Context) error {
	sub, err := ss.opts.Store.Subscribe(ctx, relayTopic)
	if err != nil {
		return err
	}
	defer sub.Close()
	for {
		note, err := sub.Next(ctx)
		switch {
		case errors.Is(err, store.ErrOverflow):
			continue // lost messages cannot be recovered
		case err != nil:
			return err
		}
		var m relayedMessage
		if json.Unmarshal(note, &m) == nil && m.From != ss.replica && (m.To == "" || m.To == ss.replica) {
			ss.serveRelayed(ctx, &m)
		}
	}
}

// serveRelayed gives a relayed message to its session, if that lives in this process.
func (ss *sessions) serveRelayed(ctx context.Context, m *relayedMessage) {
	ss.mu.Lock()
	s := ss.byID[m.Session]
	ss.mu.Unlock()
	if s == nil {
		return
	}
	var message []byte
	if m.Cancel != nil {
		params, err := json.Marshal(m.Cancel)
		if err != nil {
			return
		}
		message = transport.AppendNotification(nil, mcp.NotificationCancelled, params)
	} else {
		answer, err := ss.opts.Store.Take(ctx, m.Key)
		if err != nil {
			return
		}
		message = answer
	}
	parsed, err := transport.ParseMessage(message)
	if err == nil && mayHelp(&parsed) {
		s.legacy.Accept(ctx, parsed, serving.Origin{}).Serve(noStream{})
	}
}
