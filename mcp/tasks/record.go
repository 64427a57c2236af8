// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-psi/psi/internal/replay"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// A record is a task as it is stored. A request or a result that is larger than maxInline
// is stored separately.
type record struct {
	Task    Task            `json:"task"`
	Caller  *mcp.Principal  `json:"caller,omitzero"`
	Tool    string          `json:"tool"`             // the name with which the call reached Background
	Request json.RawMessage `json:"request,omitzero"` // nil if stored separately or the task has ended
	Parts   int             `json:"parts,omitzero"`   // number of parts of the request
	// Headers are the Mcp-Param headers of the request, with which every run compares its
	// arguments; nil if the request had no headers.
	Headers map[string][]string `json:"headers,omitzero"`

	Memory  *replay.Memory      `json:"memory,omitzero"`  // what the handler remembers; nil if the request carries it
	Asked   map[string]question `json:"asked,omitempty"`  // the questions of the latest round, by public key
	Used    []string            `json:"used,omitempty"`   // the public keys of earlier rounds
	State   *string             `json:"state,omitzero"`   // RequestState if the handler returned the questions itself
	Result  json.RawMessage     `json:"result,omitzero"`  // nil if stored separately or there is none
	Results int                 `json:"results,omitzero"` // number of parts of the result
	Error   *mcp.Error          `json:"error,omitzero"`

	Apart   int `json:"apart,omitzero"`   // size of what is stored separately
	Counted int `json:"counted,omitzero"` // the size that is counted for the caller; 0 for a small task

	Cancelled bool   `json:"cancelled,omitzero"` // the client has cancelled the task
	Owner     string `json:"owner,omitempty"`    // the process that runs the handler; "" if none does
	Epoch     uint64 `json:"epoch,omitzero"`     // counts owners; a former owner must not write
	Beat      uint64 `json:"beat,omitzero"`      // counts the renewals of the lease
	Attempts  int    `json:"attempts,omitzero"`  // runs since the last progress
	Round     uint64 `json:"round,omitzero"`     // counts the resumptions after waiting for answers
}

// A question is a question that a task has asked.
type question struct {
	Key     string           `json:"key"`    // of the handler
	Digest  string           `json:"digest"` // "" if the handler returned the question itself
	Request mcp.InputRequest `json:"request"`
	Answer  json.RawMessage  `json:"answer,omitzero"` // nil if unanswered
}

// detailed returns the task for its client, without a result that is stored separately.
func (r *record) detailed() DetailedTask {
	d := DetailedTask{Task: r.Task, Result: r.Result, Error: r.Error}
	if r.Task.Status == InputRequired {
		d.InputRequests = map[string]mcp.InputRequest{}
		for key, q := range r.Asked {
			if q.Answer == nil {
				d.InputRequests[key] = q.Request
			}
		}
	}
	return d
}

// setStatus changes the status. If the task has ended, it drops what is only needed to run
// the task again.
func (r *record) setStatus(s Status, message string) {
	r.Task.Status, r.Task.StatusMessage = s, message
	r.touch()
	if s.IsFinal() {
		r.Request, r.Headers, r.Memory, r.Asked, r.Used, r.State = nil, nil, nil, nil, nil, nil
	}
}

// touch records that the client can see a change. Each change has a distinct time, even if
// the clock stands still or goes back, because listeners use it to tell changes apart.
func (r *record) touch() {
	next := r.Task.LastUpdatedAt.Add(time.Millisecond)
	if t := now(); t.After(next) {
		next = t
	}
	r.Task.LastUpdatedAt = next
}

// remember adds m to what the handler remembers.
func (r *record) remember(m replay.Memory) {
	if r.Memory == nil {
		r.Memory = new(replay.Memory)
	}
	r.Memory.Add(m)
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// rest returns how long the record is still kept. A clock that jumps neither ends a running
// task nor keeps a task longer than its TTL.
func (r *record) rest() time.Duration {
	ttl := time.Duration(*r.Task.TTLMs) * time.Millisecond
	return min(max(time.Until(r.Task.CreatedAt.Add(ttl)), min(ttl, time.Minute)), ttl)
}

// expires returns when the record expires, in Unix seconds.
func (r *record) expires() int64 { return time.Now().Add(r.rest()).Unix() }

// size returns the size of what the caller and the handler have put into the task. Status
// messages, which are bounded, and the bookkeeping are not part of it: the renewal of a lease
// must not fail because the tasks of the caller are too large.
func (r *record) size() int {
	n := r.Apart + len(r.Tool) + len(r.Request) + len(r.Result) + sizeOf(r.Headers)
	if r.State != nil {
		n += len(*r.State)
	}
	if r.Error != nil {
		n += len(r.Error.Message) + len(r.Error.Data)
	}
	for key, q := range r.Asked {
		n += len(key) + len(q.Key) + len(q.Request.Params) + len(q.Answer)
	}
	for _, key := range r.Used {
		n += len(key)
	}
	if r.Memory != nil {
		for key, a := range r.Memory.Answers {
			n += len(key) + len(a.Answer)
		}
		for key, value := range r.Memory.Once {
			n += len(key) + len(value)
		}
	}
	return n
}

func (m *Manager) key(kind, id string) string { return "tasks/" + m.name + "/" + kind + "/" + id }

// errGone is the error for a task that does not exist, no longer exists, or belongs to
// another caller.
var errGone = errors.New("tasks: there is no such task")

// errLost is the error of a process that no longer owns the task.
var errLost = errors.New("tasks: another process has taken over the task")

// load returns a record and its version in the store.
func (m *Manager) load(ctx context.Context, id string) (*record, uint64, error) {
	if len(id) != idLength {
		return nil, 0, errGone
	}
	raw, version, err := m.store.Get(ctx, m.key("task", id))
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrInvalid) {
		return nil, 0, errGone
	}
	if err != nil {
		return nil, 0, err
	}
	r := new(record)
	if err := strictjson.UnmarshalWith(strictjson.ExactNumbers, raw, r); err != nil {
		return nil, 0, fmt.Errorf("tasks: the record of a task cannot be read: %w", err)
	}
	return r, version, r.check(id)
}

// maxTTL bounds the TTL of a task, in milliseconds, so that it fits into a time.Duration.
const maxTTL = int64(math.MaxInt64 / time.Millisecond)

// check returns an error for a record that was not written by this package.
func (r *record) check(id string) error {
	switch {
	case r.Task.ID != id:
		return fmt.Errorf("tasks: the record of the task %s belongs to %q", id, r.Task.ID)
	case r.Task.TTLMs == nil || *r.Task.TTLMs <= 0 || *r.Task.TTLMs > maxTTL:
		return fmt.Errorf("tasks: the record of the task %s has no valid TTL", id)
	}
	return nil
}

// put writes a record, replacing the given version.
func (m *Manager) put(ctx context.Context, r *record, version uint64) error {
	if err := m.count(ctx, r); err != nil {
		return err
	}
	raw, err := strictjson.Marshal(r)
	if err != nil {
		return err
	}
	_, err = m.store.Put(ctx, m.key("task", r.Task.ID), raw, version, r.rest())
	return err
}

// maxConflicts bounds the attempts to change a record. An attempt fails if another process
// has changed the record.
const maxConflicts = 100

// change changes a record by compare-and-swap and returns the record after the change. If
// fn returns an error, nothing is stored.
func (m *Manager) change(ctx context.Context, id string, fn func(*record) error) (*record, error) {
	for range maxConflicts {
		r, version, err := m.load(ctx, id)
		if err != nil {
			return nil, err
		}
		if err := fn(r); err != nil {
			return r, err
		}
		switch err := m.put(ctx, r, version); {
		case err == nil:
			return r, nil
		case !errors.Is(err, store.ErrConflict):
			return nil, err
		}
	}
	return nil, store.ErrConflict
}

// maxInline is the maximum size, in bytes, of a request or a result that is part of the
// record. The record is written at each change of the task.
const maxInline = 8 << 10

// partSize is the maximum size, in bytes, of one stored part of a request or a result.
const partSize = 256 << 10

// putParts stores data separately from its record and returns the number of parts.
func (m *Manager) putParts(ctx context.Context, kind, id string, data []byte, ttl time.Duration) (n int, err error) {
	for ; len(data) > 0; n++ {
		part := data[:min(len(data), partSize)]
		data = data[len(part):]
		key := m.key(kind, fmt.Sprintf("%s/%d", id, n))
		_, err := m.store.Put(ctx, key, part, 0, ttl)
		if errors.Is(err, store.ErrConflict) { // an earlier attempt was not confirmed
			err = store.Update(ctx, m.store, key, ttl, func([]byte) ([]byte, error) { return part, nil })
		}
		if errors.Is(err, store.ErrFull) { // what is left would fill it up to its TTL
			m.takeParts(ctx, kind, id, n)
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// takeParts removes what putParts has stored.
func (m *Manager) takeParts(ctx context.Context, kind, id string, n int) {
	for i := range n {
		_, _ = m.store.Take(ctx, m.key(kind, fmt.Sprintf("%s/%d", id, i))) // it expires
	}
}

// parts reads what putParts has stored.
func (m *Manager) parts(ctx context.Context, kind, id string, n int) (data []byte, err error) {
	for i := range n {
		part, _, err := m.store.Get(ctx, m.key(kind, fmt.Sprintf("%s/%d", id, i)))
		if err != nil {
			return nil, err
		}
		data = append(data, part...)
	}
	return data, nil
}
