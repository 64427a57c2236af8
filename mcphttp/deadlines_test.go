// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

const writeTimeout = 5 * time.Second

// sized adds a tool whose answer has about the given size.
func sized(mux *mcp.Mux, size int) *mcp.Mux {
	mux.Tool("sized", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return strings.Repeat("x", size), nil }, nil))
	return mux
}

// unread returns requests of every kind with short answers.
func unread() map[string]struct {
	method, body string
	header       header
} {
	body, h := callModern("sized")
	return map[string]struct {
		method, body string
		header       header
	}{
		"a result":          {http.MethodPost, body, h},
		"an event stream":   {http.MethodPost, body, with(h, header{"Accept": "text/event-stream"})},
		"an error":          {http.MethodPost, "{", nil},
		"an unknown method": {http.MethodPut, "", nil},
		"an old session":    {http.MethodGet, "", header{"Mcp-Session-Id": "unknown"}},
	}
}

// S10, W6: on HTTP/2 the client controls how much of a response is sent. A client that
// accepts nothing is disconnected after WriteTimeout, however short the response is.
func TestFindingS10W6HTTP2WithoutWindow(t *testing.T) {
	for name, test := range unread() {
		for _, size := range []int{10, 15_000} {
			bubble(t, name, func(t *testing.T) {
				h := newHandler(t, sized(tools(), size), &mcphttp.Options{WriteTimeout: writeTimeout})
				f := openFrames(t, listen(t, h))
				begin := time.Now()
				const streams = 100
				for i := range uint32(streams) {
					f.request(2*i+1, test.method, test.body, test.header)
				}
				for range streams {
					if got := within(t, time.Hour, "the end of a stream", f.reset).Sub(begin); got != writeTimeout {
						t.Fatalf("a stream whose answer is not read lives for %v, want %v", got, writeTimeout)
					}
				}
				if err := h.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// S10, W6: a client that keeps sending requests without reading responses keeps its
// connection for at most WriteTimeout.
func TestFindingS10W6Pipelining(t *testing.T) {
	for name, test := range unread() {
		for _, size := range []int{10, 3000, 15_000} {
			bubble(t, name, func(t *testing.T) {
				h := newHandler(t, sized(tools(), size), &mcphttp.Options{WriteTimeout: writeTimeout})
				conn := dialRaw(t, listen(t, h))
				begin := time.Now()
				closed := flood(conn, rawRequest(test.method, test.body, len(test.body), test.header))
				if got := within(t, time.Hour, "the end of the connection", closed).Sub(begin); got > writeTimeout+time.Second {
					t.Errorf("a connection whose answers are not read lives for %v, want %v", got, writeTimeout)
				}
			})
		}
	}
}

// S10: a client that does not read the 100 Continue it asked for is disconnected, too.
func TestFindingS10UnreadContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, tools(), &mcphttp.Options{WriteTimeout: writeTimeout, BodyTimeout: 2 * writeTimeout})
		conn := dialRaw(t, listen(t, h))
		begin := time.Now()
		closed := flood(conn, rawRequest(http.MethodPost, "{}", 2, header{"Expect": "100-continue"}))
		if got := within(t, time.Hour, "the end of the connection", closed).Sub(begin); got > 3*writeTimeout {
			t.Errorf("the connection lives for %v", got)
		}
	})
}

// S10: the write deadline ends with its response. Another handler on the same connection may
// take longer.
func TestFindingS10DeadlineEndsWithItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, sized(tools(), 15_000), &mcphttp.Options{WriteTimeout: writeTimeout})
		s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPut {
				<-time.After(10 * writeTimeout)
				_, _ = io.WriteString(w, "slow")
				return
			}
			h.ServeHTTP(w, r)
		}))
		for name, accept := range map[string]string{"JSON": "application/json", "a stream": "text/event-stream"} {
			for _, tool := range []string{"sized", "steps"} {
				body, head := callModern(tool)
				whole(t, s.post(body, with(head, header{"Accept": accept})))
				if got := whole(t, s.do(s.request(t.Context(), http.MethodPut, "", nil))).body; got != "slow" {
					t.Errorf("after %s of %s: %q", name, tool, got)
				}
			}
		}
	})
}

// U11: Options.WriteTimeout replaces http.Server.WriteTimeout, which cannot account for how
// long a tool may take.
func TestFindingU11ToolSlowerThanServer(t *testing.T) {
	const slow = 500 * time.Millisecond
	limited := func(s *http.Server) { s.WriteTimeout, s.ReadTimeout = slow, slow }
	for _, accept := range []string{"application/json, text/event-stream", "application/json", "text/event-stream"} {
		bubble(t, accept, func(t *testing.T) {
			mux := tools()
			mux.Tool("slow", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
				<-time.After(3 * slow)
				return "in the end", nil
			}, nil))
			l := listen(t, newHandler(t, mux, nil), limited)
			one := &site{t: t, client: l.Client()}
			t.Cleanup(one.client.CloseIdleConnections)
			for name, s := range map[string]*site{"HTTP/1": one, "HTTP/2": http2Client(t, l)} {
				body, h := callModern("slow")
				for era, res := range map[string]func() *http.Response{
					"modern": func() *http.Response { return s.post(body, with(h, header{"Accept": accept})) },
					"legacy": func() *http.Response {
						return s.post(call(1, "slow"), with(s.open("2025-11-25"), header{"Accept": accept}))
					},
				} {
					if got := whole(t, res()); !strings.Contains(got.body, "in the end") {
						t.Errorf("%s, %s: %+v", name, era, got)
					}
				}
			}
		})
	}
}

// U11: http.Server.WriteTimeout cannot be replaced if middleware hides the writer's
// deadlines, and nothing can be sent before the end of a request if the writer cannot flush.
// This is logged once.
func TestFindingU11WriterWithoutDeadlines(t *testing.T) {
	wraps := func(wrap func(w http.ResponseWriter) http.ResponseWriter) func(http.Handler) http.Handler {
		return func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(wrap(w), r) })
		}
	}
	hides := wraps(func(w http.ResponseWriter) http.ResponseWriter { return struct{ http.ResponseWriter }{w} })
	flushes := wraps(func(w http.ResponseWriter) http.ResponseWriter {
		f, _ := w.(http.Flusher)
		return struct {
			http.ResponseWriter
			http.Flusher
		}{w, f}
	})
	unwraps := wraps(func(w http.ResponseWriter) http.ResponseWriter { return unwrapper{struct{ http.ResponseWriter }{w}, w} })
	for name, test := range map[string]struct {
		middleware func(http.Handler) http.Handler
		timeout    time.Duration
		warnings   int
	}{
		"hidden": {hides, time.Minute, 2}, "hidden, no timeout": {hides, 0, 2}, "unwrapped": {unwraps, time.Minute, 0},
		"flushes": {flushes, time.Minute, 2}, "flushes, no timeout": {flushes, 0, 0},
	} {
		bubble(t, name, func(t *testing.T) {
			var log strings.Builder
			opts := &mcphttp.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
			router := mcphttp.NewRouter(tools(), &mcphttp.RouterOptions{Options: opts, Middleware: []func(http.Handler) http.Handler{test.middleware}})
			s := serve(t, router, func(s *http.Server) { s.WriteTimeout = test.timeout })
			for range 3 {
				for _, path := range []string{"/mcp", "/sse"} {
					r := s.request(t.Context(), http.MethodPut, "", nil)
					r.URL.Path = path
					whole(t, s.do(r))
				}
			}
			s.close()
			if got := strings.Count(log.String(), "Unwrap"); got != test.warnings {
				t.Errorf("%d warnings, want %d, one for each endpoint:\n%s", got, test.warnings, log.String())
			}
		})
	}
}

// S11: a body must arrive within BodyTimeout, however slowly it is sent, and whether or not
// the request is rejected.
func TestFindingS11SlowBody(t *testing.T) {
	const bodyTimeout = 20 * time.Second
	for name, request := range map[string]string{
		"nothing comes":     rawRequest(http.MethodPost, "", 1000, nil),
		"a part comes":      rawRequest(http.MethodPost, `{"jsonrpc":`, 1000, nil),
		"a GET":             rawRequest(http.MethodGet, "", 1000, header{"Mcp-Session-Id": "s"}),
		"not to be read":    rawRequest(http.MethodPost, "", 1000, header{"Origin": "https://evil.example"}),
		"it comes in parts": "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
	} {
		bubble(t, name, func(t *testing.T) {
			h := newHandler(t, tools(), &mcphttp.Options{BodyTimeout: bodyTimeout})
			conn := dialRaw(t, listen(t, h))
			begin := time.Now()
			var sending sync.WaitGroup
			sending.Go(func() {
				_, err := io.WriteString(conn, request)
				for err == nil && strings.Contains(request, "chunked") {
					<-time.After(time.Second)
					_, err = io.WriteString(conn, "1\r\n \r\n")
				}
			})
			answered := make(chan *http.Response, 1)
			go func() {
				if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
					_ = res.Body.Close()
					answered <- res
				}
			}()
			res := within(t, time.Hour, "the answer", answered)
			if got := time.Since(begin); got != bodyTimeout || !res.Close {
				t.Errorf("answered after %v, want %v; the connection is closed: %v", got, bodyTimeout, res.Close)
			}
			if want := http.StatusRequestTimeout; name != "not to be read" && res.StatusCode != want {
				t.Errorf("status %d, want %d", res.StatusCode, want)
			}
			_, _ = io.Copy(io.Discard, conn) // until the server closes the connection
			sending.Wait()
		})
	}
}

// server is the common interface of both kinds of handlers.
type server interface {
	http.Handler
	Shutdown(ctx context.Context) error
}

func serverOf(t *testing.T, kind string, opts *mcphttp.Options) server {
	t.Helper()
	if kind == "SSE" {
		return mcphttp.NewSSEHandler(tools(), opts)
	}
	return newHandler(t, tools(), opts)
}

// S11: the same on HTTP/2, and for clients of the deprecated transport.
func TestFindingS11SlowBodyElsewhere(t *testing.T) {
	for _, kind := range []string{"streamable", "SSE"} {
		bubble(t, kind, func(t *testing.T) {
			opts := &mcphttp.Options{BodyTimeout: time.Second, Logger: quiet}
			l := listen(t, serverOf(t, kind, opts))
			one := &site{t: t, client: l.Client()}
			t.Cleanup(one.client.CloseIdleConnections)
			for _, s := range []*site{one, http2Client(t, l)} {
				never, end := io.Pipe()
				r := s.request(t.Context(), http.MethodPost, "", nil)
				r.Body, r.ContentLength = never, -1
				if got := s.do(r); got.StatusCode != http.StatusRequestTimeout {
					t.Errorf("%s: status %d", got.Proto, got.StatusCode)
				}
				_ = end.Close()
			}
		})
	}
}

// S11: middleware may read the body first, for example to log or verify it. In that case
// BodyTimeout does not end the request.
func TestFindingS11BodyReadByMiddleware(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		mux.Tool("slow", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			return "in the end", async.Sleep(ctx, time.Hour)
		}, nil))
		h := newHandler(t, mux, nil)
		l := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			h.ServeHTTP(w, r)
		}))
		one := &site{t: t, client: l.Client()}
		t.Cleanup(one.client.CloseIdleConnections)
		for _, s := range []*site{one, http2Client(t, l)} {
			for _, accept := range []string{"application/json", "text/event-stream"} {
				body, head := callModern("slow")
				res := s.post(body, with(head, header{"Accept": accept}))
				if got, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(got), "in the end") {
					t.Errorf("%s, %s: %v, %q", res.Proto, accept, err, got)
				}
			}
		}
	})
}

// S11: a body may arrive slowly, as long as it arrives in time.
func TestFindingS11BodyInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, newHandler(t, tools(), nil))
		for range 3 { // on a single connection
			body, h := callModern("hello")
			in, out := io.Pipe()
			go func() {
				for _, b := range []byte(body) {
					_, _ = out.Write([]byte{b})
					<-time.After(50 * time.Millisecond)
				}
				_ = out.Close()
			}()
			r := s.request(t.Context(), http.MethodPost, "", h)
			r.Body, r.ContentLength = in, int64(len(body))
			if got := whole(t, s.do(r)); !strings.Contains(got.body, "hello") {
				t.Errorf("got %+v", got)
			}
			<-time.After(time.Hour)
		}
	})
}

// S11, W18: Shutdown does not wait for a request whose body has not arrived.
func TestFindingS11W18ShutdownDoesNotWaitForBodies(t *testing.T) {
	for _, kind := range []string{"streamable", "SSE"} {
		bubble(t, kind, func(t *testing.T) {
			h := serverOf(t, kind, &mcphttp.Options{Logger: quiet})
			conn := dialRaw(t, listen(t, h))
			if _, err := io.WriteString(conn, rawRequest(http.MethodPost, "{", 1000, header{"Mcp-Session-Id": "s"})); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			begin := time.Now()
			if err := h.Shutdown(t.Context()); err != nil || time.Since(begin) != 0 {
				t.Errorf("Shutdown returned %v after %v", err, time.Since(begin))
			}
		})
	}
}

// S11: the memory for a body grows with the bytes received, not with its Content-Length.
func TestFindingS11MemoryOfBodies(t *testing.T) {
	h := newHandler(t, tools(), nil)
	serveOne := func() {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(strings.Repeat(" ", 120)))
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = 1 << 20
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const requests = 100
	for range requests {
		serveOne()
	}
	runtime.ReadMemStats(&after)
	if got := (after.TotalAlloc - before.TotalAlloc) / requests; got > 64<<10 {
		t.Errorf("%d bytes are allocated for a body of which 120 bytes came", got)
	}
}

// S11: a body of any allowed length is received completely.
func TestFindingS11LongBodies(t *testing.T) {
	h := newHandler(t, tools(), &mcphttp.Options{MaxBody: 1 << 20})
	s := serve(t, h)
	body, head := callModern("hello")
	for _, length := range []int{len(body), 8 << 10, 8<<10 + 1, 100_000, 1 << 20, 1<<20 + 1} {
		want := http.StatusOK
		if length > 1<<20 {
			want = http.StatusRequestEntityTooLarge
		}
		if got := whole(t, s.post(body+strings.Repeat(" ", length-len(body)), head)); got.status != want {
			t.Errorf("a body of %d bytes: %d %s", length, got.status, got.body)
		}
	}
}

// C-L4: a modern client cancels by closing the connection, and the handler learns that the
// client cancelled.
func TestFindingCL4DisconnectIsCancellation(t *testing.T) {
	for _, proto := range []string{"HTTP/1", "HTTP/2"} {
		bubble(t, proto, func(t *testing.T) {
			mux := tools()
			began, ended := waiting(mux)
			l := listen(t, newHandler(t, mux, nil))
			s := &site{t: t, client: l.Client()}
			if proto == "HTTP/2" {
				s = http2Client(t, l)
			}
			t.Cleanup(s.client.CloseIdleConnections)
			for _, accept := range []string{"application/json", "text/event-stream"} {
				body, h := callModern("wait")
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					if res, err := s.client.Do(s.request(ctx, http.MethodPost, body, with(h, header{"Accept": accept}))); err == nil {
						_ = res.Body.Close()
					}
				}()
				<-began
				cancel()
				if _, ok := errors.AsType[*mcp.CancelError](<-ended); !ok {
					t.Error("the cause is not a *CancelError")
				}
			}
		})
	}
}

// C-L4: a request ended by middleware is not reported as cancelled by the client.
func TestFindingCL4TimeoutIsNoCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		deadline, ended := make(chan bool, 1), make(chan error, 1)
		mux.Tool("wait", mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
			_, ok := ctx.Deadline()
			deadline <- ok
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return nil, context.Cause(ctx)
		}))
		h := newHandler(t, mux, nil)
		s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithTimeout(r.Context(), time.Second)
			defer cancel()
			h.ServeHTTP(w, r.WithContext(ctx))
		}))
		body, head := callModern("wait")
		go func() {
			if res, err := s.client.Do(s.request(t.Context(), http.MethodPost, body, head)); err == nil {
				_ = res.Body.Close()
			}
		}()
		if !<-deadline {
			t.Error("the handler does not see the deadline of the HTTP request")
		}
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the cause is %v", err)
		}
		s.close()
	})
}
