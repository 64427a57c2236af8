// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"fmt"
	"slices"
)

// A registrationError describes a mistake in a registration: what was wrong, where, and
// what was expected. Functions that check registrations return it. Exported functions
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

// Update makes all registrations and removals of fn, or none of them, in one step: no
// request and no list sees only a part. It returns an error where the methods that fn
// calls would panic, and also for the panics of [ToolFunc], [PromptFunc] and
// [ResourceFunc] about what they are given. Use it to replace a handler, and to register
// what users of the program have written:
//
//	err := mux.Update(func(m *mcp.Mux) {
//		m.RemoveTool("report")
//		m.Tool("report", mcp.ToolFunc(run, &mcp.Tool{InputSchema: schema}))
//	})
//
// m is a view of the mux, with the same middleware, that must not be used after fn has
// returned. What fn registers through m, or through views made from m, is not visible
// before. Other panics of fn are not recovered.
func (m *Mux) Update(fn func(m *Mux)) error {
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

// An edit changes registrations and adds to what is announced. It is called under the
// lock of all registrations. It returns a function that takes it back or, if it has
// changed nothing, an error.
type edit func(*announcement) (undo func(), err error)

// An announcement is what the listeners of a mux are notified of after an edit.
type announcement struct {
	changes   changeSet
	remounted bool
	finally   []func() // called when all edits are applied
}

// remount notes that the mux has other mounts: all lists have changed.
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
		return registrationErrorf("Mux.Update: its function has returned, and the mux that it was called with must not be used any more")
	default:
		d.edits = append(d.edits, edits...)
		return nil
	}
}

// apply applies all edits or none, and announces them.
func (g *registry) apply(edits []edit) error {
	var a announcement
	if err := g.applyLocked(edits, &a); err != nil {
		return err
	}
	for _, f := range a.finally {
		f()
	}
	g.hub.announce(a)
	if g.bus != nil && g.bus.isUsed.Load() {
		g.bus.publish(a.changes)
	}
	return nil
}

func (g *registry) applyLocked(edits []edit, a *announcement) error {
	registering.Lock()
	defer registering.Unlock()
	undos := make([]func(), 0, len(edits))
	for _, e := range edits {
		undo, err := e(a)
		if err != nil {
			for _, undo := range slices.Backward(undos) {
				undo()
			}
			return err
		}
		undos = append(undos, undo)
	}
	g.snap.Store(nil)
	return nil
}
