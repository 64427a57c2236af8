// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcphttp/auth"
)

// No proof is accepted twice, and memory stays bounded: a model with any number of keys
// whose proofs have any accepted time.
func TestFindingS12ReplayModel(t *testing.T) {
	const window = 5 * time.Minute
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			limit := []int{1, 5, 32, 200, 1000}[seed%5]
			memory := auth.NewReplay(window, limit)
			type proof struct {
				jkt, id string
				issued  time.Time
			}
			var used []proof
			for step := range 4000 {
				p := proof{fmt.Sprint(random.IntN(1 + random.IntN(300))), fmt.Sprint(step), time.Now().Add(time.Duration(random.IntN(360)-300) * time.Second)}
				if memory.First(p.jkt, p.id, p.issued) {
					used = append(used, p)
				}
				if old := used[max(0, len(used)-1-random.IntN(100))]; time.Since(old.issued) < window && memory.First(old.jkt, old.id, old.issued) {
					t.Fatalf("seed %d, step %d: a proof is good twice", seed, step)
				}
				if proofs, keys := memory.Size(); proofs > limit || keys > max(limit/8, 16) {
					t.Fatalf("seed %d, step %d: %d proofs of %d keys are kept, with a limit of %d", seed, step, proofs, keys, limit)
				}
				<-time.After(time.Duration(random.IntN(50)) * time.Millisecond)
			}
		})
	}
}

// When memory is full, the oldest proofs of the key that has more than its share are
// forgotten, and no others. Further proofs issued at that time are rejected.
func TestReplayShares(t *testing.T) {
	for range 20 { // the order of keys is random
		synctest.Test(t, func(t *testing.T) {
			memory := auth.NewReplay(5*time.Minute, 16)
			issued := func(i int) time.Time { return time.Now().Add(-time.Duration(i) * 19 * time.Second) } // each in a different slice
			counts := map[string]int{"few": 2, "some": 6, "many": 8}
			for key, n := range counts {
				for i := range n {
					if !memory.First(key, fmt.Sprint(i), issued(i)) {
						t.Fatalf("proof %d of %s is not the first", i, key)
					}
				}
			}
			if !memory.First("new", "0", issued(0)) {
				t.Error("a new key has no room")
			}
			if proofs, _ := memory.Size(); proofs != 16 {
				t.Errorf("%d proofs are kept", proofs)
			}
			if memory.First("many", "other", issued(7)) {
				t.Error("the oldest proofs of the key with the most are not rejected")
			}
			if !memory.First("some", "other", issued(5)) {
				t.Error("the oldest proofs of a key with its share are rejected")
			}
		})
	}
}
