// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package lazyctx

import (
	"context"
	"sync"
	"time"
)

// A Context is done when it is cancelled. It becomes a context of the standard
// library, with a channel and a set of children, when somebody asks for its channel;
// its first child by [WithCancelCause] does not. It must not be used before From, nor
// be copied.
type Context struct {
	mu     sync.Mutex
	ctx    context.Context         // the parent, until it is a child of that
	cancel context.CancelCauseFunc // of ctx; nil as long as that is the parent
	child  context.CancelCauseFunc // of the first child; nil if there is none
}

var _ context.Context = (*Context)(nil)

// From makes it a context with the values of parent, which must be one that is never
// done.
func (c *Context) From(parent context.Context) { c.ctx = parent }

// WithCancelCause does what that of the standard library does.
func WithCancelCause(parent context.Context) (context.Context, context.CancelCauseFunc) {
	if c, ok := parent.(*Context); ok {
		return c.withCancel()
	}
	return context.WithCancelCause(parent)
}

func (c *Context) withCancel() (context.Context, context.CancelCauseFunc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil || c.child != nil {
		return context.WithCancelCause(c.standard())
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	c.child = cancel
	return ctx, cancel
}

// Cancel ends the context, the first time; cause is as that of the standard library.
func (c *Context) Cancel(cause error) {
	c.mu.Lock()
	c.standard()
	cancel, child := c.cancel, c.child
	c.mu.Unlock()
	cancel(cause)
	if child != nil {
		child(cause)
	}
}

// standard makes it a context of the standard library.
func (c *Context) standard() context.Context {
	if c.cancel == nil {
		c.ctx, c.cancel = context.WithCancelCause(c.ctx)
	}
	return c.ctx
}

// Deadline implements [context.Context]: there is none.
func (*Context) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Done implements [context.Context].
func (c *Context) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.standard().Done()
}

// Err implements [context.Context].
func (c *Context) Err() error { return c.now().Err() }

// Value implements [context.Context].
func (c *Context) Value(key any) any { return c.now().Value(key) }

func (c *Context) now() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ctx
}
