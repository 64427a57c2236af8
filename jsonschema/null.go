// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"maps"
	"slices"
	"strconv"
)

// maxNullRounds bounds how often removing a null may bring up another one. Only
// schemas that choose between alternatives need more than two rounds.
const maxNullRounds = 8

// withoutNulls validates again with those nulls removed that the schema refused
// and whose properties are optional. It returns the last tree and outcome.
//
// Which nulls these are is learnt from the validator: a null that it complained
// about goes; one that it then misses was required and comes back for good.
func withoutNulls(validate validator, tree any, failure *failure) (any, *failure) {
	removed, needed := map[string]bool{}, map[string]bool{}
	for round := 0; failure != nil && round < maxNullRounds; round++ {
		changed := false
		for _, at := range missing(failure, nil) {
			if p := joinPointer(at); removed[p] && !needed[p] {
				needed[p], changed = true, true
				delete(removed, p)
			}
		}
		for _, at := range refused(failure, nil) {
			p := joinPointer(at)
			if !removed[p] && !needed[p] && isNullMember(tree, at) {
				removed[p], changed = true, true
			}
		}
		if !changed {
			break
		}
		failure = validate(prune(tree, "", removed))
	}
	return prune(tree, "", removed), failure
}

// refused appends the locations of values that failed by themselves.
func refused(f *failure, to [][]string) [][]string {
	switch f.keyword {
	case "type", "enum", "const":
		to = append(to, f.at)
	}
	for _, c := range f.causes {
		to = refused(c, to)
	}
	return to
}

// missing appends the locations of properties that were not there.
func missing(f *failure, to [][]string) [][]string {
	if f.keyword == "required" {
		for _, name := range f.names {
			to = append(to, append(slices.Clone(f.at), name))
		}
	}
	for _, c := range f.causes {
		to = missing(c, to)
	}
	return to
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
