// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"fmt"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/go-psi/psi/internal/schematree"
)

// Limits on the schemas applied to the same value. A reasonable schema applies a handful. A
// short schema whose definitions each refer twice to the next one could apply exponentially
// many. Each schema in a chain takes time proportional to the number of schemas before it,
// because the library looks for cycles.
const (
	maxWork  = 10_000
	maxChain = 500
)

// checkWork returns an error if a schema in the graph applies more than maxWork schemas to
// one value, or a chain longer than maxChain.
func (s *survey) checkWork() error {
	known := map[*santhosh.Schema]extent{}
	for _, schema := range s.schemas {
		switch e := extentOf(schema, known); {
		case e.work > maxWork:
			return fmt.Errorf("jsonschema: the schema at %q applies more than %d schemas to one value", schematree.Join(schemaTokens(schema.Location)), maxWork)
		case e.chain > maxChain:
			return fmt.Errorf("jsonschema: the schema at %q applies a chain of more than %d schemas to one value", schematree.Join(schemaTokens(schema.Location)), maxChain)
		}
	}
	return nil
}

// An extent is the number of schemas applied to the same value as a schema, and the length
// of their longest chain.
type extent struct{ work, chain int }

// extentOf returns the extent of a schema. It counts a cycle once; the validator detects
// cycles.
func extentOf(schema *santhosh.Schema, known map[*santhosh.Schema]extent) extent {
	if e, ok := known[schema]; ok {
		return e
	}
	known[schema] = extent{1, 1}
	e := extent{1, 1}
	inPlaceSchemas(schema, func(sub *santhosh.Schema) {
		more := extentOf(sub, known)
		e.work = min(e.work+more.work, maxWork+1)
		e.chain = max(e.chain, more.chain+1)
	})
	known[schema] = e
	return e
}
