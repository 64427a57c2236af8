// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

// Two replicas that serve the same session use different IDs for their questions. Otherwise,
// the answer to one question could be taken for the answer to another.
func TestSharedQuestionIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, _ := twins(t, store.NewMemory(nil), tools)
		h := one.open("2025-11-25")
		ids := map[string]bool{}
		for i, s := range []*site{one, two} {
			var question struct{ ID, Method string }
			if err := json.Unmarshal([]byte(read(t, s.post(call(i, "ask"), h)).message()), &question); err != nil {
				t.Fatal(err)
			}
			if ids[question.ID] {
				t.Errorf("both replicas ask %s under the id %s", question.Method, question.ID)
			}
			ids[question.ID] = true
		}
	})
}

// Answers and cancellations reach the replica that serves the call, wherever they arrive and
// even in a batch.
func TestSharedAnswers(t *testing.T) {
	for version, form := range map[string]string{"2025-11-25": "%s", "2025-03-26": `[{"jsonrpc":"2.0","method":"notifications/progress"},%s]`} {
		bubble(t, version, func(t *testing.T) { testSharedAnswers(t, version, form) })
	}
}

func testSharedAnswers(t *testing.T, version, form string) {
	t.Helper()
	one, two, _ := twins(t, store.NewMemory(nil), tools)
	h := one.open(version)
	asking := read(t, one.post(call(1, "ask"), h))
	for _, name := range []string{"Ada", "Lovelace"} {
		id := questionID(t, within(t, time.Minute, "a question", messages(asking)))
		two.post(fmt.Sprintf(form, answer(id, `{"action":"accept","content":{"name":"`+name+`"}}`)), h)
	}
	if got := within(t, time.Minute, "the result", messages(asking)); !strings.Contains(got, "Ada Lovelace") {
		t.Errorf("the answer is %s", got)
	}
}

// A call that asks questions can complete while its replica shuts down, because answers are
// still accepted.
func TestShutdownTakesAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(t, tools(), nil)
		s := serve(t, handler)
		h := s.open("2025-11-25")
		asking := read(t, s.post(call(1, "ask"), h))
		first := asking.message()
		ended := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ended <- handler.Shutdown(ctx)
		}()
		synctest.Wait()
		var question struct{ ID string }
		if err := json.Unmarshal([]byte(first), &question); err != nil {
			t.Fatal(err)
		}
		res := s.post(`{"jsonrpc":"2.0","id":"`+question.ID+`","result":{"action":"decline"}}`, h)
		if res.StatusCode != http.StatusAccepted {
			t.Errorf("the answer to a question is refused with %d", res.StatusCode)
		}
		if err := <-ended; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

// heldStore is a store whose Put blocks until held is closed.
type heldStore struct {
	*store.Memory
	held chan struct{}
}

func (s *heldStore) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	<-s.held
	return s.Memory.Put(ctx, key, value, version, ttl)
}

// A client that knows its session ID can use the session at every replica: the session is
// stored before its ID is sent.
func TestSharedSessionIsSavedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("test", "v1", &mcp.MuxOptions{Logger: quiet, Instructions: strings.Repeat("long ", 4000)})
		shared := &heldStore{store.NewMemory(nil), make(chan struct{})}
		s := serve(t, newHandler(t, mux, &mcphttp.Options{Store: shared}))
		opened := make(chan reply, 1)
		go func() { opened <- whole(t, s.post(initialize("2025-11-25"), nil)) }()
		synctest.Wait()
		select {
		case res := <-opened:
			t.Errorf("before the session is saved, its client knows of %q", res.header.Get("Mcp-Session-Id"))
		default:
		}
		close(shared.held)
		synctest.Wait()
	})
}

// deafStore is a store whose topics deliver messages late or not at all.
type deafStore struct {
	*store.Memory
	hears chan struct{} // Subscribe blocks until it is closed
	loses bool          // drops every message and reports the loss
}

func (s *deafStore) Subscribe(ctx context.Context, topic string) (store.Subscription, error) {
	select {
	case <-s.hears:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	sub, err := s.Memory.Subscribe(ctx, topic)
	if s.loses {
		sub = lossy{sub}
	}
	return sub, err
}

type lossy struct{ store.Subscription }

func (l lossy) Next(ctx context.Context) ([]byte, error) {
	if _, err := l.Subscription.Next(ctx); err != nil {
		return nil, err
	}
	return nil, store.ErrOverflow
}

// The answer to a question is stored until the asking replica has received it, even if that
// replica missed the notification.
func TestSharedAnswersAreKept(t *testing.T) {
	for name, shared := range map[string]func() *deafStore{
		"told before it listens": func() *deafStore { return &deafStore{hears: make(chan struct{})} },
		"told in vain": func() *deafStore {
			s := &deafStore{hears: make(chan struct{}), loses: true}
			close(s.hears)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := shared()
				shared.Memory = store.NewMemory(nil)
				one, two, _ := twins(t, shared, tools)
				h := one.open("2025-11-25")
				asking := read(t, one.post(call(1, "ask"), h))
				for _, name := range []string{"Ada", "Lovelace"} {
					id := questionID(t, within(t, time.Minute, "a question", messages(asking)))
					two.post(answer(id, `{"action":"accept","content":{"name":"`+name+`"}}`), h)
					synctest.Wait()
					if !shared.loses && name == "Ada" {
						close(shared.hears)
					}
				}
				if got := within(t, time.Minute, "the result", messages(asking)); !strings.Contains(got, "Ada Lovelace") {
					t.Errorf("the result is %s", got)
				}
				one.close()
				two.close()
			})
		})
	}
}

// The replica that has the stream of a session sends updates for subscriptions made at
// another replica, even if it lost the message about them.
func TestSharedSubscriptionsAreKept(t *testing.T) {
	for name, loses := range map[string]bool{"told": false, "told in vain": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := &deafStore{Memory: store.NewMemory(nil), hears: make(chan struct{}), loses: loses}
				close(shared.hears)
				mux := tools()
				one := serve(t, newHandler(t, mux, optionsWith(shared)))
				two := serve(t, newHandler(t, tools(), optionsWith(shared)))
				h := one.open("2025-11-25")
				own := read(t, one.do(one.request(t.Context(), http.MethodGet, "", h)))
				own.next()
				whole(t, two.post(`{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"test://doc"}}`, h))
				for range 2 { // the resource may have changed before the replica knew
					if got := within(t, time.Minute, "an update", messages(own)); !strings.Contains(got, "test://doc") {
						t.Errorf("got %s", got)
					}
					mux.ResourceUpdated("test://doc")
				}
				one.close()
				two.close()
			})
		})
	}
}

func subscribe(uri string) string {
	return `{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"` + uri + `"}}`
}

// A change by a client at one replica is not undone by a change at another replica that has
// not heard of the first: the stream sends updates for both subscriptions.
func TestSharedChangesAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &deafStore{Memory: store.NewMemory(nil), hears: make(chan struct{})}
		mux := tools()
		for _, uri := range []string{"test://one", "test://two"} {
			mux.Resource(uri, mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "text", nil }, nil))
		}
		one, two, _ := twins(t, shared, func() *mcp.Mux { return mux })
		h := one.open("2025-11-25")
		answersHello(t, two, h) // from now on, both replicas have the session
		for _, change := range []struct {
			at   *site
			body string
		}{
			{one, subscribe("test://doc")},
			{two, subscribe("test://one")},
			{one, subscribe("test://two")},
			{two, strings.Replace(subscribe("test://doc"), "subscribe", "unsubscribe", 1)},
		} {
			if got := whole(t, change.at.post(change.body, h)); got.status != http.StatusOK || got.code(t) != 0 {
				t.Errorf("%s: %+v", change.body, got)
			}
		}
		own := read(t, one.do(one.request(t.Context(), http.MethodGet, "", h)))
		close(shared.hears)
		synctest.Wait()
		for len(own.events) > 0 { // changes that the stream may have missed
			own.next()
		}
		var updates []string
		for _, uri := range []string{"test://doc", "test://one", "test://two"} {
			mux.ResourceUpdated(uri)
			synctest.Wait()
			for len(own.events) > 0 {
				updates = append(updates, uri)
				own.next()
			}
		}
		if want := []string{"test://one", "test://two"}; !slices.Equal(updates, want) {
			t.Errorf("the stream sends the updates of %v, want %v", updates, want)
		}
	})
}

// A client that does not read its stream, on which changes of another replica are sent, does
// not delay responses to other clients.
func TestSharedChangesOfSlowReader(t *testing.T) {
	for name, loses := range map[string]bool{"told": false, "catching up": true} {
		bubble(t, name, func(t *testing.T) {
			shared := &deafStore{Memory: store.NewMemory(nil), hears: make(chan struct{}), loses: loses}
			if !loses {
				close(shared.hears)
			}
			handler := newHandler(t, tools(), &mcphttp.Options{Store: shared, WriteTimeout: time.Hour})
			one, two := serve(t, handler), serve(t, newHandler(t, tools(), optionsWith(shared)))
			slow, other := one.open("2025-11-25"), one.open("2025-11-25")
			unread := one.do(one.request(t.Context(), http.MethodGet, "", slow))
			two.post(subscribe("test://doc"), slow)
			asking := read(t, one.post(call(1, "ask"), other))
			id := questionID(t, within(t, time.Minute, "a question", messages(asking)))
			if loses {
				close(shared.hears)
			}
			synctest.Wait()
			two.post(answer(id, `{"action":"accept","content":{"name":"x"}}`), other)
			within(t, 10*time.Second, "the next question", messages(asking))
			_ = unread.Body.Close()
			one.close()
			two.close()
		})
	}
}

// Two replicas may change a session concurrently: one of them hears of the other's change
// before it has stored its own.
func TestSharedChangesOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux, hold := tools(), make(chan struct{})
		mux.Resource("test://one", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "text", nil }, nil))
		var listens atomic.Int32
		mux.Use(mcp.NewMiddleware(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method == mcp.MethodListen && listens.Add(1) == 3 { // by the stream, resources/subscribe, and the stream
					<-hold
				}
				return next.ServeMCP(ctx, req)
			})
		}))
		shared := store.NewMemory(nil)
		one, two := serve(t, newHandler(t, mux, optionsWith(shared))), serve(t, newHandler(t, tools(), optionsWith(shared)))
		h := one.open("2025-11-25")
		own := read(t, one.do(one.request(t.Context(), http.MethodGet, "", h)))
		own.next()
		var subscribing sync.WaitGroup
		subscribing.Go(func() { one.post(subscribe("test://one"), h) })
		synctest.Wait()
		two.post(subscribe("test://doc"), h)
		synctest.Wait()
		close(hold)
		subscribing.Wait()
		synctest.Wait()
		for len(own.events) > 0 { // changes that the stream may have missed
			own.next()
		}
		for _, uri := range []string{"test://doc", "test://one"} {
			mux.ResourceUpdated(uri)
			if got := within(t, time.Minute, "an update of "+uri, messages(own)); !strings.Contains(got, uri) {
				t.Errorf("got %s", got)
			}
		}
		one.close()
		two.close()
	})
}

// questionStore counts the questions it stores.
type questionStore struct {
	*store.Memory
	mu        sync.Mutex
	questions map[string]bool
}

func (s *questionStore) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	s.note(key, true)
	return s.Memory.Put(ctx, key, value, version, ttl)
}

func (s *questionStore) Take(ctx context.Context, key string) ([]byte, error) {
	s.note(key, false)
	return s.Memory.Take(ctx, key)
}

func (s *questionStore) note(key string, has bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(key, "psi/asked/") {
		s.questions[key] = has
	}
}

// left returns the number of questions now and the number ever stored.
func (s *questionStore) left() (now, ever int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, has := range s.questions {
		if has {
			now++
		}
	}
	return now, len(s.questions)
}

// A question that ends without an answer is removed from the store. Otherwise, a client
// could fill the store with calls that it cancels.
func TestSharedQuestionsEnd(t *testing.T) {
	for name, end := range map[string]func(s *site, h header){
		"cancelled": func(s *site, h header) {
			s.post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`, h)
		},
		"not answered in time": func(*site, header) { <-time.After(time.Hour) },
		"the session ends":     func(s *site, h header) { s.do(s.request(s.t.Context(), http.MethodDelete, "", h)) },
	} {
		bubble(t, name, func(t *testing.T) {
			shared := &questionStore{Memory: store.NewMemory(nil), questions: map[string]bool{}}
			s := serve(t, newHandler(t, tools(), &mcphttp.Options{Store: shared, AskTimeout: time.Minute}))
			h := s.open("2025-11-25")
			asking := read(t, s.post(call(1, "ask"), h))
			asking.message()
			end(s, h)
			synctest.Wait()
			if now, ever := shared.left(); now != 0 || ever != 1 {
				t.Errorf("the store has %d questions of %d", now, ever)
			}
		})
	}
}

// garbledStore returns value for every key, once value is set.
type garbledStore struct {
	store.Store
	value atomic.Pointer[string]
}

func (s *garbledStore) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	data, version, err := s.Store.Get(ctx, key)
	if garbled := s.value.Load(); garbled != nil {
		data = []byte(*garbled)
	}
	return data, version, err
}

// A stored value that is not an answer is not used as one.
func TestSharedAnswerIsGarbled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, mux := store.NewMemory(nil), tools()
		var calls atomic.Int32
		mux.Tool("count", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { calls.Add(1); return "", nil }, nil))
		garbled := &garbledStore{Store: shared}
		one, two := serve(t, newHandler(t, mux, optionsWith(garbled))), serve(t, newHandler(t, tools(), optionsWith(shared)))
		h := one.open("2025-11-25")
		asking := read(t, one.post(call(1, "ask"), h))
		id := questionID(t, within(t, time.Minute, "a question", messages(asking)))
		garbled.value.Store(new(`{"answer":` + call(2, "count") + `}`))
		two.post(answer(id, `{"action":"decline"}`), h)
		synctest.Wait()
		if calls.Load() > 0 {
			t.Error("a tool was called")
		}
		one.close()
		two.close()
	})
}

// A replica that cannot read a change to a session logs that and continues as before.
func TestSharedSessionIsGarbled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared, log, mux := store.NewMemory(nil), new(logged), tools()
		garbled := &garbledStore{Store: shared}
		one := serve(t, newHandler(t, mux, &mcphttp.Options{Store: garbled, Logger: slog.New(slog.NewTextHandler(log, nil))}))
		two := serve(t, newHandler(t, tools(), optionsWith(shared)))
		h := one.open("2025-11-25")
		own := read(t, one.do(one.request(t.Context(), http.MethodGet, "", h)))
		own.next()
		synctest.Wait() // the session is read again for its stream
		garbled.value.Store(new("{"))
		whole(t, two.post(`{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"test://doc"}}`, h))
		synctest.Wait()
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "a change of a session was not taken over") {
			t.Errorf("the log is %q", got)
		}
		mux.Tool("new", uncalled)
		if got := within(t, time.Minute, "a change", messages(own)); !strings.Contains(got, "tools/list_changed") {
			t.Errorf("got %s", got)
		}
		one.close()
		two.close()
	})
}

// A stored answer is used once it can be read, even if reading it failed when the replica
// was notified, or if the replica was notified only after the client resent the answer.
func TestSharedAnswersAreReadLater(t *testing.T) {
	for _, fault := range []string{"read", "publish"} {
		t.Run(fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shared := store.NewMemory(nil)
				first, second := &mortalStore{Store: shared}, &mortalStore{Store: shared}
				one := serve(t, newHandler(t, tools(), optionsWith(first)))
				two := serve(t, newHandler(t, tools(), optionsWith(second)))
				h := one.open("2025-11-25")
				asking := read(t, one.post(call(1, "ask"), h))
				first.leaderless.Store(fault == "read")
				for i, name := range []string{"Ada", "Lovelace"} {
					id := questionID(t, within(t, time.Minute, "a question", messages(asking)))
					second.mute.Store(fault == "publish")
					body := answer(id, `{"action":"accept","content":{"name":"`+name+`"}}`)
					status := two.post(body, h).StatusCode
					second.mute.Store(false)
					if want := map[bool]int{true: 503, false: 202}[fault == "publish"]; status != want {
						t.Errorf("answer %d: %d, want %d", i, status, want)
					}
					<-time.After(2 * time.Second)
					first.leaderless.Store(false)
					if status == http.StatusServiceUnavailable {
						two.post(body, h)
					}
				}
				if got := within(t, time.Minute, "the result", messages(asking)); !strings.Contains(got, "Ada Lovelace") {
					t.Errorf("the result is %s", got)
				}
				one.close()
				two.close()
			})
		})
	}
}

// An answer of up to 1 MiB is relayed to the replica that asked. A longer one is not.
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

// A cancellation is relayed if the ID of its request has at most 256 bytes, with at most 200
// bytes of its reason. A session may send a hundred per minute.
func TestRelayedCancellationBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, shared := meteredTwins(t)
		session := one.open("2025-11-25")
		whole(t, two.post(call(2, "hello"), session)) // from now on, this replica has the session
		cancel := func(id, reason string) int {
			return shared.written(func() {
				two.post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%q,"reason":%q}}`, id, reason), session)
			})
		}
		for size, relayed := range map[int]bool{254: true, 255: false} { // plus two quotation marks
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

// After its last session has ended, a replica still receives answers for the next one.
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

// stuck is a store that can be made to hang or to fail.
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

// A store must accept an answer within ten seconds. Otherwise, that is logged, and the
// client is told to resend its answer.
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

// If events cannot be read, they are not replayed, and the client is told to retry later.
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
				for _, ok := events.next(); ok; _, ok = events.next() { // until the stream ends
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

// A replica that adopts a session from another replica has streams that can be resumed like
// any other.
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

// While Shutdown waits for a request, only messages that help the request to complete are
// accepted.
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

// A client that waits at one replica for messages from another gets heartbeats from the
// start.
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

// If the store cannot record which replica asks a question, the question is not asked, and
// that is logged: the answer may arrive at another replica.
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

// metered is a store that counts the bytes written to it, and can be down.
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

// written returns the number of bytes written while a function ran.
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
	if topic == "psi/alive" { // sent by the process, not caused by clients
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

// meteredTwins returns two replicas that share a store.
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

// S17: an unsolicited answer is not relayed to other replicas, nor is a second answer to a
// question.
func TestFindingS17UnsolicitedAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one, two, shared := meteredTwins(t)
		session := one.open("2025-11-25")
		id := questionID(t, read(t, one.post(call(1, "ask"), session)).message())
		whole(t, two.post(call(2, "hello"), session)) // from now on, this replica has the session
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

// S17: an answer that is too long to be relayed becomes an error for the tool that asked,
// which stops waiting.
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

// S17: an answer is relayed whether the question was asked in a call or on the standalone
// stream.
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

// S17: cancellations are relayed without being stored, up to the limits that a well-behaved
// client needs.
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

// S30: logs identify sessions by a digest.
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
			"a session was not saved", "an event was not kept", "an answer was not relayed", "a session was not restored", "a session was not kept alive",
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
