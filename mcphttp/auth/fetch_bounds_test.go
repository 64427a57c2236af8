// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcphttp/auth"
)

// Fetching keys follows at most three redirects.
func TestJWKSRedirectBounds(t *testing.T) {
	for redirects, good := range map[int]bool{3: true, 4: false} {
		n := newNetwork()
		for i := range redirects {
			from, to := fmt.Sprint(keysURL, "/", i), fmt.Sprint(keysURL, "/", i+1)
			if i == 0 {
				from = keysURL
			}
			n.handle(from, func(*http.Request) *http.Response {
				res := respond(http.StatusFound, "")
				res.Header.Set("Location", to)
				return res
			})
		}
		n.put(fmt.Sprint(keysURL, "/", redirects), string(published()))
		if _, err := verify(t, remote(n, auth.JWTOptions{}), token(nil)); (err == nil) != good {
			t.Errorf("%d redirects: %v", redirects, err)
		}
	}
}

// An issuer must answer within ten seconds, and so must an introspection endpoint.
func TestFetchTimeBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for delay, good := range map[time.Duration]bool{10*time.Second - 1: true, 10*time.Second + 1: false} {
			n := newNetwork()
			n.handle(keysURL, func(r *http.Request) *http.Response {
				select {
				case <-time.After(delay):
					return respond(http.StatusOK, string(published()))
				case <-r.Context().Done():
					return respond(http.StatusGatewayTimeout, "")
				}
			})
			if _, err := verify(t, remote(n, auth.JWTOptions{}), token(nil)); (err == nil) != good {
				t.Errorf("keys after %v: %v", delay, err)
			}
			i := newInspector(map[string]claims{"t": usual(claims{"active": true})})
			i.delay = delay
			began := time.Now()
			_, err := verify(t, i.verifier(auth.IntrospectionOptions{}), "t")
			if took := time.Since(began); (err == nil) != good && good || took > 10*time.Second {
				t.Errorf("an answer after %v: %v, after %v", delay, err, took)
			}
		}
	})
}

// Keys in use are fetched again once they are older than 15 minutes, and are no longer used
// once they are older than a day.
func TestJWKSAgeBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		publish(n, map[string]crypto.PublicKey{"ec": ecKey().Public()})
		j := auth.CacheFor(remote(n, auth.JWTOptions{}), -1)
		fetched := func() int {
			if _, err := verify(t, j, token(nil)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return n.count(keysURL)
		}
		fetched()
		pass(15 * time.Minute)
		if got := fetched(); got != 1 {
			t.Errorf("after 15 minutes: %d fetches", got)
		}
		pass(1)
		if got := fetched(); got != 2 {
			t.Errorf("after that: %d fetches", got)
		}
		began := time.Now() // of the last successful fetch
		n.handle(keysURL, func(*http.Request) *http.Response { return respond(http.StatusBadGateway, "") })
		pass(24*time.Hour - time.Since(began))
		if _, err := verify(t, j, token(nil)); err != nil {
			t.Errorf("after a day: %v", err)
		}
		pass(1)
		if _, err := verify(t, j, token(nil)); err == nil || isRefusal(err) {
			t.Errorf("after more than a day: %v", err)
		}
	})
}

// Tokens with unknown keys cause at most one fetch every ten seconds.
func TestJWKSFetchBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		publish(n, map[string]crypto.PublicKey{"old": otherKey().Public()})
		j := remote(n, auth.JWTOptions{})
		for _, c := range []struct {
			pass    time.Duration
			fetches int
		}{{0, 1}, {10*time.Second - 1, 1}, {1, 2}} {
			pass(c.pass)
			if _, err := verify(t, j, token(nil)); !isRefusal(err) {
				t.Errorf("an unknown key: %v", err)
			}
			if got := n.count(keysURL); got != c.fetches {
				t.Errorf("%v later: %d fetches, expected %d", c.pass, got, c.fetches)
			}
		}
	})
}

// The response of an introspection endpoint may have at most 256 KiB.
func TestIntrospectionSizeBounds(t *testing.T) {
	text := string(must(json.Marshal(usual(claims{"active": true}))))
	for size, good := range map[int]bool{256 << 10: true, 256<<10 + 1: false} {
		i := newInspector(nil)
		i.put(introspectURL, text+strings.Repeat(" ", size-len(text)))
		if _, err := verify(t, i.verifier(auth.IntrospectionOptions{}), "t"); (err == nil) != good {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// A positive answer is cached for a minute, but not beyond the token's expiry; a negative
// one for ten seconds.
func TestIntrospectionAgeBounds(t *testing.T) {
	for name, c := range map[string]struct {
		active bool
		valid  time.Duration // the leeway is a minute
		age    time.Duration // how long it is cached
	}{
		"valid for long":  {true, time.Hour, time.Minute},
		"expires earlier": {true, -30 * time.Second, 30 * time.Second},
		"refused":         {false, time.Hour, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := newInspector(map[string]claims{"t": usual(claims{"active": c.active, "exp": time.Now().Add(c.valid).Unix()})})
				v := i.verifier(auth.IntrospectionOptions{})
				for n, d := range []time.Duration{0, c.age - 1, 1} {
					pass(d)
					_, _ = verify(t, v, "t")
					if got, want := i.count(introspectURL), 1+n/2; got != want {
						t.Errorf("%v later: asked %d times, expected %d", d, got, want)
					}
				}
			})
		})
	}
}

// By default, 32 tokens are introspected concurrently and 1024 more wait. From a single
// source, the next one is turned away.
func TestIntrospectionTurnsBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newInspector(nil)
		i.delay = time.Second
		v := i.verifier(auth.IntrospectionOptions{})
		var mu sync.Mutex
		var wg sync.WaitGroup
		busy := 0
		for n := range 32 + 1024 + 1 {
			wg.Go(func() {
				if _, err := v.VerifyToken(context.Background(), fmt.Sprint("t", n)); !isRefusal(err) && time.Now().Nanosecond() == 0 {
					mu.Lock()
					defer mu.Unlock()
					busy++
				}
			})
			synctest.Wait()
			mu.Lock()
			if n == 32+1024-1 && busy != 0 {
				t.Errorf("%d were turned away", busy)
			}
			mu.Unlock()
		}
		i.mu.Lock()
		mu.Lock()
		if i.now != 32 || busy != 1 {
			t.Errorf("%d are asked about, and %d were turned away", i.now, busy)
		}
		mu.Unlock()
		i.mu.Unlock()
		wg.Wait()
	})
}

// A fetch continues even if the only caller waiting for it gives up.
func TestJWKSFetchOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.handle(keysURL, func(r *http.Request) *http.Response {
			select {
			case <-time.After(time.Second):
				return respond(http.StatusOK, string(published()))
			case <-r.Context().Done():
				return respond(http.StatusGatewayTimeout, "")
			}
		})
		j := remote(n, auth.JWTOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := j.VerifyToken(ctx, token(nil)); err == nil {
			t.Error("there was nothing to wait for")
		}
		pass(time.Second)
		began := time.Now()
		if _, err := verify(t, j, token(nil)); err != nil || time.Since(began) != 0 || n.count(keysURL) != 1 {
			t.Errorf("%v, after %v and %d fetches", err, time.Since(began), n.count(keysURL))
		}
	})
}

// The password of a URL is in no error.
func TestFindingX16NoPasswordsInErrors(t *testing.T) {
	const server, password = "https://u:S7secret@login.example", "S7secret"
	for name, do := range map[string]func() error{
		"resource": func() error {
			_, err := auth.MetadataURL("https://u:S7secret@mcp.example")
			return err
		},
		"malformed resource": func() error {
			_, err := auth.MetadataURL("https://u:S7secret%zz@mcp.example")
			return err
		},
		"malformed JWKSURL": func() error {
			_, err := auth.NewJWT(issuer, resource, &auth.JWTOptions{JWKSURL: "http://u:S7secret@keys.example"})
			return err
		},
		"introspection": func() error {
			_, err := auth.NewIntrospection("http://u:S7secret@login.example", resource, nil)
			return err
		},
		"unavailable issuer": func() error { return keysOf(server, newNetwork()) },
		"issuer in metadata": func() error { return keysOf(issuer, described(claims{"issuer": server})) },
		"jwks_uri in metadata": func() error {
			return keysOf(issuer, described(claims{"issuer": issuer, "jwks_uri": "http://u:S7secret@keys.example"}))
		},
	} {
		if err := do(); err == nil || strings.Contains(fmt.Sprint(err, errors.Unwrap(err)), password) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// keysOf returns the error of verifying a token with the keys of an issuer.
func keysOf(issuer string, n *network) error {
	_, err := must(auth.NewJWT(issuer, resource, &auth.JWTOptions{Client: n.client()})).VerifyToken(context.Background(), token(nil))
	return err
}

// described returns a network in which the issuer has the given metadata.
func described(metadata claims) *network {
	n := newNetwork()
	n.put(issuer+"/.well-known/oauth-authorization-server", string(must(json.Marshal(metadata))))
	return n
}
