// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import "fmt"

// maxWork bounds how many schemas may be applied to one and the same value. A
// reasonable schema applies a handful; one made of definitions that each combine
// the next one twice needs no length to apply more than can ever be done.
const maxWork = 10_000

// inPlace are the applicators that apply their schemas to the value itself, not
// to a part of it.
var inPlace = []string{"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"}

// checkWork returns an error if some schema in the document multiplies itself
// beyond maxWork.
func checkWork(document any) error {
	w := worker{document: document, known: map[string]int{}}
	worst, where := 0, ""
	walkSchemas(document, "", func(pointer string, schema any) {
		if n := w.work(pointer, schema); n > worst {
			worst, where = n, pointer
		}
	})
	if worst > maxWork {
		return fmt.Errorf("jsonschema: the schema at %q applies more than %d schemas to one value", where, maxWork)
	}
	return nil
}

type worker struct {
	document any
	known    map[string]int // by pointer
}

// work counts the schemas that are applied to a value together with schema. A
// cycle, which the validator detects, counts once.
func (w *worker) work(pointer string, schema any) int {
	if n, ok := w.known[pointer]; ok {
		return n
	}
	w.known[pointer] = 1
	obj, _ := schema.(map[string]any)
	n := 1
	add := func(more int) { n = min(n+more, maxWork+1) }
	for _, key := range inPlace {
		if sub, ok := obj[key]; ok {
			walkDirect(sub, pointer+"/"+key, applicators[key], func(at string, s any) { add(w.work(at, s)) })
		}
	}
	for _, key := range []string{"$ref", "$dynamicRef", "$recursiveRef"} {
		ref, _ := obj[key].(string)
		if at, ok := localRef(ref); ok {
			if target, found := lookup(w.document, splitPointer(at)); found {
				add(w.work(at, target))
			}
		}
	}
	w.known[pointer] = n
	return n
}
