// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/golden"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

// faultyStore is a store in which one operation fails.
type faultyStore struct {
	*store.Memory
	mu     sync.Mutex
	broken string // the operation that fails
}

var storeOperations = []string{"Get", "Put", "Take", "Append", "Read", "Drop", "Publish", "Subscribe", "Next"}

func (f *faultyStore) setBroken(operation string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = operation
}

func (f *faultyStore) fault(operation string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken == operation {
		return errDown
	}
	return nil
}

func (f *faultyStore) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := f.fault("Get"); err != nil {
		return nil, 0, err
	}
	return f.Memory.Get(ctx, key)
}

func (f *faultyStore) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if err := f.fault("Put"); err != nil {
		return 0, err
	}
	return f.Memory.Put(ctx, key, value, version, ttl)
}

func (f *faultyStore) Take(ctx context.Context, key string) ([]byte, error) {
	if err := f.fault("Take"); err != nil {
		return nil, err
	}
	return f.Memory.Take(ctx, key)
}

func (f *faultyStore) Append(ctx context.Context, log string, data []byte, keep store.Retention) (uint64, error) {
	if err := f.fault("Append"); err != nil {
		return 0, err
	}
	return f.Memory.Append(ctx, log, data, keep)
}

func (f *faultyStore) Read(ctx context.Context, log string, position uint64, limit int) ([]store.Record, error) {
	if err := f.fault("Read"); err != nil {
		return nil, err
	}
	return f.Memory.Read(ctx, log, position, limit)
}

func (f *faultyStore) Drop(ctx context.Context, log string) error {
	if err := f.fault("Drop"); err != nil {
		return err
	}
	return f.Memory.Drop(ctx, log)
}

func (f *faultyStore) Publish(ctx context.Context, topic string, message []byte) error {
	if err := f.fault("Publish"); err != nil {
		return err
	}
	return f.Memory.Publish(ctx, topic, message)
}

func (f *faultyStore) Subscribe(ctx context.Context, topic string) (store.Subscription, error) {
	if err := f.fault("Subscribe"); err != nil {
		return nil, err
	}
	s, err := f.Memory.Subscribe(ctx, topic)
	return faultySubscription{s, f}, err
}

type faultySubscription struct {
	store.Subscription
	of *faultyStore
}

func (f faultySubscription) Next(ctx context.Context) ([]byte, error) {
	message, err := f.Subscription.Next(ctx)
	if err == nil {
		err = f.of.fault("Next")
	}
	return message, err
}

// A scene is a conversation with two replicas that share a store.
type scene struct {
	t       *testing.T
	store   *faultyStore
	sites   [2]*site
	muxes   [2]*mcp.Mux
	served  [2]*mcphttp.Handler
	session header
	id      string // of the last event
	asked   string // the ID of the last question
	begun   sync.WaitGroup
	leave   context.CancelFunc // cancels the most recent request

	mu   sync.Mutex
	news []string // received or logged since the last step
}

// Write records log output, except about events of a session that ends at the same time.
func (s *scene) Write(p []byte) (int, error) {
	if !strings.Contains(string(p), "the session has ended") {
		s.note("  log: " + string(p))
	}
	return len(p), nil
}

func (s *scene) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.news = append(s.news, text)
}

var (
	eventID    = regexp.MustCompile(`(?m)^id: (\S+)$`)
	askedID    = regexp.MustCompile(`"id":"([^"]+)"`)
	anySession = regexp.MustCompile(`session=\S+ `)
)

// send sends a request to a replica and records what it receives, as it arrives.
func (s *scene) send(replica int, method, body string, h header) {
	ctx, cancel := context.WithCancel(s.t.Context())
	s.leave = cancel
	r := s.sites[replica].request(ctx, method, body, with(s.session, h))
	s.begun.Go(func() {
		res, err := s.sites[replica].client.Do(r)
		if err != nil {
			return // the scene has ended
		}
		defer res.Body.Close()
		s.mu.Lock()
		if id := res.Header.Get("Mcp-Session-Id"); id != "" {
			s.session = header{"Mcp-Session-Id": id, "MCP-Protocol-Version": "2025-11-25"}
		}
		s.mu.Unlock()
		s.note(fmt.Sprintf("  %s %d: %d %s\n", method, replica, res.StatusCode, res.Header.Get("Retry-After")))
		text := make([]byte, 1<<16)
		for {
			n, err := res.Body.Read(text)
			if n > 0 {
				s.note(fmt.Sprintf("  %s %d: %s\n", method, replica, s.known(string(text[:n]))))
			}
			if err != nil {
				s.note(fmt.Sprintf("  %s %d ends\n", method, replica))
				return
			}
		}
	})
}

// known saves the IDs that the next steps need, and replaces them in the text.
func (s *scene) known(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := eventID.FindAllStringSubmatch(text, -1); found != nil {
		s.id = found[len(found)-1][1]
	}
	if found := askedID.FindStringSubmatch(text); found != nil {
		s.asked = found[1]
	}
	kept := "id"
	if strings.Contains(text, mcp.ErrClosed.Error()) {
		kept = "" // or not: the events of the session are removed at the same time
	}
	text = strings.TrimSpace(askedID.ReplaceAllString(eventID.ReplaceAllString(text, kept), `"id":"..."`))
	return strings.ReplaceAll(text, "\n", `\n`)
}

// step performs a step and returns its effects within some seconds.
func (s *scene) step(do func(*scene)) string {
	do(s)
	synctest.Wait()
	pass(5700 * time.Millisecond) // at a different time than anything else
	synctest.Wait()
	for i := range s.served {
		s.note(s.state(i))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.news) // goroutines that do not wait for each other report in any order
	text := strings.Join(slices.Compact(s.news), "")
	s.news = nil
	return anySession.ReplaceAllString(text, "")
}

// state describes what a replica holds, if anything: requests in flight and streams,
// including how many streams have a client or events.
func (s *scene) state(replica int) string {
	var attached, kept int
	all := mcphttp.Internal(seam.Key{}).Streams(s.served[replica])
	for _, stream := range all {
		if stream.Attached {
			attached++
		}
		if stream.Kept > 0 {
			kept++
		}
	}
	inFlight := mcphttp.Internal(seam.Key{}).InFlight(s.served[replica])
	if inFlight+len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("  state %d: %d in flight, %d streams, %d with a client, %d with events\n", replica, inFlight, len(all), attached, kept)
}

func newScene(t *testing.T, idle time.Duration) *scene {
	s := &scene{t: t, store: &faultyStore{Memory: store.NewMemory(nil)}, session: header{}}
	for i := range s.sites {
		mux := tools()
		mux.Tool("wait", mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
			mcp.Progress(ctx, 1, 2, "")
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}))
		dropTime := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
		log := slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{ReplaceAttr: dropTime})).With("replica", i)
		h := newHandler(t, mux, &mcphttp.Options{Store: s.store, Heartbeat: -1, SessionIdle: idle, Logger: log})
		s.sites[i], s.muxes[i], s.served[i] = serve(t, h), mux, h
	}
	return s
}

// storeScene is a conversation in which the replicas depend on each other.
var storeScene = []struct {
	name string
	do   func(*scene)
}{
	{"open a session", func(s *scene) { s.send(0, http.MethodPost, initialize("2025-11-25"), nil) }},
	{"finish the handshake", func(s *scene) {
		s.send(0, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil)
	}},
	{"open its stream", func(s *scene) { s.send(0, http.MethodGet, "", nil) }},
	{"call at the other replica", func(s *scene) { s.send(1, http.MethodPost, call(1, "hello"), nil) }},
	{"subscribe at the other replica", func(s *scene) {
		s.send(1, http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"test://doc"}}`, nil)
	}},
	{"change the resource", func(s *scene) { s.muxes[0].ResourceUpdated("test://doc") }},
	{"call a tool that asks", func(s *scene) { s.send(0, http.MethodPost, call(3, "ask"), nil) }},
	{"answer at the other replica", func(s *scene) {
		s.send(1, http.MethodPost, answer(s.asked, `{"action":"accept","content":{"name":"Ada"}}`), nil)
	}},
	{"answer where it was asked", func(s *scene) {
		s.send(0, http.MethodPost, answer(s.asked, `{"action":"accept","content":{"name":"Lovelace"}}`), nil)
	}},
	{"call a tool that waits", func(s *scene) { s.send(0, http.MethodPost, call(4, "wait"), nil) }},
	{"resume the stream at the other replica", func(s *scene) { s.send(1, http.MethodGet, "", header{"Last-Event-ID": s.id}) }},
	{"cancel at the other replica", func(s *scene) {
		s.send(1, http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4,"reason":"enough"}}`, nil)
	}},
	{"replace the stream at the other replica", func(s *scene) { s.send(1, http.MethodGet, "", nil) }},
	{"wait for a minute", func(*scene) { pass(time.Minute) }},
	{"end the session at the other replica", func(s *scene) { s.send(1, http.MethodDelete, "", nil) }},
	{"call once more", func(s *scene) { s.send(0, http.MethodPost, call(5, "hello"), nil) }},
}

// Whichever store operation fails during a step, the golden file contains what clients
// receive and what is logged: the conversation without a fault, and how it differs with one.
func TestStoreFaults(t *testing.T) {
	play := func(broken string, at int) (outcomes []string) {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t, time.Minute)
			for i, step := range storeScene {
				if i == at {
					s.store.setBroken(broken)
				}
				outcomes = append(outcomes, s.step(step.do))
				s.store.setBroken("")
			}
			for _, site := range s.sites {
				site.close()
			}
			s.begun.Wait()
		})
		return outcomes
	}
	var text strings.Builder
	want := play("", -1)
	for i, step := range storeScene {
		fmt.Fprintf(&text, "> %s\n%s", step.name, want[i])
	}
	for at, step := range storeScene {
		for _, operation := range storeOperations {
			got := play(operation, at)
			fmt.Fprintf(&text, "> %s fails: %s\n", operation, step.name)
			for i := range got {
				if got[i] != want[i] {
					fmt.Fprintf(&text, "> > %s\n%s", storeScene[i].name, got[i])
				}
			}
		}
	}
	golden.Check(t, "store-faults", text.String())
}
