// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/go-psi/psi/internal/test/memnet"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// quiet is a logger for tests whose server is expected to log problems.
var quiet = slog.New(slog.DiscardHandler)

// site is an in-memory server and a client for it.
type site struct {
	t      *testing.T
	client *http.Client
	server *http.Server
	query  string // of request URLs
}

func serve(t *testing.T, h http.Handler, configure ...func(*http.Server)) *site {
	t.Helper()
	l := memnet.Listen()
	server := &http.Server{Handler: h, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	for _, c := range configure {
		c(server)
	}
	go func() { _ = server.Serve(l) }()
	s := &site{t: t, client: l.Client(), server: server}
	if network, ok := s.client.Transport.(*http.Transport); ok {
		s.client.Transport = &watchedTransport{network, watchContexts(t)}
	}
	t.Cleanup(s.close)
	return s
}

func (s *site) close() {
	_ = s.server.Close()
	s.client.CloseIdleConnections()
}

// header contains request headers that are added to, or replace, the defaults.
type header map[string]string

func (s *site) request(ctx context.Context, method, body string, h header) *http.Request {
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost/mcp", strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.URL.RawQuery = s.query
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for key, value := range h {
		switch {
		case key == "Host":
			r.Host = value
		case value == "":
			r.Header.Del(key)
		default:
			r.Header.Set(key, value)
		}
	}
	return r
}

// do sends a request. When its context ends, the body of its response is closed: since Go
// 1.27, Close waits on a mutex for a goroutine that reads the body, and a mutex does not
// durably block a synctest bubble.
func (s *site) do(r *http.Request) *http.Response {
	s.t.Helper()
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return res
}

func (s *site) post(body string, h header) *http.Response {
	s.t.Helper()
	return s.do(s.request(s.t.Context(), http.MethodPost, body, h))
}

// reply is a complete response.
type reply struct {
	status int
	header http.Header
	body   string
}

func whole(t *testing.T, res *http.Response) reply {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{res.StatusCode, res.Header, string(body)}
}

// code returns the code of a JSON-RPC error response, or 0 for a result.
func (r reply) code(t *testing.T) int {
	t.Helper()
	var m struct {
		Error *mcp.Error `json:"error"`
	}
	if err := json.Unmarshal([]byte(r.body), &m); err != nil {
		t.Fatalf("the answer is no JSON: %v\n%s", err, r.body)
	}
	if m.Error == nil {
		return 0
	}
	return m.Error.Code
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"progressToken":"p"}`

// modern returns the body and the headers of a modern request. Params are members such as
// `"name":"add"`, or "".
func modern(method, name, params string) (string, header) {
	if params != "" {
		params += ","
	}
	h := header{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
	if name != "" {
		h["Mcp-Name"] = name
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}}`, method, params, modernMeta), h
}

func callModern(tool string) (string, header) {
	return modern("tools/call", tool, fmt.Sprintf(`"name":%q`, tool))
}

func with(h header, more header) header {
	h = maps.Clone(h)
	maps.Copy(h, more)
	return h
}

// open opens a session and returns the headers of its requests.
func (s *site) open(version string) header {
	s.t.Helper()
	res := whole(s.t, s.post(initialize(version), nil))
	if res.status != http.StatusOK {
		s.t.Fatalf("initialize: %d %s", res.status, res.body)
	}
	h := header{"Mcp-Session-Id": res.header.Get("Mcp-Session-Id"), "MCP-Protocol-Version": version}
	if version < "2025-06-18" {
		delete(h, "MCP-Protocol-Version")
	}
	if res := whole(s.t, s.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, h)); res.status != http.StatusAccepted || res.body != "" {
		s.t.Fatalf("initialized: %d %q", res.status, res.body)
	}
	return h
}

func initialize(version string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{"elicitation":{}},"clientInfo":{"name":"test","version":"1"}}}`, version)
}

func call(id int, tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"_meta":{"progressToken":"p"}}}`, id, tool)
}

// events reads n events from a stream, or all events if n is 0.
func events(t *testing.T, res *http.Response, n int) []sse.Event {
	t.Helper()
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("Content-Type is %q, want an event stream", got)
	}
	var all []sse.Event
	for e, err := range sse.Read(res.Body, nil) {
		if err != nil {
			t.Fatalf("after %d events: %v", len(all), err)
		}
		if all = append(all, e); len(all) == n {
			break
		}
	}
	return all
}

// reader returns the events of a stream one by one.
type reader struct {
	t      *testing.T
	events chan sse.Event
}

func read(t *testing.T, res *http.Response) *reader {
	t.Helper()
	r := &reader{t, make(chan sse.Event, 100)} // filled by a goroutine
	go func() {
		defer close(r.events)
		for e, err := range sse.Read(res.Body, nil) {
			if err != nil {
				return
			}
			select {
			case r.events <- e:
			case <-t.Context().Done():
				return
			}
		}
	}()
	return r
}

// next returns the next event; ok is false at the end of the stream.
func (r *reader) next() (e sse.Event, ok bool) {
	r.t.Helper()
	e, ok = <-r.events
	return e, ok
}

// message returns the next event that contains a message.
func (r *reader) message() string {
	r.t.Helper()
	for {
		e, ok := r.next()
		if !ok {
			r.t.Fatal("the stream has ended")
		}
		if e.Data != "" {
			return e.Data
		}
	}
}

// tools returns a mux with the items that tests use.
func tools() *mcp.Mux {
	mux := mcp.NewMux("test", "v1", &mcp.MuxOptions{Logger: quiet})
	mux.Tool("hello", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil))
	mux.Tool("steps", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		for i := range 3 {
			mcp.Progress(ctx, float64(i), 3, "")
		}
		return "done", nil
	}, nil))
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		type name struct {
			Name string `json:"name"`
		}
		first, err := mcp.Elicit[name](ctx, "first", "First name?")
		if err != nil {
			return "", err
		}
		last, err := mcp.Elicit[name](ctx, "last", "Last name?")
		if err != nil {
			return "", err
		}
		return first.Name + " " + last.Name, nil
	}, nil))
	mux.Resource("test://doc", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "text", nil }, nil))
	return mux
}

// waiting adds a tool that reports when it has started and waits for its context to be done.
func waiting(mux *mcp.Mux) (began chan struct{}, ended chan error) {
	began, ended = make(chan struct{}, 16), make(chan error, 16)
	mux.Tool("wait", mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
		began <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, context.Cause(ctx)
	}))
	return began, ended
}

// newHandler returns a handler that is shut down at the end of the test and must leave
// nothing behind. It logs nothing unless the options have a logger.
func newHandler(t testing.TB, mux mcp.Handler, opts *mcphttp.Options) *mcphttp.Handler {
	t.Helper()
	o := mcphttp.Options{}
	if opts != nil {
		o = *opts
	}
	o.Logger = cmp.Or(o.Logger, quiet)
	if shared := o.Sessions.Shared; shared != nil {
		watched := *shared
		watched.Values = &watchedStore{shared.Values, watchContexts(t)}
		o.Sessions.Shared = &watched
	}
	h := mcphttp.NewHandler(mux, &o)
	t.Cleanup(func() { endAll(t, h) })
	return h
}

// newSSEHandler does the same for the transport of 2024-11-05.
func newSSEHandler(t testing.TB, mux mcp.Handler) *mcphttp.SSEHandler {
	t.Helper()
	h := mcphttp.NewSSEHandler(mux, &mcphttp.Options{Logger: quiet})
	t.Cleanup(func() { endAll(t, h) })
	return h
}

// endAll shuts down a handler. Nothing may be left of what it serves.
func endAll(t testing.TB, h interface {
	Shutdown(ctx context.Context) error
}) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = h.Shutdown(ctx)
	ctx, cancel = context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := h.Shutdown(ctx); err != nil {
		t.Errorf("requests are in flight after Shutdown: %v", err)
	} else if left := mcphttp.Leftovers(h); left != "" {
		t.Errorf("after Shutdown: %s", left)
	}
}

// uncalled is a handler that tests register but do not call.
var uncalled = mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return mcp.TextResult(""), nil })
