// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// resumption is a server whose POST stream ends before the response.
type resumption struct {
	first string                                         // the content of the POST stream
	gets  []func(w http.ResponseWriter, r *http.Request) // the GETs with Last-Event-ID; the last one is repeated
	times []time.Time                                    // of the end of the POST stream, and of the GETs
	last  []string                                       // the Last-Event-ID of each GET
}

func (s *resumption) handler() http.Handler {
	return script{session: "s",
		post: func(w http.ResponseWriter, _ *http.Request) {
			stream(w, s.first)
			s.times = append(s.times, time.Now())
		},
		get: func(w http.ResponseWriter, r *http.Request) {
			id := r.Header.Get("Last-Event-ID")
			if id == "" {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			n := min(len(s.last), len(s.gets)-1)
			s.times, s.last = append(s.times, time.Now()), append(s.last, id)
			s.gets[n](w, r)
		},
	}
}

func says(events string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { stream(w, events) }
}

func refuses(status int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

const response7 = "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n\n"

// T27: if the stream of a legacy call ends after an event with an ID, the client resumes it
// for the response, with the delay and from the event that the server specified.
func TestTransportComesBack(t *testing.T) {
	tests := map[string]struct {
		server resumption
		waits  []time.Duration // between the end of the POST and the GETs
		last   string          // the Last-Event-ID of each GET
	}{
		"primed": {
			resumption{first: "id: a\nretry: 1500\ndata:\n\n", gets: []func(http.ResponseWriter, *http.Request){says("id: b\n" + response7)}},
			[]time.Duration{1500 * time.Millisecond}, "[a]",
		},
		"no delay given": {
			resumption{first: "id: a\ndata:\n\n", gets: []func(http.ResponseWriter, *http.Request){says(response7)}},
			[]time.Duration{500 * time.Millisecond}, "[a]",
		},
		"several times": {
			resumption{first: "id: a\ndata:\n\n", gets: []func(http.ResponseWriter, *http.Request){
				says("id: b\nretry: 2000\ndata:\n\n"), says("id: c\n" + notification("x")), says(response7),
			}},
			[]time.Duration{500 * time.Millisecond, 2 * time.Second, 2 * time.Second}, "[a b c]",
		},
		"a server that is down for a while": {
			resumption{first: "id: a\ndata:\n\n", gets: []func(http.ResponseWriter, *http.Request){
				func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Connection", "close") // net/http would retry on a reused connection
					w.WriteHeader(http.StatusServiceUnavailable)
				}, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, says(response7),
			}},
			[]time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second}, "[a a a]",
		},
		"an event cut short is asked for again": {
			resumption{first: "id: a\ndata:\n\nid: b\ndata: {\"jsonrpc\":", gets: []func(http.ResponseWriter, *http.Request){says(response7)}},
			[]time.Duration{500 * time.Millisecond}, "[a]",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &test.server
				v := &visits{Handler: s.handler()}
				l := serve(t, v).link(nil)
				l.handshake("2025-11-25")
				l.call(toolCall(7, "2025-11-25", "a"))
				var waits []time.Duration
				for i := range s.times[1:] {
					waits = append(waits, s.times[i+1].Sub(s.times[i]))
				}
				if fmt.Sprint(waits) != fmt.Sprint(test.waits) || fmt.Sprint(s.last) != test.last {
					t.Errorf("it came back after %v for what follows %v, want %v and %s", waits, s.last, test.waits, test.last)
				}
				if n := len(v.of(http.MethodPost, "tools/call")); n != 1 {
					t.Errorf("the call was sent %d times", n)
				}
				for len(l.got) > 0 {
					if n := l.next(); n.About != mcp.IntID(7) {
						t.Errorf("received %+v about %q", n, n.About)
					}
				}
			})
		})
	}
}

// T28: a client does not keep reconnecting in vain, or after a rejection. T19: it neither
// repeats the call nor reports it as one without effect.
func TestTransportGivesUp(t *testing.T) {
	tests := map[string]struct {
		get      func(http.ResponseWriter, *http.Request)
		attempts int
	}{
		"nothing new":            {says(""), 5},
		"the same id":            {says("id: a\ndata:\n\n"), 5},
		"an error that may pass": {refuses(500), 5},
		"an unknown session":     {refuses(404), 1},
		"no streams":             {refuses(405), 1},
		"JSON":                   {func(w http.ResponseWriter, _ *http.Request) { say(w, "{}") }, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &resumption{first: "id: a\ndata:\n\n", gets: []func(http.ResponseWriter, *http.Request){test.get}}
				v := &visits{Handler: s.handler()}
				l := serve(t, v).link(nil)
				l.handshake("2025-11-25")
				_, err := l.Call(t.Context(), toolCall(7, "2025-11-25", "a"))
				if !errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, mcp.ErrSessionLost) {
					t.Errorf("the call failed with %v", err)
				}
				if len(s.last) != test.attempts || len(v.of(http.MethodPost, "tools/call")) != 1 {
					t.Errorf("it came back %d times, want %d", len(s.last), test.attempts)
				}
			})
		})
	}
}

// A client resumes a long request whose connection was closed by a handler of this package.
func TestTransportComesBackToHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		mux.Tool("long", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			if err := mcphttp.CloseStream(ctx); err != nil {
				return "", err
			}
			mcp.Progress(ctx, 1, 2, "")
			<-time.After(time.Hour)
			return "done", nil
		}, nil))
		l := serve(t, newHandler(t, mux, nil)).link(nil)
		l.handshake("2025-11-25")
		if r := l.call(toolCall(7, "2025-11-25", "long")); !strings.Contains(string(r.Result), "done") {
			t.Errorf("%s %v", r.Result, r.Error)
		}
		if n := l.next(); n.Method != "notifications/progress" || n.About != mcp.IntID(7) {
			t.Errorf("received %+v about %q", n, n.About)
		}
	})
}

// T30: a server that rejects the GET has no stream, and is not asked again.
func TestTransportNoStream(t *testing.T) {
	for _, status := range []int{400, 401, 404, 405, 406, 501} {
		synctest.Test(t, func(t *testing.T) {
			v := &visits{Handler: script{session: "s", get: refuses(status), post: func(w http.ResponseWriter, _ *http.Request) {
				say(w, `{"jsonrpc":"2.0","id":7,"result":{}}`)
			}}}
			l := serve(t, v).link(nil)
			l.handshake("2025-11-25")
			<-time.After(time.Hour)
			l.call(toolCall(7, "2025-11-25", "a"))
			<-time.After(time.Hour)
			if n := len(v.of(http.MethodGet, "")); n != 1 {
				t.Errorf("after %d it was asked %d times", status, n)
			}
		})
	}
}

// The standalone stream is resumed where it ended. T28: not forever if nothing new arrives,
// but again after the server has answered a call.
func TestTransportOwnStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last []string
		v := &visits{}
		v.Handler = script{session: "s",
			post: func(w http.ResponseWriter, _ *http.Request) { say(w, `{"jsonrpc":"2.0","id":7,"result":{}}`) },
			get: func(w http.ResponseWriter, r *http.Request) {
				last = append(last, r.Header.Get("Last-Event-ID"))
				switch n := len(last); {
				case n <= 3:
					stream(w, fmt.Sprintf("retry: 3000\nid: %d\n%s", n, notification("x")))
				case n == 4: // a proxy that cuts off idle streams
					stream(w, ": open\n\n")
					<-time.After(time.Minute)
				default:
					stream(w, "")
				}
			},
		}
		l := serve(t, v).link(nil)
		start := time.Now()
		l.handshake("2025-11-25")
		for i := range 3 {
			if n := l.next(); !n.About.IsZero() || time.Since(start) != time.Duration(i)*3*time.Second {
				t.Errorf("received %+v about %q after %v", n, n.About, time.Since(start))
			}
		}
		<-time.After(24 * time.Hour)
		synctest.Wait()
		if got := fmt.Sprint(last); got != "[ 1 2 3 3 3 3 3 3]" {
			t.Errorf("the stream was taken up after %v", got)
		}
		l.call(toolCall(7, "2025-11-25", "a"))
		synctest.Wait()
		if len(last) != 10 {
			t.Errorf("it was asked for %d times", len(last))
		}
	})
}

// A message on the standalone stream that is too long is lost, but the stream is not.
func TestTransportOwnStreamTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := serve(t, script{session: "s", get: func(w http.ResponseWriter, r *http.Request) {
			stream(w, notification(strings.Repeat("x", 1<<20))+notification("short"))
			<-r.Context().Done()
		}}).link(&mcphttp.TransportOptions{MaxMessage: 1 << 10})
		l.handshake("2025-11-25")
		if n := l.next(); !errors.Is(n.Err, mcphttp.ErrMessageTooLong) {
			t.Errorf("received %+v for what is too long", n)
		}
		if n := l.next(); !strings.Contains(string(n.Params), "short") {
			t.Errorf("received %.100s", n.Params)
		}
	})
}
