// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"context"
	"errors"
	"fmt"
)

// ErrTooMuchWork reports that a value was neither found valid nor invalid, because
// that takes more work than [Options.MaxWork] allows. It is wrapped: the error says
// why.
var ErrTooMuchWork = errors.New("jsonschema: the value takes too much work to validate")

// A budget is the work that a validation may still do. One unit is a simple schema
// applied to a value, which takes half a microsecond; what takes longer counts more.
type budget struct {
	ctx   context.Context
	left  int
	check int // what left falls to before the context is looked at again
}

// checkEvery is how much work is done between two looks at the context.
const checkEvery = 1 << 10

func budgetOf(ctx context.Context, work int) budget {
	return budget{ctx: ctx, left: work, check: work - checkEvery}
}

// spend takes n from the budget. It returns an error if there is not so much left,
// or if the context has ended.
func (b *budget) spend(n int) error {
	b.left -= n
	switch {
	case b.left < 0:
		return ErrTooMuchWork
	case b.left > b.check:
		return nil
	}
	b.check = b.left - checkEvery
	return stoppedBy(b.ctx)
}

// stoppedBy returns an error if ctx has ended.
func stoppedBy(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("jsonschema: the validation was stopped: %w", context.Cause(ctx))
}
