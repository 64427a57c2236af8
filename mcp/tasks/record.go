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

// A record is a task as the store has it. A request or a result that is larger than
// maxInline is beside it.
type record struct {
	Task    Task            `json:"task"`
	Caller  *mcp.Principal  `json:"caller,omitzero"`
	Request json.RawMessage `json:"request,omitzero"` // nil if it is beside the record, or the task has ended
	Parts   int             `json:"parts,omitzero"`   // of the request

	Memory  *replay.Memory      `json:"memory,omitzero"`  // nil if the request has what the handler remembers
	Asked   map[string]question `json:"asked,omitempty"`  // all questions that the client was ever asked, by their public keys
	State   *string             `json:"state,omitzero"`   // that a handler which asks by itself wants back
	Result  json.RawMessage     `json:"result,omitzero"`  // nil if it is beside the record, or there is none
	Results int                 `json:"results,omitzero"` // parts of the result
	IsError bool                `json:"isError,omitzero"` // the result says that the tool failed
	Error   *mcp.Error          `json:"error,omitzero"`

	Cancelled bool   `json:"cancelled,omitzero"` // the client wants the task cancelled
	Owner     string `json:"owner,omitempty"`    // the process that runs the handler, "" if none does
	Epoch     uint64 `json:"epoch,omitzero"`     // counts owners; a former owner must not write
	Beat      uint64 `json:"beat,omitzero"`      // counts the renewals of the lease
	Attempts  int    `json:"attempts,omitzero"`  // runs since the last progress that ended with their process
	Round     uint64 `json:"round,omitzero"`     // counts how often the task went on after it had waited for answers
}

// A question is one that a task has asked.
type question struct {
	Key     string           `json:"key"`    // of the handler
	Digest  string           `json:"digest"` // of the question; "" if the handler asks by itself
	Request mcp.InputRequest `json:"request"`
	Answer  json.RawMessage  `json:"answer,omitzero"` // nil if there is none yet
}

// detailed returns the task for its client, without a result that is beside the record.
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

// setStatus changes the status. A task that has ended needs nothing any more to run again.
func (r *record) setStatus(s Status, message string) {
	r.Task.Status, r.Task.StatusMessage = s, message
	r.touch()
	if s.IsFinal() {
		r.Request, r.Memory, r.Asked, r.State = nil, nil, nil, nil
	}
}

// touch notes a change that the client sees. Each change has a time of its own, also if the
// clock stands still or goes back: listeners tell changes apart by it.
func (r *record) touch() {
	next := r.Task.LastUpdatedAt.Add(time.Millisecond)
	if t := now(); t.After(next) {
		next = t
	}
	r.Task.LastUpdatedAt = next
}

// remember adds to what the handler remembers.
func (r *record) remember(m replay.Memory) {
	if r.Memory == nil {
		r.Memory = new(replay.Memory)
	}
	r.Memory.Add(m)
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// rest returns how long the record is still kept. A clock that jumps neither ends a task
// that is under way nor keeps one longer than its TTL.
func (r *record) rest() time.Duration {
	ttl := time.Duration(*r.Task.TTLMs) * time.Millisecond
	return min(max(time.Until(r.Task.CreatedAt.Add(ttl)), min(ttl, time.Minute)), ttl)
}

func (m *Manager) key(kind, id string) string { return "tasks/" + m.name + "/" + kind + "/" + id }

// errGone is the error for a task that does not exist, or not any more.
var errGone = errors.New("tasks: there is no such task")

// errLost is the error of a process that does not own the task any more.
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
	if err := strictjson.Unmarshal(raw, r); err != nil {
		return nil, 0, fmt.Errorf("tasks: the record of a task cannot be read: %w", err)
	}
	return r, version, r.check(id)
}

// maxTTL bounds the TTL of a task, in milliseconds, so that it is a time.Duration.
const maxTTL = int64(math.MaxInt64 / time.Millisecond)

// check returns an error for a record that this package has not written.
func (r *record) check(id string) error {
	switch {
	case r.Task.ID != id:
		return fmt.Errorf("tasks: the record of the task %s is that of %q", id, r.Task.ID)
	case r.Task.TTLMs == nil || *r.Task.TTLMs <= 0 || *r.Task.TTLMs > maxTTL:
		return fmt.Errorf("tasks: the record of the task %s has no valid TTL", id)
	}
	return nil
}

// put writes a record at a version.
func (m *Manager) put(ctx context.Context, r *record, version uint64) error {
	raw, err := strictjson.Marshal(r)
	if err != nil {
		return err
	}
	_, err = m.store.Put(ctx, m.key("task", r.Task.ID), raw, version, r.rest())
	return err
}

// maxConflicts bounds the attempts to change a record. Each that fails means that another
// process has changed it.
const maxConflicts = 100

// change changes a record by one compare-and-swap. If fn returns an error, nothing changes.
// It returns the record as it is then.
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

// maxInline is how large a request or a result may be to be part of the record. The record is
// written at each change of the task.
const maxInline = 8 << 10

// partSize is how much of a request or a result is one value of the store.
const partSize = 256 << 10

// putParts stores data beside a record and returns the number of its parts.
func (m *Manager) putParts(ctx context.Context, kind, id string, data []byte, ttl time.Duration) (n int, err error) {
	for ; len(data) > 0; n++ {
		part := data[:min(len(data), partSize)]
		data = data[len(part):]
		key := m.key(kind, fmt.Sprintf("%s/%d", id, n))
		_, err := m.store.Put(ctx, key, part, 0, ttl)
		if errors.Is(err, store.ErrConflict) { // an attempt before this one was not confirmed
			err = store.Update(ctx, m.store, key, ttl, func([]byte) ([]byte, error) { return part, nil })
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
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
