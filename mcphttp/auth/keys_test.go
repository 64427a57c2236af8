// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/auth"
)

const aliceKey = "alice-7f3b0c5d9e2a4681"

func TestAPIKeys(t *testing.T) {
	alice := &mcp.Principal{Subject: "alice"}
	late := &mcp.Principal{Subject: "late", Expiry: time.Now().Add(-time.Second)}
	keys := map[string]*mcp.Principal{aliceKey: alice, "late-7f3b0c5d9e2a4681": late}
	hashed := map[auth.KeyHash]*mcp.Principal{}
	for key, p := range keys {
		hashed[must(auth.ParseKeyHash(auth.HashKey(key).String()))] = p
	}
	lookup := func(_ context.Context, h auth.KeyHash) (*mcp.Principal, error) {
		if h == auth.HashKey("down") {
			return nil, errors.New("the database is down")
		}
		return hashed[h], nil
	}
	own := &auth.KeyOptions{Header: "x-api-key"}
	for name, v := range map[string]auth.Verifier{
		"plain": auth.APIKeys(keys, own), "hashed": auth.HashedAPIKeys(hashed, own), "lookup": auth.LookupAPIKeys(lookup, own),
	} {
		for _, c := range []struct {
			header []string
			status int
		}{
			{[]string{"X-API-Key", aliceKey}, 200},
			{nil, 401},
			{[]string{"X-API-Key", aliceKey + "x"}, 401},
			{[]string{"X-API-Key", aliceKey[:len(aliceKey)-1]}, 401},
			{[]string{"X-API-Key", strings.ToUpper(aliceKey)}, 401},
			{[]string{"X-API-Key", auth.HashKey(aliceKey).String()}, 401}, // as in a stolen database
			{[]string{"X-API-Key", "late-7f3b0c5d9e2a4681"}, 401},
			{[]string{"X-API-Key", ""}, 400},
			{[]string{"X-API-Key", aliceKey, "X-API-Key", aliceKey}, 400},
			{[]string{"X-API-Key", strings.Repeat("k", 1<<20)}, 400},
			{[]string{"Authorization", "Bearer " + aliceKey}, 401},
		} {
			a := ask(v, &auth.Options{}, request(c.header...))
			if a.Code != c.status || (a.caller != nil) != (c.status == 200) {
				t.Errorf("%s: %.80q: got %d %s", name, c.header, a.Code, a.challenge())
			}
			if c.header == nil && a.challenge() != `ApiKey header="X-Api-Key"` {
				t.Errorf("the challenge is %s", a.challenge())
			}
		}
	}
	if a := ask(auth.LookupAPIKeys(lookup, own), nil, request("X-API-Key", "down")); a.Code != http.StatusServiceUnavailable {
		t.Errorf("a lookup that fails: %d", a.Code)
	}
	if a := ask(auth.APIKeys(keys, nil), nil, bearing(aliceKey)); a.Code != 200 || a.caller != alice {
		t.Errorf("as a bearer token: %d", a.Code)
	}
}

// The map is copied: it remains the caller's.
func TestAPIKeysAreCopied(t *testing.T) {
	keys := map[auth.KeyHash]*mcp.Principal{}
	v := auth.HashedAPIKeys(keys, nil)
	keys[auth.HashKey(aliceKey)] = &mcp.Principal{Subject: "alice"}
	if a := ask(v, nil, bearing(aliceKey)); a.Code != http.StatusUnauthorized {
		t.Errorf("got %d", a.Code)
	}
}

func TestParseKeyHash(t *testing.T) {
	for _, text := range []string{"", "abc", "xyz", strings.Repeat("0", 62), strings.Repeat("0", 66), strings.Repeat("g", 64)} {
		if _, err := auth.ParseKeyHash(text); err == nil {
			t.Errorf("%q is a hash", text)
		}
	}
}

// 10,000 wrong keys leave nothing behind, and each is rejected cheaply.
func TestWrongKeys(t *testing.T) {
	v := auth.FirstOf(newJWT(auth.JWTOptions{}), auth.APIKeys(map[string]*mcp.Principal{aliceKey: {Subject: "alice"}}, nil))
	h := auth.Require(v, &auth.Options{Metadata: &auth.Metadata{Resource: resource}, Logger: quiet})(http.NotFoundHandler())
	try := func(i int) {
		w := &sink{header: http.Header{}}
		if h.ServeHTTP(w, bearing(fmt.Sprintf("%s%d", aliceKey, i))); w.status != http.StatusUnauthorized {
			t.Fatalf("got %d", w.status)
		}
	}
	try(0)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	for i := range 10_000 {
		try(i)
	}
	took := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if kept := int64(after.HeapAlloc) - int64(before.HeapAlloc); kept > 1<<20 || took > 10*time.Second {
		t.Errorf("%d bytes kept, %v", kept, took)
	}
	t.Logf("%v each", took/10_000)
	if a := ask(v, nil, bearing(aliceKey)); a.Code != http.StatusOK {
		t.Errorf("the right key: %d", a.Code)
	}
}

// sink is a ResponseWriter that discards everything.
type sink struct {
	header http.Header
	status int
}

func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(p []byte) (int, error) { return len(p), nil }
func (s *sink) Flush()                      {}

// Keys whose principals have no subject would be the same caller and share sessions.
func TestFindingS33KeysWithoutSubject(t *testing.T) {
	for name, register := range map[string]func(){
		"plain": func() {
			auth.APIKeys(map[string]*mcp.Principal{"0123456789abcdef": {Issuer: "us", Scopes: []string{"read"}}}, nil)
		},
		"hashed": func() { auth.HashedAPIKeys(map[auth.KeyHash]*mcp.Principal{auth.HashKey("key"): {}}, nil) },
	} {
		func() {
			defer func() {
				if problem, _ := recover().(string); !strings.Contains(problem, "Subject") || strings.Contains(problem, "0123456789abcdef") {
					t.Errorf("%s: %q", name, problem)
				}
			}()
			register()
		}()
	}
	// An invalid principal returned by a lookup fails the request.
	nobody := &mcp.Principal{Issuer: "us"}
	for name, v := range map[string]auth.Verifier{
		"looked up": auth.LookupAPIKeys(func(context.Context, auth.KeyHash) (*mcp.Principal, error) { return nobody, nil }, nil),
		"of a user": auth.VerifierFunc(func(*http.Request) (*mcp.Principal, error) { return nobody, nil }),
	} {
		if a := ask(v, nil, bearing("0123456789abcdef")); a.Code != http.StatusServiceUnavailable || a.caller != nil {
			t.Errorf("%s: %d, %+v", name, a.Code, a.caller)
		}
	}
}
