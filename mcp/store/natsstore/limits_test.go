// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/natsstore"
)

func wantError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%s: error %v, want %v", what, err, want)
	}
}

// Servers with different namespaces share an engine without seeing each other's data.
func TestNamespaces(t *testing.T) {
	nc := connect(t, single(t).ClientURL())
	one, two := open(t, nc, &natsstore.Options{Namespace: "one"}), open(t, nc, &natsstore.Options{Namespace: "two"})
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

func TestLimits(t *testing.T) {
	srv := start(t, nodeOptions{StoreDir: t.TempDir(), MaxPayload: 10_000})
	s := open(t, connect(t, srv.ClientURL()), &natsstore.Options{MaxBytes: 100_000})
	ctx, large := t.Context(), make([]byte, 10_001)
	_, err := s.Put(ctx, "key", large, 0, 0)
	wantError(t, "Put of a large value", err, store.ErrTooLarge)
	wantError(t, "Publish of a large message", s.Publish(ctx, "topic", large), store.ErrTooLarge)
}

// A full store rejects new values, but values can still be taken from it.
func TestFullStore(t *testing.T) {
	c := newCluster(t)
	for name, test := range map[string]struct {
		url      string
		replicas int
	}{"one server": {single(t).ClientURL(), 1}, "cluster": {c.urls(), 3}} {
		t.Run(name, func(t *testing.T) {
			s := open(t, connect(t, test.url), &natsstore.Options{MaxBytes: 100_000, Replicas: test.replicas})
			var err error
			var keys []string
			for err == nil {
				key := fmt.Sprintf("key-%d", len(keys))
				if _, err = s.Put(t.Context(), key, []byte("small"), 0, 0); err == nil {
					keys = append(keys, key)
				}
			}
			wantError(t, "Put into a full store", err, store.ErrFull)
			for _, key := range keys {
				value, err := s.Take(t.Context(), key)
				if err != nil || string(value) != "small" {
					t.Fatalf("Take from a full store: %q, %v", value, err)
				}
				_, err = s.Take(t.Context(), key)
				wantError(t, "second Take", err, store.ErrNotFound)
			}
			for giveUp := time.Now().Add(patience); ; wait(50 * time.Millisecond) { // until the markers have expired
				if _, err = s.Put(t.Context(), "new", make([]byte, 90_000), 0, 0); err == nil || time.Now().After(giveUp) {
					break
				}
			}
			wantError(t, "Put when all values were taken", err, nil)
		})
	}
}

// The longest TTL does not expire in the past.
func TestLongestTTL(t *testing.T) {
	s := open(t, connect(t, single(t).ClientURL()), nil)
	_, err := s.Put(t.Context(), "key", []byte("value"), 0, math.MaxInt64)
	wantError(t, "Put", err, nil)
	<-time.After(1500 * time.Millisecond) // servers check for expiry every second
	_, _, err = s.Get(t.Context(), "key")
	wantError(t, "Get", err, nil)
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	nc := connect(t, single(t).ClientURL())
	js, err := jetstream.New(nc)
	wantError(t, "JetStream", err, nil)
	broken, err := natsstore.StreamConfig(&natsstore.Options{Namespace: "other"})
	wantError(t, "StreamConfig", err, nil)
	broken.Name, broken.Subjects, broken.AllowMsgTTL, broken.Discard = "KV_broken", []string{"$KV.broken.>"}, false, jetstream.DiscardOld
	_, err = js.CreateStream(t.Context(), broken)
	wantError(t, "CreateStream", err, nil)

	plain := start(t, nodeOptions{})
	for name, test := range map[string]struct {
		nc   *nats.Conn
		opts natsstore.Options
		want string
	}{
		"namespace":    {nc, natsstore.Options{Namespace: "a.b"}, `the namespace "a.b" must have 1 to 64 letters`},
		"negative":     {nc, natsstore.Options{MaxBytes: -1}, "an option is negative"},
		"timeout":      {nc, natsstore.Options{Timeout: time.Hour}, "at most 30s"},
		"replicas":     {nc, natsstore.Options{Replicas: 3}, "KV_psi cannot be opened or created (1073741824 bytes, 3 replicas"},
		"stream":       {nc, natsstore.Options{Namespace: "broken"}, "the stream KV_broken cannot be used: it does not allow messages with a TTL, which need NATS 2.11 or later (allow_msg_ttl); it discards old messages"},
		"no JetStream": {connect(t, plain.ClientURL()), natsstore.Options{Timeout: time.Second}, "natsstore: the stream KV_psi cannot be opened"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := natsstore.Open(t.Context(), test.nc, &test.opts)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Open: error %v, want %q", err, test.want)
			}
		})
	}
}

// If its context expires, Open also returns the last error. Without JetStream, which a full
// disk disables, no server responds.
func TestOpenGivesUp(t *testing.T) {
	nc := connect(t, start(t, nodeOptions{}).ClientURL())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := natsstore.Open(ctx, nc, nil)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("Open: %v", err)
	}
}

// A user with read-only access promptly gets an error about the missing permission.
func TestReadOnly(t *testing.T) {
	writer := &server.User{Username: "writer", Password: "w"}
	reader := &server.User{Username: "reader", Password: "r", Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Deny: []string{"$KV.>", "psi.>"}},
	}}
	srv := start(t, nodeOptions{StoreDir: t.TempDir(), Users: []*server.User{writer, reader}})
	address := strings.TrimPrefix(srv.ClientURL(), "nats://")
	all := open(t, connect(t, "nats://writer:w@"+address), nil)
	_, err := all.Put(t.Context(), "key", []byte("value"), 0, 0)
	wantError(t, "Put", err, nil)

	s := open(t, connect(t, "nats://reader:r@"+address), &natsstore.Options{Timeout: time.Second})
	value, _, err := s.Get(t.Context(), "key")
	if string(value) != "value" || err != nil {
		t.Errorf("Get: %q, %v", value, err)
	}
	for name, write := range map[string]func() error{
		"Put":  func() error { _, err := s.Put(t.Context(), "new", nil, 0, 0); return err },
		"Take": func() error { _, err := s.Take(t.Context(), "key"); return err },
	} {
		began := time.Now()
		if err := write(); err == nil || !strings.Contains(strings.ToLower(err.Error()), "permission") || time.Since(began) > 5*time.Second {
			t.Errorf("%s without permission: error %v after %v", name, err, time.Since(began))
		}
	}
}

// The caller's context limits how long operations wait for a server that does not respond.
func TestContextEnds(t *testing.T) {
	srv := single(t)
	s := open(t, connect(t, srv.ClientURL()), nil)
	srv.kill()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	for name, step := range steps(ctx, s) {
		wantError(t, name, step(), context.DeadlineExceeded)
	}
}
