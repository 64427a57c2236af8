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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// A legacy session, from the handshake to the end: questions are about their call, changes
// are about no call, and the server learns when the session ends.
func TestTransportLegacy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		v := &visits{Handler: newHandler(t, mux, nil)}
		s := serve(t, v)
		l := s.link(nil)
		l.handshake("2025-11-25")
		synctest.Wait()
		mux.Tool("new", uncalled)
		if n := l.next(); n.Method == "" || n.Method != "notifications/tools/list_changed" || !n.About.IsZero() {
			t.Errorf("after a change came %+v about %q", n, n.About)
		}
		answered := make(chan *transport.Message, 1)
		go func() { answered <- l.call(toolCall(3, "2025-11-25", "ask")) }()
		for _, name := range []string{"Ada", "Lovelace"} {
			q := l.next()
			if q.Method == "" || q.Method != mcp.MethodElicit || q.About != mcp.IntID(3) {
				t.Fatalf("received %+v about %q", q, q.About)
			}
			l.send(&transport.Outgoing{ID: q.ID, Version: "2025-11-25", Body: fmt.Appendf(nil,
				`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"name":%q}}}`, q.ID, name)})
		}
		if r := <-answered; !strings.Contains(string(r.Result), "Ada Lovelace") {
			t.Errorf("the answer is %s", r.Result)
		}
		session := v.of(http.MethodPost, "tools/call")[0].header.Get("Mcp-Session-Id")
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if len(v.of(http.MethodDelete, "")) != 1 {
			t.Error("the session was not deleted")
		}
		if res := s.post(call(4, "hello"), header{"Mcp-Session-Id": session}); res.StatusCode != http.StatusNotFound {
			t.Errorf("after Close the session answers %d", res.StatusCode)
		}
		if _, err := l.Call(t.Context(), toolCall(5, "2025-11-25", "hello")); !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("a call after Close: %v", err)
		}
		if <-l.Done(); !errors.Is(l.Err(), mcp.ErrClosed) || l.Close() != nil {
			t.Errorf("the connection ended with %v", l.Err())
		}
	})
}

// The version header is sent if the revision has one, but never with initialize. The session
// header is sent with every later request.
func TestTransportLegacyHeaders(t *testing.T) {
	for _, version := range []string{"2025-03-26", "2025-06-18", "2025-11-25"} {
		synctest.Test(t, func(t *testing.T) {
			v := &visits{Handler: newHandler(t, tools(), nil)}
			l := serve(t, v).link(nil)
			l.handshake(version)
			l.call(toolCall(1, version, "hello"))
			synctest.Wait()
			_ = l.Close()
			want := version
			if version == "2025-03-26" {
				want = ""
			}
			if len(v.all) != 5 {
				t.Fatalf("%s: %d requests were sent", version, len(v.all))
			}
			for i, one := range v.all {
				session, header := one.header.Get("Mcp-Session-Id"), one.header.Get("Mcp-Protocol-Version")
				if i == 0 && (session != "" || header != "") || i > 0 && (session == "" || header != want) {
					t.Errorf("%s: %s %s has the session %q and the version %q", version, one.method, one.body, session, header)
				}
				if one.header.Get("Mcp-Method") != "" || one.header.Get("Mcp-Name") != "" {
					t.Errorf("%s: %s has headers of the modern era", version, one.body)
				}
			}
		})
	}
}

// T19: if a server has forgotten the session, calls fail with ErrSessionLost, and a new
// handshake on the same connection opens a new session.
func TestTransportSessionLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var server atomic.Pointer[mcphttp.Handler]
		server.Store(newHandler(t, tools(), nil))
		v := &visits{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { server.Load().ServeHTTP(w, r) })}
		l := serve(t, v).link(nil)
		l.handshake("2025-11-25")
		synctest.Wait()
		mux := tools()
		server.Swap(newHandler(t, mux, nil)).Shutdown(t.Context())
		if _, err := l.Call(t.Context(), toolCall(1, "2025-11-25", "hello")); !errors.Is(err, mcp.ErrSessionLost) {
			t.Fatalf("a call in a session that is lost: %v", err)
		}
		if err := l.Send(t.Context(), &transport.Outgoing{Method: "notifications/progress", Version: "2025-11-25", Body: []byte(`{"jsonrpc":"2.0","method":"notifications/progress"}`)}); !errors.Is(err, mcp.ErrSessionLost) {
			t.Errorf("a notification in a session that is lost: %v", err)
		}
		l.handshake("2025-11-25")
		l.call(toolCall(2, "2025-11-25", "hello"))
		openings := v.of(http.MethodPost, `"initialize"`)
		if len(openings) != 2 || openings[1].header.Get("Mcp-Session-Id") != "" {
			t.Errorf("%d handshakes, the last with the header %v", len(openings), openings[len(openings)-1].header)
		}
		synctest.Wait()
		mux.Tool("new", uncalled)
		if n := l.next(); n.Method != "notifications/tools/list_changed" {
			t.Errorf("the new session's stream says %+v", n)
		}
	})
}

// T19, for users of a Conn: one more handshake or, if that does not help, one typed error.
func TestConnSessionLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var server atomic.Pointer[http.Handler]
		replace := func(h http.Handler) { server.Store(&h) }
		replace(newHandler(t, tools(), nil))
		v := &visits{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*server.Load()).ServeHTTP(w, r) })}
		s := serve(t, v)
		conn, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Version: "2025-11-25", Logger: quiet}).
			Connect(t.Context(), mcphttp.NewTransport("http://localhost/mcp", s.options(nil)))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		replace(newHandler(t, tools(), nil))
		if _, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "hello"}); err != nil {
			t.Errorf("after a restart: %v", err)
		}
		if n := len(v.of(http.MethodPost, `"initialize"`)); n != 2 {
			t.Errorf("%d handshakes", n)
		}
		replace(script{session: "s", post: func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotFound) }})
		if _, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "hello"}); !errors.Is(err, mcp.ErrSessionLost) {
			t.Errorf("a server that forgets every session: %v", err)
		}
		if n := len(v.of(http.MethodPost, `"initialize"`)); n != 3 {
			t.Errorf("%d handshakes", n)
		}
	})
}

// T19, for servers that answer 400 for an unknown session, as those built with the official
// Python and TypeScript SDKs do after a restart.
func TestUnknownSessionAnswered400(t *testing.T) {
	for _, text := range []string{
		`{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":1}`,
		`{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}`,
		"Bad Request: No valid session ID provided",
		"Invalid or missing session ID",
	} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var server atomic.Pointer[mcphttp.Handler]
				server.Store(newHandler(t, tools(), nil))
				v := &visits{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					server.Load().ServeHTTP(&unknownSession{ResponseWriter: w, text: text}, r)
				})}
				s := serve(t, v)
				conn, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Version: "2025-11-25", Logger: quiet}).
					Connect(t.Context(), mcphttp.NewTransport("http://localhost/mcp", s.options(nil)))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				changed := make(chan mcp.Change, 10)
				if _, err := conn.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(c mcp.Change) { changed <- c }); err != nil {
					t.Fatal(err)
				}
				server.Store(newHandler(t, tools(), nil))
				if _, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "hello"}); err != nil {
					t.Errorf("after a restart: %v", err)
				}
				if n := len(v.of(http.MethodPost, `"initialize"`)); n != 2 {
					t.Errorf("%d handshakes", n)
				}
				hears := func(of string) {
					t.Helper()
					select {
					case <-changed:
					case <-time.After(5 * time.Minute):
						t.Error("the subscription hears nothing after " + of)
					}
				}
				hears("a call")
				last := server.Swap(newHandler(t, tools(), nil))
				synctest.Wait()
				for len(changed) > 0 {
					<-changed
				}
				_ = last.Shutdown(t.Context()) // ends the stream; otherwise the client would not notice
				hears("the end of its stream")
			})
		})
	}
}

// An unknownSession replaces a 404 response with status 400 and a text.
type unknownSession struct {
	http.ResponseWriter
	text    string
	unknown bool
}

func (w *unknownSession) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *unknownSession) WriteHeader(status int) {
	if w.unknown = status == http.StatusNotFound; w.unknown {
		http.Error(w.ResponseWriter, w.text, http.StatusBadRequest)
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *unknownSession) Write(b []byte) (int, error) {
	if w.unknown {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// T20: no other error makes the client forget its session.
func TestTransportKeepsSession(t *testing.T) {
	const badArgument = `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"session_id must be a string"}}`
	var status atomic.Int64
	v := &visits{Handler: script{session: "s", post: func(w http.ResponseWriter, r *http.Request) {
		if code := int(status.Load()); code != 0 {
			http.Error(w, badArgument, code)
			return
		}
		say(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	}}}
	l := serve(t, v).link(nil)
	l.handshake("2025-11-25")
	for _, code := range []int64{400, 401, 403, 405, 429, 500, 502, 503} {
		status.Store(code)
		if _, err := l.Call(t.Context(), toolCall(1, "2025-11-25", "a")); errors.Is(err, mcp.ErrSessionLost) {
			t.Errorf("after %d: %v", code, err)
		}
	}
	status.Store(0)
	l.call(toolCall(1, "2025-11-25", "a"))
	calls := v.of(http.MethodPost, "tools/call")
	if got := calls[len(calls)-1].header.Get("Mcp-Session-Id"); got != "s" {
		t.Errorf("the session is %q now", got)
	}
}

// A session that replaces another one ends the stream of the old one.
func TestTransportSecondHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var streams atomic.Int32
		l := serve(t, script{session: "s", get: func(w http.ResponseWriter, r *http.Request) {
			streams.Add(1)
			defer streams.Add(-1)
			stream(w, ": open\n\n")
			<-r.Context().Done()
		}}).link(nil)
		for range 3 {
			l.handshake("2025-11-25")
			synctest.Wait()
			if n := streams.Load(); n != 1 {
				t.Errorf("%d streams are open", n)
			}
		}
	})
}

// A legacy call whose caller gives up is cancelled by a notification. The caller does not
// wait for that either.
func TestTransportCancelLegacy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		began, stopped := waiting(mux)
		v := &visits{Handler: newHandler(t, mux, nil)}
		l := serve(t, v).link(nil)
		l.handshake("2025-11-25")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("a minute is enough"))
		defer cancel()
		start := time.Now()
		_, err := l.Call(ctx, toolCall(5, "2025-11-25", "wait"))
		if !errors.Is(err, context.Cause(ctx)) || time.Since(start) != time.Minute {
			t.Errorf("after %v the call failed with %v", time.Since(start), err)
		}
		<-began
		var reason *mcp.CancelError
		if cause := <-stopped; !errors.As(cause, &reason) || reason.Reason != "a minute is enough" {
			t.Errorf("the server stopped because of %v", cause)
		}
		if note := v.of(http.MethodPost, "notifications/cancelled"); len(note) != 1 || !strings.Contains(note[0].body, `"requestId":5`) {
			t.Errorf("%d cancellations", len(note))
		}
	})
}

// A question about a cancelled call is withdrawn, because its answer is no longer needed.
func TestCancelWithdrawsQuestion(t *testing.T) {
	for _, version := range both {
		synctest.Test(t, func(t *testing.T) {
			mux := tools()
			mux.Tool("confirm", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
				_, err := mcp.Elicit[struct{}](ctx, "sure", "Sure?")
				return "", err
			}, nil))
			ctx, cancel := context.WithCancel(t.Context())
			withdrawn := make(chan bool, 1)
			conn, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{
				Version: version, Logger: quiet,
				Elicit: func(ctx context.Context, _ *mcp.Conn, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
					cancel()
					select {
					case <-ctx.Done():
					case <-time.After(time.Hour):
					}
					withdrawn <- ctx.Err() != nil
					return nil, context.Cause(ctx)
				},
			}).Connect(t.Context(), mcphttp.NewTransport("http://localhost/mcp", serve(t, newHandler(t, mux, nil)).options(nil)))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.CallTool(ctx, &mcp.CallToolParams{Name: "confirm"}); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: the call returned %v", version, err)
			}
			if !<-withdrawn {
				t.Errorf("%s: the user is still asked", version)
			}
		})
	}
}

// A server that does not accept the cancellation does not delay any call.
func TestTransportCancelUnanswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client disconnects
			<-r.Context().Done()
		})).link(nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		if _, err := l.Call(ctx, toolCall(5, "2025-11-25", "wait")); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

// T11: a server that never responds to the DELETE does not delay Close, nor does a pending
// call or stream. T12: Close may also be called from a receiver.
func TestTransportClose(t *testing.T) {
	hang := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for _, del := range []http.HandlerFunc{nil, hang} {
		for _, inside := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				closing := make(chan time.Duration, 1)
				s := serve(t, script{session: "s", del: del,
					get: func(w http.ResponseWriter, r *http.Request) {
						stream(w, ": open\n\n")
						if <-time.After(time.Second); inside {
							stream(w, notification("close"))
						}
						hang(w, r)
					},
					post: func(w http.ResponseWriter, r *http.Request) { stream(w, ": open\n\n"); hang(w, r) },
				})
				var l *link
				to := mcphttp.NewTransport("http://localhost/mcp", s.options(nil))
				closeLink := func() {
					start := time.Now()
					_ = l.Close()
					closing <- time.Since(start)
				}
				wire, err := to.Connect(t.Context(), func(*transport.Message) { closeLink() })
				if err != nil {
					t.Fatal(err)
				}
				l = &link{t: t, Conn: wire}
				l.handshake("2025-11-25")
				failed := make(chan error, 1)
				go func() {
					_, err := l.Call(t.Context(), toolCall(1, "2025-11-25", "a"))
					failed <- err
				}()
				if <-time.After(10 * time.Second); !inside {
					closeLink()
				}
				if took := <-closing; took > 2*time.Second || del == nil && took > 0 {
					t.Errorf("Close took %v", took)
				}
				if err := <-failed; !errors.Is(err, mcp.ErrClosed) {
					t.Errorf("a call that waited: %v", err)
				}
				_ = l.Close()
			})
		}
	}
}

// T17: Close ends reads over HTTP/2, where streams share a connection.
func TestTransportCloseHTTP2(t *testing.T) {
	open := make(chan struct{}, 2)
	hang := func(w http.ResponseWriter, r *http.Request) {
		stream(w, ": open\n\n")
		open <- struct{}{}
		<-r.Context().Done()
	}
	s := serveHTTP2(t, script{session: "s", get: hang, post: hang})
	for _, version := range both {
		l := s.link(nil)
		failed := make(chan error, 1)
		if version != mcp.LatestVersion {
			l.handshake(version)
			<-open
		}
		go func() {
			_, err := l.Call(t.Context(), toolCall(1, version, "a"))
			failed <- err
		}()
		<-open
		_ = l.Close()
		if err := <-failed; !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("%s: %v", version, err)
		}
	}
}
