// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauthtest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcphttp/oauth"
)

// Run tests whether a store satisfies the contract of [oauth.Store]. open is called once
// for each subtest and must return an empty store.
func Run(t *testing.T, open func(t *testing.T) oauth.Store) {
	t.Helper()
	for name, test := range map[string]func(*tester){
		"values":      values,
		"keys":        keys,
		"ownership":   ownership,
		"concurrency": concurrency,
	} {
		t.Run(name, func(t *testing.T) { test(&tester{t, t.Context(), open(t)}) })
	}
}

type tester struct {
	t     *testing.T
	ctx   context.Context
	store oauth.Store
}

// save saves a value; nil removes it.
func (s *tester) save(key oauth.StoreKey, value []byte) {
	s.t.Helper()
	if err := s.store.Save(s.ctx, key, value); err != nil {
		s.t.Fatalf("Save(%v): %v", key, err)
	}
}

// expect checks the value of a key; "" means none.
func (s *tester) expect(key oauth.StoreKey, want string) {
	s.t.Helper()
	got, err := s.store.Load(s.ctx, key)
	if err != nil || string(got) != want {
		s.t.Errorf("Load(%v) = %q, %v; want %q", key, got, err, want)
	}
	if want == "" && got != nil {
		s.t.Errorf("Load(%v) is not nil, but no value is stored", key)
	}
}

// values tests that values can be saved, replaced, and removed.
func values(s *tester) {
	key := oauth.StoreKey{Issuer: "https://login.example", Resource: "https://mcp.example/mcp"}
	s.expect(key, "")
	s.save(key, []byte("first"))
	s.expect(key, "first")
	long := bytes.Repeat([]byte("long\x00\n\xff"), 10_000)
	s.save(key, long)
	s.expect(key, string(long))
	s.save(key, []byte("short"))
	s.expect(key, "short")
	s.save(key, nil)
	s.expect(key, "")
	s.save(key, nil)
}

// keys tests that keys that differ in any way are distinct.
func keys(s *tester) {
	all := []oauth.StoreKey{
		{Issuer: "https://login.example"},
		{Issuer: "https://login.example/"},
		{Issuer: "https://LOGIN.example"},
		{Issuer: "https://login.example", Resource: "https://mcp.example"},
		{Issuer: "https://login.example", Resource: "https://mcp.example/../x?y=%2F"},
		{Issuer: "https://login.examplehttps://mcp.example"},
		{Issuer: "https://mcp.example", Resource: "https://login.example"},
	}
	for i, key := range all {
		s.save(key, fmt.Append(nil, "value ", i))
	}
	s.save(all[1], nil)
	for i, key := range all {
		if i != 1 {
			s.expect(key, fmt.Sprint("value ", i))
		}
	}
	s.expect(all[1], "")
}

// ownership tests that the caller keeps ownership of slices.
func ownership(s *tester) {
	key, value := oauth.StoreKey{Issuer: "https://login.example"}, []byte("value")
	s.save(key, value)
	value[0] = 'X'
	s.expect(key, "value")
	got, err := s.store.Load(s.ctx, key)
	if err != nil || len(got) == 0 {
		s.t.Fatalf("Load: %q, %v", got, err)
	}
	got[0] = 'X'
	s.expect(key, "value")
}

// concurrency tests that Load returns only complete values, even during concurrent calls of
// Save.
func concurrency(s *tester) {
	key := oauth.StoreKey{Issuer: "https://login.example"}
	s.save(key, bytes.Repeat([]byte("0"), 4096))
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 20 {
				if err := s.store.Save(s.ctx, key, bytes.Repeat([]byte{'0' + byte(i)}, 4096)); err != nil {
					s.t.Errorf("Save: %v", err)
				}
				got, err := s.store.Load(s.ctx, key)
				if err != nil || len(got) != 4096 || len(bytes.Trim(got, string(got[:1]))) != 0 {
					s.t.Errorf("Load: %d bytes that were not saved together, %v", len(got), err)
				}
			}
		})
	}
	group.Wait()
}
