// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/debug"
)

// overview is the first page, as JSON.
type overview struct {
	Server   struct{ Name, Version, Instructions string }
	InFlight []shownRequest
	Recent   []shownRequest
	Plots    []struct{ Title, Now, Max string }
	Calls    []struct{ ID, State string }

	Endpoints []struct {
		Type     string
		Sessions []struct{ ID, Client, Version string }
		Streams  []struct{ Session string }
	}
	Subscriptions []struct{ Covers, Waiting int }
	Tasks         []struct {
		Running        []struct{ ID, Tool, Message, Caller string }
		Waiting, Slots int
	}
}

// ofTool returns the completed requests for a tool, the most recent first.
func (o *overview) ofTool(name string) (all []shownRequest) {
	for _, r := range o.Recent {
		if r.Name == name {
			all = append(all, r)
		}
	}
	return all
}

type shownRequest struct {
	Number               uint64
	Method, Name         string
	Era, Version, Client string
	Session              string
	Caller               string
	Outcome              string
	Error                string
	Round                int
	Arguments, Result    any
}

// endpoint serves a server at /mcp, and its page.
func endpoint(t *testing.T, mux *mcp.Mux, opts *debug.Options) (url string, s *site) {
	t.Helper()
	h := mcphttp.NewHandler(mux, &mcphttp.Options{Logger: quiet})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, mcphttp.WithPrincipal(r, &mcp.Principal{Issuer: "test", Subject: "desk"}))
	}))
	t.Cleanup(server.Close)
	opts.Endpoints = []debug.Endpoint{h}
	return server.URL, serve(t, mux, opts)
}

func connect(t *testing.T, url, version string, opts *mcp.ClientOptions) *mcp.Conn {
	t.Helper()
	opts.Version, opts.Logger = version, quiet
	conn, err := mcp.NewClient("desk app", "v2", opts).Connect(t.Context(), mcphttp.NewTransport(url, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// Requests of both eras are shown with their rounds; sessions and subscriptions are shown
// while they are open.
func TestOverview(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			address, s := endpoint(t, newMux(t), &debug.Options{})
			s.page("")
			conn := connect(t, address, version, &mcp.ClientOptions{Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: "accept", Content: []byte(`{"city":"Lisbon","days":2}`)}, nil
			}})
			if _, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"}); err != nil {
				t.Fatal(err)
			}
			o := decode[overview](s, "?format=json")
			if o.Server.Name != "shop" || o.Server.Version != "v1.2.3" || len(o.Plots) != 2 {
				t.Errorf("%+v", o)
			}
			asked := o.ofTool("ask")
			if len(asked) != 2 {
				t.Fatalf("%+v", o.Recent)
			}
			second, first := asked[0], asked[1]
			if first.Name != "ask" || first.Round != 1 || first.Outcome != "input_required" || second.Round != 2 || second.Outcome != "ok" {
				t.Errorf("%+v\n%+v", first, second)
			}
			if second.Version != version || !strings.HasPrefix(second.Client, "desk app v2") || second.Arguments != nil || second.Result != nil {
				t.Errorf("%+v", second)
			}
			isLegacy := version != "2026-07-28"
			if (second.Era == "legacy") != isLegacy || (second.Session != "") != isLegacy || (len(o.Endpoints[0].Sessions) == 1) != isLegacy {
				t.Errorf("%+v", o)
			}
			if isLegacy {
				s.post2(url.Values{"action": {"end"}, "session": {second.Session}})
				if o := decode[overview](s, "?format=json"); len(o.Endpoints[0].Sessions) != 0 {
					t.Errorf("%+v", o.Endpoints)
				}
			}
		})
	}
}

// post2 submits a form whose response is the overview.
func (s *site) post2(form url.Values) {
	s.Helper()
	if res, body := s.do(s.request(http.MethodPost, "", form)); res.StatusCode != http.StatusOK {
		s.Fatalf("%s\n%s", res.Status, body)
	}
}

// Tasks running in this process are shown without the IDs that clients use for them.
func TestTasks(t *testing.T) {
	mux := mcp.NewMux("farm", "v1", &mcp.MuxOptions{Logger: quiet})
	manager := tasks.New("farm", &tasks.Options{Logger: quiet, MaxRunning: 3})
	manager.Register(mux)
	t.Cleanup(func() { _ = manager.Shutdown(context.Background()) })
	begun, gate := make(chan struct{}), make(chan struct{})
	mux.With(manager.Background(nil)).Tool("render", mcp.ToolFunc(func(ctx context.Context, _ empty) (string, error) {
		mcp.Progress(ctx, 1, 2, "the first frame")
		close(begun)
		<-gate
		return "done", nil
	}, nil))
	address, s := endpoint(t, mux, &debug.Options{Tasks: []*tasks.Manager{manager}})
	conn := connect(t, address, mcp.LatestVersion, &mcp.ClientOptions{Extensions: []*mcp.ClientExtension{tasks.Client()}})
	h, _, err := tasks.Start(t.Context(), conn, &mcp.CallToolParams{Name: "render"})
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	s.page("") // requests are recorded while the page is in use
	if _, err := h.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	o := decode[overview](s, "?format=json")
	if len(o.Tasks) != 1 || o.Tasks[0].Slots != 3 || len(o.Tasks[0].Running) != 1 {
		t.Fatalf("%+v", o.Tasks)
	}
	if got := o.Tasks[0].Running[0]; got.Tool != "render" || got.Message != "the first frame (1 of 2)" || got.ID == "" || got.Caller != "desk" {
		t.Errorf("%+v", got)
	}
	if page := s.page(""); !strings.Contains(page, "the first frame") || !strings.Contains(page, "tasks/get") || strings.Contains(page, h.ID) {
		t.Error(page)
	}
	close(gate)
	if _, err := h.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}

// A request in flight is shown and can be cancelled. Its caller is told who cancelled it.
func TestCancel(t *testing.T) {
	mux := newMux(t)
	started := make(chan struct{})
	mux.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ empty) (string, error) {
		close(started)
		<-ctx.Done()
		return "", ctx.Err()
	}, nil))
	address, s := endpoint(t, mux, &debug.Options{})
	s.page("")
	conn := connect(t, address, "", &mcp.ClientOptions{})
	ended := make(chan error, 1)
	go func() {
		_, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "wait"})
		ended <- err
	}()
	<-started
	o := decode[overview](s, "?format=json")
	if len(o.InFlight) != 1 || o.InFlight[0].Name != "wait" || o.InFlight[0].Outcome != "" {
		t.Fatalf("%+v", o.InFlight)
	}
	number := fmt.Sprint(o.InFlight[0].Number)
	wantIn(t, s.page("?view=request&number="+number), "in flight")
	s.post2(url.Values{"action": {"cancel"}, "request": {number}})
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "the operator of the server cancelled the request") {
		t.Error(err)
	}
	if res, _ := s.do(s.request(http.MethodPost, "", url.Values{"action": {"cancel"}, "request": {number}})); res.StatusCode != http.StatusConflict {
		t.Error(res.Status)
	}
	if o := decode[overview](s, "?format=json"); len(o.InFlight) != 0 || o.Recent[0].Outcome != "cancelled" {
		t.Errorf("%+v", o)
	}
}

// Values are shown only if enabled, and never contain secrets.
func TestValues(t *testing.T) {
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: quiet})
	type login struct {
		User     string `json:"user"`
		Password string `json:"password"`
		Shoe     string `json:"shoe"`
	}
	mux.Tool("login", mcp.ToolFunc(func(_ context.Context, in login) (map[string]string, error) {
		return map[string]string{"accessToken": "s3cret-" + in.Password, "user": in.User}, nil
	}, nil))
	for _, on := range []bool{false, true} {
		address, s := endpoint(t, mux, &debug.Options{Values: on, Secret: func(member string) bool { return member == "shoe" }})
		s.page("")
		conn := connect(t, address, "", &mcp.ClientOptions{})
		p := &mcp.CallToolParams{Name: "login", Arguments: []byte(`{"user":"ada","password":"hunter2","shoe":"left"}`)}
		if _, err := conn.CallTool(t.Context(), p); err != nil {
			t.Fatal(err)
		}
		o := decode[overview](s, "?format=json")
		text := s.page("?format=json") + s.page("?view=request&number="+fmt.Sprint(o.Recent[0].Number))
		for _, secret := range []string{"hunter2", "s3cret", "left"} {
			if strings.Contains(text, secret) {
				t.Errorf("values: %t: there is %q in\n%s", on, secret, text)
			}
		}
		if got := strings.Contains(text, "ada"); got != on {
			t.Errorf("values: %t: the user is shown: %t", on, got)
		}
	}
}

// Nothing is recorded before the page is first viewed or more than two minutes after it was
// last viewed, unless the options say so.
func TestAttention(t *testing.T) {
	for _, always := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			mux := newMux(t)
			h := debug.NewHandler(mux, &debug.Options{
				Logger: quiet, Always: always, Authorize: func(*http.Request) (*mcp.Principal, error) { return nil, nil },
			})
			recent := func() int {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/?format=json", nil))
				return strings.Count(w.Body.String(), `"name": "add"`)
			}
			call := func() {
				_, _, _ = mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "add", Arguments: []byte(`{"a":1,"b":2}`)}))
			}
			want := 0
			for _, step := range []struct {
				seen bool
				then time.Duration
			}{{false, time.Second}, {true, time.Minute}, {true, 3 * time.Minute}, {false, time.Second}} {
				call()
				if step.seen || always {
					want++
				}
				if step.then < 2*time.Minute {
					if got := recent(); got != want {
						t.Errorf("%d are remembered, want %d", got, want)
					}
				}
				<-time.After(step.then)
			}
		})
	}
}

// The number of recent requests is bounded.
func TestMaxRecent(t *testing.T) {
	mux := newMux(t)
	s := serve(t, mux, nil)
	s.page("")
	for i := range 210 {
		_, _, _ = mcptest.Do(t, mux, mcptest.NewRequest(fmt.Sprintf("vendor/%d", i), nil))
	}
	o := decode[overview](s, "?format=json")
	if len(o.Recent) != 200 || o.Recent[0].Method != "vendor/209" || o.Recent[199].Method != "vendor/10" {
		t.Errorf("%d requests: %+v", len(o.Recent), o.Recent)
	}
}

// events opens the event stream and returns a function that waits for an event.
func (s *site) events() (next func(name string)) {
	s.Helper()
	r := s.request(http.MethodGet, "?events", nil)
	res, err := s.client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = res.Body.Close() })
	if kind := res.Header.Get("Content-Type"); res.StatusCode != http.StatusOK || kind != "text/event-stream" {
		s.Fatal(res.Status, kind)
	}
	lines := bufio.NewScanner(res.Body)
	return func(name string) {
		s.Helper()
		for lines.Scan() {
			if lines.Text() == "event: "+name {
				return
			}
		}
		s.Fatal("the stream has ended:", lines.Err())
	}
}

func TestEvents(t *testing.T) {
	mux := newMux(t)
	s := serve(t, mux, nil)
	next := s.events()
	next("open")
	for range 31 {
		s.events()("open")
	}
	if res, _ := s.do(s.request(http.MethodGet, "?events", nil)); res.StatusCode != http.StatusServiceUnavailable {
		t.Error(res.Status)
	}
	next("activity")
	for i := range 100 { // until the subscription is in place
		mux.Tool(fmt.Sprint("new", i), mcp.ToolFunc(func(context.Context, empty) (string, error) { return "", nil }, nil))
		if o := decode[overview](s, "?format=json"); len(o.Subscriptions) > 0 {
			mux.RemoveTool("new0")
			break
		}
	}
	next("lists")
	s.post(url.Values{"action": {"call"}, "kind": {"tool"}, "name": {"add"}, "f.a": {"2"}, "f.b": {"3"}})
	next("runs")
}

// Shutting down a server does not wait for open pages.
func TestShutdown(t *testing.T) {
	server := httptest.NewServer(debug.NewHandler(newMux(t), &debug.Options{Logger: quiet}))
	t.Cleanup(server.Close)
	s := &site{t, server.URL, server.Client()}
	next := s.events()
	next("open")
	if err := server.Config.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// BenchmarkObserved compares a call while no page is open with a call while one is: on the
// mux alone and over HTTP.
func BenchmarkObserved(b *testing.B) {
	for _, looked := range []string{"nobody", "somebody"} {
		mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: quiet})
		mux.Tool("add", mcp.ToolFunc(func(_ context.Context, in struct{ A, B int }) (map[string]int, error) {
			return map[string]int{"sum": in.A + in.B}, nil
		}, nil))
		debug.NewHandler(mux, &debug.Options{Logger: quiet, Always: looked == "somebody"})
		p := &mcp.CallToolParams{Name: "add", Arguments: []byte(`{"A":1,"B":2}`)}
		b.Run("mux/"+looked, func(b *testing.B) {
			req, err := mcp.NewRequest(mcp.MethodCallTool, p)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := mux.ServeMCP(b.Context(), req); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("http/"+looked, func(b *testing.B) {
			server := httptest.NewServer(mcphttp.NewHandler(mux, &mcphttp.Options{Logger: quiet}))
			defer server.Close()
			conn, err := mcp.NewClient("bench", "v1", nil).Connect(b.Context(), mcphttp.NewTransport(server.URL, nil))
			if err != nil {
				b.Fatal(err)
			}
			defer conn.Close()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := conn.CallTool(b.Context(), p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A page that is not being viewed adds no cost to a request.
func TestAllocations(t *testing.T) {
	mux := newMux(t)
	req := mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "add", Arguments: []byte(`{"a":1,"b":2}`)})
	allocations := func() float64 {
		return testing.AllocsPerRun(200, func() {
			if _, err := mux.ServeMCP(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		})
	}
	without := allocations()
	s := serve(t, mux, nil)
	if with := allocations(); with > without+1 { // under the race detector, pools drop some items
		t.Errorf("%v allocations with a page, %v without", with, without)
	}
	s.page("")
	if looked := allocations(); looked > without+6 {
		t.Errorf("%v allocations while somebody looks, %v otherwise", looked, without)
	}
}

// Sessions of the HTTP+SSE transport are shown, too.
func TestSSESessions(t *testing.T) {
	mux := newMux(t)
	h := mcphttp.NewSSEHandler(mux, &mcphttp.Options{Logger: quiet})
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	client := mcp.NewClient("old app", "v1", &mcp.ClientOptions{Logger: quiet})
	conn, err := client.Connect(t.Context(), mcphttp.NewSSETransport(server.URL, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s := serve(t, mux, &debug.Options{Endpoints: []debug.Endpoint{h}})
	o := decode[overview](s, "?format=json")
	if len(o.Endpoints) != 1 || len(o.Endpoints[0].Sessions) != 1 || o.Endpoints[0].Sessions[0].Client != "old app v1" {
		t.Errorf("%+v", o.Endpoints)
	}
}
