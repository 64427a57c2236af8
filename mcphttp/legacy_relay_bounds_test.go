// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

// An answer of a MiB is relayed to the replica that asked, and no longer one.
func TestRelayedAnswerBounds(t *testing.T) {
	const empty = `{"action":"accept","content":{"name":""}}`
	for size, relayed := range map[int]bool{1 << 20: true, 1<<20 + 1: false} {
		synctest.Test(t, func(t *testing.T) {
			one, two, shared := meteredTwins(t)
			session := one.open("2025-11-25")
			asking := read(t, one.post(call(1, "ask"), session))
			id := questionID(t, asking.message())
			n := shared.written(func() {
				two.post(answer(id, strings.Replace(empty, `""`, `"`+strings.Repeat("x", size-len(empty))+`"`, 1)), session)
			})
			if (n > size) != relayed || strings.Contains(asking.message(), "passed on") == relayed {
				t.Errorf("%d bytes: %d bytes were written", size, n)
			}
			one.close()
			two.close()
		})
	}
}

// A cancellation is relayed if its request has an ID of 256 bytes at most, with 200 bytes
// of its reason. A session may send a hundred in a minute.
func TestRelayedCancellationBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, shared := meteredTwins(t)
		session := one.open("2025-11-25")
		whole(t, two.post(call(2, "hello"), session)) // it knows the session now
		cancel := func(id, reason string) int {
			return shared.written(func() {
				two.post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%q,"reason":%q}}`, id, reason), session)
			})
		}
		for size, relayed := range map[int]bool{254: true, 255: false} { // and its quotation marks
			if n := cancel(strings.Repeat("x", size), ""); (n > 0) != relayed {
				t.Errorf("an ID of %d bytes: %d bytes were written", size, n)
			}
		}
		short := cancel("x", strings.Repeat("r", 199))
		for size, more := range map[int]int{199: 0, 200: 1, 201: 1, 1000: 1} {
			if n := cancel("x", strings.Repeat("r", size)); n != short+more {
				t.Errorf("a reason of %d bytes: %d bytes were written, and %d with one of 199", size, n, short)
			}
		}
		pass(time.Minute)
		for i := range 101 {
			if n := cancel("x", ""); (n > 0) != (i < 100) {
				t.Errorf("number %d: %d bytes were written", i, n)
			}
		}
		pass(time.Minute - 1)
		if n := cancel("x", ""); n != 0 {
			t.Error("one more in the minute was relayed")
		}
		pass(1)
		if n := cancel("x", ""); n == 0 {
			t.Error("none was relayed in the next minute")
		}
		one.close()
		two.close()
	})
}

// pass lets time pass.
func pass(d time.Duration) { <-time.After(d) }

// A replica whose last session has ended receives the answers of the next one.
func TestRelayAfterTheLastSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, _ := meteredTwins(t)
		for range 2 {
			session := one.open("2025-11-25")
			asking := read(t, one.post(call(1, "ask"), session))
			for range 2 {
				two.post(answer(questionID(t, asking.message()), `{"action":"accept","content":{"name":"x"}}`), session)
			}
			if got := within(t, time.Minute, "the result", messages(asking)); !strings.Contains(got, "x x") {
				t.Errorf("the result is %s", got)
			}
			one.do(one.request(t.Context(), http.MethodDelete, "", session))
			synctest.Wait()
		}
		one.close()
		two.close()
	})
}

func messages(r *reader) <-chan string {
	next := make(chan string, 1)
	go func() { next <- r.message() }()
	return next
}

// stuck is a store that does not answer, once it is told so.
type stuck struct {
	*store.Memory
	isStuck, isBroken atomic.Bool
}

func (s *stuck) wait(ctx context.Context) error {
	switch {
	case s.isStuck.Load():
		<-ctx.Done()
		return ctx.Err()
	case s.isBroken.Load():
		return errDown
	}
	return nil
}

func (s *stuck) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := s.wait(ctx); err != nil {
		return nil, 0, err
	}
	return s.Memory.Get(ctx, key)
}

func (s *stuck) Take(ctx context.Context, key string) ([]byte, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return s.Memory.Take(ctx, key)
}

func (s *stuck) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if err := s.wait(ctx); err != nil {
		return 0, err
	}
	return s.Memory.Put(ctx, key, value, version, ttl)
}

func (s *stuck) Read(ctx context.Context, log string, position uint64, limit int) ([]store.Record, error) {
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	return s.Memory.Read(ctx, log, position, limit)
}

// A store has ten seconds to take an answer. Otherwise that is logged, and the client is told
// to send its answer again.
func TestRelayToStuckStore(t *testing.T) {
	for name, took := range map[string]time.Duration{"stuck": 10 * time.Second, "broken": 0} {
		synctest.Test(t, func(t *testing.T) {
			shared := &stuck{Memory: store.NewMemory(nil)}
			var log bytes.Buffer
			h := newHandler(t, tools(), &mcphttp.Options{Store: shared, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			s := serve(t, h)
			session := s.open("2025-11-25")
			shared.isStuck.Store(name == "stuck")
			shared.isBroken.Store(true)
			began := time.Now()
			if got := s.post(answer("x", `{}`), session).StatusCode; got != http.StatusServiceUnavailable {
				t.Errorf("%s: got %d", name, got)
			}
			if got := time.Since(began); got != took || !strings.Contains(log.String(), "was not relayed") {
				t.Errorf("%s: after %v, with the log %s", name, got, log.String())
			}
			shared.isStuck.Store(false)
			shared.isBroken.Store(false)
			_ = h.Shutdown(t.Context())
			s.close()
		})
	}
}

// Events that cannot be read are not replayed, and the client learns that it should try
// again later.
func TestResumeWithBrokenStore(t *testing.T) {
	for _, inFlight := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			shared := &stuck{Memory: store.NewMemory(nil)}
			mux := tools()
			began, _ := waiting(mux)
			mux.Tool("stepwait", mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
				mcp.Progress(ctx, 1, 2, "")
				began <- struct{}{}
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}))
			s := serve(t, newHandler(t, mux, optionsWith(shared)))
			session := s.open("2025-11-25")
			name := map[bool]string{true: "stepwait", false: "steps"}[inFlight]
			events := read(t, s.post(call(1, name), session))
			first, ok := events.next()
			if !ok || first.LastEventID == "" {
				t.Fatalf("the first event is %+v", first)
			}
			if !inFlight {
				for _, ok := events.next(); ok; _, ok = events.next() { // until the stream is done
				}
			}
			shared.isBroken.Store(true)
			res := s.do(s.request(t.Context(), http.MethodGet, "", with(session, header{"Last-Event-ID": first.LastEventID})))
			if res.StatusCode != http.StatusServiceUnavailable {
				t.Errorf("in flight %t: got %d", inFlight, res.StatusCode)
			}
			shared.isBroken.Store(false)
			res = s.do(s.request(t.Context(), http.MethodGet, "", with(session, header{"Last-Event-ID": first.LastEventID})))
			if res.StatusCode != http.StatusOK {
				t.Errorf("in flight %t, later: got %d", inFlight, res.StatusCode)
			}
			s.close()
		})
	}
}

// A session that another replica has opened has streams that can be resumed like any other.
func TestResumeAtAdoptingReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, _ := meteredTwins(t)
		session := one.open("2025-11-25")
		events := read(t, two.post(call(1, "steps"), session))
		first, ok := events.next()
		if !ok || first.LastEventID == "" {
			t.Fatalf("the first event is %+v", first)
		}
		for _, s := range []*site{one, two} {
			resumed := read(t, s.do(s.request(t.Context(), http.MethodGet, "", with(session, header{"Last-Event-ID": first.LastEventID}))))
			for n, want := range []string{`"progress":0`, `"progress":1`, `"progress":2`, `"done"`} {
				if got := within(t, time.Minute, "an event", messages(resumed)); !strings.Contains(got, want) {
					t.Errorf("event %d is %s", n, got)
				}
			}
		}
		one.close()
		two.close()
	})
}

// While Shutdown waits for a request, only what helps it to end is accepted.
func TestShutdownAcceptsHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		h := newHandler(t, mux, nil)
		s := serve(t, h)
		session := s.open("2025-11-25")
		asking := read(t, s.post(call(1, "ask"), session))
		id := questionID(t, asking.message())
		over := make(chan error, 1)
		go func() { over <- h.Shutdown(context.Background()) }()
		synctest.Wait()
		note := func(method string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"requestId":99,"progressToken":1,"progress":1}}`, method)
		}
		for _, c := range []struct {
			body   string
			header header
			status int
		}{
			{note("notifications/progress"), session, 503},
			{note("notifications/initialized"), session, 503},
			{strings.Replace(note("notifications/cancelled"), `"method"`, `"id":7,"method"`, 1), session, 503},
			{call(2, "hello"), session, 503},
			{`{`, session, 503},
			{note("notifications/cancelled"), nil, 503},
			{note("notifications/cancelled"), with(session, header{"Mcp-Session-Id": "other"}), 503},
			{note("notifications/cancelled"), session, 202},
			{answer(id, `{"action":"decline"}`), session, 202},
		} {
			if got := s.post(c.body, c.header).StatusCode; got != c.status {
				t.Errorf("%s of %v: got %d, want %d", c.body, c.header, got, c.status)
			}
		}
		if err := within(t, time.Minute, "the end of Shutdown", over); err != nil && !errors.Is(err, mcp.ErrClosed) {
			t.Error(err)
		}
		s.close()
	})
}

// A client that waits at one replica for what another one sends is kept by heartbeats,
// from the start.
func TestFollowedStreamBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		mux := tools()
		began, _ := waiting(mux)
		mux.Tool("slow", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			mcp.Progress(ctx, 1, 2, "")
			began <- struct{}{}
			<-time.After(time.Minute)
			return "done", nil
		}, nil))
		one := serve(t, newHandler(t, mux, &mcphttp.Options{Store: shared, Heartbeat: -1}))
		two := serve(t, newHandler(t, tools(), &mcphttp.Options{Store: shared, Heartbeat: 20 * time.Second}))
		session := one.open("2025-11-25")
		first, ok := read(t, one.post(call(1, "slow"), session)).next()
		if !ok || first.LastEventID == "" {
			t.Fatalf("the first event is %+v", first)
		}
		<-began
		res := two.do(two.request(t.Context(), http.MethodGet, "", with(session, header{"Last-Event-ID": first.LastEventID})))
		text := make([]byte, 1<<16)
		var log strings.Builder
		start := time.Now()
		for !strings.Contains(log.String(), "done") {
			n, err := res.Body.Read(text)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text[:n])) {
				if strings.HasPrefix(line, ":") {
					fmt.Fprint(&log, time.Since(start), " ")
				}
			}
			if strings.Contains(string(text[:n]), "done") {
				fmt.Fprint(&log, "done")
			}
		}
		if got := log.String(); got != "0s 20s 40s done" && got != "0s 20s 40s 1m0s done" {
			t.Errorf("it beats after %s", got)
		}
		one.close()
		two.close()
	})
}

// A question is not asked if the store does not take who asks it, which is logged: the answer
// may arrive at another replica.
func TestQuestionWithBrokenStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &stuck{Memory: store.NewMemory(nil)}
		log := new(logged)
		h := newHandler(t, tools(), &mcphttp.Options{Store: shared, Heartbeat: -1, Logger: slog.New(slog.NewTextHandler(log, nil))})
		s := serve(t, h)
		session := s.open("2025-11-25")
		shared.isBroken.Store(true)
		if got := whole(t, s.post(call(1, "ask"), session)).body; strings.Contains(got, "elicitation/create") || !strings.Contains(got, "try again later") {
			t.Errorf("got %s", got)
		}
		log.mu.Lock()
		if got := log.text.String(); !strings.Contains(got, "a question was not asked") {
			t.Errorf("the log is %s", got)
		}
		log.mu.Unlock()
		shared.isBroken.Store(false)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_ = h.Shutdown(ctx)
		s.close()
	})
}
