// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"cmp"
	"maps"
	"slices"

	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/internal/seam"
)

// Internal is for the packages of this module; only they have a key. What it returns can
// change at any time.
func Internal(seam.Key) internals { return internals{} }

// internals provides the functions of this package that the debug page needs.
type internals struct{}

// Tasks returns the tasks of this process. Tasks that wait for answers or have ended are
// only in the store.
func (internals) Tasks(m *Manager) seam.Tasks {
	m.mustBeMade()
	m.mu.Lock()
	runs := slices.Collect(maps.Values(m.running))
	all := seam.Tasks{Running: []seam.Task{}, Waiting: len(m.queue.ids), Slots: m.opts.MaxRunning}
	m.mu.Unlock()
	for _, r := range runs {
		all.Running = append(all.Running, r.describe())
	}
	slices.SortFunc(all.Running, func(a, b seam.Task) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	return all
}

func (r *run) describe() seam.Task {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := seam.Task{ID: redact.Session(r.record.Task.ID), Tool: r.tool, Message: r.message, Created: r.record.Task.CreatedAt, Attempts: r.record.Attempts}
	if r.record.Caller != nil {
		t.Caller = r.record.Caller.Subject
	}
	return t
}
