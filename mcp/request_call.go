// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/go-psi/psi/internal/sparse"
)

// A notifier sends notifications about one request to the peer that sent it. Notify may be
// called concurrently, but not after the handler of the request has returned. It must not
// retain params.
type notifier interface {
	Notify(ctx context.Context, method string, params json.RawMessage) error
}

// ErrNotDelivered is returned by [Request.Notify] if the request has been answered, was
// cancelled by the client, or has no notification stream.
var ErrNotDelivered = errors.New("mcp: notification not delivered")

// A call is the state shared by all copies of a request while it is served.
type call struct {
	session  *Session
	accepted []string                 // sorted URIs that an earlier subscription accepted; not checked again
	server   atomic.Pointer[registry] // the outermost mux that serves the request
	isRouted atomic.Bool              // see Request.IsRouted
	inTask   bool                     // the request is served by a task, and not answered with another one

	mu       sync.Mutex
	ctx      context.Context // of the handler
	notifier notifier        // nil unless the request is being served
	changes  bool            // the request is a subscription: only changes are sent
	keep     notificationFilter
	progress progressState
}

// detached returns the call of a new request made on behalf of the request of c. The mark
// inTask is here, not in the context: it follows the request and its copies through muxes and
// middleware, and not what a handler sends on its own.
func (c *call) detached() *call { return &call{session: c.session, inTask: c.inTask} }

// observe calls saw, in order, for each notification that is sent until stop is called.
func (c *call) observe(saw func(method string, params json.RawMessage)) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.notifier
	if before == nil {
		return func() {}
	}
	observed := &observedNotifier{before, saw}
	c.notifier = observed
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.notifier == observed {
			c.notifier = before
		}
	}
}

type observedNotifier struct {
	next notifier
	saw  func(method string, params json.RawMessage)
}

// Notify implements [notifier].
func (n *observedNotifier) Notify(ctx context.Context, method string, params json.RawMessage) error {
	n.saw(method, params)
	return n.next.Notify(ctx, method, params)
}

// server returns the identity of the mux that served the request, or nil.
func (r *Request) server() json.RawMessage {
	switch g := r.sharedCall().server.Load(); {
	case g == nil:
		return nil
	case r.Method == MethodDiscover:
		return g.infoJSON
	default:
		return g.briefJSON
	}
}

// Logger returns the logger of the outermost [Mux] that serves the request ([MuxOptions].Logger),
// or slog.Default, for the diagnostic messages of middleware and handlers.
func (r *Request) Logger() *slog.Logger {
	if g := r.sharedCall().server.Load(); g != nil {
		return g.opts.Logger
	}
	return slog.Default()
}

// sharedCall returns the call of the request. A Request that was not created by this package
// has none: it is not served by a transport, and therefore has no session and no stream.
func (r *Request) sharedCall() *call {
	if r.call == nil {
		return new(call)
	}
	return r.call
}

// IsRouted reports whether a [Mux], or a mux mounted in it, has found the tool, prompt or
// resource that r names. After the next handler has returned, even with an error, middleware
// can use it to distinguish existing names from names made up by clients.
func (r *Request) IsRouted() bool { return r.sharedCall().isRouted.Load() }

// setRouted makes IsRouted return true.
func (r *Request) setRouted() {
	if r.call != nil {
		r.call.isRouted.Store(true)
	}
}

// Notify sends a notification about the request on the request's own stream. The params are
// as in [NewRequest]. It returns [ErrNotDelivered] if the handler has returned, the client has
// cancelled the request, or the request has no stream.
func (r *Request) Notify(ctx context.Context, method string, params any) error {
	raw, err := notificationParams(method, params)
	if err != nil {
		return err
	}
	return r.sharedCall().notify(ctx, method, raw)
}

// notify sends a notification. It holds the lock while sending, so that nothing is sent after
// stop has returned and notifications stay in order.
func (c *call) notify(ctx context.Context, method string, params json.RawMessage) error {
	if !c.keeps(method, params) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.notifyLocked(ctx, method, params)
}

func (c *call) notifyLocked(ctx context.Context, method string, params json.RawMessage) error {
	if c.notifier == nil || c.changes && (method == NotificationMessage || method == NotificationProgress) {
		return ErrNotDelivered // subscriptions carry only changes, not log messages of middleware
	}
	if c.ctx.Err() != nil {
		if _, cancelled := context.Cause(c.ctx).(*CancelError); cancelled { //nolint:errorlint // the cause is that, not something around it
			return ErrNotDelivered // the client ignores notifications about a cancelled request
		}
	}
	return c.notifier.Notify(ctx, method, params)
}

// start directs notifications to n until stop is called.
func (c *call) start(ctx context.Context, n notifier, changes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx, c.notifier, c.changes, c.keep = ctx, n, changes, nil
}

func (c *call) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx, c.notifier, c.changes, c.keep = nil, nil, false, nil
}

// serve calls h for req on behalf of a transport. Notifications about the request are sent to
// n, which may be nil, until h returns. If h panics, serve logs the panic with its stack and
// returns an internal error without details. A panic with [ErrAbortHandler] is not logged.
func serve(ctx context.Context, h Handler, req *Request, n notifier, logger *slog.Logger) (Result, error) {
	c := req.sharedCall()
	c.start(ctx, n, req.Method == MethodListen)
	defer c.stop()
	return serveSafely(ctx, h, req, logger)
}

// serveSafely calls h, with req in the context, and recovers from its panics.
func serveSafely(ctx context.Context, h Handler, req *Request, logger *slog.Logger) (res Result, err error) {
	defer func() {
		if v := recover(); v != nil {
			res, err = nil, panicked(ctx, req, v, logger)
		}
	}()
	res, err = h.ServeMCP(contextWithRequest(ctx, req), req)
	switch {
	case err != nil:
		_ = asError(err) // calls the methods of err here, where a panic of theirs, as of a nil pointer, is recovered
	case res == nil && !req.IsNotification():
		err = errNoOutcome(req.Method)
	}
	return res, err
}

// errNoOutcome returns the error for a handler that returned neither a result nor an error.
func errNoOutcome(method string) error {
	return Errorf(CodeInternalError, "the handler of %s returned neither a result nor an error", method)
}

// errAborted is the error for a handler that panicked with ErrAbortHandler.
var errAborted = &Error{Code: CodeInternalError, Message: "the request was aborted", Cause: ErrAbortHandler}

// panicked logs a panic with value v and returns the error for the peer.
func panicked(ctx context.Context, req *Request, v any, logger *slog.Logger) error {
	if v == ErrAbortHandler { //nolint:errorlint // net/http compares the value too
		return errAborted
	}
	logger.ErrorContext(ctx, "mcp: handler panicked", "method", sparse.Excerpt(req.Method), "name", sparse.Excerpt(req.Name()),
		"panic", fmt.Sprint(v), "stack", string(debug.Stack()))
	return &Error{Code: CodeInternalError, Message: internalError, Cause: fmt.Errorf("panic: %v", v)}
}

// wasCancelled reports whether ctx was cancelled by the peer.
func wasCancelled(ctx context.Context) bool {
	_, ok := context.Cause(ctx).(*CancelError) //nolint:errorlint // a cause is not wrapped
	return ok
}

// A notificationFilter reports whether a notification is sent. Nil means that all are sent.
type notificationFilter func(method string, params json.RawMessage) bool

// FilterNotifications drops notifications about r for which keep returns false; sending them
// succeeds anyway. Use it in middleware to hide changes from a subscriber. The filter applies
// to r and its copies until the handler of r returns. If there are several filters, a
// notification is sent only if all keep it. keep may be called concurrently, and must not
// retain or modify params. Progress and log messages of r are not filtered.
func (r *Request) FilterNotifications(keep func(method string, params json.RawMessage) bool) {
	// The filter belongs to the request, not to a wrapped notifier, because all copies of a
	// request share one stream.
	c := r.sharedCall()
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.keep
	c.keep = func(method string, params json.RawMessage) bool {
		return keep(method, params) && (before == nil || before(method, params))
	}
}

// keeps reports whether the filter keeps a notification. It does not hold the lock while
// calling the filter, which may log a message about the same request.
func (c *call) keeps(method string, params json.RawMessage) bool {
	c.mu.Lock()
	keep := c.keep
	c.mu.Unlock()
	return keep == nil || keep(method, params)
}
