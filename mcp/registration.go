// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"fmt"
)

// A registrationError describes a mistake in a registration: what was wrong, where, and
// what was expected. Functions that validate registrations return it. Exported functions
// panic with it (see [must]), and [Mux.Update] returns it.
type registrationError struct{ error }

func registrationErrorf(format string, args ...any) error {
	return &registrationError{fmt.Errorf("mcp: "+format, args...)}
}

func (e *registrationError) Unwrap() error { return e.error }

// must panics if err is not nil.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Update applies all registrations and removals made by fn, or none of them, atomically:
// no request or list observes a partial update. Update returns an error where the methods
// called by fn would panic, and where [ToolFunc], [PromptFunc] or [ResourceFunc] panic
// because of their arguments. Use it to replace a handler, to register thousands of handlers
// in one step, or to register handlers that depend on user input:
//
//	err := mux.Update(func(m *mcp.Mux) {
//		m.RemoveTool("report")
//		m.Tool("report", mcp.ToolFunc(run, &mcp.Tool{InputSchema: schema}))
//	})
//
// The m passed to fn is a view of the mux with the same middleware. It must not be used
// after fn has returned. Registrations made through m, or through views of m, become
// visible after fn has returned. Other panics of fn are not recovered.
func (m *Mux) Update(fn func(m *Mux)) error {
	// This one method serves every kind of registration. A second form of each method that
	// returns an error, and one that replaces, were rejected. Middleware is constructed
	// before the lock is acquired.
	m.mustBeMade()
	mustBeFunc("Mux.Update", fn == nil)
	d := &draft{}
	if err := d.collect(fn, &Mux{registry: m.registry, view: true, inline: m.around(), draft: d}); err != nil {
		return err
	}
	if m.draft != nil {
		return m.edit(d.edits...)
	}
	return m.apply(d.edits)
}

// A draft collects the edits of [Mux.Update].
type draft struct {
	edits  []edit
	closed bool
}

func (d *draft) collect(fn func(*Mux), m *Mux) (err error) {
	defer func() {
		d.closed = true
		switch v := recover().(type) {
		case nil:
		case *registrationError:
			err = v
		default:
			panic(v)
		}
	}()
	fn(m)
	return nil
}

// An edit changes a snapshot that no request can see yet, and adds its changes to an
// announcement. If it returns an error, the snapshot is dropped.
type edit func(next *snapshot, a *announcement) error

// An announcement collects what the listeners of a mux are notified of after edits.
type announcement struct {
	changes   changeSet
	remounted bool
}

// remount records that the mounts of the mux have changed, and with them all lists.
func (a *announcement) remount() {
	a.remounted = true
	for _, list := range changeLists {
		a.changes.add(list.change)
	}
}

// edit applies edits, or adds them to the draft.
func (m *Mux) edit(edits ...edit) error {
	m.mustBeMade()
	switch d := m.draft; {
	case d == nil:
		return m.apply(edits)
	case d.closed:
		return registrationErrorf("Mux.Update: its function has returned, and the mux that it was called with must no longer be used")
	default:
		d.edits = append(d.edits, edits...)
		return nil
	}
}

// apply applies all edits or none of them, and announces the changes.
func (g *registry) apply(edits []edit) error {
	var a announcement
	err := g.change(func(next *snapshot) error {
		for _, e := range edits {
			if err := e(next, &a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	g.hub.announce(a)
	if g.bus != nil && g.bus.hasServed.Load() {
		g.bus.publish(a.changes)
	}
	return nil
}
