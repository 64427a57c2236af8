// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"errors"
	"fmt"
	"strconv"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
)

// A run is the validation of one value.
type run struct {
	validator *validator
	token     string // by which gates find the run: the first token of every location
	budget    *budget
	value     any
	outcomes  map[visit]*santhosh.ValidationError
	first     int // what was left of the budget at the beginning
	depth     int // of the gates that are being passed
}

const (
	// rememberAfter is the work that is done before outcomes are remembered. Most
	// values never need them.
	rememberAfter = 1 << 10

	// maxOutcomes bounds the memory for outcomes, to some 100 MB.
	maxOutcomes = 1 << 20
)

// A stopped is what gates panic with, to leave the library at once.
type stopped struct {
	err    error
	schema string
	at     []string // with the token
}

// validate returns what is wrong with value, or an error if the budget does not
// suffice to find out. Locations in it begin with a token of this package.
func (v *validator) validate(b *budget, value any) (failed *santhosh.ValidationError, err error) {
	r := &run{validator: v, token: strconv.FormatUint(v.last.Add(1), 36), budget: b, value: value, first: b.left}
	v.runs.Store(r.token, r)
	defer v.runs.Delete(r.token)
	defer func() {
		if p := recover(); p != nil {
			stop, ok := p.(stopped)
			if !ok {
				panic(p)
			}
			err = v.explainStop(stop)
		}
	}()
	start := *v.bare
	start.Extensions = []santhosh.SchemaExt{r}
	failed, _ = start.Validate(true).(*santhosh.ValidationError) //nolint:errorlint // the library returns it as it is
	return failed, nil
}

// Validate implements [santhosh.SchemaExt], for the schema that a run starts with.
func (r *run) Validate(ctx *santhosh.ValidatorContext, _ any) {
	if failed := ctx.Validate(r.validator.root, r.value, []string{r.token}); failed != nil {
		ctx.AddErr(failed)
	}
}

func (v *validator) runOf(ctx *santhosh.ValidatorContext) *run {
	r, _ := v.runs.Load(ctx.ValueLocation()[0])
	return r.(*run)
}

// remember keeps the outcome of a visit that may be repeated.
func (r *run) remember(at visit, failed *santhosh.ValidationError) {
	switch {
	case r.validator.contextual || at.at == 0 || !at.gate.isTarget:
	case r.first-r.budget.left < r.validator.rememberAfter || len(r.outcomes) >= maxOutcomes:
	case r.outcomes == nil:
		r.outcomes = map[visit]*santhosh.ValidationError{at: failed}
	default:
		r.outcomes[at] = failed
	}
}

// explainStop says where a validation was stopped, and why it took so long.
func (v *validator) explainStop(stop stopped) error {
	if !errors.Is(stop.err, ErrTooMuchWork) {
		return stop.err
	}
	why := "too many schemas apply to too many values"
	if v.contextual {
		why = "alternatives multiply with the depth of the value, because the schema uses unevaluatedProperties, " +
			"unevaluatedItems, dynamic references, or references in a circle"
	}
	tokens := schemaTokens(stop.schema)
	return fmt.Errorf("%w: %s; given up at %q, where the schema is %q", stop.err, why,
		clip(joinPointer(stop.at[1:]), 4*maxValue), clip(joinPointer(tokens), 4*maxValue))
}
