// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/internal/cutproxy"
	"github.com/go-psi/psi/mcp/store/redisstore"
	"github.com/go-psi/psi/mcp/store/storetest"
)

func TestCutConnections(t *testing.T) {
	p, err := cutproxy.New(start(t).address())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := open(t, connect(t, p.Address()), nil)
	failed := storetest.Disturb(t, s, func() {
		for range 20 {
			wait(100 * time.Millisecond)
			p.Cut()
		}
	})
	if failed > 0.05 { // failed writes whose traces the next write hides; a busy machine completes few other steps
		t.Errorf("%.2f %% of the steps failed, although the server was always there", 100*failed)
	}
}

// A server that persists every write before it responds is killed and restarted.
func TestKilledServer(t *testing.T) {
	srv := start(t, "--appendonly", "yes", "--appendfsync", "always")
	s := open(t, connect(t, srv.address()), nil)
	failed := storetest.Disturb(t, s, func() {
		for range 3 {
			wait(500 * time.Millisecond)
			srv.kill()
			wait(200 * time.Millisecond)
			srv.run()
		}
	})
	if failed > 0.1 { // three times the operations in flight; a busy machine completes few steps meanwhile
		t.Errorf("%.2f %% of the steps failed", 100*failed)
	}
}

func TestServerThatIsDown(t *testing.T) {
	srv := start(t)
	s := open(t, connect(t, srv.address()), &redisstore.Options{Timeout: time.Second})
	srv.kill()
	for range 2 { // in the second round, the server has been down for longer than Timeout
		for name, step := range steps(t.Context(), s) {
			began := time.Now()
			if err := step(); err == nil || !strings.Contains(err.Error(), "redisstore: no") || time.Since(began) > 5*time.Second {
				t.Errorf("%s: error %v after %v", name, err, time.Since(began))
			}
		}
	}
	began := time.Now()
	if _, _, err := s.Get(t.Context(), "key"); err == nil || time.Since(began) > 2*time.Second {
		t.Errorf("Get after a long time without a server: error %v after %v, want one after one attempt", err, time.Since(began))
	}
	srv.run()
	_, _, err := s.Get(t.Context(), "key")
	wantError(t, "Get when the server is back", err, store.ErrNotFound)
}

// The caller's context limits how long operations wait for a server that does not respond.
func TestContextEnds(t *testing.T) {
	srv := start(t)
	s := open(t, connect(t, srv.address()), nil)
	srv.kill()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for name, step := range steps(ctx, s) {
		wantError(t, name, step(), context.DeadlineExceeded)
	}
}

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: error %v, want %v", what, err, want)
	}
}

// Servers with different namespaces share an engine without seeing each other's data.
func TestNamespaces(t *testing.T) {
	client := connect(t, start(t).address())
	one, two := open(t, client, &redisstore.Options{Namespace: "one"}), open(t, client, &redisstore.Options{Namespace: "two"})
	ctx := t.Context()
	sub, err := two.Subscribe(ctx, "topic")
	wantError(t, "Subscribe", err, nil)
	defer sub.Close()
	_, err = one.Put(ctx, "key", []byte("of one"), 0, 0)
	wantError(t, "Put", err, nil)
	wantError(t, "Publish", one.Publish(ctx, "topic", []byte("of one")), nil)

	_, _, err = two.Get(ctx, "key")
	wantError(t, "Get of a key of another namespace", err, store.ErrNotFound)
	wantError(t, "Publish", two.Publish(ctx, "topic", []byte("of two")), nil)
	if message, err := sub.Next(ctx); string(message) != "of two" || err != nil {
		t.Errorf("Next: %q, %v", message, err)
	}
}

// A full store rejects new values, but values can still be taken from it.
func TestFullStore(t *testing.T) {
	s := open(t, connect(t, start(t, "--maxmemory", "8mb").address()), &redisstore.Options{Timeout: time.Second})
	ctx := t.Context()
	_, err := s.Put(ctx, "key", make([]byte, 1<<20+1), 0, 0)
	wantError(t, "Put of a large value", err, store.ErrTooLarge)
	wantError(t, "Publish of a large message", s.Publish(ctx, "topic", make([]byte, 1<<20+1)), store.ErrTooLarge)

	keys := 0
	for err = nil; err == nil; keys++ {
		_, err = s.Put(ctx, fmt.Sprint("key", keys), make([]byte, 50_000), 0, 0)
	}
	wantError(t, "Put into a full store", err, store.ErrFull)
	for i := range keys - 1 {
		value, err := s.Take(ctx, fmt.Sprint("key", i))
		if len(value) != 50_000 || err != nil {
			t.Fatalf("Take from a full store: %d bytes, %v", len(value), err)
		}
	}
	for giveUp := time.Now().Add(patience); time.Now().Before(giveUp); wait(50 * time.Millisecond) {
		if _, err = s.Put(ctx, "new", make([]byte, 50_000), 0, 0); err == nil {
			break
		}
	}
	wantError(t, "Put when all values were taken", err, nil)
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	client := connect(t, start(t, "--maxmemory-policy", "allkeys-lru").address())
	for name, test := range map[string]struct {
		opts redisstore.Options
		want string
	}{
		"namespace": {redisstore.Options{Namespace: "{a}"}, `the namespace "{a}" must have 1 to 64 letters`},
		"negative":  {redisstore.Options{Timeout: -1}, "an option is negative"},
		"eviction":  {redisstore.Options{}, "maxmemory-policy allkeys-lru): set it to noeviction"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := redisstore.Open(t.Context(), client, &test.opts)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open: error %v, want %q", err, test.want)
			}
		})
	}
}

// A killing client kills its server before the command INFO.
type killing struct {
	rueidis.Client

	kill func()
}

func (k killing) Do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	if cmd.Commands()[0] == "INFO" {
		k.kill()
	}
	return k.Client.Do(ctx, cmd)
}

// A server that does not answer is not taken for one that the user may not query.
func TestOpenWithoutAnAnswer(t *testing.T) {
	srv := start(t)
	client := killing{connect(t, srv.address()), srv.kill}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if s, err := redisstore.Open(ctx, client, nil); err == nil {
		_ = s.Close()
		t.Error("Open succeeded although the memory policy is unknown")
	}
}

func TestReadOnly(t *testing.T) {
	srv := start(t)
	s := open(t, connect(t, srv.address()), nil)
	srv.command("REPLICAOF", "127.0.0.1", "1")
	_, _, err := s.Get(t.Context(), "key")
	wantError(t, "Get", err, store.ErrNotFound)
	_, err = s.Put(t.Context(), "key", nil, 0, 0)
	if err == nil || !strings.Contains(err.Error(), "redisstore: the server accepts no writes: READONLY") {
		t.Errorf("Put on a replica: %v", err)
	}
}

// The ACL rules in the package documentation are sufficient for all operations.
func TestAccessControl(t *testing.T) {
	srv := start(t)
	srv.command("ACL", "SETUSER", "psi", "on", ">secret", "resetchannels", "~psi:*", "&psi:*", "+@read", "+@write", "+@scripting", "+@pubsub", "+@connection", "+time", "+info")
	option := rueidis.ClientOption{InitAddress: []string{srv.address()}, Username: "psi", Password: "secret", DisableCache: true}
	client := connectAs(t, option)
	storetest.Run(t, func(t *testing.T) store.Store { return open(t, client, nil) })
	_, err := redisstore.Open(t.Context(), client, &redisstore.Options{Namespace: "other"})
	wantError(t, "Open", err, nil)
	other := open(t, client, &redisstore.Options{Namespace: "other"})
	if _, err := other.Put(t.Context(), "key", nil, 0, 0); err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("Put in the namespace of others: %v", err)
	}
}
