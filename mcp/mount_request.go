// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/tasking"
)

// maxShortTimeout is the maximum time for which subscriptions wait for mounts, and lists for
// mounts that are late already, unless MuxOptions.MountTimeout is less. No change is lost: if
// a mount acknowledges later, everything in it is treated as changed, and if the part of a
// list arrives later, it is announced.
const maxShortTimeout = time.Second

// shortTimeout returns the minimum of maxShortTimeout and MountTimeout.
func (o *MuxOptions) shortTimeout() time.Duration {
	return min(o.MountTimeout, maxShortTimeout)
}

// A mountRequest is a request in flight to a mount.
type mountRequest struct {
	mount       *mount
	ctx         context.Context // of the waiting caller, with the timeout if any
	cancel      func()          // cancels the request and releases resources
	keepRunning func() bool     // keeps the request running when the caller's context is done
	list        Change          // the change of the requested list; zero for other requests
	answer      chan outcome    // has a buffer of one
}

type outcome struct {
	res Result
	err error
}

// send sends a request to the mount in a separate goroutine, so that mounts are called
// concurrently and a mount that ignores its context does not delay the others. limit does not
// apply to a mounted Mux, which limits the time for its own mounts.
func (mt *mount) send(ctx context.Context, req *Request, limit time.Duration, list Change) *mountRequest {
	a := &mountRequest{mount: mt, ctx: ctx, list: list, answer: make(chan outcome, 1)}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	release := func() {}
	if _, isMux := mt.handler.(*Mux); !isMux {
		a.ctx, release = context.WithTimeoutCause(ctx, limit, &TimeoutError{req.Method, limit})
	}
	a.cancel = func() {
		release()
		cancel()
	}
	a.keepRunning = context.AfterFunc(ctx, cancel)
	go a.run(running, req)
	return a
}

func (a *mountRequest) run(ctx context.Context, req *Request) {
	res, err := serveSafely(ctx, a.mount.serve, req, a.mount.parent.opts.Logger)
	a.answer <- outcome{res, err}
}

// wait returns the outcome of the request, or an error if it does not arrive in time.
func (a *mountRequest) wait() (Result, error) {
	select {
	case o := <-a.answer:
		a.cancel()
		return o.res, o.err
	case <-a.ctx.Done():
	}
	select {
	case o := <-a.answer: // both channels were ready
		a.cancel()
		return o.res, o.err
	default:
	}
	cause := context.Cause(a.ctx)
	if _, late := errors.AsType[*TimeoutError](cause); late && a.list != (Change{}) && a.keepRunning() && a.mount.markLate(a.list, a.cancel) {
		go a.awaitLate()
	} else {
		a.cancel()
	}
	return nil, cause
}

// maxLate is the maximum time to wait for the part of a mount that was omitted from a list.
const maxLate = 10 * time.Minute

// awaitLate announces a list change when the omitted part arrives. If a mount is always late,
// the change is announced at most once per maxPause.
func (a *mountRequest) awaitLate() {
	defer a.cancel()
	var o outcome
	select {
	case o = <-a.answer:
	case <-time.After(maxLate):
		o.err = context.DeadlineExceeded
	}
	pause := a.mount.clearLate(a.list, o.err == nil)
	if o.err == nil {
		time.AfterFunc(pause, func() { a.mount.parent.hub.publish(a.list) })
	}
}

// markLate records that a list was sent without the mount's part. cancel cancels waiting for
// the part. markLate returns false if a part is already awaited or the mount was removed.
func (mt *mount) markLate(list Change, cancel func()) bool {
	mt.mu.Lock()
	defer mt.mu.Unlock()
	late := mt.late[list]
	if mt.unmounted || late.cancel != nil {
		return false
	}
	late.cancel = cancel
	mt.late[list] = late
	return true
}

// clearLate undoes markLate. If announce is true, it returns the delay after which the caller
// announces the change.
func (mt *mount) clearLate(list Change, announce bool) (pause time.Duration) {
	mt.mu.Lock()
	defer mt.mu.Unlock()
	late := mt.late[list]
	late.cancel = nil
	if announce {
		pause = max(0, time.Until(late.announced.Add(maxPause)))
		late.announced = time.Now().Add(pause)
	}
	mt.late[list] = late
	return pause
}

// stopWaiting stops waiting for late parts.
func (mt *mount) stopWaiting() {
	mt.mu.Lock()
	defer mt.mu.Unlock()
	mt.unmounted = true
	for _, late := range mt.late {
		if late.cancel != nil {
			late.cancel()
		}
	}
}

// A latePart is the part of a mount that is missing from a list.
type latePart struct {
	cancel    func()    // stops waiting for the part; nil if it is not awaited
	announced time.Time // when the last late part was or will be announced
}

// list requests a page of the list that req is for.
func (mt *mount) list(ctx context.Context, req *Request, cursor *string) (*mountRequest, error) {
	inner, err := req.withCursor(cursor)
	if err != nil {
		return nil, err
	}
	list, limit := changeOfList(req.Method), mt.parent.opts.MountTimeout
	if mt.isLate(list) {
		limit = mt.parent.opts.shortTimeout() // the server hangs; its part is announced when it arrives
	}
	return mt.send(ctx, inner, limit, list), nil
}

// isLate reports whether the mount's part of a list is awaited, because a list was sent without
// it.
func (mt *mount) isLate(list Change) bool {
	mt.mu.Lock()
	defer mt.mu.Unlock()
	return mt.late[list].cancel != nil
}

// A mountSealer is the innermost handler of a mount: it seals the states and the tasks of the
// mounted server. It is inside the middleware of the mount, because middleware can have states
// and tasks of the mux itself.
type mountSealer struct{ mount *mount }

// ServeMCP implements [Handler].
func (s mountSealer) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	outer := req.outer
	if outer == nil { // not about one item, or made by middleware
		outer = req
	}
	inner, err := s.mount.openState(ctx, outer, req)
	if err != nil {
		return nil, err
	}
	res, err := s.mount.handler.ServeMCP(contextWithRequest(ctx, inner), inner)
	if err != nil || res == nil {
		return res, err
	}
	if res.base().ResultType == tasking.ResultTask && !strings.HasPrefix(req.Method, prefixTasks) {
		return s.mount.createdTask(outer, res)
	}
	return s.mount.sealState(outer, res)
}

// sealState and openState bind the state of a mounted server to the caller of the mux. The
// mounted server cannot do that, because all callers share its connection. A mounted mux
// binds its states itself.

// sealState encrypts the state of a mounted server with the keys of the mux.
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

// openState returns inner with the original state of the mounted server.
func (mt *mount) openState(ctx context.Context, req, inner *Request) (*Request, error) {
	raw := inner.params.requestState()
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
