// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"context"
	"time"
)

// Replay is the memory of used proofs without signature verification, which would slow down
// a model test.
type Replay struct{ memory *memoryReplay }

// NewReplay returns a memory for at most limit proofs.
func NewReplay(window time.Duration, limit int) Replay {
	return Replay{newMemoryReplay(window, limit)}
}

// First reports whether a proof is being used for the first time.
func (r Replay) First(jkt, id string, issued time.Time) bool {
	first, _ := r.memory.first(context.Background(), usedProof{jkt, id, issued}, time.Time{})
	return first
}

// Size returns the number of remembered proofs and of their keys.
func (r Replay) Size() (proofs, keys int) {
	for _, k := range r.memory.keys {
		for _, slice := range k.slices {
			proofs += len(slice)
		}
	}
	return proofs, len(r.memory.keys)
}

// LimitProofs makes d remember at most n proofs in its memory, and returns d.
func LimitProofs(d *DPoP, n int) *DPoP {
	switch used := d.used.(type) {
	case *memoryReplay:
		d.used = newMemoryReplay(d.window, n)
	case sharedReplay:
		d.used = newSharedReplay(newMemoryReplay(d.window, n), used.values)
	}
	return d
}

// LimitLookups limits the requests of i in flight, and returns i.
func LimitLookups(i *Introspection, n int) *Introspection {
	i.turns.max = n
	return i
}

// CacheFor makes j cache tokens for age, or not at all if it is negative, and returns j.
func CacheFor(j *JWT, age time.Duration) *JWT {
	j.cache, j.cacheAge = cacheFor[verified](age), age
	return j
}

// DefaultJWTOptions returns o with defaults filled in.
func DefaultJWTOptions(o *JWTOptions) JWTOptions { return o.withDefaults() }

// DefaultIntrospectionOptions returns o with defaults filled in.
func DefaultIntrospectionOptions(o *IntrospectionOptions) IntrospectionOptions {
	return o.withDefaults()
}
