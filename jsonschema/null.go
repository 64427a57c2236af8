// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"maps"
	"slices"
	"strconv"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// maxNullRounds bounds how often removing a null may bring up another one. Only
// schemas that choose between alternatives need more than two rounds.
const maxNullRounds = 8

// withoutNulls validates again with those nulls removed that the schema refused
// and whose properties are optional. It returns the last tree and outcome.
//
// Which nulls these are is learnt from the validator: a null that it complained
// about goes; one that it then misses was required and comes back for good.
func (v *validator) withoutNulls(b *budget, tree any, failed *santhosh.ValidationError) (any, *santhosh.ValidationError, error) {
	removed, needed := map[string]bool{}, map[string]bool{}
	for round := 0; failed != nil && round < maxNullRounds; round++ {
		changed := false
		found := nullSearch{seen: map[*santhosh.ValidationError]bool{}}
		found.add(failed)
		for _, at := range found.missing {
			if p := joinPointer(at); removed[p] && !needed[p] {
				needed[p], changed = true, true
				delete(removed, p)
			}
		}
		for _, at := range found.refused {
			p := joinPointer(at)
			if !removed[p] && !needed[p] && isNullMember(tree, at) {
				removed[p], changed = true, true
			}
		}
		if !changed {
			break
		}
		var err error
		if failed, err = v.validate(b, prune(tree, "", removed)); err != nil {
			return nil, nil, err
		}
	}
	return prune(tree, "", removed), failed, nil
}

// A nullSearch collects locations from an error of the validator.
type nullSearch struct {
	refused [][]string // values that failed by themselves
	missing [][]string // properties that were not there
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
	parent, _ := lookup(tree, at[:last])
	obj, ok := parent.(map[string]any)
	if !ok {
		return false
	}
	v, there := obj[at[last]]
	return there && v == nil
}

// prune returns tree without the members at the given pointers. Objects that
// lose something are copied.
func prune(tree any, pointer string, removed map[string]bool) any {
	if len(removed) == 0 {
		return tree
	}
	switch v := tree.(type) {
	case map[string]any:
		v = maps.Clone(v)
		for name, value := range v {
			at := pointer + "/" + escapeToken(name)
			if removed[at] {
				delete(v, name)
				continue
			}
			v[name] = prune(value, at, removed)
		}
		return v
	case []any:
		v = slices.Clone(v)
		for i, value := range v {
			v[i] = prune(value, pointer+"/"+strconv.Itoa(i), removed)
		}
		return v
	}
	return tree
}
