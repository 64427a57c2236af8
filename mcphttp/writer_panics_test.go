// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// A fragileWriter is a ResponseWriter of middleware, one of whose methods panics, as those of
// some frameworks do if the writer below has no such method.
type fragileWriter struct {
	http.ResponseWriter
	method string
	left   *atomic.Int32 // calls that succeed
}

func (w *fragileWriter) called(method string) {
	if method == w.method && w.left.Add(-1) < 0 {
		panic("this writer has no " + method)
	}
}

func (w *fragileWriter) Header() http.Header {
	w.called("Header")
	return w.ResponseWriter.Header()
}

func (w *fragileWriter) WriteHeader(status int) {
	w.called("WriteHeader")
	w.ResponseWriter.WriteHeader(status)
}

func (w *fragileWriter) Write(p []byte) (int, error) {
	w.called("Write")
	return w.ResponseWriter.Write(p)
}

func (w *fragileWriter) FlushError() error {
	w.called("Flush")
	return http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *fragileWriter) SetWriteDeadline(deadline time.Time) error {
	w.called("SetWriteDeadline")
	return http.NewResponseController(w.ResponseWriter).SetWriteDeadline(deadline)
}

func (w *fragileWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	w.called("Hijack")
	return http.NewResponseController(w.ResponseWriter).Hijack()
}

// fragile is middleware for requests with the header X-Fragile.
func fragile(next http.Handler, method string, succeed int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Fragile") != "" {
			f := &fragileWriter{ResponseWriter: w, method: method, left: new(atomic.Int32)}
			f.left.Store(int32(succeed))
			w = f
		}
		next.ServeHTTP(w, r)
	})
}

// fragileTools are tools that make a server write to the response of a call.
func fragileTools() *mcp.Mux {
	mux := tools()
	ask := func(key string) mcp.InputRequest {
		return mcp.InputRequest{Method: mcp.MethodElicit, Params: fmt.Appendf(nil, `{"message":%q,"requestedSchema":{"type":"object","properties":{}}}`, key)}
	}
	mux.Tool("askTwo", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.InputRequired{InputRequests: map[string]mcp.InputRequest{"a": ask("a"), "b": ask("b")}}, nil
	}))
	mux.Tool("long", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		<-time.After(5 * time.Minute)
		return "", nil
	}, nil))
	mux.Tool("close", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		_ = mcphttp.CloseStream(ctx) // not all clients can resume
		return "", nil
	}, nil))
	mux.Tool("background", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			mcp.Progress(ctx, 1, 1, "")
		}()
		<-done
		return "", nil
	}, nil))
	return mux
}

// fragilePaths are the ways in which a server writes events to a response.
var fragilePaths = map[string]func(s *site, mux *mcp.Mux) *http.Request{
	"question of a legacy call":  fragileCall("ask"),
	"questions of a legacy call": fragileCall("askTwo"),
	"batch": func(s *site, _ *mcp.Mux) *http.Request {
		return s.request(s.t.Context(), http.MethodPost, "["+call(1, "askTwo")+","+call(2, "steps")+","+call(3, "hello")+"]", s.open("2025-03-26"))
	},
	"progress of a legacy call":         fragileCall("steps"),
	"progress of a goroutine":           fragileCall("background"),
	"heartbeats of a legacy call":       fragileCall("long"),
	"closed connection":                 fragileCall("close"),
	"progress of a modern call":         fragileModern("tools/call", "steps", `"name":"steps"`),
	"progress of a modern goroutine":    fragileModern("tools/call", "background", `"name":"background"`),
	"heartbeats of a modern call":       fragileModern("tools/call", "long", `"name":"long"`),
	"subscription of a modern client":   fragileModern("subscriptions/listen", "", `"notifications":{"toolsListChanged":true}`),
	"standalone stream of a session":    fragileGET("2025-11-25"),
	"standalone stream without resumes": fragileGET("2025-03-26"),
}

func fragileCall(tool string) func(*site, *mcp.Mux) *http.Request {
	return func(s *site, _ *mcp.Mux) *http.Request {
		return s.request(s.t.Context(), http.MethodPost, call(1, tool), s.open("2025-11-25"))
	}
}

func fragileModern(method, name, params string) func(*site, *mcp.Mux) *http.Request {
	return func(s *site, _ *mcp.Mux) *http.Request {
		body, h := modern(method, name, params)
		return s.request(s.t.Context(), http.MethodPost, body, h)
	}
}

func fragileGET(version string) func(*site, *mcp.Mux) *http.Request {
	return func(s *site, _ *mcp.Mux) *http.Request {
		return s.request(s.t.Context(), http.MethodGet, "", s.open(version))
	}
}

// eachFragility runs fn for each method that may panic, and the number of its calls that
// succeed before.
func eachFragility(t *testing.T, fn func(t *testing.T, method string, succeed int)) {
	t.Helper()
	for _, method := range []string{"Header", "WriteHeader", "Write", "Flush", "SetWriteDeadline", "Hijack"} {
		for succeed := range 4 {
			bubble(t, fmt.Sprintf("%s after %d", method, succeed), func(t *testing.T) { fn(t, method, succeed) })
		}
	}
}

// A response writer that panics fails only the request that it belongs to, on whatever
// goroutine the server writes to it. A call does not wait for an answer to a question that
// could not be asked.
func TestFindingZ1WriterPanics(t *testing.T) {
	for path, request := range fragilePaths {
		t.Run(path, func(t *testing.T) {
			eachFragility(t, func(t *testing.T, method string, succeed int) {
				mux := fragileTools()
				h := newHandler(t, mux, &mcphttp.Options{Sessions: mcphttp.SessionOptions{KeepAlive: time.Minute}})
				s := serve(t, fragile(h, method, succeed))
				r := request(s, mux)
				r.Header.Set("X-Fragile", "true")
				ctx, leave := context.WithTimeout(t.Context(), 10*time.Minute)
				defer leave()
				went := make(chan struct{})
				go func() {
					defer close(went)
					if res, err := s.client.Do(r.WithContext(ctx)); err == nil {
						_, _ = io.Copy(io.Discard, res.Body) // the response may be anything
						_ = res.Body.Close()
					}
				}()
				synctest.Wait()
				mux.Tool("new", uncalled)
				<-went
				body, head := callModern("hello")
				if res := whole(t, s.post(body, head)); res.status != http.StatusOK || !strings.Contains(res.body, "hello") {
					t.Errorf("the next call: %d %s", res.status, res.body)
				}
				s.close()
			})
		})
	}
}

// A legacy call whose question could not be written ends at once, not when the time for the
// answer is over.
func TestFindingZ1CallFailsWhoseQuestionPanics(t *testing.T) {
	for _, method := range []string{"Write", "Flush"} {
		bubble(t, method, func(t *testing.T) {
			s := serve(t, fragile(newHandler(t, fragileTools(), nil), method, 0))
			began := time.Now()
			r := fragileCall("askTwo")(s, nil)
			r.Header.Set("X-Fragile", "true")
			if res, err := s.client.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, res.Body) // it is the end that matters
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("the response ended after %v", took)
			}
			s.close()
		})
	}
}

// The same over HTTP+SSE, where requests are served in the background.
func TestFindingZ1WriterPanicsOverSSE(t *testing.T) {
	eachFragility(t, func(t *testing.T, method string, succeed int) {
		mux := fragileTools()
		s := serve(t, fragile(newSSEHandler(t, mux), method, succeed))
		ctx, leave := context.WithTimeout(t.Context(), 10*time.Minute)
		defer leave()
		res, err := s.client.Do(s.request(ctx, http.MethodGet, "", header{"Accept": "text/event-stream", "X-Fragile": "true"}))
		if err != nil {
			s.close()
			return
		}
		stream := read(t, res)
		if first, ok := stream.next(); ok {
			_, s.query, _ = strings.Cut(first.Data, "?")
			for _, message := range []string{
				initialize("2024-11-05"), `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
				call(1, "steps"), call(2, "askTwo"), call(3, "background"),
			} {
				s.post(message, nil)
				synctest.Wait()
			}
			mux.Tool("new", uncalled)
		}
		for ok := true; ok; {
			_, ok = stream.next()
		}
		s.close()
	})
}

// brokenError is an error whose method panics for a nil pointer.
type brokenError struct{ text string }

func (e *brokenError) Error() string { return e.text }

// The error of a handler is user code too: one whose method panics fails its call, including
// calls that are served in the background.
func TestFindingZ1ErrorPanics(t *testing.T) {
	mux := tools()
	mux.Tool("fails", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		var err *brokenError
		return nil, err
	}))
	s := serve(t, newSSEHandler(t, mux))
	stream := read(t, s.do(s.request(t.Context(), http.MethodGet, "", header{"Accept": "text/event-stream"})))
	first, _ := stream.next()
	_, s.query, _ = strings.Cut(first.Data, "?")
	s.post(initialize("2024-11-05"), nil)
	stream.message()
	s.post(call(1, "fails"), nil)
	if got := stream.message(); !strings.Contains(got, `"code":-32603,"message":"internal error"`) {
		t.Errorf("answered with %s", got)
	}
}
