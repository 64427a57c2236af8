// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"crypto/ecdsa"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp/auth"
)

// prover makes requests with proofs of one key.
type prover struct {
	key   *ecdsa.PrivateKey
	token string
}

func newProver() *prover {
	key := newECKey()
	return &prover{key, token(claims{"exp": time.Now().Unix() + 7200, "cnf": claims{"jkt": thumbprint(key)}})}
}

// proofOf returns a proof whose iat is a number of seconds ahead of now.
func (p *prover) proofOf(ahead int64) string {
	return prove(p.key, p.token, nil, claims{"iat": time.Now().Unix() + ahead})
}

func (p *prover) use(v *auth.DPoP, proof string) error {
	_, err := v.Verify(proving(p.token, proof))
	return err
}

// Callers with any number of proofs of the near future neither lock out others, nor make a
// used proof valid again.
func TestFindingS12ProofsOfTheFuture(t *testing.T) {
	for name, attackers := range map[string]int{"one key": 1, "as many keys as fill all": 16, "more keys than fill all": 35} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newDPoP(auth.DPoPOptions{MaxReplay: 320})
				victim := newProver()
				used := victim.proofOf(0)
				if err := victim.use(v, used); err != nil {
					t.Fatal(err)
				}
				all := make([]*prover, attackers)
				for i := range all {
					all[i] = newProver()
				}
				for round := range 2 {
					for range max(10, 400/attackers) {
						for _, a := range all {
							if err := a.use(v, a.proofOf(55)); err != nil && !isRefusal(err) {
								t.Fatal(err)
							}
						}
					}
					for range 3 {
						if err := victim.use(v, victim.proofOf(0)); err != nil {
							t.Fatalf("round %d: somebody else is kept out: %v", round, err)
						}
					}
					if n := newProver(); n.use(v, n.proofOf(0)) != nil {
						t.Fatalf("round %d: a new caller is kept out", round)
					}
					if err := victim.use(v, used); err == nil {
						t.Fatalf("round %d: a used proof is good again", round)
					}
					pass(30 * time.Second)
				}
			})
		})
	}
}

// A clock that is more than a minute fast must be corrected: proofs of the future are
// valid for longer than others.
func TestFindingS12FastClock(t *testing.T) {
	v, p := newDPoP(auth.DPoPOptions{}), newProver()
	for ahead, good := range map[int64]bool{-290: true, 0: true, 55: true, 70: false, 290: false} {
		if err := p.use(v, p.proofOf(ahead)); (err == nil) != good {
			t.Errorf("%d seconds ahead: %v", ahead, err)
		}
	}
	narrow := newDPoP(auth.DPoPOptions{Window: 10 * time.Second})
	if err := p.use(narrow, p.proofOf(20)); err == nil {
		t.Error("20 seconds ahead of a window of 10")
	}
}

// A busy caller forgets its own oldest proofs first, and continues.
func TestFindingS12BusyCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, busy := newDPoP(auth.DPoPOptions{MaxReplay: 640}), newProver() // 40 of one key
		var proofs []string
		for range 100 {
			proofs = append(proofs, busy.proofOf(0))
			if err := busy.use(v, proofs[len(proofs)-1]); err != nil {
				t.Fatalf("proof %d: %v", len(proofs), err)
			}
			pass(time.Second)
		}
		for i, proof := range proofs {
			if busy.use(v, proof) == nil {
				t.Fatalf("proof %d is good twice", i)
			}
		}
	})
}

// With more keys than fit, proofs that may have been used are rejected, and no used
// proof is accepted again.
func TestFindingS12ManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newDPoP(auth.DPoPOptions{MaxReplay: 160}) // 20 keys
		type used struct {
			by    *prover
			proof string
		}
		var all []used
		for range 60 {
			p := newProver()
			all = append(all, used{p, p.proofOf(0)})
			if err := p.use(v, all[len(all)-1].proof); err != nil {
				t.Fatalf("caller %d is kept out: %v", len(all), err)
			}
			pass(20 * time.Second) // one after the other
		}
		for range 60 { // concurrently
			p := newProver()
			proof := p.proofOf(0)
			if p.use(v, proof) == nil {
				all = append(all, used{p, proof})
			}
		}
		for i, u := range all {
			err := u.by.use(v, u.proof)
			if _, refused := errors.AsType[*auth.Error](err); !refused {
				t.Fatalf("proof %d: %v", i, err)
			}
		}
	})
}

// One caller cannot fill a store that replicas share; the others continue.
func TestFindingS12SharedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := store.NewMemory(&store.MemoryOptions{MaxBytes: 16 << 10})
		v := newDPoP(auth.DPoPOptions{Replay: shared, MaxReplay: 320}) // 20 of one key
		attacker, victim := newProver(), newProver()
		passed := 0
		for range 200 {
			err := attacker.use(v, attacker.proofOf(55))
			if err != nil && !isRefusal(err) {
				t.Fatalf("after %d: %v", passed, err)
			}
			if err == nil {
				passed++
			}
		}
		if passed != 20 {
			t.Errorf("%d proofs of one key were stored, want 20", passed)
		}
		used := victim.proofOf(0)
		if err := victim.use(v, used); err != nil {
			t.Errorf("somebody else is kept out: %v", err)
		}
		if victim.use(v, used) == nil {
			t.Error("a proof is good twice")
		}
		pass(7 * time.Minute)
		if err := attacker.use(v, attacker.proofOf(0)); err != nil {
			t.Errorf("after the window: %v", err)
		}
	})
}
