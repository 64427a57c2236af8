// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// The client connects to a server of 2024-11-05 with the HTTP+SSE transport, or by falling
// back to it.
func TestSSETransport(t *testing.T) {
	for name, open := range map[string]func(string, *mcphttp.TransportOptions) transport.Transport{"SSE": mcphttp.NewSSETransport, "fallback": mcphttp.NewTransport} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mux := tools()
				began, stopped := waiting(mux)
				v := &visits{Handler: newSSEHandler(t, mux)}
				s := serve(t, v)
				l, err := s.connect(open("http://localhost/sse", s.options(&mcphttp.TransportOptions{Header: http.Header{"X-Key": {"k"}}})))
				if err != nil {
					t.Fatal(err)
				}
				l.handshake("2024-11-05")
				answered := make(chan *transport.Message, 1)
				go func() { answered <- l.call(toolCall(3, "2024-11-05", "ask")) }()
				for _, name := range []string{"Ada", "Lovelace"} {
					q := l.next()
					l.send(&transport.Outgoing{ID: q.ID, Version: "2024-11-05", Body: fmt.Appendf(nil,
						`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"name":%q}}}`, q.ID, name)})
				}
				if r := <-answered; !strings.Contains(string(r.Result), "Ada Lovelace") {
					t.Errorf("the answer is %s", r.Result)
				}
				mux.Tool("new", uncalled)
				if n := l.next(); n.Method != "notifications/tools/list_changed" || !n.About.IsZero() {
					t.Errorf("received %+v about %q", n, n.About)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := l.Call(ctx, toolCall(4, "2024-11-05", "wait")); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a call that took too long: %v", err)
				}
				<-began
				var reason *mcp.CancelError
				if cause := <-stopped; !errors.As(cause, &reason) {
					t.Errorf("the server stopped because of %v", cause)
				}
				for _, one := range v.all {
					if one.header.Get("X-Key") != "k" || one.header.Get("Mcp-Protocol-Version") != "" {
						t.Errorf("%s has the headers %v", one.method, one.header)
					}
				}
				closing := time.Now()
				if err := l.Close(); err != nil || !errors.Is(l.Err(), mcp.ErrClosed) || time.Since(closing) != 0 {
					t.Errorf("closed after %v: %v, %v", time.Since(closing), err, l.Err())
				}
			})
		})
	}
}

// The connection ends with its stream: pending calls fail promptly, and so do later ones.
func TestSSETransportStreamEnds(t *testing.T) {
	for name, open := range map[string]func(string, *mcphttp.TransportOptions) transport.Transport{"SSE": mcphttp.NewSSETransport, "fallback": mcphttp.NewTransport} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newSSEHandler(t, func() mcp.Handler { m := tools(); waiting(m); return m }())
				s := serve(t, h)
				l, err := s.connect(open("http://localhost/sse", s.options(nil)))
				if err != nil {
					t.Fatal(err)
				}
				l.handshake("2024-11-05")
				failed := make(chan error, 1)
				go func() {
					_, err := l.Call(t.Context(), toolCall(4, "2024-11-05", "wait"))
					failed <- err
				}()
				synctest.Wait()
				_ = s.server.Close()
				if err := <-failed; !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("a call that waited: %v", err)
				}
				<-l.Done()
				if _, err := l.Call(t.Context(), toolCall(5, "2024-11-05", "hello")); !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(l.Err(), err) {
					t.Errorf("a later call: %v; the connection ended with %v", err, l.Err())
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_ = h.Shutdown(ctx)
			})
		})
	}
}

// The first events that a server may and may not send.
func TestSSETransportEndpoint(t *testing.T) {
	tests := map[string]struct {
		first, to string // to is the URL of the POST, or "" if there is none
	}{
		"relative":       {"event: endpoint\ndata: messages?id=1\n\n", "/a/messages?id=1"},
		"a query":        {"event: endpoint\ndata: ?id=1\n\n", "/a/sse?id=1"},
		"a path":         {"event: endpoint\ndata: /messages\n\n", "/messages"},
		"absolute":       {"event: endpoint\ndata: http://localhost/messages\n\n", "/messages"},
		"the port":       {"event: endpoint\ndata: http://LOCALHOST:80/messages\n\n", "/messages"},
		"after a pause":  {": hello\n\nretry: 5\n\nevent: endpoint\ndata: /messages\n\n", "/messages"},
		"another host":   {"event: endpoint\ndata: http://example.com/messages\n\n", ""},
		"another scheme": {"event: endpoint\ndata: https://localhost/messages\n\n", ""},
		"another port":   {"event: endpoint\ndata: //localhost:81/messages\n\n", ""},
		"a message":      {"data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n", ""},
		"nothing":        {"", ""},
		"no URL":         {"event: endpoint\ndata: http://[\n\n", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				posted := make(chan string, 1)
				s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPost {
						posted <- r.URL.String()
						return
					}
					stream(w, test.first)
					if test.to != "" {
						<-r.Context().Done()
					}
				}))
				l, err := s.connect(mcphttp.NewSSETransport("http://localhost/a/sse", s.options(nil)))
				if test.to == "" {
					if err == nil {
						t.Error("it was taken")
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				l.send(&transport.Outgoing{Method: "notifications/progress", Body: []byte("{}")})
				if got := <-posted; got != test.to {
					t.Errorf("messages go to %s, want %s", got, test.to)
				}
			})
		})
	}
}

// If there is no old server to fall back to, the caller gets the rejection of initialize. A
// modern server's rejection is returned immediately.
func TestTransportNoFallback(t *testing.T) {
	tests := map[string]struct {
		post, get http.HandlerFunc
		took      time.Duration
		gets      int
	}{
		"404":            {refuses(404), refuses(404), 0, 1},
		"405":            {refuses(405), refuses(405), 0, 1},
		"500":            {refuses(500), refuses(500), 0, 0},
		"401":            {refuses(401), refuses(401), 0, 0},
		"not an old one": {refuses(400), says(notification("x")), 0, 1},
		"silence": {refuses(400), func(w http.ResponseWriter, r *http.Request) {
			stream(w, ": open\n\n")
			<-r.Context().Done()
		}, 5 * time.Second, 1},
		"a modern one": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":0,"error":{"code":-32022,"message":"modern only"}}`)
		}, refuses(405), 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := &visits{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					map[string]http.HandlerFunc{http.MethodPost: test.post, http.MethodGet: test.get}[r.Method](w, r)
				})}
				l := serve(t, v).link(nil)
				start := time.Now()
				r, err := l.Call(t.Context(), opening(0, "2025-11-25"))
				var status *mcphttp.StatusError
				if (err == nil) != (r != nil && r.Error != nil && r.Error.Code == mcp.CodeUnsupportedVersion) || err != nil && !errors.As(err, &status) {
					t.Errorf("initialize: %+v, %v", r, err)
				}
				if time.Since(start) != test.took || len(v.of(http.MethodGet, "")) != test.gets {
					t.Errorf("after %v and %d GETs", time.Since(start), len(v.of(http.MethodGet, "")))
				}
			})
		})
	}
}

// A server may respond to the POST only after serving the request, or with an error.
func TestSSETransportPost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := make(chan string)
		s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			switch {
			case r.Method == http.MethodGet:
				stream(w, "event: endpoint\ndata: /messages\n\n")
				for e := range events {
					stream(w, e)
				}
			case strings.Contains(string(body), `"late"`):
				events <- "event: message\n" + response7
				<-r.Context().Done()
			case strings.Contains(string(body), `"bad"`):
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32602,"message":"bad"}}`)
			case strings.Contains(string(body), `"gone"`):
				w.WriteHeader(http.StatusNotFound)
			}
		}))
		defer close(events)
		l, err := s.connect(mcphttp.NewSSETransport("http://localhost/sse", s.options(nil)))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		l.call(toolCall(7, "2024-11-05", "late"))
		if r := l.call(toolCall(8, "2024-11-05", "bad")); r.Error == nil || r.Error.Code != mcp.CodeInvalidParams {
			t.Errorf("bad: %+v", r)
		}
		if _, err := l.Call(t.Context(), toolCall(9, "2024-11-05", "gone")); !errors.Is(err, mcp.ErrSessionLost) {
			t.Errorf("gone: %v", err)
		}
		if _, err := l.Call(t.Context(), toolCall(10, mcp.LatestVersion, "modern")); !errors.Is(err, transport.ErrNotUnderstood) {
			t.Errorf("modern: %v", err)
		}
		if time.Since(start) != 0 {
			t.Errorf("it took %v", time.Since(start))
		}
		_ = l.Close()
	})
}

// Nothing is sent if the context is done, even by a RoundTripper that ignores contexts.
func TestTransportContextIsDone(t *testing.T) {
	tooLate := errors.New("too late")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(tooLate)
	for version, server := range map[string]func(t *testing.T) http.Handler{
		mcp.LatestVersion: func(t *testing.T) http.Handler { return newHandler(t, tools(), nil) },
		"2025-11-25":      func(t *testing.T) http.Handler { return newHandler(t, tools(), nil) },
		"2024-11-05":      func(t *testing.T) http.Handler { return newSSEHandler(t, tools()) },
	} {
		t.Run(version, func(t *testing.T) {
			v := &visits{Handler: server(t)}
			s := serve(t, v)
			l := s.link(&mcphttp.TransportOptions{Client: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				if r.Method == http.MethodPost {
					r = r.WithContext(context.WithoutCancel(r.Context()))
				}
				return s.client.Transport.RoundTrip(r)
			})}})
			if version != mcp.LatestVersion {
				l.handshake(version)
			}
			if _, err := l.Call(ctx, toolCall(1, version, "late")); !errors.Is(err, tooLate) {
				t.Errorf("a call: %v", err)
			}
			if err := l.Send(ctx, &transport.Outgoing{Method: "notifications/late", Version: version, Body: []byte(`{"jsonrpc":"2.0","method":"notifications/late"}`)}); !errors.Is(err, tooLate) {
				t.Errorf("a notification: %v", err)
			}
			_ = l.Close()
			if sent := v.of(http.MethodPost, "late"); len(sent) > 0 {
				t.Errorf("sent was %s", sent[0].body)
			}
		})
	}
}

// Events that contain no message, or several, do no harm. An unreadable response fails its
// call.
func TestSSETransportStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				return
			}
			stream(w, "event: endpoint\ndata: /messages\n\n")
			<-time.After(time.Second)
			stream(w, "data: hello\n\nevent: ping\ndata: {}\n\ndata: []\n\ndata: ["+
				`{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":99,"result":{}},{"jsonrpc":"2.0","id":1,"result":{}}`+"]\n\n"+
				"data: {\"jsonrpc\":\"2.0\",\"id\":2}\n\n"+
				"data: "+strings.Repeat("x", 2<<10)+"\n\n"+
				"data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}\n\n")
			<-r.Context().Done()
		}))
		l, err := s.connect(mcphttp.NewSSETransport("http://localhost/sse", s.options(&mcphttp.TransportOptions{MaxMessage: 1 << 10})))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for id, fine := range []bool{1: true, 2: false, 3: true} {
			if id > 0 {
				wg.Go(func() {
					if r, err := l.Call(t.Context(), toolCall(int64(id), "2024-11-05", "a")); (err == nil) != fine {
						t.Errorf("%d: %+v, %v", id, r, err)
					}
				})
			}
		}
		wg.Wait()
		for n := l.next(); n.Method == "" || n.Method != "notifications/x"; n = l.next() {
			if n.Err == nil {
				t.Errorf("received %+v", n)
			}
		}
	})
}

// On this transport, too, an error without an ID belongs to the only pending call: a server
// that could not read the request does not know its ID. Other responses belong to no call.
func TestSSETransportErrorWithoutID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := make(chan string, 1)
		s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				said <- `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"cannot read this"}}`
				w.WriteHeader(http.StatusAccepted)
				return
			}
			stream(w, "event: endpoint\ndata: /messages\n\n")
			failed := <-said
			for _, other := range []string{`"id":8,"error":{"code":1,"message":"of another call"}`, `"id":8,"result":{}`, `"id":null,"result":{}`} {
				stream(w, `data: {"jsonrpc":"2.0",`+other+"}\n\n")
			}
			stream(w, "data: "+failed+"\n\n")
			<-r.Context().Done()
		}))
		l, err := s.connect(mcphttp.NewSSETransport("http://localhost/sse", s.options(nil)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if r, err := l.Call(ctx, toolCall(7, "2024-11-05", "a")); err != nil || r.Error == nil || r.Error.Code != -32700 || r.ID != mcp.IntID(7) {
			t.Errorf("the call returned %+v, %v", r, err)
		}
		_ = l.Close()
	})
}

// A response that is too long fails the call that it answers, and no other: its ID is found at
// either end, on whichever line of the event it is.
func TestSSETransportResponseTooLong(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 1<<20) + `"}`
	for name, event := range map[string]string{
		"on one line":         `data: {"jsonrpc":"2.0","id":7,"result":` + long + "}",
		"at the end":          `data: {"jsonrpc":"2.0","result":` + long + `,"id":7}`,
		"on the first line":   `data: {"jsonrpc":"2.0","id":7,"result":` + "\ndata: " + long + "}",
		"on the first of two": `data: {"jsonrpc":"2.0","id":7,"result":` + "\ndata: " + long + "\ndata: }",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				posted := make(chan struct{}, 2)
				s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPost {
						w.WriteHeader(http.StatusAccepted)
						posted <- struct{}{}
						return
					}
					stream(w, "event: endpoint\ndata: /messages\n\n")
					<-posted
					<-posted
					stream(w, event+"\n\n"+`data: {"jsonrpc":"2.0","id":8,"result":{}}`+"\n\n")
					<-r.Context().Done()
				}))
				l, err := s.connect(mcphttp.NewSSETransport("http://localhost/sse", s.options(&mcphttp.TransportOptions{MaxMessage: 1 << 10})))
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				other := make(chan error, 1)
				go func() {
					_, err := l.Call(ctx, toolCall(8, "2024-11-05", "b"))
					other <- err
				}()
				if _, err := l.Call(ctx, toolCall(7, "2024-11-05", "a")); !errors.Is(err, mcphttp.ErrMessageTooLong) {
					t.Errorf("the call returned %v", err)
				}
				if err := <-other; err != nil {
					t.Errorf("the other call returned %v", err)
				}
				_ = l.Close()
			})
		})
	}
}

// Some servers return the ID of a request as a string.
func TestIDsAsStrings(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":"7","result":{"content":[]}}`
	synctest.Test(t, func(t *testing.T) {
		said := make(chan string, 1)
		s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/json":
				say(w, answer)
			case r.URL.Path == "/stream":
				stream(w, "data: "+answer+"\n\n")
			case r.Method == http.MethodPost:
				said <- answer
				w.WriteHeader(http.StatusAccepted)
			default:
				stream(w, "event: endpoint\ndata: /messages\n\n")
				stream(w, "data: "+<-said+"\n\n")
				<-r.Context().Done()
			}
		}))
		for name, to := range map[string]transport.Transport{
			"json":   mcphttp.NewTransport("http://localhost/json", s.options(nil)),
			"stream": mcphttp.NewTransport("http://localhost/stream", s.options(nil)),
			"sse":    mcphttp.NewSSETransport("http://localhost/sse", s.options(nil)),
		} {
			l, err := s.connect(to)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if r, err := l.Call(ctx, toolCall(7, "2024-11-05", "a")); err != nil || r.Error != nil || r.ID != mcp.IntID(7) {
				t.Errorf("%s: the call returned %+v, %v", name, r, err)
			}
			cancel()
			_ = l.Close()
		}
	})
}

// Connecting ends with its context, and fails with ErrUnauthorized if authentication is
// missing.
func TestSSETransportConnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			stream(w, ": open\n\n")
			<-r.Context().Done()
		}))
		why := errors.New("too slow")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, why)
		defer cancel()
		if _, err := mcphttp.NewSSETransport("http://localhost/sse", silent.options(nil)).Connect(ctx, nil); !errors.Is(err, why) {
			t.Errorf("a server that names no endpoint: %v", err)
		}
		for status, want := range map[int]error{401: mcp.ErrUnauthorized, 200: transport.ErrNotUnderstood} {
			s := serve(t, http.HandlerFunc(refuses(status)))
			if _, err := s.connect(mcphttp.NewSSETransport("http://localhost/sse", s.options(nil))); !errors.Is(err, want) {
				t.Errorf("%d: %v", status, err)
			}
		}
	})
}

// A refused POST is an error response only if the refusal is about the message: a challenge
// stays one, and an overloaded server can be recognized, as on streamable HTTP.
func TestSSERefusals(t *testing.T) {
	refusal := func(status, code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer error="x"`)
			w.WriteHeader(status)
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":7,"error":{"code":%d,"message":"refused"}}`, code)
		}
	}
	for name, test := range map[string]struct {
		post   http.HandlerFunc
		status int // of the error; 0 for an error response
		is     error
		cause  int // status of the cause of an error response
	}{
		"no token":   {refusal(401, -32600), 401, mcp.ErrUnauthorized, 0},
		"no scope":   {refusal(403, mcp.CodeInsufficientScope), 403, nil, 0},
		"overloaded": {refusal(503, -32603), 0, nil, 503},
		"invalid":    {refusal(400, mcp.CodeInvalidParams), 0, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPost {
						test.post(w, r)
						return
					}
					stream(w, "event: endpoint\ndata: /messages\n\n")
					<-r.Context().Done()
				}))
				l, err := s.connect(mcphttp.NewSSETransport("http://localhost/sse", s.options(nil)))
				if err != nil {
					t.Fatal(err)
				}
				r, err := l.Call(t.Context(), toolCall(7, "2024-11-05", "a"))
				status, _ := errors.AsType[*mcphttp.StatusError](err)
				switch {
				case test.status == 0:
					if err != nil || r.Error == nil {
						t.Fatalf("got %+v, %v, want an error response", r, err)
					}
					cause, _ := errors.AsType[*mcphttp.StatusError](r.Error.Cause)
					if (cause != nil) != (test.cause != 0) || cause != nil && cause.Status != test.cause {
						t.Errorf("the cause is %v", r.Error.Cause)
					}
				case status == nil || status.Status != test.status || status.Header.Get("WWW-Authenticate") == "" || !errors.Is(err, cmp.Or(test.is, err)):
					t.Errorf("got %+v, %v", r, err)
				}
			})
		})
	}
}
