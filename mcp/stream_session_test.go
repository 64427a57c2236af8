// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/server"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// A session ends with its connection, even if nothing is pending, and its Done channel is
// closed.
func TestSessionEndsWithItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var session *mcp.Session
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("keep", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			session = mcp.SessionFromContext(ctx)
			return "", nil
		}, nil))
		p := servePeer(t, mux, eras[1], nil)
		p.send(eras[1].request("1", "tools/call", `"name":"keep"`))
		p.read()
		p.finish()
		synctest.Wait()
		select {
		case <-session.Done():
		default:
			t.Error("the session has not ended")
		}
	})
}

// A handler can keep its session and notify the client later.
func TestSessionNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var session *mcp.Session
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("keep", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			session = mcp.SessionFromContext(ctx)
			return "", nil
		}, nil))
		p := servePeer(t, mux, eras[1], nil)
		p.send(eras[1].request("1", "tools/call", `"name":"keep"`))
		p.read()
		if err := session.Notify(t.Context(), "notifications/x", []int{1}); err == nil {
			t.Error("params that are no object were sent")
		}
		if err := session.Notify(t.Context(), "notifications/x", map[string]int{"n": 1}); err != nil {
			t.Error(err)
		}
		if said := p.finish(); len(said) != 1 || !strings.Contains(said[0], `"method":"notifications/x","params":{"n":1}`) {
			t.Errorf("the client was told %q", said)
		}
	})
}

// A client that repeats notifications/initialized is notified of a change once.
func TestInitializedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := hello()
		p := newPeer(t, mux, eras[1])
		for range 100 {
			p.send(eras[1].open[1])
		}
		synctest.Wait()
		mux.Tool("new", says(""))
		synctest.Wait()
		if said := p.finish(); len(said) != 1 || !strings.Contains(said[0], mcp.NotificationToolsListChanged) {
			t.Errorf("the client was told %d times: %q", len(said), said)
		}
	})
}

// A failed handshake can be repeated.
func TestInitializeAgain(t *testing.T) {
	mux := hello()
	busy := true
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodDiscover && busy {
				return nil, mcp.Errorf(-1, "not now")
			}
			return next.ServeMCP(ctx, req)
		})
	})
	p := newPeer(t, mux, wireEra{})
	p.send(eras[1].open[0])
	if r := p.read(); r.Error == nil || r.Error.Code != -1 {
		t.Fatalf("the first handshake got %s, %v", r.Result, r.Error)
	}
	p.send(eras[1].request("1", "tools/list", ""))
	if r := p.read(); r.Error == nil {
		t.Error("a request was served without a handshake")
	}
	busy = false
	p.send(eras[1].open[0])
	if r := p.read(); r.Error != nil {
		t.Errorf("the second handshake got %v", r.Error)
	}
	p.send(eras[1].request("2", "tools/call", `"name":"hello"`))
	if r := p.read(); r.Error != nil {
		t.Errorf("the call got %v", r.Error)
	}
}

// StreamOptions.MaxInFlight applies to clients of both eras.
func TestMaxInFlightOfEachEra(t *testing.T) {
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				mux := mcp.NewMux("m", "v1", quiet())
				mux.Tool("slow", mcp.ToolFunc(func(context.Context, none) (string, error) { <-release; return "", nil }, nil))
				p := servePeer(t, mux, era, &mcpstdio.StreamOptions{MaxInFlight: 2})
				for i := range 3 {
					p.send(era.request(fmt.Sprint(i), "tools/call", `"name":"slow"`))
				}
				if r := p.read(); r.ID != mcp.IntID(2) || r.Error == nil {
					t.Errorf("the first answer is %s %v of %s, want a refusal of the third call", r.Result, r.Error, r.ID)
				}
				close(release)
				if said := p.finish(); len(said) != 2 {
					t.Errorf("then came %q", said)
				}
			})
		})
	}
}

// The requests in flight of a stream are bounded in bytes as well: 64 MiB, or one request of
// any size.
func TestFindingX1BytesInFlightOfEachEra(t *testing.T) {
	large := `"name":"slow","arguments":{"x":"` + strings.Repeat("x", 33<<20) + `"}`
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				mux := mcp.NewMux("m", "v1", quiet())
				mux.Tool("slow", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
					<-release
					return mcp.TextResult(""), nil
				}))
				p := servePeer(t, mux, era, nil)
				for i := range 2 {
					p.send(era.request(fmt.Sprint(i), "tools/call", large))
				}
				if r := p.read(); r.ID != mcp.IntID(1) || r.Error == nil || r.Error.Code != mcp.CodeInternalError {
					t.Errorf("the first answer is %v of %s, want a refusal of the second call", r.Error, r.ID)
				}
				close(release)
				synctest.Wait()
				p.send(era.request("2", "tools/call", large))
				if said := p.finish(); len(said) != 2 || strings.Contains(said[1], "error") {
					t.Errorf("then came %.300q", said)
				}
			})
		})
	}
}

// A session of a stream keeps at most 16 KiB of a handshake.
func TestFindingX1HandshakesOfStreamsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, mcp.NewMux("m", "v1", quiet()), eras[0])
		p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":%q,"version":"1"}}}`, strings.Repeat("n", 16<<10)))
		if said := p.finish(); len(said) != 1 || !strings.Contains(said[0], `"code":-32602`) {
			t.Errorf("answered with %.300q", said)
		}
	})
}

// If a client does not support one of the questions of a round, it is asked none, because
// nothing would wait for its answers.
func TestQuestionsThatCannotAllBeAsked(t *testing.T) {
	asked := &mcp.InputRequired{InputRequests: map[string]mcp.InputRequest{"sample": {Method: mcp.MethodCreateMessage, Params: []byte(`{"messages":[],"maxTokens":1}`)}}}
	for i := range 20 {
		asked.InputRequests[fmt.Sprint(i)] = mcp.InputRequest{Method: mcp.MethodElicit, Params: []byte(`{"message":"?","requestedSchema":{"type":"object","properties":{}}}`)}
	}
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodDiscover {
				return &mcp.DiscoverResult{}, nil
			}
			return asked, nil
		}), eras[1])
		p.send(eras[1].request("1", "vendor/ask", ""))
		synctest.Wait()
		said := p.finish()
		if len(said) != 1 || !strings.Contains(said[0], fmt.Sprint(mcp.CodeMissingCapability)) {
			t.Errorf("the client was told %d things, want one error: %.300q", len(said), said)
		}
	})
}

// A session of the legacy era has at most 1000 subscriptions, including those restored from
// another process.
func TestSubscriptionBounds(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("test://{n}", reads("x"))
	kept := server.State{Version: "2025-11-25"}
	for n := range 999 {
		kept.Subscriptions = append(kept.Subscriptions, fmt.Sprintf("test://%d", n))
	}
	session := server.New(mux, nil).NewSession(server.Details{}, &kept)
	defer session.Close()
	say := func(method string, n int) string {
		m, err := transport.ParseMessage([]byte(eras[1].request("1", method, fmt.Sprintf(`"uri":"test://%d"`, n))))
		if err != nil {
			t.Fatal(err)
		}
		if m, err = transport.ParseMessage(play(t.Context(), session, m, nil)); err != nil {
			t.Fatal(err)
		}
		if m.Error != nil {
			return m.Error.Message
		}
		return ""
	}
	const full = "the session has 1000 subscriptions, which is the limit"
	for _, step := range []struct {
		method string
		n      int
		want   string
	}{
		{"resources/subscribe", 999, ""}, {"resources/subscribe", 1000, full}, {"resources/subscribe", 7, ""},
		{"resources/unsubscribe", 7, ""}, {"resources/subscribe", 1000, ""}, {"resources/subscribe", 7, full},
	} {
		if got := say(step.method, step.n); got != step.want {
			t.Errorf("%s %d: %q, want %q", step.method, step.n, got, step.want)
		}
	}
	if n := len(session.State().Subscriptions); n != 1000 {
		t.Errorf("%d subscriptions", n)
	}
}

// A client that does not answer three pings in a row is considered gone. An error is an
// answer.
func TestPingBounds(t *testing.T) {
	for _, answered := range []int{0, 1, 4} { // number of the answered ping, or 0 for none
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			p := servePeer(t, hello(), eras[1], &mcpstdio.StreamOptions{KeepAlive: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			start, pings := time.Now(), 0
			for range 20 {
				<-time.After(30 * time.Second)
				synctest.Wait()
				for len(p.stream.out) > 0 {
					m := string(<-p.stream.out)
					if methodIn(m) != "ping" {
						continue
					}
					if pings++; pings == answered {
						_, id, _ := strings.Cut(m, `"id":`)
						id, _, _ = strings.Cut(id, ",")
						p.send(`{"jsonrpc":"2.0","id":` + id + `,"error":{"code":1,"message":"busy"}}`)
					}
				}
			}
			want := 3
			if answered == 1 {
				want = 4
			}
			if pings != want || !strings.Contains(log.String(), "the client does not answer") || !strings.Contains(log.String(), "pings=3") {
				t.Errorf("answered %d: %d pings in %v, want %d; logged %s", answered, pings, time.Since(start), want, log.String())
			}
		})
	}
}

// A handler that keeps asking is called at most 32 times.
func TestRoundBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		calls := 0
		mux.Tool("ask", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			calls++
			return &mcp.InputRequired{InputRequests: map[string]mcp.InputRequest{"r": {Method: mcp.MethodListRoots}}}, nil
		}))
		era := wireEra{open: strings.Split(strings.TrimSpace(opening("2025-11-25", allCaps)), "\n")}
		c := &conversation{servePeer(t, mux, era, &mcpstdio.StreamOptions{Logger: quiet().Logger}), usualAnswers}
		said := c.say(messageOf(mcp.MethodCallTool, `{"name":"ask"}`))
		last := said[len(said)-1]
		if calls != 32 || len(said) != 33 || !strings.Contains(last, `"code":-32603,"message":"the handler asked in 32 rounds without coming to an end"`) {
			t.Errorf("%d calls, %d messages, the last %s", calls, len(said), last)
		}
		c.finish()
	})
}

// eventSender reports each message sent.
type eventSender chan string

func (events eventSender) Send(context.Context, []byte) error {
	events <- "change"
	return nil
}

// No change is sent before the session's stream is ready, even for a subscription made
// while the stream is starting.
func TestSubscribeWhileListenBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Resource("res://a", reads("a"))
		begins := make(chan struct{})
		mux.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				var p mcp.ListenParams
				if req.Method == mcp.MethodListen && req.Decode(&p) == nil && len(p.Notifications.ResourceSubscriptions) == 0 {
					<-begins
				}
				return next.ServeMCP(ctx, req)
			})
		})
		session := server.New(mux, nil).NewSession(server.Details{}, &server.State{Version: "2025-11-25"})
		defer session.Close()
		events := make(eventSender, 4)
		go session.Listen(t.Context(), server.Origin{}, events, func() { events <- "ready" })
		synctest.Wait()
		subscribe, err := transport.ParseMessage([]byte(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"res://a"}}`))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			play(t.Context(), session, subscribe, nil)
			events <- "subscribed"
		}()
		synctest.Wait()
		mux.ResourceUpdated("res://a")
		synctest.Wait()
		close(begins)
		if first, second := <-events, <-events; first != "ready" || second != "subscribed" {
			t.Errorf("%s, then %s", first, second)
		}
	})
}
