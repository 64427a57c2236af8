// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

// metered is a store that counts what is written to it, and can be down.
type metered struct {
	*store.Memory

	mu    sync.Mutex
	bytes int
	down  bool
}

var errDown = errors.New("the store is down")

func newMetered() *metered { return &metered{Memory: store.NewMemory(nil)} }

func (m *metered) count(n int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes += n
	if m.down {
		return errDown
	}
	return nil
}

// written is how many bytes were written while it ran.
func (m *metered) written(while func()) int {
	_ = m.count(0)
	m.mu.Lock()
	before := m.bytes
	m.mu.Unlock()
	while()
	synctest.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bytes - before
}

func (m *metered) fail(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
}

func (m *metered) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if err := m.count(len(value)); err != nil {
		return 0, err
	}
	return m.Memory.Put(ctx, key, value, version, ttl)
}

func (m *metered) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := m.count(0); err != nil {
		return nil, 0, err
	}
	return m.Memory.Get(ctx, key)
}

func (m *metered) Take(ctx context.Context, key string) ([]byte, error) {
	if err := m.count(0); err != nil {
		return nil, err
	}
	return m.Memory.Take(ctx, key)
}

func (m *metered) Append(ctx context.Context, log string, data []byte, keep store.Retention) (uint64, error) {
	if err := m.count(len(data)); err != nil {
		return 0, err
	}
	return m.Memory.Append(ctx, log, data, keep)
}

func (m *metered) Publish(ctx context.Context, topic string, message []byte) error {
	if topic == "psi/alive" { // of the process, not of what a client does
		return m.Memory.Publish(ctx, topic, message)
	}
	if err := m.count(len(message)); err != nil {
		return err
	}
	return m.Memory.Publish(ctx, topic, message)
}

func (m *metered) Drop(ctx context.Context, log string) error {
	if err := m.count(0); err != nil {
		return err
	}
	return m.Memory.Drop(ctx, log)
}

// meteredTwins are two replicas that share a store.
func meteredTwins(t *testing.T) (one, two *site, shared *metered) {
	t.Helper()
	shared = newMetered()
	return serve(t, newHandler(t, tools(), optionsWith(shared))), serve(t, newHandler(t, tools(), optionsWith(shared))), shared
}

func questionID(t *testing.T, message string) string {
	t.Helper()
	var question struct{ ID string }
	if err := json.Unmarshal([]byte(message), &question); err != nil {
		t.Fatal(err)
	}
	return question.ID
}

func answer(id, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":%s}`, id, result)
}

// S17: an answer that was not asked for is not relayed to other replicas, and neither is a second
// answer to a question.
func TestFindingS17UnsolicitedAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, shared := meteredTwins(t)
		session := one.open("2025-11-25")
		id := questionID(t, read(t, one.post(call(1, "ask"), session)).message())
		whole(t, two.post(call(2, "hello"), session)) // it knows the session now
		huge := `{"action":"accept","content":{"name":"` + strings.Repeat("x", 1<<20) + `"}}`
		ids := []string{"1", "", "psi-1", id + "0", id[:len(id)-1], strings.Repeat("x", 1000), "../" + id}
		if n := shared.written(func() {
			for _, s := range []*site{one, two} {
				for _, wrong := range ids {
					if got := s.post(answer(wrong, huge), session).StatusCode; got != http.StatusAccepted {
						t.Errorf("an answer to nothing: %d", got)
					}
				}
			}
		}); n != 0 {
			t.Errorf("%d bytes were written for answers to nothing", n)
		}
		other := one.open("2025-11-25")
		if n := shared.written(func() { two.post(answer(id, `{"action":"decline"}`), other) }); n != 0 {
			t.Errorf("%d bytes were written for the answer of another session", n)
		}
		if n := shared.written(func() { two.post(answer(id, `{"action":"decline"}`), session) }); n == 0 {
			t.Error("the answer was not passed on")
		}
		if n := shared.written(func() { two.post(answer(id, huge), session) }); n != 0 {
			t.Errorf("%d bytes were written for a second answer", n)
		}
		one.close()
		two.close()
	})
}

// S17: an answer that is too long for the replicas is an error for the tool that asked,
// which does not wait any longer.
func TestFindingS17LongAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, shared := meteredTwins(t)
		session := one.open("2025-11-25")
		asking := read(t, one.post(call(1, "ask"), session))
		id := questionID(t, asking.message())
		n := shared.written(func() {
			two.post(answer(id, `{"action":"accept","content":{"name":"`+strings.Repeat("x", 2<<20)+`"}}`), session)
		})
		if n > 64<<10 {
			t.Errorf("%d bytes were written", n)
		}
		if got := asking.message(); !strings.Contains(got, "passed on") {
			t.Errorf("the tool answered %s", got)
		}
		one.close()
	})
}

// S17: the answer to a question is passed on wherever it was asked: in a call, and on the
// session's own stream.
func TestFindingS17Pings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		first := newHandler(t, tools(), optionsWith(shared))
		one, two := serve(t, first), serve(t, newHandler(t, tools(), optionsWith(shared)))
		session := one.open("2025-11-25")
		own := read(t, one.do(one.request(t.Context(), http.MethodGet, "", session)))
		own.next()
		for s := range first.Sessions() {
			pinged := make(chan error, 1)
			go func() { pinged <- s.Ping(t.Context()) }()
			two.post(answer(questionID(t, own.message()), `{}`), session)
			if err := within(t, time.Minute, "the end of the ping", pinged); err != nil {
				t.Error(err)
			}
		}
		one.close()
	})
}

// S17: cancellations are passed on, without being stored, as far as a client that means
// them may have use for it.
func TestFindingS17Cancellations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newMetered()
		mux := tools()
		began, ended := waiting(mux)
		one, two := serve(t, newHandler(t, mux, optionsWith(shared))), serve(t, newHandler(t, tools(), optionsWith(shared)))
		session := one.open("2025-11-25")
		cancel := func(id, reason string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":%q,"more":%q}}`, id, reason, reason)
		}
		go func() { _ = one.post(call(1, "wait"), session).Body.Close() }()
		<-began
		two.post(cancel("1", strings.Repeat("é", 1<<20)), session)
		if got, ok := errors.AsType[*mcp.CancelError](within(t, time.Minute, "the cancellation", ended)); !ok || got.Reason == "" || len(got.Reason) > 1000 {
			t.Errorf("cancelled by %v", got)
		}
		if n := shared.written(func() { two.post(cancel(`"`+strings.Repeat("x", 10_000)+`"`, ""), session) }); n != 0 {
			t.Errorf("%d bytes were written for an id that no request has", n)
		}
		if n := shared.written(func() {
			for i := range 1000 {
				two.post(cancel(fmt.Sprint(i), strings.Repeat("x", 10_000)), session)
			}
		}); n > 64<<10 {
			t.Errorf("%d bytes were written for a flood of cancellations", n)
		}
		one.close()
	})
}

// S30: log lines name sessions by a digest.
func TestFindingS30LogsWithoutSessionIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log logged
		shared := newMetered()
		serveLogged := func(name string) *site {
			h := newHandler(t, tools(), &mcphttp.Options{
				Store: shared, Logger: slog.New(slog.NewTextHandler(&log, nil)).With("replica", name), SessionIdle: time.Hour, KeepAlive: time.Minute, Heartbeat: -1,
			})
			return serve(t, h)
		}
		one, two, three := serveLogged("one"), serveLogged("two"), serveLogged("three")
		session := one.open("2025-11-25")
		asking := read(t, one.post(call(1, "ask"), session))
		id := questionID(t, asking.message())
		whole(t, two.post(call(2, "steps"), session))
		read(t, one.do(one.request(t.Context(), http.MethodGet, "", session))).next()
		shared.fail(true)
		whole(t, one.post(`{"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"error"}}`, session))
		whole(t, one.post(call(4, "steps"), session))
		two.post(answer(id, `{"action":"decline"}`), session)
		three.post(call(5, "hello"), session)
		shared.fail(false)
		<-time.After(3*time.Minute + 30*time.Second) // the client answers no ping
		shared.fail(true)
		<-time.After(45 * time.Minute) // the session is kept alive
		synctest.Wait()
		two.do(two.request(t.Context(), http.MethodDelete, "", session))
		synctest.Wait()
		for _, want := range []string{
			"a session was not saved", "an event was not kept,", "an answer was not relayed", "a session was not restored", "a session was not kept alive",
			"a session was not removed", "events were not removed", "the client does not answer",
		} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("no line says %q", want)
			}
		}
		if got := log.String(); strings.Contains(got, session["Mcp-Session-Id"]) || !strings.Contains(got, "session=") {
			t.Errorf("the log has the session's id, or none:\n%s", got)
		}
		for _, s := range []*site{one, two, three} {
			s.close()
		}
	})
}
