// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"encoding/json"
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

// Two replicas that serve a session ask under different ids, or the answer to one
// question would be taken for the answer to the other.
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

// The answer to a question, and a cancellation, find the call at the replica that
// serves it, wherever they arrive, and also in a batch.
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

// A call that asks can be finished while its replica shuts down: the answers to its
// questions are let in.
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

// heldStore is a store that takes its time to write values.
type heldStore struct {
	*store.Memory
	held chan struct{}
}

func (s *heldStore) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	<-s.held
	return s.Memory.Put(ctx, key, value, version, ttl)
}

// Who has its session can use it at every replica: it is saved before it is told.
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

// deafStore is a store whose topics are heard late, or not at all.
type deafStore struct {
	*store.Memory
	hears chan struct{} // Subscribe waits until it is closed
	loses bool          // every message, which is reported
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

// The answer to a question is kept until the replica that asks has it, also if that replica
// was not told of it.
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

// A replica that has the stream of a session sends the updates of what the session has
// subscribed to at another replica, also if it has lost the message that says so.
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
				for range 2 { // it may have changed before the replica knew
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

// What a client changes at one replica is not undone by a change at another one that has not
// heard of the first: the stream sends the updates of both subscriptions.
func TestSharedChangesAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &deafStore{Memory: store.NewMemory(nil), hears: make(chan struct{})}
		mux := tools()
		for _, uri := range []string{"test://one", "test://two"} {
			mux.Resource(uri, mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "text", nil }, nil))
		}
		one, two, _ := twins(t, shared, func() *mcp.Mux { return mux })
		h := one.open("2025-11-25")
		answersHello(t, two, h) // from now on, both have the session
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
		for len(own.events) > 0 { // what the stream may have missed before
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

// A client that does not read its stream, to which the changes of another replica are sent,
// holds up no answer of others.
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

// Two replicas may change a session at the same time: one of them hears of the other's
// change before it has stored its own.
func TestSharedChangesOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux, hold := tools(), make(chan struct{})
		mux.Resource("test://one", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "text", nil }, nil))
		var listens atomic.Int32
		mux.Use(mcp.NewMiddleware(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method == mcp.MethodListen && listens.Add(1) == 3 { // of the stream, of resources/subscribe, and then of the stream
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
		for len(own.events) > 0 { // what the stream may have missed before
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

// questionStore counts the questions that it has.
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

// left returns how many questions there are, and how many there have been.
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

// A question that ends without an answer leaves the store, or a client could fill it by
// calls that it cancels.
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

// garbledStore has values that are others than were put, once it has one for all.
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

// A value in the store that is no answer is not served as one.
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

// A replica that cannot read how a session has changed says so, and goes on as before.
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

// An answer that the store has is taken as soon as it can be read, also if that failed when
// the replica was told of it, and also if that was told only when the client has repeated it.
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
