// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/go-psi/psi/internal/schematree"
)

// Validate validates data, one JSON value. It returns nil if data is valid, and a
// *[ValidationError] otherwise. The text of the error is written for a model to act on.
// Numbers are compared exactly.
//
// Any other error means that the validation was not completed: it wraps the cause of ctx
// if ctx is done, and [ErrTooMuchWork] if it takes too much work.
//
// Malformed JSON, duplicate members of an object, data nested deeper than 128 levels, and data
// longer than [Options].MaxInputBytes are invalid.
func (s *Schema) Validate(ctx context.Context, data []byte) error {
	s.mustBeMade()
	if len(data) > s.options.MaxInputBytes {
		return &ValidationError{Problems: []Problem{{
			Keyword:  "size",
			Expected: "at most " + strconv.Itoa(s.options.MaxInputBytes) + " bytes, which is a limit of this program and not of the schema",
			Got:      strconv.Itoa(len(data)) + " bytes",
		}}}
	}
	if s.proves(ctx, data) {
		return nil
	}
	return s.validateTree(ctx, data)
}

// validateTree validates data without trying the proof, and explains what is wrong.
func (s *Schema) validateTree(ctx context.Context, data []byte) error {
	b := budgetOf(ctx, s.maxWork)
	return s.validateWithin(&b, data)
}

func (s *Schema) validateWithin(b *budget, data []byte) error {
	if err := stoppedBy(b.ctx); err != nil {
		return err
	}
	tree, terr := readTree(data, maxInputDepth, unbounded)
	if terr != nil {
		return &ValidationError{Problems: []Problem{{
			Pointer:  terr.pointer,
			Keyword:  "syntax",
			Expected: "one well-formed JSON value",
			Got:      terr.reason,
		}}}
	}
	v, err := s.validator()
	if err != nil {
		return err
	}
	failed, err := v.validate(b, tree)
	if failed != nil && s.options.OptionalNull {
		tree, failed, err = v.withoutNulls(b, tree, failed)
	}
	if failed == nil || err != nil {
		return err
	}
	return explain(s.document, tree, maxProblems, failureOf(failed, 1))
}

// ErrTooMuchWork means that validating a value takes too much work: too many applications of a
// schema to a value, where slow ones, for example to long strings or large numbers, count as
// more. Validate wraps it in an error that says why.
var ErrTooMuchWork = errors.New("jsonschema: the value takes too much work to validate")

// A budget is the work that a validation may still do. One unit is the application of a
// simple schema to a value, which takes about half a microsecond. Slower operations cost more.
type budget struct {
	ctx   context.Context
	left  int
	check int // value of left at which the context is checked again
}

// checkEvery is the amount of work between two checks of the context.
const checkEvery = 1 << 10

func budgetOf(ctx context.Context, work int) budget {
	return budget{ctx: ctx, left: work, check: work - checkEvery}
}

// spend subtracts n from the budget. It returns an error if the budget is exceeded or the
// context is done.
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

// stoppedBy returns an error if ctx is done.
func stoppedBy(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("jsonschema: the validation was stopped: %w", context.Cause(ctx))
}

// maxNullRounds limits how often withoutNulls validates a value. Only schemas with
// alternatives need more than two rounds.
const maxNullRounds = 8

// withoutNulls validates again without the nulls that the schema rejected and whose
// properties are optional. It returns the last tree and outcome.
//
// It finds these nulls by trial: it removes every null that the validator rejects. If the
// validator then reports the property as missing, the property is required, and the null is
// restored.
func (v *validator) withoutNulls(b *budget, tree any, failed *santhosh.ValidationError) (any, *santhosh.ValidationError, error) {
	removed, needed := locations{}, locations{}
	for round := 0; failed != nil && round < maxNullRounds; round++ {
		changed := false
		found := nullSearch{seen: map[*santhosh.ValidationError]bool{}}
		found.add(failed)
		for _, at := range found.missing {
			if removed.remove(at) {
				needed.add(at)
				changed = true
			}
		}
		for _, at := range found.refused {
			if isNullMember(tree, at) && !needed.has(at) && removed.add(at) {
				changed = true
			}
		}
		if !changed {
			break
		}
		var err error
		if failed, err = v.validate(b, prune(tree, removed)); err != nil {
			return nil, nil, err
		}
	}
	return prune(tree, removed), failed, nil
}

// locations are places in a tree, by the tokens that lead to them. Those of a place itself
// are nil. They share their tokens, so that a long name above many places is kept once.
type locations map[string]locations

// has reports whether a place has been added.
func (l locations) has(at []string) bool {
	for _, token := range at {
		below, ok := l[token]
		if !ok {
			return false
		}
		l = below
	}
	return l == nil
}

// add adds a place that is not above or below another one. It returns false if the place is
// there already.
func (l locations) add(at []string) bool {
	if l.has(at) {
		return false
	}
	last := len(at) - 1
	for _, token := range at[:last] {
		if l[token] == nil {
			l[token] = locations{}
		}
		l = l[token]
	}
	l[at[last]] = nil
	return true
}

// remove removes a place. It returns false if the place has not been added.
func (l locations) remove(at []string) bool {
	if len(at) == 0 || !l.has(at) {
		return false
	}
	last := len(at) - 1
	for _, token := range at[:last] {
		l = l[token]
	}
	delete(l, at[last])
	return true
}

// A nullSearch collects locations from an error of the validator.
type nullSearch struct {
	refused [][]string // locations of rejected values
	missing [][]string // locations of missing properties
	seen    map[*santhosh.ValidationError]bool
}

func (n *nullSearch) add(v *santhosh.ValidationError) {
	if n.seen[v] {
		return
	}
	at := v.InstanceLocation[min(1, len(v.InstanceLocation)):] // without the token
	switch k := v.ErrorKind.(type) {
	case *kind.Type, *kind.Enum, *kind.Const:
		n.refused = append(n.refused, at)
	case *kind.Required:
		for _, name := range k.Missing {
			n.missing = append(n.missing, append(slices.Clone(at), name))
		}
	}
	if len(v.Causes) > 0 {
		n.seen[v] = true
	}
	for _, cause := range v.Causes {
		n.add(cause)
	}
}

func isNullMember(tree any, at []string) bool {
	if len(at) == 0 {
		return false
	}
	last := len(at) - 1
	parent, _ := schematree.Lookup(tree, at[:last])
	obj, ok := parent.(map[string]any)
	if !ok {
		return false
	}
	v, there := obj[at[last]]
	return there && v == nil
}

// prune returns tree without the given members. It does not modify tree: it copies the
// objects and arrays on the way to a member.
func prune(tree any, removed locations) any {
	if len(removed) == 0 {
		return tree
	}
	switch v := tree.(type) {
	case map[string]any:
		v = maps.Clone(v)
		for name, below := range removed {
			if below == nil {
				delete(v, name)
			} else {
				v[name] = prune(v[name], below)
			}
		}
		return v
	case []any:
		v = slices.Clone(v)
		for token, below := range removed {
			if i, err := strconv.Atoi(token); err == nil {
				v[i] = prune(v[i], below)
			}
		}
		return v
	}
	return tree
}
