// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"fmt"
	"strings"
)

// Keys of questions and steps are numbered by use, so that a loop that uses one key works as it
// is written: the second use of "confirm" in a run has the key "confirm#2". Inside the step
// "order", the key "id" is "order/id": when the handler runs again, the step does not, so the
// uses in it must not be counted outside.

// uses counts the uses of each key in one run of a handler.
type uses map[string]int

// next returns the key of the next use of a key.
func (u uses) next(key string) string { return numbered(key, u[key]+1) }

func numbered(key string, n int) string {
	if n <= 1 {
		return key
	}
	return fmt.Sprintf("%s#%d", key, n)
}

// checkKey returns an error for a key that could be mistaken for the key of another use.
func checkKey(key string) error {
	if strings.ContainsAny(key, "#/") {
		return Errorf(CodeInternalError, "the key %q must not contain # or /, which separate the parts of numbered keys", key)
	}
	return nil
}

// A stepContext is the context of the function of a Once.
type stepContext struct {
	context.Context
	state *askState // of the handler whose step it is
	key   string    // of the step
}

type stepKey struct{}

func (c *stepContext) Value(key any) any {
	if key == (stepKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// stepOf returns the key of the step of a handler that ctx belongs to, or "" if there is none.
func (a *askState) stepOf(ctx context.Context) string {
	if step, ok := ctx.Value(stepKey{}).(*stepContext); ok && step.state == a {
		return step.key
	}
	return ""
}

// scoped returns a key in the scope of ctx.
func (a *askState) scoped(ctx context.Context, key string) string {
	if step := a.stepOf(ctx); step != "" {
		return step + "/" + key
	}
	return key
}
