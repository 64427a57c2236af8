// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp/oauth"
)

var sharedKey = bytes.Repeat([]byte("k"), 32)

func newShared(values store.Values) *oauth.SharedStore {
	return oauth.NewSharedStore(values, sharedKey)
}

// Transports that share a store never use a refresh token twice, in one process or in several.
func TestProcessesRefreshOnce(t *testing.T) {
	values, memory, dir := store.NewMemory(nil), oauth.NewMemoryStore(), t.TempDir()
	for name, open := range map[string]func() oauth.Store{
		"shared": func() oauth.Store { return newShared(values) },
		"memory": func() oauth.Store { return memory },
		"file":   func() oauth.Store { return oauth.NewFileStore(dir) },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "file" && runtime.GOOS == "windows" {
				t.Skip("there are no locks of files here")
			}
			synctest.Test(t, func(t *testing.T) { refreshAtOnce(t, open) })
		})
	}
}

// refreshAtOnce has three transports refresh the same token concurrently.
func refreshAtOnce(t *testing.T, open func() oauth.Store) {
	w := newWorld(t)
	w.login.refresh = "r"
	var processes []*oauth.Transport
	for range 3 {
		rt := w.transport(&oauth.Options{Store: open()})
		w.mustPost(rt, "", served)
		processes = append(processes, rt)
	}
	w.wantAuthorizations(1)
	w.login.revoke()
	var attempts atomic.Int32
	w.login.token = func(http.ResponseWriter, *http.Request) bool {
		attempts.Add(1)
		<-time.After(time.Second)
		return false
	}
	var group sync.WaitGroup
	for _, rt := range processes {
		group.Go(func() {
			if got, err := post(t.Context(), rt, "", "hello"); err != nil || got != served {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	group.Wait()
	if n := attempts.Load(); n != 1 {
		t.Errorf("the refresh token was used %d times, want 1", n)
	}
	w.wantAuthorizations(1)
}

// A lock whose owner has died is released after a minute. Before that, the owner learns that
// it may have lost the lock.
func TestLockExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, key, began := newShared(store.NewMemory(nil)), oauth.StoreKey{Issuer: "https://login.example"}, time.Now()
		held, _, err := s.Lock(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		_, unlock, err := s.Lock(t.Context(), key)
		if waited := time.Since(began); err != nil || waited < time.Minute || waited > 61*time.Second {
			t.Errorf("Lock: %v after %v", err, waited)
		}
		if held.Err() == nil {
			t.Error("two hold the lock")
		}
		unlock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, unlock, err = s.Lock(ctx, key)
		if err != nil {
			t.Fatalf("Lock after unlock: %v", err)
		}
		defer unlock()
		if _, _, err := s.Lock(ctx, key); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Lock of what is locked: %v", err)
		}
	})
}

// Values are unreadable to anyone with access to the engine, and keys can be rotated.
func TestSharedStoreEncrypts(t *testing.T) {
	values, key, ctx := &recorded{Values: store.NewMemory(nil)}, oauth.StoreKey{Issuer: "https://login.example"}, t.Context()
	if err := newShared(values).Save(ctx, key, []byte("secret")); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(values.text, "secret") || strings.Contains(values.text, "login.example") {
		t.Errorf("the engine has %q", values.text)
	}
	other := bytes.Repeat([]byte("o"), 32)
	if got, err := oauth.NewSharedStore(values, other, sharedKey).Load(ctx, key); string(got) != "secret" || err != nil {
		t.Errorf("Load with a new key and the old one: %q, %v", got, err)
	}
	if got, err := oauth.NewSharedStore(values, other).Load(ctx, key); err == nil {
		t.Errorf("Load without the key: %q", got)
	}
}

// recorded records the values that are stored.
type recorded struct {
	store.Values

	text string
}

func (r *recorded) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	r.text += key + string(value)
	return r.Values.Put(ctx, key, value, version, ttl)
}
