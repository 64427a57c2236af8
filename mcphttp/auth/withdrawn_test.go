// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"crypto"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcphttp/auth"
)

// A key withdrawn by its issuer verifies no token for longer than half an hour, however
// rarely tokens arrive and however long they are cached.
func TestWithdrawnKeys(t *testing.T) {
	for name, test := range map[string]struct {
		cacheAge time.Duration
		every    time.Duration // between two requests
	}{
		"a quiet server":                    {5 * time.Minute, 31 * time.Minute},
		"a quiet server with a long memory": {24 * time.Hour, 31 * time.Minute},
		"a busy server with a long memory":  {24 * time.Hour, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				publish(n, map[string]crypto.PublicKey{"ec": ecKey().Public()})
				j := auth.CacheFor(remote(n, auth.JWTOptions{}), test.cacheAge)
				tok := token(claims{"exp": time.Now().Add(48 * time.Hour).Unix()})
				if _, err := verify(t, j, tok); err != nil {
					t.Fatal(err)
				}
				publish(n, map[string]crypto.PublicKey{"new": otherKey().Public()})
				for withdrawn := time.Now(); time.Since(withdrawn) <= time.Hour; {
					pass(test.every)
					_, err := verify(t, j, tok)
					if time.Since(withdrawn) > 30*time.Minute && !isRefusal(err) {
						t.Errorf("after %v: %v", time.Since(withdrawn), err)
					}
					synctest.Wait()
				}
			})
		})
	}
}

// An issuer that has withdrawn all its keys has none. It is not treated like an unreachable
// issuer, whose keys are used for a day.
func TestWithdrawnKeysAll(t *testing.T) {
	for keys, used := range map[string]bool{
		`{"keys":[]}`:              false,
		`{"keys":[{"kty":"XYZ"}]}`: false,
		strings.ReplaceAll(string(published()), `"use":"sig"`, `"use":"enc"`): false,
		`{"error":"busy"}`: true,
	} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork()
			publish(n, map[string]crypto.PublicKey{"ec": ecKey().Public()})
			j := remote(n, auth.JWTOptions{})
			tok := token(claims{"exp": time.Now().Add(48 * time.Hour).Unix()})
			if _, err := verify(t, j, tok); err != nil {
				t.Fatal(err)
			}
			n.put(keysURL, keys)
			pass(31 * time.Minute)
			if _, err := verify(t, j, tok); (err == nil) != used {
				t.Errorf("%s: %v", keys, err)
			}
			publish(n, map[string]crypto.PublicKey{"ec": ecKey().Public()})
			pass(11 * time.Second)
			if _, err := verify(t, j, tok); err != nil {
				t.Errorf("%s, and then the old ones: %v", keys, err)
			}
		})
	}
}

// After a long idle time, the first token is not verified with keys that may have been
// withdrawn, unless the issuer cannot be reached. In that case only that token waits for the
// issuer.
func TestOldKeysOfAnIssuerThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		publish(n, map[string]crypto.PublicKey{"ec": ecKey().Public()})
		j := auth.CacheFor(remote(n, auth.JWTOptions{}), -1)
		tok := token(claims{"exp": time.Now().Add(48 * time.Hour).Unix()})
		if _, err := verify(t, j, tok); err != nil {
			t.Fatal(err)
		}
		n.handle(keysURL, func(r *http.Request) *http.Response {
			<-r.Context().Done()
			return respond(http.StatusGatewayTimeout, "")
		})
		pass(10 * time.Hour)
		for i, want := range []time.Duration{10 * time.Second, 0, 0} {
			began := time.Now()
			if _, err := verify(t, j, tok); err != nil || time.Since(began) != want {
				t.Errorf("token %d: %v after %v, want it after %v", i, err, time.Since(began), want)
			}
			pass(11 * time.Second)
		}
	})
}

// After a long idle time, concurrent tokens wait for the issuer's keys together with the
// first one.
func TestWithdrawnKeysTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		publish(n, map[string]crypto.PublicKey{"ec": ecKey().Public()})
		j := auth.CacheFor(remote(n, auth.JWTOptions{}), -1)
		tok := token(claims{"exp": time.Now().Add(48 * time.Hour).Unix()})
		if _, err := verify(t, j, tok); err != nil {
			t.Fatal(err)
		}
		withdrawn := string(keySet(map[string]crypto.PublicKey{"new": otherKey().Public()}))
		n.handle(keysURL, func(*http.Request) *http.Response {
			<-time.After(time.Second)
			return respond(http.StatusOK, withdrawn)
		})
		pass(10 * time.Hour)
		errs := make(chan error, 2)
		for range cap(errs) {
			go func() {
				_, err := verify(t, j, tok)
				errs <- err
			}()
			synctest.Wait()
		}
		for range cap(errs) {
			if err := <-errs; !isRefusal(err) {
				t.Errorf("the key is withdrawn, and the token: %v", err)
			}
		}
	})
}
