// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/debug"
)

type empty struct{}

// quiet logs nothing.
var quiet = slog.New(slog.DiscardHandler)

// newMux returns a server with at least one item of every kind.
func newMux(t *testing.T) *mcp.Mux {
	t.Helper()
	mux := mcp.NewMux("shop", "v1.2.3", &mcp.MuxOptions{Logger: quiet, Instructions: "Be <b>kind</b>."})
	type addIn struct {
		A int    `json:"a" jsonschema:"description=first addend"`
		B int    `json:"b"`
		U string `json:"unit,omitempty" jsonschema:"enum=m,enum=km"`
	}
	mux.Tool("add", mcp.ToolFunc(func(_ context.Context, in addIn) (map[string]int, error) {
		return map[string]int{"sum": in.A + in.B}, nil
	}, &mcp.Tool{Description: "Add two integers."}))
	mux.Tool("fail", mcp.ToolFunc(func(context.Context, empty) (string, error) {
		return "", &mcp.PrivateError{Public: "it did not work", Err: errors.New("disk /dev/sda1 is full")}
	}, &mcp.Tool{Description: "<script>alert(1)</script>"}))
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ empty) (string, error) {
		type trip struct {
			City string `json:"city"`
			Days int    `json:"days"`
		}
		to, err := mcp.Elicit[trip](ctx, "trip", "Where to?")
		if err != nil {
			return "", err
		}
		return "off to " + to.City, nil
	}, nil))
	mux.Prompt("greet", mcp.PromptFunc(func(_ context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return "Hello, " + in.Name, nil
	}, nil))
	mux.Resource("notes://{id}", mcp.ResourceFunc(func(_ context.Context, in struct {
		ID string `json:"id"`
	}) (string, error) {
		return "note " + in.ID, nil
	}, nil))
	return mux
}

// A site is a page served on a loopback address.
type site struct {
	*testing.T

	url    string
	client *http.Client
}

// serve serves the page for h.
func serve(t *testing.T, h mcp.Handler, opts *debug.Options) *site {
	t.Helper()
	if opts == nil {
		opts = &debug.Options{}
	}
	opts.Logger = quiet
	server := httptest.NewServer(debug.NewHandler(h, opts))
	t.Cleanup(server.Close)
	return &site{t, server.URL + "/debug/mcp", server.Client()}
}

// do sends a request and returns the response and its body.
func (s *site) do(r *http.Request) (*http.Response, string) {
	s.Helper()
	res, err := s.client.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
	}
	return res, string(body)
}

func (s *site) request(method, query string, form url.Values) *http.Request {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+query, strings.NewReader(form.Encode()))
	if err != nil {
		s.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return r
}

// page returns a page as HTML.
func (s *site) page(query string) string {
	s.Helper()
	res, body := s.do(s.request(http.MethodGet, query, nil))
	if res.StatusCode != http.StatusOK {
		s.Fatalf("%s: %s\n%s", query, res.Status, body)
	}
	return body
}

// decode returns a page as JSON.
func decode[T any](s *site, query string) (v T) {
	s.Helper()
	if err := json.Unmarshal([]byte(s.page(query)), &v); err != nil {
		s.Fatal(err)
	}
	return v
}

// A run is the page of a call, as JSON.
type run struct {
	ID        string
	State     string
	Error     string
	Code      int
	Done      bool
	Result    json.RawMessage
	Logs      []string
	Questions []struct {
		Number  int
		Message string
		URL     string
	}
	Progress *struct{ Done, Total float64 }
}

// post submits a form and returns the call that it started or changed.
func (s *site) post(form url.Values) run {
	s.Helper()
	res, body := s.do(s.request(http.MethodPost, "?format=json", form))
	var r run
	if err := json.Unmarshal([]byte(body), &r); err != nil || res.StatusCode != http.StatusOK {
		s.Fatalf("%s %v\n%s", res.Status, err, body)
	}
	return r
}

// wait waits until a call is in a state and returns the call.
func (s *site) wait(id, state string) run {
	s.Helper()
	for s.Context().Err() == nil {
		if r := decode[run](s, "?view=run&format=json&id="+id); r.State == state {
			return r
		} else if r.Done {
			s.Fatalf("%+v", r)
		}
		<-time.After(5 * time.Millisecond)
	}
	return run{}
}

func wantIn(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in\n%s", part, text)
		}
	}
}

func TestRegistered(t *testing.T) {
	mux := newMux(t)
	s := serve(t, mux, nil)
	text := s.page("?view=registered")
	wantIn(t, text, "add", "Add two integers.", "debug_test.go:", "greet", "notes://{id}", "&lt;script&gt;")
	if strings.Contains(text, "<script>alert") {
		t.Error("not escaped")
	}
}

func TestCall(t *testing.T) {
	s := serve(t, newMux(t), nil)
	wantIn(t, s.page("?view=item&kind=tool&name=add"), `name="f.a"`, "first addend", `value="&#34;km&#34;"`)
	r := s.post(url.Values{"action": {"call"}, "kind": {"tool"}, "name": {"add"}, "f.a": {"2"}, "f.b": {"3"}})
	if r.State != "ok" || !strings.Contains(string(r.Result), `"sum": 5`) {
		t.Errorf("%+v %s", r, r.Result)
	}
	wantIn(t, s.page("?view=run&id="+r.ID), "&#34;sum&#34;: 5")
	wantIn(t, s.page("?"), "tools/call", "add", "debug page")
}

func TestFailure(t *testing.T) {
	s := serve(t, newMux(t), nil)
	s.page("")
	r := s.post(url.Values{"action": {"call"}, "kind": {"tool"}, "name": {"fail"}})
	if r.State != "isError" || strings.Contains(string(r.Result), "disk") {
		t.Errorf("%+v", r)
	}
	wantIn(t, s.page(""), "disk /dev/sda1 is full", "failed")
}

// All log messages of a call are shown, however soon it ends.
func TestLogMessages(t *testing.T) {
	mux := newMux(t)
	mux.Tool("talk", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		for n := range 3 {
			mcp.ClientLogger(ctx).Debug(fmt.Sprint("message ", n))
		}
		return "", nil
	}, nil))
	s := serve(t, mux, nil)
	want := []string{`debug {"msg":"message 0"}`, `debug {"msg":"message 1"}`, `debug {"msg":"message 2"}`}
	for range 50 {
		r := s.wait(s.post(url.Values{"action": {"call"}, "kind": {"tool"}, "name": {"talk"}}).ID, "ok")
		if !slices.Equal(r.Logs, want) {
			t.Fatalf("the messages %q, want %q", r.Logs, want)
		}
	}
}

func TestQuestion(t *testing.T) {
	s := serve(t, newMux(t), nil)
	r := s.post(url.Values{"action": {"call"}, "kind": {"tool"}, "name": {"ask"}})
	r = s.wait(r.ID, "asking")
	wantIn(t, s.page("?view=run&id="+r.ID), "Where to?", `name="f.city"`)
	r = s.post(url.Values{"action": {"answer"}, "id": {r.ID}, "question": {"1"}, "answer": {"accept"}, "f.city": {"Lisbon"}, "f.days": {"2"}})
	r = s.wait(r.ID, "ok")
	wantIn(t, string(r.Result), "off to Lisbon")
	wantIn(t, s.page(""), `asks</span>`)
}

func TestPromptsAndResources(t *testing.T) {
	s := serve(t, newMux(t), nil)
	r := s.post(url.Values{"action": {"call"}, "kind": {"prompt"}, "name": {"greet"}, "f.name": {"Ada"}})
	wantIn(t, string(r.Result), "Hello, Ada")
	r = s.post(url.Values{"action": {"call"}, "kind": {"template"}, "name": {"notes://{id}"}, "f.id": {"7"}})
	wantIn(t, string(r.Result), "note 7")
	r = s.post(url.Values{"action": {"call"}, "kind": {"resource"}, "name": {"notes://8"}})
	wantIn(t, string(r.Result), "note 8")
}

// A connection is shown as its client sees it.
func TestConnection(t *testing.T) {
	server := httptest.NewServer(mcphttp.NewHandler(newMux(t), nil))
	t.Cleanup(server.Close)
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			client := mcp.NewClient("c", "v1", &mcp.ClientOptions{Forward: true, Version: version, Logger: quiet})
			conn, err := client.Connect(t.Context(), mcphttp.NewTransport(server.URL, nil))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			s := serve(t, conn, nil)
			greet := func(name string) {
				t.Helper()
				if _, err := conn.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"name": name}}); err != nil {
					t.Fatal(err)
				}
			}
			greet("nobody who looks")
			wantIn(t, s.page("?view=overview"), "shop", "v1.2.3") // from here on, other calls are recorded
			greet("somebody")
			if n := strings.Count(s.page("?view=overview"), "prompts/get</a>"); n != 1 {
				t.Errorf("%d calls of others are shown", n)
			}
			wantIn(t, s.page(""), "add", "greet") // what the server offers comes first
			r := s.post(url.Values{"action": {"call"}, "kind": {"tool"}, "name": {"add"}, "f.a": {"2"}, "f.b": {"3"}})
			wantIn(t, string(r.Result), `"sum": 5`)
			wantIn(t, s.page("?view=overview"), "tools/call")
			r = s.post(url.Values{"action": {"call"}, "kind": {"tool"}, "name": {"ask"}})
			r = s.wait(r.ID, "asking")
			r = s.post(url.Values{"action": {"answer"}, "id": {r.ID}, "question": {"1"}, "answer": {"accept"}, "f.city": {"Lisbon"}, "f.days": {"2"}})
			r = s.wait(r.ID, "ok")
			wantIn(t, string(r.Result), "off to Lisbon")
		})
	}
}
