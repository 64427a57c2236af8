// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/test/golden"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/auth"
)

const introspectURL = issuer + "/introspect"

// inspector answers introspection requests.
type inspector struct {
	*network
	mu      sync.Mutex
	answers map[string]claims
	now     int // requests in flight
	most    int // maximum of now
	header  http.Header
	delay   time.Duration
}

func newInspector(answers map[string]claims) *inspector {
	i := &inspector{network: newNetwork(), answers: answers}
	i.handle(introspectURL, i.answer)
	return i
}

func (i *inspector) answer(r *http.Request) *http.Response {
	i.mu.Lock()
	i.now++
	i.most = max(i.most, i.now)
	i.header = r.Header.Clone()
	delay := i.delay
	i.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-r.Context().Done():
	}
	_ = r.ParseForm()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.now--
	c, ok := i.answers[r.PostForm.Get("token")]
	if !ok {
		c = claims{"active": false}
	}
	return respond(http.StatusOK, string(must(json.Marshal(c))))
}

func (i *inspector) verifier(opts auth.IntrospectionOptions) *auth.Introspection {
	opts.Client = i.client()
	return must(auth.NewIntrospection(introspectURL, resource, &opts))
}

func TestIntrospection(t *testing.T) {
	now := time.Now().Unix()
	active := func(changes claims) claims { return usual(claimsWith(claims{"active": true}, changes)) }
	answers := map[string]claims{
		"good":              active(nil),
		"without exp":       active(claims{"exp": nil}),
		"without iss":       active(claims{"iss": nil}),
		"slash":             active(claims{"aud": resource + "/"}),
		"inactive":          active(claims{"active": false}),
		"active as a text":  active(claims{"active": "true"}),
		"no active":         active(claims{"active": nil}),
		"another audience":  active(claims{"aud": "https://other.example.com"}),
		"no audience":       active(claims{"aud": nil}),
		"another issuer":    active(claims{"iss": "https://evil.example.com"}),
		"expired":           active(claims{"exp": now - 61}),
		"not yet valid":     active(claims{"nbf": now + 90}),
		"no subject":        active(claims{"sub": nil}),
		"key bound":         active(claims{"cnf": claims{"jkt": "x"}}),
		"another structure": active(claims{"aud": claims{"x": 1}}),
	}
	good := map[string]bool{"good": true, "without exp": true, "without iss": true, "slash": true}
	spaced := map[string]claims{}
	for name, c := range answers {
		spaced[strings.ReplaceAll(name, " ", "-")] = c
	}
	v := newInspector(spaced).verifier(auth.IntrospectionOptions{Issuer: issuer})
	for name := range answers {
		a := ask(v, nil, bearing(strings.ReplaceAll(name, " ", "-")))
		if want := map[bool]int{true: 200, false: 401}[good[name]]; a.Code != want {
			t.Errorf("%s: got %d %s", name, a.Code, a.challenge())
		}
		if good[name] && (a.caller.Issuer != issuer || a.caller.Subject != "alice" || !a.caller.HasScope("files:read")) {
			t.Errorf("%s: the caller is %+v", name, a.caller)
		}
	}
}

func claimsWith(c, more claims) claims {
	maps.Copy(c, more)
	return c
}

func TestIntrospectionAnyAudience(t *testing.T) {
	v := newInspector(map[string]claims{"t": {"active": true, "sub": "alice"}}).verifier(auth.IntrospectionOptions{InsecureAnyAudience: true})
	if p, err := verify(t, v, "t"); err != nil || p.Issuer != issuer {
		t.Errorf("got %v, %v", p, err)
	}
}

func TestIntrospectionCredentials(t *testing.T) {
	i := newInspector(map[string]claims{"t": usual(claims{"active": true})})
	_, _ = verify(t, i.verifier(auth.IntrospectionOptions{ClientID: "a:b", ClientSecret: "c d"}), "t")
	r := http.Request{Header: i.header}
	if id, secret, ok := r.BasicAuth(); !ok || id != "a%3Ab" || secret != "c+d" {
		t.Errorf("got %q, %q", id, secret)
	}
}

// Positive answers are cached for a minute, negative ones for ten seconds.
func TestIntrospectionCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newInspector(map[string]claims{"good": usual(claims{"active": true}), "short": usual(claims{"active": true, "exp": time.Now().Unix() - 45})})
		v := i.verifier(auth.IntrospectionOptions{})
		refused := map[string]int{}
		for range 59 {
			for _, token := range []string{"good", "short", "bad"} {
				if _, err := verify(t, v, token); err != nil {
					refused[token]++
				}
			}
			pass(time.Second)
		}
		if got := i.count(introspectURL); refused["good"] != 0 || refused["short"] != 44 || refused["bad"] != 59 || got > 1+1+5+6 {
			t.Errorf("refused %v, asked %d times", refused, got)
		}
		i.mu.Lock()
		delete(i.answers, "good") // it is revoked
		i.mu.Unlock()
		pass(time.Second)
		if _, err := verify(t, v, "good"); !isRefusal(err) {
			t.Errorf("after a minute: %v", err)
		}
	})
}

// 10,000 unknown tokens cause as many requests, but only a few concurrently, and leave
// nothing behind.
func TestIntrospectionFlood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newInspector(nil)
		i.delay = time.Millisecond
		v := auth.LimitLookups(i.verifier(auth.IntrospectionOptions{}), 8)
		var wg sync.WaitGroup
		var mu sync.Mutex
		busy := 0
		for n := range 10_000 {
			wg.Go(func() {
				if _, err := v.VerifyToken(t.Context(), fmt.Sprint(n)); !isRefusal(err) {
					mu.Lock()
					busy++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if i.most > 8 || i.count(introspectURL) > 10_000 || busy == 0 {
			t.Errorf("%d at once, %d asked, %d turned away", i.most, i.count(introspectURL), busy)
		}
	})
}

// Callers with the same token share the answer. A caller that gives up does not cancel the
// request.
func TestIntrospectionSingleFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newInspector(map[string]claims{"t": usual(claims{"active": true})})
		i.delay = time.Second
		v := i.verifier(auth.IntrospectionOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := v.VerifyToken(ctx, "t"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the first: %v", err)
			}
		})
		synctest.Wait()
		for range 50 {
			wg.Go(func() {
				if _, err := v.VerifyToken(t.Context(), "t"); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := i.count(introspectURL); got != 1 {
			t.Errorf("asked %d times", got)
		}
	})
}

// The token and the server's credentials are sent only to the endpoint, and a broken
// endpoint rejects no caller.
func TestIntrospectionBadAnswers(t *testing.T) {
	var problems []string
	for name, page := range map[string]func(*http.Request) *http.Response{
		"redirect": func(*http.Request) *http.Response {
			res := respond(http.StatusTemporaryRedirect, "")
			res.Header.Set("Location", issuer+"/elsewhere")
			return res
		},
		"our credentials are wrong": func(*http.Request) *http.Response { return respond(http.StatusUnauthorized, "") },
		"no JSON":                   func(*http.Request) *http.Response { return respond(http.StatusOK, "<html>") },
		"oversized": func(*http.Request) *http.Response {
			return respond(http.StatusOK, `{"active":true,"sub":"`+strings.Repeat("x", 1<<20)+`"}`)
		},
		"panic": func(*http.Request) *http.Response { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			i := newInspector(nil)
			i.handle(introspectURL, page)
			p, err := verify(t, i.verifier(auth.IntrospectionOptions{}), "t")
			if err == nil || isRefusal(err) {
				t.Errorf("got %v, %v", p, err)
			}
			if i.count(issuer+"/elsewhere") != 0 {
				t.Error("the redirect was followed")
			}
			problems = append(problems, fmt.Sprintf("%s: %v\n", name, err))
		})
	}
	golden.Check(t, "introspection", strings.Join(slices.Sorted(slices.Values(problems)), ""))
}

// flood verifies unknown tokens, from several addresses in turn. All are in flight when it
// returns.
func flood(wg *sync.WaitGroup, v *auth.Introspection, tokens, addresses int) {
	for n := range tokens {
		r := bearing(fmt.Sprint("garbage-", n))
		r.RemoteAddr = fmt.Sprintf("192.0.2.%d:%d", n%addresses+1, 1024+n)
		wg.Go(func() { _, _ = v.Verify(r) })
	}
	synctest.Wait()
}

// A flood of invalid tokens does not lock out valid tokens from other addresses, or, from
// any address, tokens that were valid before.
func TestFindingS24GarbageStarvesNobody(t *testing.T) {
	for name, test := range map[string]struct {
		from      string
		addresses int // of the flood
		before    bool
	}{
		"another address, new token":        {"198.51.100.7:1", 1, false},
		"another address, flood of many":    {"198.51.100.7:1", 200, false},
		"another network of IPv6":           {"[2001:db8::1]:1", 1, false},
		"the same address, known token":     {"192.0.2.1:1", 1, true},
		"another address, known, of many":   {"198.51.100.7:1", 200, true},
		"the address of the proxy, of many": {"192.0.2.1:1", 200, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := newInspector(map[string]claims{"good": usual(claims{"active": true, "exp": time.Now().Unix() + 7200})})
				v := auth.LimitLookups(i.verifier(auth.IntrospectionOptions{CacheAge: time.Second}), 4)
				ask := func() error {
					r := bearing("good")
					r.RemoteAddr = test.from
					_, err := v.Verify(r)
					return err
				}
				if test.before {
					if err := ask(); err != nil {
						t.Fatal(err)
					}
					pass(time.Minute) // until it is no longer cached
				}
				i.mu.Lock()
				i.delay = 10 * time.Millisecond
				i.mu.Unlock()
				var wg sync.WaitGroup
				defer wg.Wait()
				flood(&wg, v, 3000, test.addresses)
				start := time.Now()
				if err := ask(); err != nil {
					t.Errorf("kept out: %v", err)
				}
				if took := time.Since(start); took > time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// Behind a proxy, Source distinguishes callers.
func TestFindingS24Source(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newInspector(map[string]claims{"good": usual(claims{"active": true})})
		i.delay = 10 * time.Millisecond
		v := auth.LimitLookups(i.verifier(auth.IntrospectionOptions{Source: func(r *http.Request) string { return r.Header.Get("X-Real-IP") }}), 4)
		var wg sync.WaitGroup
		defer wg.Wait()
		flood(&wg, v, 3000, 1)
		r := bearing("good")
		r.Header.Set("X-Real-IP", "198.51.100.7")
		r.RemoteAddr = "192.0.2.1:1"
		if _, err := v.Verify(r); err != nil {
			t.Errorf("kept out: %v", err)
		}
	})
}

// Turns are released by callers that gave up waiting and by those that were rejected.
func TestFindingS24TurnsComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newInspector(map[string]claims{"good": usual(claims{"active": true})})
		v := auth.LimitLookups(i.verifier(auth.IntrospectionOptions{CacheAge: time.Second}), 4)
		i.answers["proven"] = i.answers["good"]
		if _, err := v.Verify(bearing("proven")); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		i.delay = time.Hour
		var wg sync.WaitGroup
		for range 3 {
			flood(&wg, v, 2000, 3)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := v.Verify(bearing("proven").WithContext(ctx)); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a proven token: %v", err)
			}
			cancel()
			wg.Wait() // all have given up
		}
		i.mu.Lock()
		i.delay, i.most = 10*time.Millisecond, 0
		i.mu.Unlock()
		pass(time.Minute)
		start := time.Now()
		flood(&wg, v, 40, 1)
		wg.Wait()
		if took := time.Since(start); took != 100*time.Millisecond || i.most != 4 {
			t.Errorf("40 questions of 10 ms took %v, %d at once", took, i.most)
		}
		if _, err := v.Verify(bearing("good")); err != nil {
			t.Error(err)
		}
	})
}

// A proven token has priority only while it is valid.
func TestFindingS24RevokedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newInspector(map[string]claims{"good": usual(claims{"active": true, "exp": time.Now().Unix() + 7200})})
		v := auth.LimitLookups(i.verifier(auth.IntrospectionOptions{CacheAge: time.Second}), 1)
		if _, err := v.Verify(bearing("good")); err != nil {
			t.Fatal(err)
		}
		i.mu.Lock()
		clear(i.answers)
		i.mu.Unlock()
		pass(time.Minute)
		if _, err := v.Verify(bearing("good")); !isRefusal(err) {
			t.Fatal(err)
		}
		pass(time.Minute)
		i.mu.Lock()
		i.delay = 100 * time.Millisecond
		i.mu.Unlock()
		var wg sync.WaitGroup
		defer wg.Wait()
		flood(&wg, v, 20, 1)
		start := time.Now()
		r := bearing("good")
		r.RemoteAddr = "192.0.2.1:1" // of the flood
		if _, err := v.Verify(r); !isRefusal(err) || time.Since(start) < 2*time.Second {
			t.Errorf("%v, after %v", err, time.Since(start))
		}
	})
}

// A token that a program got for itself often has no sub. The program is its client.
func TestFindingZ6TokenOfAProgram(t *testing.T) {
	answers := map[string]claims{
		"program":  usual(claims{"active": true, "sub": nil, "client_id": "robot"}),
		"user":     usual(claims{"active": true, "sub": "alice", "client_id": "robot"}),
		"odd":      usual(claims{"active": true, "sub": 7, "client_id": "robot"}),
		"empty":    usual(claims{"active": true, "sub": "", "client_id": "robot"}),
		"no text":  usual(claims{"active": true, "sub": nil, "client_id": 7}),
		"neither":  usual(claims{"active": true, "sub": nil}),
		"a user":   usual(claims{"active": true, "sub": nil, "username": "alice", "client_id": "robot"}), // not the program itself
		"by azp":   usual(claims{"active": true, "sub": nil, "azp": "robot"}),
		"inactive": usual(claims{"active": false, "sub": nil, "client_id": "robot"}),
	}
	v := newInspector(answers).verifier(auth.IntrospectionOptions{})
	for token, want := range map[string]string{"program": "robot", "user": "alice", "odd": "", "empty": "", "no text": "", "neither": "", "a user": "", "by azp": "", "inactive": ""} {
		p, err := verify(t, v, token)
		if want == "" && err == nil || want != "" && (err != nil || p.Subject != want) {
			t.Errorf("%s: got %v, %v, want %q", token, p, err, want)
		}
	}
	if p, _ := verify(t, v, "program"); p != nil && p.Claims["sub"] != nil {
		t.Errorf("the claims have a sub: %v", p.Claims)
	}
	// Identify decides alone, and a JWT must have a sub (RFC 9068).
	own := newInspector(answers).verifier(auth.IntrospectionOptions{Identify: func(context.Context, map[string]any) (*mcp.Principal, error) { return new(mcp.Principal), nil }})
	if p, err := verify(t, own, "program"); err == nil {
		t.Errorf("Identify is ignored: %v", p)
	}
	if p, err := verify(t, newJWT(auth.JWTOptions{}), token(claims{"sub": nil, "client_id": "robot"})); err == nil {
		t.Errorf("a JWT without sub: %v", p)
	}
}
