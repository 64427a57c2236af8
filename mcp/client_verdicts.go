// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"reflect"
	"sync"
)

// maxVerdicts bounds what a client remembers.
const maxVerdicts = 256

// verdicts are the versions that servers speak, by the transport that leads there.
type verdicts struct {
	mu   sync.Mutex
	byTo map[Transport]string
}

// of is "" if nothing is known.
func (v *verdicts) of(t Transport) string {
	if !reflect.ValueOf(t).Comparable() {
		return ""
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.byTo[t]
}

// set forgets some other verdict if there are too many: it is found out again. "" is
// forgotten.
func (v *verdicts) set(t Transport, version string) {
	if !reflect.ValueOf(t).Comparable() {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if version == "" {
		delete(v.byTo, t)
		return
	}
	if v.byTo == nil {
		v.byTo = map[Transport]string{}
	}
	if _, known := v.byTo[t]; !known && len(v.byTo) >= maxVerdicts {
		for other := range v.byTo {
			delete(v.byTo, other)
			break
		}
	}
	v.byTo[t] = version
}
