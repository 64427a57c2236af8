// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyhttp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/legacyserver"
	"github.com/go-psi/psi/internal/pause"
	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/transport"
)

// This file relays, through Options.Store, the answers and cancellations that arrive at one
// replica for a request that another replica serves.

// relayTopic is the topic on which replicas relay answers and cancellations.
const relayTopic = "psi/said"

// relayedMessage is a message on relayTopic. A message about an answered question is only a
// hint to look into the store: a replica that has missed it looks there anyway.
type relayedMessage struct {
	From     string        `json:"from"`         // the sending replica
	To       string        `json:"to,omitempty"` // the replica that asked; empty for all
	Session  string        `json:"session"`
	Question mcp.ID        `json:"question,omitzero"` // the question that was answered
	Cancel   *cancellation `json:"cancel,omitempty"`  // instead of Question
	Changed  bool          `json:"changed,omitempty"` // instead of Question: the session in the store may have changed
}

type cancellation struct {
	RequestID mcp.ID `json:"requestId"`
	Reason    string `json:"reason,omitempty"`
}

// These bound what clients can make replicas send to each other.
const (
	relayedAnswerLifetime = 10 * time.Minute // in the store
	maxRelayedAnswer      = 1 << 20          // bytes
	maxRelayedID          = 256              // bytes of the ID of a cancelled request
	maxRelayedReason      = 200              // bytes of the reason of a cancellation
	maxRelayedCancels     = 100              // cancellations of one session per minute
)

// askedRecord is the stored record of a question, from the time it is asked until the
// asking replica has its answer. A question is answered once, at any replica.
type askedRecord struct {
	Replica string          `json:"replica"` // the asking replica
	Answer  json.RawMessage `json:"answer,omitempty"`
}

func askedKey(session string, question mcp.ID) string {
	return "psi/asked/" + session + "/" + question.String()
}

// noteQuestion stores the name of this replica if message is a question, for the replicas
// at which the answer may arrive.
func (e *eventLog) noteQuestion(ctx context.Context, session string, message []byte) error {
	if !e.shared {
		return nil
	}
	m, err := transport.ParseMessage(message)
	if err != nil || !m.IsRequest() {
		return nil
	}
	data, err := json.Marshal(askedRecord{Replica: e.replica})
	if err != nil {
		return err
	}
	ctx, cancel := storeContext(ctx)
	defer cancel()
	_, err = e.store.Put(ctx, askedKey(session, m.ID), data, 0, e.askTimeout)
	return err
}

// removeQuestion removes the record of a question that has ended without an answer. If that
// fails, the record expires.
func (ss *sessions) removeQuestion(s *session, question mcp.ID) {
	ctx, cancel := storeContext(context.Background())
	defer cancel()
	_, _ = ss.opts.Store.Take(ctx, askedKey(s.id(), question))
}

var errRelay = mcp.Errorf(mcp.CodeInternalError, "the answer could not be passed to the replica that asked; try again later")

// relay forwards an answer or a cancellation if another replica serves its request. An
// error means that the client should send the answer again.
func (ss *sessions) relay(ctx context.Context, s *session, m *transport.Message) error {
	if ss.opts.Store == nil {
		return nil
	}
	ctx, cancel := storeContext(ctx)
	defer cancel()
	isLocal := s.legacy.Awaits(m)
	switch {
	case m.IsResponse():
		if err := ss.relayAnswer(ctx, s, m, isLocal); err != nil {
			ss.opts.Logger.WarnContext(ctx, "mcphttp: an answer was not relayed", "session", s.logID(), "error", err)
			return errRelay
		}
	case m.Method == mcp.NotificationCancelled && !isLocal:
		if err := ss.relayCancellation(ctx, s, m); err != nil {
			ss.opts.Logger.WarnContext(ctx, "mcphttp: a cancellation was not relayed", "session", s.logID(), "error", err)
		}
	}
	return nil
}

// relayBatch relays the messages of a batch.
func (ss *sessions) relayBatch(ctx context.Context, s *session, batch []byte) error {
	if ss.opts.Store == nil {
		return nil
	}
	items, err := transport.SplitBatch(batch)
	if err != nil || len(items) > legacyserver.MaxBatch {
		return nil //nolint:nilerr // the session refuses the batch
	}
	for _, item := range items {
		m, err := transport.ParseMessage(item)
		if err != nil {
			continue // the session refuses the message
		}
		if err := ss.relay(ctx, s, &m); err != nil {
			return err
		}
	}
	return nil
}

// Reasons why an answer is not stored.
var (
	errNotAsked = errors.New("mcphttp: no such question")
	errAnswered = errors.New("mcphttp: the question is answered")
)

// relayAnswer stores the answer to a question of another replica and notifies that replica.
// It ignores the answer to a question that was not asked. If the question was answered
// before, it keeps the first answer and notifies the replica again.
func (ss *sessions) relayAnswer(ctx context.Context, s *session, r *transport.Message, isLocal bool) error {
	key := askedKey(s.id(), r.ID)
	if store.CheckKey(key) != nil {
		return nil //nolint:nilerr // no question has such an ID
	}
	if isLocal {
		_, _ = ss.opts.Store.Take(ctx, key) // otherwise it expires
		return nil
	}
	body := encodeAnswer(r)
	var rec askedRecord
	err := store.Update(ctx, ss.opts.Store, key, relayedAnswerLifetime, func(old []byte) ([]byte, error) {
		rec = askedRecord{}
		if old == nil || json.Unmarshal(old, &rec) != nil {
			return nil, errNotAsked
		}
		if rec.Answer != nil {
			return nil, errAnswered
		}
		rec.Answer = body
		return json.Marshal(rec)
	})
	switch {
	case errors.Is(err, errNotAsked):
		return nil
	case err != nil && !errors.Is(err, errAnswered): // if answered, the client may be repeating the answer because the replica was not notified
		return err
	}
	return ss.publish(ctx, &relayedMessage{From: ss.replica, To: rec.Replica, Session: s.id(), Question: r.ID})
}

func encodeAnswer(r *transport.Message) []byte {
	switch {
	case len(r.Result) > maxRelayedAnswer, r.Error != nil && len(r.Error.Data)+len(r.Error.Message) > maxRelayedAnswer:
		return core.AppendError(nil, r.ID, mcp.Errorf(mcp.CodeInternalError,
			"the answer came to another replica than the one that asked, and is longer than the %d bytes that are passed on", maxRelayedAnswer))
	case r.Error != nil:
		return transport.AppendError(nil, r.ID, r.Error)
	}
	return transport.AppendResult(nil, r.ID, r.Result)
}

// relayCancellation relays a cancellation to all replicas. The store does not know which
// requests are in flight, so cancellations are bounded in size and number instead.
func (ss *sessions) relayCancellation(ctx context.Context, s *session, m *transport.Message) error {
	var p mcp.CancelledParams
	if m.Params == nil || strictjson.Unmarshal(m.Params, &p) != nil || len(p.RequestID.String()) > maxRelayedID || !s.mayRelayCancel(time.Now()) {
		return nil //nolint:nilerr // it cancels nothing
	}
	reason := strings.ToValidUTF8(p.Reason[:min(len(p.Reason), maxRelayedReason)], "")
	return ss.publish(ctx, &relayedMessage{From: ss.replica, Session: s.id(), Cancel: &cancellation{p.RequestID, reason}})
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

// announce tells a replica, or all replicas if to is empty, that the stored state of a
// session may have changed, because any of them may serve its stream. A replica sends
// itself the message when it needs a state that it may have missed.
func (ss *sessions) announce(ctx context.Context, s *session, to string) {
	if ss.opts.Store == nil {
		return
	}
	ctx, cancel := storeContext(ctx)
	defer cancel()
	if err := ss.publish(ctx, &relayedMessage{From: ss.replica, To: to, Session: s.id(), Changed: true}); err != nil {
		ss.opts.Logger.WarnContext(ctx, "mcphttp: a change of a session was not relayed", "session", s.logID(), "error", err)
	}
}

// reload reads the stored state of a session, which another replica may have changed, and
// starts its adoption. It returns an error if the store does not answer. It is called only
// by the goroutine that receives relayed messages, so that the last state wins.
func (ss *sessions) reload(ctx context.Context, s *session) error {
	ctx, cancel := storeContext(ctx)
	defer cancel()
	data, _, err := ss.opts.Store.Get(ctx, sessionKey(s.id()))
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var rec sessionRecord
	if err := json.Unmarshal(data, &rec); err != nil {
		ss.warnOfChange(ctx, s, err)
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = &rec.State
	if !s.isAdopting {
		s.isAdopting = true
		go ss.adoptChanges(s)
	}
	return nil
}

// adoptChanges makes a session adopt its changed states, skipping all but the last. It may
// block on a client that does not read its stream or on a handler that is slow to
// subscribe, so it has its own goroutine, which does not delay the messages of other
// sessions. It retries what has failed, because the client was told that it succeeded.
func (ss *sessions) adoptChanges(s *session) {
	delay := firstAdoptDelay
	for state := s.takeNextState(); state != nil; state = s.takeNextState() {
		ctx, cancel := storeContext(s.legacy.Context())
		err := s.legacy.Adopt(ctx, state)
		if err == nil && delay > firstAdoptDelay {
			s.legacy.Missed(ctx)
		}
		cancel()
		if err == nil {
			delay = firstAdoptDelay
			continue
		}
		ss.warnOfChange(ctx, s, err)
		if pause.For(s.legacy.Context(), delay) == nil {
			s.requeueState(state)
		}
		delay = min(2*delay, lastAdoptDelay)
	}
}

// The minimum and maximum delay before a failed adoption is retried.
const (
	firstAdoptDelay = time.Second
	lastAdoptDelay  = time.Minute
)

// requeueState makes state the next one to adopt, unless there is a newer one.
func (s *session) requeueState(state *legacyserver.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = cmp.Or(s.changed, state)
}

// takeNextState returns the state to adopt next, or nil.
func (s *session) takeNextState() *legacyserver.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.changed
	s.changed, s.isAdopting = nil, state != nil
	return state
}

func (ss *sessions) warnOfChange(ctx context.Context, s *session, err error) {
	ss.opts.Logger.WarnContext(ctx, "mcphttp: a change of a session was not taken over", "session", s.logID(), "error", err)
}

func (ss *sessions) publish(ctx context.Context, m *relayedMessage) error {
	note, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return ss.opts.Store.Publish(ctx, relayTopic, note)
}

// startReceivingLocked starts the goroutines that receive relayed messages, track which
// replicas are alive, and announce this one. They run while there are sessions in this process.
func (ss *sessions) startReceivingLocked() {
	if ss.opts.Store == nil || ss.stopReceiving != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	ss.stopReceiving = cancel
	go ss.receive(ctx, relayTopic, ss.catchUp, ss.receiveRelayed)
	go ss.receive(ctx, aliveTopic, func(context.Context) error { return nil }, ss.receiveAnnouncement)
	go ss.keepPresence(ctx)
}

func (ss *sessions) stopReceivingLocked() {
	if ss.stopReceiving != nil {
		ss.stopReceiving()
		ss.stopReceiving = nil
	}
}

// resubscribeDelay is the delay before a failed subscription is retried.
const resubscribeDelay = time.Second

// receive calls serve with the messages of a topic until ctx is done, and missed whenever
// messages may have been lost. If one of them fails, receive subscribes again after
// resubscribeDelay and calls missed.
func (ss *sessions) receive(ctx context.Context, topic string, missed func(context.Context) error, serve func(context.Context, []byte) error) {
	for ctx.Err() == nil {
		if err := ss.receiveOnce(ctx, topic, missed, serve); err != nil && ctx.Err() == nil {
			ss.opts.Logger.WarnContext(ctx, "mcphttp: nothing is received from other replicas", "topic", topic, "error", err)
		}
		_ = pause.For(ctx, resubscribeDelay)
	}
}

func (ss *sessions) receiveOnce(ctx context.Context, topic string, missed func(context.Context) error, serve func(context.Context, []byte) error) error {
	sub, err := ss.opts.Store.Subscribe(ctx, topic)
	if err != nil {
		return err
	}
	defer sub.Close()
	for err = missed(ctx); err == nil; {
		var message []byte
		switch message, err = sub.Next(ctx); {
		case errors.Is(err, store.ErrOverflow):
			err = missed(ctx)
		case err == nil:
			err = serve(ctx, message)
		}
	}
	return err
}

// receiveRelayed serves a message relayed by another replica. It also handles changes of
// sessions made by this replica, so that all changes are adopted in the order of the store.
func (ss *sessions) receiveRelayed(ctx context.Context, note []byte) error {
	var m relayedMessage
	if json.Unmarshal(note, &m) == nil && (m.Changed || m.From != ss.replica) && (m.To == "" || m.To == ss.replica) {
		return ss.serveRelayed(ctx, &m)
	}
	return nil
}

// catchUp reads from the store what this replica may have missed: the answers to the
// questions pending here, and the state of the sessions that listen here. A lost
// cancellation cannot be recovered.
func (ss *sessions) catchUp(ctx context.Context) error {
	for _, s := range ss.all() {
		for _, question := range s.legacy.Questions() {
			if err := ss.takeAnswer(ctx, s, question); err != nil {
				return err
			}
		}
		if !s.hasListener() {
			continue
		}
		if err := ss.reload(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// serveRelayed passes a relayed message to its session, if the session is in this process.
func (ss *sessions) serveRelayed(ctx context.Context, m *relayedMessage) error {
	ss.mu.Lock()
	s := ss.byID[m.Session]
	ss.mu.Unlock()
	switch {
	case s == nil:
	case m.Changed:
		return ss.reload(ctx, s)
	case m.Cancel == nil:
		return ss.takeAnswer(ctx, s, m.Question)
	default:
		if params, err := json.Marshal(m.Cancel); err == nil {
			s.acceptRelayed(ctx, transport.AppendNotification(nil, mcp.NotificationCancelled, params))
		}
	}
	return nil
}

// takeAnswer takes the answer to a question from the store, if there is one, and passes it
// to the session. It returns an error if the store does not answer.
func (ss *sessions) takeAnswer(ctx context.Context, s *session, question mcp.ID) error {
	ctx, cancel := storeContext(ctx)
	defer cancel()
	key := askedKey(s.id(), question)
	data, _, err := ss.opts.Store.Get(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	var rec askedRecord
	if err != nil || json.Unmarshal(data, &rec) != nil || rec.Answer == nil {
		return nil // there is no answer
	}
	s.acceptRelayed(ctx, rec.Answer)
	_, _ = ss.opts.Store.Take(ctx, key) // otherwise it expires
	return nil
}

func (s *session) acceptRelayed(ctx context.Context, message []byte) {
	parsed, err := transport.ParseMessage(message)
	if err == nil && mayHelp(&parsed) {
		s.legacy.Accept(ctx, parsed, serving.Origin{}).Serve(noStream{})
	}
}
