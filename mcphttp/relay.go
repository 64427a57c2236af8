// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// saidTopic is where replicas tell each other that something was said in a session:
// an answer to a question, or a cancellation. It may belong to a call that another
// replica serves.
const saidTopic = "psi/said"

// saidTime is how long what was said is kept for the others.
const saidTime = time.Minute

// said is where it is.
type said struct {
	From    string `json:"from"` // the replica, which knows already
	Session string `json:"session"`
	Key     string `json:"key"`
}

// relay tells the other replicas what was said, if there are any.
func (ss *sessions) relay(ctx context.Context, s *session, m *mcp.Message) {
	if ss.opts.Store == nil || m.Request != nil && m.Request.Method != mcp.NotificationCancelled {
		return
	}
	ctx, cancel := storing(ctx)
	defer cancel()
	what := said{From: ss.name, Session: s.id, Key: "psi/said/" + rand.Text()}
	body, err := encodeSaid(m)
	if err == nil {
		_, err = ss.opts.Store.Put(ctx, what.Key, body, 0, saidTime)
	}
	if err == nil {
		var note []byte
		if note, err = json.Marshal(what); err == nil {
			err = ss.opts.Store.Publish(ctx, saidTopic, note)
		}
	}
	if err != nil {
		ss.opts.Logger.WarnContext(ctx, "mcphttp: an answer was not relayed", "session", s.id, "error", err)
	}
}

func encodeSaid(m *mcp.Message) ([]byte, error) {
	if m.Request != nil {
		return mcp.AppendNotification(nil, m.Request.Method, m.Request.Params()), nil
	}
	return json.Marshal(struct {
		Version string     `json:"jsonrpc"`
		ID      mcp.ID     `json:"id"`
		Result  jsonRaw    `json:"result,omitempty"`
		Error   *mcp.Error `json:"error,omitempty"`
	}{"2.0", m.Response.ID, m.Response.Result, m.Response.Error})
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
		if json.Unmarshal(note, &what) == nil && what.From != ss.name {
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
	body, _, err := ss.opts.Store.Get(ctx, what.Key)
	if err != nil {
		return
	}
	m, err := mcp.ParseMessage(body)
	if err != nil || m.Request != nil && m.Request.Method != mcp.NotificationCancelled {
		return
	}
	s.legacy.Serve(ctx, nil, m, refused{})
}
