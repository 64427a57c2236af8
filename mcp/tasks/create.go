// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// idLength is the length of an ID: 26 base32 characters for 130 random bits.
const idLength = 26

// newRecord returns the record of a new task, which is counted for its caller but not
// stored yet. If reserved is true, this process owns the task; otherwise any process may
// run it.
func (m *Manager) newRecord(ctx context.Context, req *mcp.Request, ttl time.Duration, reserved bool) (*record, error) {
	ttlMs, pollMs, created := max(ttl.Milliseconds(), 1), m.opts.PollInterval.Milliseconds(), now()
	rec := &record{Caller: req.Principal, Tool: req.Name(), Headers: paramHeaders(arrivedAs(ctx, req))}
	rec.Task = Task{ID: strings.ToLower(rand.Text()), Status: Working, CreatedAt: created, LastUpdatedAt: created, TTLMs: &ttlMs, PollIntervalMs: &pollMs}
	if reserved {
		rec.Owner, rec.Epoch, rec.Attempts = m.owner, 1, 1
	}
	if err := m.addToIndex(ctx, rec, len(requestOf(ctx, req))+sizeOf(rec.Headers)); err != nil {
		return nil, err
	}
	return rec, nil
}

// insert writes the record of a new task, after everything else that belongs to the task.
// If it fails, it removes what was written, as far as the store allows.
func (m *Manager) insert(ctx context.Context, rec *record, request json.RawMessage) error {
	err := m.tryInsert(ctx, rec, request)
	if err != nil {
		m.abandon(context.WithoutCancel(ctx), rec)
	}
	return err
}

// tryInsert writes the record of a new task. If the task is working, it is listed first,
// and the time is bounded, because a list entry is removed if no record follows it.
func (m *Manager) tryInsert(ctx context.Context, rec *record, request json.RawMessage) error {
	if rec.Task.Status == Working {
		bounded, cancel := context.WithTimeout(ctx, m.opts.Lease/2)
		defer cancel()
		ctx = bounded
		if err := m.list(ctx, rec); err != nil {
			return err
		}
	}
	if !rec.Task.Status.IsFinal() {
		if err := m.attach(ctx, rec, request); err != nil {
			return err
		}
	}
	return m.put(ctx, rec, 0)
}

// attach stores the request of a task: in its record if it is small, otherwise separately.
func (m *Manager) attach(ctx context.Context, rec *record, request json.RawMessage) (err error) {
	if len(request) <= maxInline {
		rec.Request = request
		return nil
	}
	rec.Apart = len(request)
	if err := m.count(ctx, rec); err != nil {
		return err
	}
	rec.Parts, err = m.putParts(ctx, "request", rec.Task.ID, request, rec.rest())
	return err
}

// An abandoned task was not stored, as far as its client knows, but may be in the store.
type abandoned struct {
	record *record
	since  time.Time
}

// abandon removes what insert has written. The store may fail again, or execute a write
// late, so the sweeper repeats the removal for the duration of a lease.
func (m *Manager) abandon(ctx context.Context, rec *record) {
	m.mu.Lock()
	if len(m.abandoned) < m.maxWorking {
		m.abandoned[rec.Task.ID] = abandoned{rec, time.Now()}
	}
	m.mu.Unlock()
	if err := m.remove(ctx, rec); err != nil {
		m.opts.Logger.WarnContext(ctx, "tasks: a task that could not be stored was not taken back, which is tried again", "task", redact.Session(rec.Task.ID), "error", err)
	}
}

// removeAbandoned removes what abandoned tasks have left in the store.
func (m *Manager) removeAbandoned(ctx context.Context) {
	m.mu.Lock()
	var left []abandoned
	for _, a := range m.abandoned {
		left = append(left, a)
	}
	m.mu.Unlock()
	for _, a := range left {
		if err := m.remove(ctx, a.record); err == nil && time.Since(a.since) > m.opts.Lease {
			m.mu.Lock()
			delete(m.abandoned, a.record.Task.ID)
			m.mu.Unlock()
		}
	}
}

// remove removes what insert has written. It returns an error if the record may still be in
// the store. Anything else that is left expires or is removed by the sweeper.
func (m *Manager) remove(ctx context.Context, rec *record) error {
	id := rec.Task.ID
	if _, err := m.store.Take(ctx, m.key("task", id)); err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	_ = m.unlist(ctx, id, rec.Round)
	_ = m.removeFromIndex(ctx, rec.Caller, id)
	m.takeParts(ctx, "request", id, rec.Parts)
	return nil
}

// arrivedKey is the key of the call in the context as it arrived at the mux of the manager.
type arrivedKey struct{}

// arrivedAs returns the call as it arrived at the mux. A later run enters there; with a mount
// inside, the nearest request of the context would be the wrong one.
func arrivedAs(ctx context.Context, req *mcp.Request) *mcp.Request {
	if arrived, _ := ctx.Value(arrivedKey{}).(*mcp.Request); arrived != nil && arrived.Method == req.Method && arrived.ID == req.ID {
		return arrived
	}
	return req
}

// requestOf returns the params of a call as they arrived at the mux, because a later run
// passes through the middleware and the mounts of the mux again, which may change them. They
// declare the capabilities of the client, even if the call was made by a handler for its
// client.
func requestOf(ctx context.Context, req *mcp.Request) json.RawMessage {
	req = arrivedAs(ctx, req)
	params := req.Params()
	if params == nil {
		params = json.RawMessage("{}")
	}
	given := jsonscan.Member(params, "_meta")
	if jsonscan.Member(given, mcp.MetaClientCapabilities) != nil {
		return params
	}
	meta := jsonscan.AppendString(jsonscan.AppendKey([]byte{'{'}, mcp.MetaProtocolVersion), req.Version())
	meta = append(jsonscan.AppendKey(meta, mcp.MetaClientCapabilities), strictjson.MustMarshal(req.ClientCapabilities())...)
	if !jsonscan.IsObject(given) {
		given = json.RawMessage("{}")
	}
	meta = jsonscan.AppendMembers(meta, given, mcp.MetaProtocolVersion, mcp.MetaClientCapabilities)
	return jsonscan.AppendMembers(append(jsonscan.AppendKey([]byte{'{'}, "_meta"), meta...), params, "_meta")
}

// paramHeaders returns the headers of a call that mirror arguments, and nil if the call has no
// headers.
func paramHeaders(req *mcp.Request) map[string][]string {
	if req.Header == nil || !core.IsModern(req) {
		return nil
	}
	headers := map[string][]string{}
	for key, values := range req.Header {
		if strings.HasPrefix(key, "Mcp-Param-") {
			headers[key] = values
		}
	}
	return headers
}

// sizeOf returns the size of headers in bytes.
func sizeOf(headers map[string][]string) (n int) {
	for key, values := range headers {
		n += len(key)
		for _, v := range values {
			n += len(v)
		}
	}
	return n
}

// requestID returns the ID of the request of a task that runs again. It appears in traces.
func (r *record) requestID() mcp.ID { return mcp.StringID(redact.Session(r.Task.ID)) }

// restore returns the request of a task for another run of its handler.
func (m *Manager) restore(ctx context.Context, rec *record) (*mcp.Request, error) {
	raw := rec.Request
	if raw == nil {
		var err error
		if raw, err = m.parts(ctx, "request", rec.Task.ID, rec.Parts); err != nil {
			return nil, fmt.Errorf("tasks: the request of a task is not in the store: %w", err)
		}
	}
	req, err := mcp.NewRequest(mcp.MethodCallTool, raw)
	if err != nil {
		return nil, err
	}
	req.ID, req.Principal, req.Header = rec.requestID(), rec.Caller, rec.Headers
	answers := map[string]json.RawMessage{}
	for _, q := range rec.Asked {
		if q.Digest == "" {
			answers[q.Key] = q.Answer
		}
	}
	if rec.State == nil && len(answers) == 0 {
		return req, nil // the handler has not asked by itself
	}
	return core.WithAnswers(req, answers, rec.State)
}
