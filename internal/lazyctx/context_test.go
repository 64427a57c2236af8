// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package lazyctx_test

import (
	"context"
	"errors"
	"testing"

	"github.com/go-psi/psi/internal/lazyctx"
)

type key struct{}

var errOver = errors.New("over")

// begin makes a Context with a value.
func begin() *lazyctx.Context {
	c := new(lazyctx.Context)
	c.From(context.WithValue(context.Background(), key{}, "value"))
	return c
}

func derive(ctx context.Context) context.Context {
	child, _ := lazyctx.WithCancelCause(ctx)
	return child
}

// However a context was made from it, it ends with it, for the same reason.
func TestCancel(t *testing.T) {
	for name, contexts := range map[string]func(*lazyctx.Context) []context.Context{
		"itself":   func(c *lazyctx.Context) []context.Context { return []context.Context{c} },
		"child":    func(c *lazyctx.Context) []context.Context { return []context.Context{derive(c), c} },
		"children": func(c *lazyctx.Context) []context.Context { return []context.Context{derive(c), derive(c), derive(c)} },
		"child of one that is waited for": func(c *lazyctx.Context) []context.Context {
			_ = c.Done()
			return []context.Context{derive(c), c}
		},
		"child of the standard library": func(c *lazyctx.Context) []context.Context {
			child, cancel := context.WithCancel(c)
			context.AfterFunc(child, cancel)
			return []context.Context{child, derive(c), derive(child)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := begin()
			all := contexts(c)
			for _, ctx := range all {
				if ctx.Err() != nil || context.Cause(ctx) != nil || ctx.Value(key{}) != "value" {
					t.Errorf("%v: error %v, cause %v, value %v", ctx, ctx.Err(), context.Cause(ctx), ctx.Value(key{}))
				}
				if _, ok := ctx.Deadline(); ok {
					t.Error("there is a deadline")
				}
			}
			c.Cancel(errOver)
			c.Cancel(errors.New("again"))
			for _, ctx := range append(all, derive(c)) {
				<-ctx.Done()
				if !errors.Is(ctx.Err(), context.Canceled) || !errors.Is(context.Cause(ctx), errOver) {
					t.Errorf("error %v, cause %v", ctx.Err(), context.Cause(ctx))
				}
			}
		})
	}
}

// A child that ends leaves its parent as it is, and what comes after it ends with that.
func TestChildEnds(t *testing.T) {
	c := begin()
	first, cancel := lazyctx.WithCancelCause(c)
	cancel(errOver)
	second := derive(c)
	if !errors.Is(context.Cause(first), errOver) || c.Err() != nil || second.Err() != nil {
		t.Fatalf("first %v, parent %v, second %v", context.Cause(first), c.Err(), second.Err())
	}
	c.Cancel(nil)
	if <-second.Done(); !errors.Is(context.Cause(second), context.Canceled) {
		t.Errorf("the second ends with %v", context.Cause(second))
	}
}

// Any other parent is as with the standard library.
func TestOther(t *testing.T) {
	parent, cancel := context.WithCancelCause(t.Context())
	child := derive(parent)
	cancel(errOver)
	if <-child.Done(); !errors.Is(context.Cause(child), errOver) {
		t.Errorf("the child ends with %v", context.Cause(child))
	}
}

// What it is for: with one child, it costs what the child costs.
func TestAllocations(t *testing.T) {
	parent := context.WithoutCancel(t.Context())
	bare := testing.AllocsPerRun(100, func() {
		_, cancel := context.WithCancelCause(parent)
		cancel(nil)
	})
	lazy := testing.AllocsPerRun(100, func() {
		c := new(lazyctx.Context)
		c.From(parent)
		_, cancel := lazyctx.WithCancelCause(c)
		cancel(nil)
	})
	if lazy > bare+1 {
		t.Errorf("%v allocations, without it %v", lazy, bare)
	}
}
