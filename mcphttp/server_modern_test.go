// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// If messages are streamed before a response, it is sent as a stream, otherwise as JSON, as
// far as the client accepts that.
func TestModernForms(t *testing.T) {
	s := serve(t, newHandler(t, tools(), nil))
	body, h := callModern("hello")
	plain := whole(t, s.post(body, h))
	if plain.status != 200 || plain.header.Get("Content-Type") != "application/json" || plain.header.Get("Content-Length") == "" {
		t.Errorf("an answer without notifications: %+v, want JSON of known length", plain)
	}
	if plain.header.Get("Mcp-Session-Id") != "" {
		t.Error("a request of the modern era got a session")
	}
	body, h = callModern("steps")
	res := s.post(body, h)
	all := events(t, res, 0)
	if len(all) != 4 || !strings.Contains(all[3].Data, `"id":1`) || all[3].LastEventID != "" {
		t.Errorf("an answer after three notifications: %v, want them, then the response, without ids", all)
	}
	for key, want := range (header{"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}) {
		if got := res.Header.Get(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

// T29: the Accept and Content-Type headers that real clients send.
func TestNegotiation(t *testing.T) {
	s := serve(t, newHandler(t, tools(), nil))
	cases := []struct {
		accept, tool string
		status       int
		want         string
	}{
		{"", "hello", 200, "application/json"},
		{"*/*", "hello", 200, "application/json"},
		{"application/json", "hello", 200, "application/json"},
		{"application/json", "steps", 200, "application/json"},
		{"text/event-stream", "hello", 200, "text/event-stream"},
		{"TEXT/Event-Stream;q=0.5, application/*;q=0", "hello", 200, "text/event-stream"},
		{"application/json;q=0.9, text/event-stream;charset=utf-8", "steps", 200, "text/event-stream"},
		{"text/html", "hello", 406, "application/json"},
		{"application/*;q=0, application/json", "hello", 200, "application/json"}, // the most specific type counts, in any order
		{"*/*;q=0, application/*", "hello", 200, "application/json"},
	}
	for _, c := range cases {
		body, h := callModern(c.tool)
		res := s.post(body, with(h, header{"Accept": c.accept}))
		if got := res.Header.Get("Content-Type"); res.StatusCode != c.status || got != c.want {
			t.Errorf("Accept %q, %s: %d %s, want %d %s", c.accept, c.tool, res.StatusCode, got, c.status, c.want)
		}
	}
	for contentType, want := range map[string]int{
		"application/json; charset=utf-8": 200, "Application/JSON": 200, "text/plain": 415, "": 415, "application/json-rpc": 415,
	} {
		body, h := callModern("hello")
		if res := s.post(body, with(h, header{"Content-Type": contentType})); res.StatusCode != want {
			t.Errorf("Content-Type %q: %d, want %d", contentType, res.StatusCode, want)
		}
	}
}

// T62: a request whose headers do not match its body is rejected.
func TestHeaders(t *testing.T) {
	mux := tools()
	mux.Tool("größe", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil))
	mux.Tool("route", mcp.ToolFunc(func(context.Context, map[string]any) (string, error) { return "", nil }, &mcp.Tool{
		InputSchema: []byte(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"}}}`),
	}))
	s := serve(t, newHandler(t, mux, nil))
	route := func(args string) string {
		body, _ := modern("tools/call", "route", `"name":"route","arguments":`+args)
		return body
	}
	hello, ok := callModern("hello")
	_, routed := callModern("route")
	umlaut, _ := callModern("größe")
	bare := strings.Replace(hello, modernMeta, `"_meta":{}`, 1)
	cases := []struct {
		name, body string
		header     header
		status     int
		code       int
	}{
		{"all there", hello, ok, 200, 0},
		{"any case of names", hello, with(ok, header{"MCP-METHOD": "tools/call"}), 200, 0},
		{"no version", hello, with(ok, header{"MCP-Protocol-Version": ""}), 400, mcp.CodeHeaderMismatch},
		{"no method", hello, with(ok, header{"Mcp-Method": ""}), 400, mcp.CodeHeaderMismatch},
		{"no name", hello, with(ok, header{"Mcp-Name": ""}), 400, mcp.CodeHeaderMismatch},
		{"other method", hello, with(ok, header{"Mcp-Method": "tools/list"}), 400, mcp.CodeHeaderMismatch},
		{"method in capitals", hello, with(ok, header{"Mcp-Method": "TOOLS/CALL"}), 400, mcp.CodeHeaderMismatch},
		{"other name", hello, with(ok, header{"Mcp-Name": "steps"}), 400, mcp.CodeHeaderMismatch},
		{"other version", hello, with(ok, header{"MCP-Protocol-Version": "2025-11-25"}), 400, mcp.CodeHeaderMismatch},
		{"unknown version in the body", strings.Replace(hello, "2026-07-28", "v9", 1), ok, 400, mcp.CodeHeaderMismatch},
		{"unknown version", strings.Replace(hello, "2026-07-28", "v9", 1), with(ok, header{"MCP-Protocol-Version": "v9"}), 400, mcp.CodeUnsupportedVersion},
		{"legacy version", strings.Replace(hello, "2026-07-28", "2025-11-25", 1), with(ok, header{"MCP-Protocol-Version": "2025-11-25"}), 400, mcp.CodeUnsupportedVersion},
		{"no metadata", bare, ok, 400, mcp.CodeInvalidParams},
		{"name beyond ASCII", umlaut, with(ok, header{"Mcp-Name": transport.EncodeHeaderValue("größe")}), 200, 0},
		{"bad base64", umlaut, with(ok, header{"Mcp-Name": "=?base64?gr!?="}), 400, mcp.CodeHeaderMismatch},
		{"argument", route(`{"region":"eu"}`), with(routed, header{"Mcp-Param-Region": "eu"}), 200, 0},
		{"argument, encoded", route(`{"region":"eu"}`), with(routed, header{"Mcp-Param-Region": "=?base64?ZXU=?="}), 200, 0},
		{"argument, bad padding", route(`{"region":"eu"}`), with(routed, header{"Mcp-Param-Region": "=?base64?ZXU?="}), 400, mcp.CodeHeaderMismatch},
		{"argument without header", route(`{"region":"eu"}`), routed, 400, mcp.CodeHeaderMismatch},
		{"header without argument", route(`{}`), with(routed, header{"Mcp-Param-Region": "eu"}), 400, mcp.CodeHeaderMismatch},
		{"neither", route(`{"region":null}`), routed, 200, 0},
		{"empty argument", route(`{"region":""}`), routed, 200, 0},
		{"integer by value", route(`{"n":42}`), with(routed, header{"Mcp-Param-N": "42.0"}), 200, 0},
		{"other integer", route(`{"n":42}`), with(routed, header{"Mcp-Param-N": "43"}), 400, mcp.CodeHeaderMismatch},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			res := whole(t, s.post(c.body, c.header))
			if res.status != c.status || res.code(t) != c.code {
				t.Errorf("%d, code %d, want %d, code %d\n%s", res.status, res.code(t), c.status, c.code, res.body)
			}
			if !strings.Contains(res.body, `"id":1`) {
				t.Errorf("the answer does not name its request: %s", res.body)
			}
		})
	}
}

// Invalid input gets the status and the code that the specification requires, and a response
// with the ID of the request if the ID could be read.
func TestModernErrors(t *testing.T) {
	s := serve(t, newHandler(t, tools(), &mcphttp.Options{MaxBody: 4096}))
	_, h := callModern("hello")
	list := func(params string) string { body, _ := modern("tools/list", "", params); return body }
	_, listing := modern("tools/list", "", "")
	cases := []struct {
		name, body string
		header     header
		status     int
		code       int
	}{
		{"malformed", `{"jsonrpc":"2.0",`, h, 400, mcp.CodeParseError},
		{"trailing", list("") + "}", listing, 400, mcp.CodeParseError},
		{"member twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}`, h, 400, mcp.CodeParseError},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":\"\xff\"}", h, 400, mcp.CodeParseError},
		{"too deep", strings.Repeat("[", 500), h, 400, mcp.CodeInvalidRequest},
		{"array", `[]`, h, 400, mcp.CodeInvalidRequest},
		{"number", `1`, h, 400, mcp.CodeInvalidRequest},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"tools/list"}`, h, 400, mcp.CodeInvalidRequest},
		{"fraction as id", `{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}`, h, 400, mcp.CodeInvalidRequest},
		{"no method", `{"jsonrpc":"2.0","id":1}`, h, 400, mcp.CodeInvalidRequest},
		{"empty method", `{"jsonrpc":"2.0","id":1,"method":""}`, h, 400, mcp.CodeInvalidRequest},
		{"method in another case", `{"jsonrpc":"2.0","id":1,"Method":"tools/list"}`, h, 400, mcp.CodeInvalidRequest},
		{"params as array", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}`, h, 400, mcp.CodeInvalidRequest},
		{"too long", `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 5000) + `"}`, h, 413, mcp.CodeInvalidRequest},
		{"cursor", list(`"cursor":"forged"`), listing, 200, mcp.CodeInvalidParams},
		{"cursor as number", list(`"cursor":7`), listing, 200, mcp.CodeInvalidParams},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			res := whole(t, s.post(c.body, c.header))
			if res.status != c.status || res.code(t) != c.code {
				t.Errorf("%d, code %d, want %d, code %d\n%s", res.status, res.code(t), c.status, c.code, res.body)
			}
		})
	}
	named := func(method, name, params string, status, code int) {
		t.Helper()
		res := whole(t, s.post(modern(method, name, params)))
		if res.status != status || res.code(t) != code {
			t.Errorf("%s %s: %d, code %d, want %d, code %d", method, name, res.status, res.code(t), status, code)
		}
	}
	named("tools/call", "none", `"name":"none"`, 200, mcp.CodeInvalidParams)
	named("resources/read", "test://none", `"uri":"test://none"`, 200, mcp.CodeInvalidParams)
	named("prompts/list", "", "", 404, mcp.CodeMethodNotFound) // the server has no prompts
	for _, removed := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "unknown/method"} {
		named(removed, "", "", 404, mcp.CodeMethodNotFound)
	}
	body, h := callModern("ask")
	res := whole(t, s.post(strings.Replace(body, `{"elicitation":{}}`, `{}`, 1), h))
	if res.status != 400 || res.code(t) != mcp.CodeMissingCapability || !strings.Contains(res.body, `"requiredCapabilities":{"elicitation":`) {
		t.Errorf("a question to a client that cannot be asked: %d %s", res.status, res.body)
	}
}

// T33: a body of unknown length is limited, too.
func TestChunkedBodyIsBounded(t *testing.T) {
	s := serve(t, newHandler(t, tools(), &mcphttp.Options{MaxBody: 1000}))
	body, h := callModern("hello")
	r := s.request(t.Context(), http.MethodPost, "", h)
	r.Body = http.NoBody
	r.ContentLength = -1
	r.Body = readCloser{strings.NewReader(body + strings.Repeat(" ", 2000))}
	if res := s.do(r); res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d, want 413", res.StatusCode)
	}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// T48: in the modern era, disconnecting cancels the request.
func TestDisconnectCancels(t *testing.T) {
	mux := tools()
	began, ended := waiting(mux)
	s := serve(t, newHandler(t, mux, nil))
	ctx, cancel := context.WithCancel(t.Context())
	body, h := callModern("wait")
	go func() {
		<-began
		cancel()
	}()
	if _, err := s.client.Do(s.request(ctx, http.MethodPost, body, h)); !errors.Is(err, context.Canceled) {
		t.Errorf("Do returned %v", err)
	}
	<-ended
}

// T16: a notification after the response fails, and nothing is written.
func TestLateNotification(t *testing.T) {
	mux := tools()
	late := make(chan error)
	answered := make(chan struct{})
	mux.Tool("late", mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		go func() {
			<-answered
			late <- req.Notify(ctx, "notifications/progress", nil)
		}()
		return mcp.TextResult("early"), nil
	}))
	s := serve(t, newHandler(t, mux, nil))
	for _, accept := range []string{"application/json", "text/event-stream"} {
		body, h := callModern("late")
		whole(t, s.post(body, with(h, header{"Accept": accept})))
		answered <- struct{}{}
		if err := <-late; !errors.Is(err, mcp.ErrNotDelivered) {
			t.Errorf("Notify after the answer returned %v, want ErrNotDelivered", err)
		}
	}
}

// T24: a request that takes two minutes and sends nothing keeps its connection alive with
// comments.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		mux.Tool("slow", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
			<-time.After(2 * time.Minute)
			return "at last", nil
		}, nil))
		s := serve(t, newHandler(t, mux, &mcphttp.Options{Heartbeat: 15 * time.Second}))
		legacy := s.open("2025-11-25")
		body, h := callModern("slow")
		for name, res := range map[string]func() *http.Response{
			"modern": func() *http.Response { return s.post(body, h) },
			"legacy": func() *http.Response { return s.post(call(1, "slow"), legacy) },
		} {
			comments, answer := 0, ""
			for lines := bufio.NewScanner(res().Body); lines.Scan(); {
				switch line := lines.Text(); {
				case strings.HasPrefix(line, ":"):
					comments++
				case strings.Contains(line, "at last"):
					answer = line
				}
			}
			if comments < 7 || answer == "" {
				t.Errorf("%s: %d comments and the answer %q, want at least 7 and an answer", name, comments, answer)
			}
		}
		s.close()
	})
}

// T21: http.Server.WriteTimeout does not cut off streams.
func TestWriteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		mux.Tool("slow", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			for i := range 10 {
				<-time.After(time.Second)
				mcp.Progress(ctx, float64(i), 10, "")
			}
			return "done", nil
		}, nil))
		s := serve(t, newHandler(t, mux, nil), func(srv *http.Server) { srv.WriteTimeout = 2 * time.Second })
		body, h := modern("subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`)
		listening := read(t, s.post(body, h))
		listening.message() // acknowledged
		body, h = callModern("slow")
		if all := events(t, s.post(body, h), 0); len(all) != 11 {
			t.Errorf("got %d events, want 10 and the answer", len(all))
		}
		mux.Tool("new", uncalled)
		if got := listening.message(); !strings.Contains(got, "tools/list_changed") {
			t.Errorf("after 10 s the subscription said %s", got)
		}
		s.close()
	})
}

// T18: a client that does not read is disconnected, and nothing waits for it.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		s := serve(t, newHandler(t, mux, &mcphttp.Options{WriteTimeout: 5 * time.Second}))
		body, h := modern("subscriptions/listen", "", `"notifications":{"toolsListChanged":true,"resourceSubscriptions":["test://doc"]}`)
		stuck := s.post(body, h) // its body is not read
		reading := read(t, s.post(body, h))
		reading.message()
		before := time.Now()
		for range 10_000 {
			mux.ResourceUpdated("test://doc")
		}
		if took := time.Since(before); took > 0 {
			t.Errorf("publishing waited %v for a client that does not read", took)
		}
		if got := reading.message(); !strings.Contains(got, "resources/updated") {
			t.Errorf("the client that reads got %s", got)
		}
		<-time.After(time.Minute)
		n := 0
		for lines := bufio.NewScanner(stuck.Body); lines.Scan(); {
			n++
		}
		if n > 100 {
			t.Errorf("the client that did not read was kept %d lines", n)
		}
		s.close()
	})
}

// T22: ResponseWriters that are wrapped by middleware.
func TestWrappedWriters(t *testing.T) {
	inner := newHandler(t, tools(), nil)
	for _, c := range []struct {
		name   string
		wrap   func(http.ResponseWriter) http.ResponseWriter
		form   string
		listen int
	}{
		{"with Unwrap", func(w http.ResponseWriter) http.ResponseWriter { return unwrapper{struct{ http.ResponseWriter }{w}, w} }, "text/event-stream", 200},
		{"without", func(w http.ResponseWriter) http.ResponseWriter { return struct{ http.ResponseWriter }{w} }, "application/json", 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { inner.ServeHTTP(c.wrap(w), r) }))
			body, h := callModern("steps")
			res := s.post(body, h)
			if got := res.Header.Get("Content-Type"); got != c.form {
				t.Errorf("an answer with notifications has the form %s, want %s", got, c.form)
			}
			body, h = modern("subscriptions/listen", "", `"notifications":{}`)
			for what, res := range map[string]*http.Response{
				"subscriptions/listen": s.post(body, h),
				"GET":                  s.do(s.request(t.Context(), http.MethodGet, "", s.open("2025-11-25"))),
			} {
				if res.StatusCode != c.listen || c.listen == 500 && whole(t, res).code(t) != mcp.CodeInternalError {
					t.Errorf("%s: %d, want %d", what, res.StatusCode, c.listen)
				}
			}
		})
	}
}

type unwrapper struct {
	http.ResponseWriter
	inner http.ResponseWriter
}

func (u unwrapper) Unwrap() http.ResponseWriter { return u.inner }

// A handler can panic with http.ErrAbortHandler, as in net/http. Any other panic is logged.
func TestAbortHandler(t *testing.T) {
	mux := tools()
	mux.Tool("abort", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { panic(http.ErrAbortHandler) }))
	mux.Tool("bug", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { panic("boom") }))
	log := new(logged)
	s := serve(t, newHandler(t, mux, &mcphttp.Options{Logger: slog.New(slog.NewTextHandler(log, nil))}))
	body, h := callModern("abort")
	if res, err := s.client.Do(s.request(t.Context(), http.MethodPost, body, h)); err == nil {
		t.Errorf("the request was answered with %d", res.StatusCode)
	}
	body, h = callModern("bug")
	if res := whole(t, s.post(body, h)); res.code(t) != mcp.CodeInternalError || !strings.Contains(log.String(), "boom") {
		t.Errorf("any other panic: %+v, and the log is %q", res, log.String())
	}
	body, h = callModern("hello")
	if res := s.post(body, h); res.StatusCode != http.StatusOK {
		t.Error("the server did not survive")
	}
}

// T47: the context of a handler derives from the POST that carried its request.
func TestContext(t *testing.T) {
	type key struct{}
	mux := tools()
	mux.Tool("who", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		user, _ := ctx.Value(key{}).(string)
		return user + "/" + mcphttp.RequestFromContext(ctx).Header.Get("X-User") + "/" + mcp.PrincipalFromContext(ctx).Subject, nil
	}, nil))
	inner := newHandler(t, mux, nil)
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(context.WithValue(r.Context(), key{}, r.Header.Get("X-User")))
		inner.ServeHTTP(w, mcphttp.WithPrincipal(r, &mcp.Principal{Subject: "same"}))
	}))
	body, h := callModern("who")
	legacy := s.open("2025-11-25")
	for user, res := range map[string]*http.Response{
		"ann": s.post(body, with(h, header{"X-User": "ann"})),
		"bob": s.post(call(1, "who"), with(legacy, header{"X-User": "bob"})),
	} {
		if got := whole(t, res).body; !strings.Contains(got, user+"/"+user+"/same") {
			t.Errorf("the handler of %s's call saw %s", user, got)
		}
	}
}

// T64: unless the author allows it, nothing may be shared between callers.
func TestCacheHints(t *testing.T) {
	public := mcp.NewMux("public", "v1", &mcp.MuxOptions{ListCache: mcp.CacheFor(time.Minute, mcp.CachePublic)})
	public.Mount("private_", tools())
	for name, mux := range map[string]*mcp.Mux{"default": tools(), "public with a private part": public} {
		s := serve(t, newHandler(t, mux, nil))
		if got := whole(t, s.post(modern("tools/list", "", ""))).body; !strings.Contains(got, `"ttlMs":0,"cacheScope":"private"`) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Notifications reach their handlers and are answered with an empty 202 (T30).
func TestNotification(t *testing.T) {
	mux := tools()
	got := make(chan string, 1)
	mux.Handle("notifications/hello", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		got <- req.Method
		return nil, nil
	}))
	s := serve(t, newHandler(t, mux, nil))
	for _, body := range []string{
		`{"jsonrpc":"2.0","method":"notifications/hello","params":{` + modernMeta + `}}`,
		`{"jsonrpc":"2.0","method":"notifications/hello"}`,
	} {
		if res := whole(t, s.post(body, header{"MCP-Protocol-Version": "2026-07-28"})); res.status != http.StatusAccepted || res.body != "" {
			t.Errorf("%s: %d %q", body, res.status, res.body)
		}
		<-got
	}
}

// Characters that a client must encode are refused in the headers of a call, even if they
// agree with the body.
func TestFindingY12RawCharactersInHeaders(t *testing.T) {
	mux := tools()
	mux.Tool("größe", mcp.ToolFunc(func(context.Context, map[string]any) (string, error) { return "", nil }, &mcp.Tool{
		InputSchema: []byte(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`),
	}))
	s := serve(t, newHandler(t, mux, nil))
	encoded := transport.EncodeHeaderValue
	for _, c := range []struct {
		name, region, argument string
		status                 int
	}{
		{encoded("größe"), encoded("süd"), "süd", 200},
		{"größe", encoded("süd"), "süd", 400},
		{encoded("größe"), "süd", "süd", 400},
		{encoded("größe"), "s\tt", `s\tt`, 200}, // as the official TypeScript client sends it
		{encoded("größe"), encoded("s\tt"), `s\tt`, 200},
		{encoded("größe"), "s t", "s t", 200},
	} {
		body, h := modern("tools/call", "größe", `"name":"größe","arguments":{"region":"`+c.argument+`"}`)
		res := whole(t, s.post(body, with(h, header{"Mcp-Name": c.name, "Mcp-Param-Region": c.region})))
		if res.status != c.status || c.status == 400 && res.code(t) != mcp.CodeHeaderMismatch {
			t.Errorf("the headers %q and %q: %d %s, want %d", c.name, c.region, res.status, res.body, c.status)
		}
	}
}
