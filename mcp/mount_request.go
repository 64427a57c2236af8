// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
)

// mountPatience bounds how long subscriptions wait for mounts, unless
// MuxOptions.MountTimeout is less. They lose nothing by it: everything of a mount that
// acknowledges later counts as changed.
const mountPatience = time.Second

// patience returns the lesser of mountPatience and MountTimeout.
func (o *MuxOptions) patience() time.Duration {
	return min(o.MountTimeout, mountPatience)
}

// A mountRequest is a request to a mount that is in flight.
type mountRequest struct {
	mount  *mount
	ctx    context.Context // of the caller that waits
	leave  func()          // ends the waiting and the request
	stay   func() bool     // the request goes on when ctx is done
	list   Change          // of the list that is asked for; zero if none is
	answer chan outcome    // of one place
}

type outcome struct {
	res Result
	err error
}

// ask sends a request to the mount, on a goroutine of its own: the others are asked at
// the same time, and one that does not return when its context is done holds up nobody.
// Another mux bounds by itself what it waits for.
func (mt *mount) ask(ctx context.Context, req *Request, limit time.Duration, list Change) *mountRequest {
	a := &mountRequest{mount: mt, ctx: ctx, list: list, answer: make(chan outcome, 1)}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	release := func() {}
	if _, isMux := mt.handler.(*Mux); !isMux {
		a.ctx, release = context.WithTimeoutCause(ctx, limit, &TimeoutError{req.Method, limit})
	}
	a.leave = func() {
		release()
		cancel()
	}
	a.stay = context.AfterFunc(ctx, cancel)
	go a.run(running, req)
	return a
}

func (a *mountRequest) run(ctx context.Context, req *Request) {
	res, err := serveSafely(ctx, a.mount.serve, req, a.mount.parent.opts.Logger)
	a.answer <- outcome{res, err}
}

// wait returns the answer, or an error if there is none in time.
func (a *mountRequest) wait() (Result, error) {
	select {
	case o := <-a.answer:
		a.leave()
		return o.res, o.err
	case <-a.ctx.Done():
	}
	select {
	case o := <-a.answer: // at the same moment
		a.leave()
		return o.res, o.err
	default:
	}
	cause := context.Cause(a.ctx)
	if _, late := errors.AsType[*TimeoutError](cause); late && a.list != (Change{}) && a.stay() && a.mount.isMissing(a.list, a.leave) {
		go a.awaitLate()
	} else {
		a.leave()
	}
	return nil, cause
}

// maxLate bounds how long a list that was sent without a mount's part waits for that
// part.
const maxLate = 10 * time.Minute

// awaitLate announces that a list has changed when the part arrives that was left out. A
// mount that is late every time has its lists asked for again once a minute, no more.
func (a *mountRequest) awaitLate() {
	defer a.leave()
	var o outcome
	select {
	case o = <-a.answer:
	case <-time.After(maxLate):
		o.err = context.DeadlineExceeded
	}
	pause := a.mount.isBack(a.list, o.err == nil)
	if o.err == nil {
		time.AfterFunc(pause, func() { a.mount.parent.hub.publish(a.list) })
	}
}

// isMissing notes that a list was sent without the mount's part, which is waited for
// until leave is called. It returns false if it is waited for already.
func (mt *mount) isMissing(list Change, leave func()) bool {
	mt.mu.Lock()
	defer mt.mu.Unlock()
	late := mt.late[list]
	if mt.unmounted || late.leave != nil {
		return false
	}
	late.leave = leave
	mt.late[list] = late
	return true
}

// isBack undoes isMissing, and returns after which pause the change is announced, if it
// is to be.
func (mt *mount) isBack(list Change, announce bool) (pause time.Duration) {
	mt.mu.Lock()
	defer mt.mu.Unlock()
	late := mt.late[list]
	late.leave = nil
	if announce {
		pause = max(0, time.Until(late.announced.Add(maxPause)))
		late.announced = time.Now().Add(pause)
	}
	mt.late[list] = late
	return pause
}

// stopWaiting ends the waiting for late parts.
func (mt *mount) stopWaiting() {
	mt.mu.Lock()
	defer mt.mu.Unlock()
	mt.unmounted = true
	for _, late := range mt.late {
		if late.leave != nil {
			late.leave()
		}
	}
}

// A latePart is the part of a mount that is missing from a list.
type latePart struct {
	leave     func()    // ends the waiting for it; nil if it is not waited for
	announced time.Time // when the list was last announced to have changed, since the part was there
}

// list asks for a page of the list that req asks for.
func (mt *mount) list(ctx context.Context, req *Request, cursor *string) (*mountRequest, error) {
	inner, err := req.withCursor(cursor)
	if err != nil {
		return nil, err
	}
	list, limit := changeOfList(req.Method), mt.parent.opts.MountTimeout
	if mt.isLate(list) {
		limit = mt.parent.opts.patience() // the server hangs; its part is announced when it arrives
	}
	return mt.ask(ctx, inner, limit, list), nil
}

// isLate reports whether the mount's part of a list is awaited, because a list was sent without
// it.
func (mt *mount) isLate(list Change) bool {
	mt.mu.Lock()
	defer mt.mu.Unlock()
	return mt.late[list].leave != nil
}

// This file binds the state of a mounted server to the caller of the mux. That server
// cannot: all that it knows of the caller is the connection that they share. A mounted
// mux binds its states itself.

// sealState wraps the state of a mounted server in the seal of the mux.
func (mt *mount) sealState(req *Request, res Result) (Result, error) {
	r, ok := res.(*InputRequired)
	if _, isMux := mt.handler.(*Mux); isMux || !ok || r.RequestState == nil {
		return res, nil
	}
	token, err := mt.parent.sealer.seal(req, &replayState{Mounted: r.RequestState})
	if err != nil {
		return nil, err
	}
	sealed := *r
	sealed.RequestState = &token
	return &sealed, nil
}

// openState returns the request with the state as the mounted server made it.
func (mt *mount) openState(ctx context.Context, req, inner *Request) (*Request, error) {
	raw := req.params.requestState()
	if _, isMux := mt.handler.(*Mux); isMux || raw == nil {
		return inner, nil
	}
	state, err := mt.parent.sealer.open(ctx, req, jsonscan.Text(raw))
	if err != nil {
		return nil, err
	}
	params := []byte{'{'}
	if state.Mounted != nil {
		params = append(jsonscan.AppendKey(params, "requestState"), mustMarshal(*state.Mounted)...)
	}
	opened := inner.Clone()
	return opened, opened.setParams(jsonscan.AppendMembers(params, inner.Params(), "requestState"))
}
