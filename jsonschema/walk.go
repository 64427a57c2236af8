// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"fmt"

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

// inPlace are the applicators that apply their schemas to the value itself.
var inPlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}

// checkWork returns an error if a schema in the document applies more than maxWork schemas
// to one value, or a chain longer than maxChain.
func checkWork(document any) error {
	w := worker{document: document, known: map[string]extent{}}
	var err error
	schematree.Walk(document, "", func(pointer string, schema any) {
		switch e := w.extent(pointer, schema); {
		case err != nil:
		case e.work > maxWork:
			err = fmt.Errorf("jsonschema: the schema at %q applies more than %d schemas to one value", pointer, maxWork)
		case e.chain > maxChain:
			err = fmt.Errorf("jsonschema: the schema at %q applies a chain of more than %d schemas to one value", pointer, maxChain)
		}
	})
	return err
}

type worker struct {
	document any
	known    map[string]extent // by pointer
}

// An extent is the number of schemas applied to the same value as a schema, and the length
// of their longest chain.
type extent struct{ work, chain int }

// extent returns the extent of a schema. It counts a cycle once; the validator detects cycles.
func (w *worker) extent(pointer string, schema any) extent {
	if e, ok := w.known[pointer]; ok {
		return e
	}
	w.known[pointer] = extent{1, 1}
	obj, _ := schema.(map[string]any)
	e := extent{1, 1}
	add := func(at string, sub any) {
		more := w.extent(at, sub)
		e.work = min(e.work+more.work, maxWork+1)
		e.chain = max(e.chain, more.chain+1)
	}
	for _, key := range inPlace {
		if sub, ok := obj[key]; ok {
			schematree.Direct(key, sub, pointer+"/"+key, add)
		}
	}
	for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		ref, _ := obj[key].(string)
		if at, ok := schematree.LocalRef(ref); ok {
			if target, found := schematree.Lookup(w.document, schematree.Split(at)); found {
				add(at, target)
			}
		}
	}
	w.known[pointer] = e
	return e
}
