// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// forgetful is a legacy server that can forget its sessions, on a network that can make
// requests fail.
type forgetful struct {
	*site
	h    *mcphttp.Handler
	fail atomic.Pointer[string] // the next request with this in its body fails
}

func newForgetful(t *testing.T, mux *mcp.Mux) *forgetful {
	f := &forgetful{h: newHandler(t, mux, &mcphttp.Options{Logger: quiet})}
	f.site = serve(t, f.h)
	return f
}

func (f *forgetful) forget() {
	for s := range f.h.Sessions() {
		s.Close()
	}
	synctest.Wait()
}

func (f *forgetful) RoundTrip(r *http.Request) (*http.Response, error) {
	if want := f.fail.Load(); want != nil && r.Body != nil {
		body, _ := io.ReadAll(r.Body)
		r = r.Clone(r.Context())
		r.Body = io.NopCloser(bytes.NewReader(body))
		if strings.Contains(string(body), *want) && f.fail.CompareAndSwap(want, nil) {
			return nil, errors.New("the network is broken")
		}
	}
	return f.client.Transport.RoundTrip(r)
}

func (f *forgetful) dial(t *testing.T, opts *mcp.ClientOptions) *mcp.Conn {
	opts.Version, opts.Logger = mcp.LegacyVersions()[0], quiet
	transport := mcphttp.NewTransport("http://localhost/mcp", &mcphttp.TransportOptions{Client: &http.Client{Transport: f}, Logger: quiet})
	return mcptest.Dial(t, transport, opts)
}

func plainMux() *mcp.Mux {
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: quiet})
	mux.Tool("echo", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "x", nil }, nil))
	mux.Resource("res://a", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "a", nil }, nil))
	return mux
}

func echoes(t *testing.T, c *mcp.Conn) error {
	_, err := mcp.Call[string](t.Context(), c, "echo", nil)
	return err
}

// A connection whose session is lost opens a new one at the second attempt if the first
// fails.
func TestLostSessionSecondAttempt(t *testing.T) {
	for _, what := range []string{`"method":"initialize"`, `"method":"notifications/initialized"`} {
		synctest.Test(t, func(t *testing.T) {
			mux := plainMux()
			f := newForgetful(t, mux)
			c := f.dial(t, &mcp.ClientOptions{})
			var heard atomic.Int64
			if _, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) { heard.Add(1) }); err != nil {
				t.Fatal(err)
			}
			f.forget()
			f.fail.Store(&what)
			_ = echoes(t, c) // may fail: the network is broken
			if err := echoes(t, c); err != nil {
				t.Errorf("after %s failed: %v", what, err)
			}
			<-time.After(time.Minute)
			heard.Store(0)
			mux.Tool("new", uncalled)
			<-time.After(time.Minute)
			if heard.Load() == 0 {
				t.Errorf("after %s failed: a change is not heard of", what)
			}
		})
	}
}

// An answer that could not be sent is sent again, because the server is waiting for it.
func TestAnswerIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := plainMux()
		mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			_, err := mcp.Elicit[struct{}](ctx, "sure", "Sure?")
			return "sure", err
		}, nil))
		f := newForgetful(t, mux)
		c := f.dial(t, &mcp.ClientOptions{Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			what := `"accept"`
			f.fail.Store(&what)
			return &mcp.ElicitResult{Action: "accept"}, nil
		}})
		got, err := mcp.Call[string](t.Context(), c, "ask", nil)
		if err != nil || got != "sure" || f.fail.Load() != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// An answer to a question from a lost session is not sent as an answer to a question of the
// next session.
func TestLostSessionAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := plainMux()
		type answer struct {
			Text string `json:"text"`
		}
		type in struct {
			Text string `json:"text"`
		}
		mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, in in) (string, error) {
			a, err := mcp.Elicit[answer](ctx, "a", in.Text)
			return a.Text, err
		}, nil))
		f := newForgetful(t, mux)
		c := f.dial(t, &mcp.ClientOptions{Elicit: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			<-time.After(map[string]time.Duration{"first": 2 * time.Second, "second": 10 * time.Second}[p.Message])
			return mcptest.Accept(answer{p.Message}), nil
		}})
		go mcp.Call[string](t.Context(), c, "ask", in{"first"})
		<-time.After(time.Second)
		f.forget() // the user has not answered the first question yet
		if got, err := mcp.Call[string](t.Context(), c, "ask", in{"second"}); err != nil || got != "second" {
			t.Errorf("the second question was answered with %q, %v", got, err)
		}
		<-time.After(time.Minute) // time for the user to answer
	})
}

// A resource that could not be subscribed to again is not forgotten: the subscriber gets its
// updates later, or the subscription ends.
func TestLostSessionResubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := plainMux()
		f := newForgetful(t, mux)
		c := f.dial(t, &mcp.ClientOptions{})
		var heard atomic.Int64
		s, err := c.Subscribe(t.Context(), "res://a", func(string) { heard.Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		f.forget()
		what := "resources/subscribe"
		f.fail.Store(&what)
		for range 3 {
			_ = echoes(t, c) // the first may fail: the network is broken
			<-time.After(time.Minute)
		}
		heard.Store(0)
		mux.ResourceUpdated("res://a")
		<-time.After(time.Minute)
		select {
		case <-s.Done():
		default:
			if heard.Load() == 0 {
				t.Error("the subscription goes on, and hears nothing")
			}
		}
	})
}

// A new session may reject a resource that it does not have yet. If another listener
// subscribes to it later, while the first subscription continues, that listener gets its
// updates.
func TestLostSessionResubscribeRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := plainMux()
		f := newForgetful(t, mux)
		c := f.dial(t, &mcp.ClientOptions{})
		if _, err := c.Subscribe(t.Context(), "res://a", func(string) {}); err != nil {
			t.Fatal(err)
		}
		mux.RemoveResource("res://a")
		mux.Resource("res://b", uncalled)
		f.forget()
		if err := echoes(t, c); err != nil {
			t.Fatal(err)
		}
		mux.Resource("res://a", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "a", nil }, nil))
		var heard atomic.Int64
		if _, err := c.Subscribe(t.Context(), "res://a", func(string) { heard.Add(1) }); err != nil {
			t.Fatal(err)
		}
		mux.ResourceUpdated("res://a")
		<-time.After(time.Minute)
		if heard.Load() == 0 {
			t.Error("the subscription was accepted, and hears nothing")
		}
	})
}

// Subscribing detects a lost session like a call does.
func TestLostSessionSubscribe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForgetful(t, plainMux())
		c := f.dial(t, &mcp.ClientOptions{})
		f.forget()
		if _, err := c.Subscribe(t.Context(), "res://a", func(string) {}); err != nil {
			t.Error(err)
		}
	})
}

// A client that only listens also learns that its session is lost.
func TestLostSessionListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := plainMux()
		f := newForgetful(t, mux)
		c := f.dial(t, &mcp.ClientOptions{})
		var heard atomic.Int64
		s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) { heard.Add(1) })
		if err != nil {
			t.Fatal(err)
		}
		f.forget()
		<-time.After(time.Minute)
		mux.Tool("new", uncalled)
		<-time.After(5 * time.Minute)
		select {
		case <-s.Done():
		default:
			if heard.Load() == 0 {
				t.Error("the subscription goes on, and hears nothing")
			}
		}
	})
}

// A caller waiting for a new session gives up when its context is done.
func TestLostSessionContext(t *testing.T) {
	f := newForgetful(t, plainMux())
	shake := make(chan struct{})
	n := 0
	transport := mcptest.Faulty(mcphttp.NewTransport("http://localhost/mcp", &mcphttp.TransportOptions{Client: f.client, Logger: quiet}),
		func(_ int, m *transport.Outgoing) mcptest.Fault {
			if m.Method == "initialize" {
				if n++; n == 2 {
					close(shake)
					return mcptest.Fault{Drop: true}
				}
			}
			return mcptest.Fault{}
		})
	c := mcptest.Dial(t, transport, &mcp.ClientOptions{Version: mcp.LegacyVersions()[0], Logger: quiet})
	for s := range f.h.Sessions() {
		s.Close()
	}
	for range f.h.Sessions() {
		<-time.After(time.Millisecond)
	}
	first, stop := context.WithCancel(t.Context())
	defer stop()
	go mcp.Call[string](first, c, "echo", nil)
	<-shake // the first call opens a new session and gets no response
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	returned := make(chan error, 1)
	go func() { _, err := mcp.Call[string](ctx, c, "echo", nil); returned <- err }()
	select {
	case <-returned:
	case <-time.After(5 * time.Second):
		t.Error("a call hangs whose context is done")
	}
	stop()
}

// A heartbeat that is the first thing sent on the stream of a call does no harm if the
// client has disconnected.
func TestHeartbeatToNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := plainMux()
		mux.Tool("slow", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
			<-time.After(time.Minute)
			return "", nil
		}, nil))
		h := newHandler(t, mux, &mcphttp.Options{Logger: quiet})
		s := serve(t, h)
		session := s.open("2025-11-25")
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := s.client.Do(s.request(ctx, http.MethodPost, call(1, "slow"), session)); err == nil {
			t.Error("it was answered")
		}
		<-time.After(2 * time.Minute)
	})
}

// Keep-alive pings preserve a connection whose session is lost: the server responds, and the
// client opens another session.
func TestLostSessionKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &forgetful{h: newHandler(t, plainMux(), &mcphttp.Options{Logger: quiet})}
		f.site = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet { // otherwise the client would notice through its stream
				http.Error(w, "no streams", http.StatusMethodNotAllowed)
				return
			}
			f.h.ServeHTTP(w, r)
		}))
		c := f.dial(t, &mcp.ClientOptions{KeepAlive: time.Minute})
		f.forget()
		<-time.After(5 * time.Minute)
		f.forget()
		if err := c.Ping(t.Context()); err != nil {
			t.Errorf("Ping: %v", err)
		}
		if err := echoes(t, c); err != nil {
			t.Errorf("after 5 minutes: %v", err)
		}
	})
}

// numbering is a server that numbers its questions from 0 in each session, as the official
// SDKs do. A call of its tool returns the answer to its question.
type numbering struct {
	mu       sync.Mutex
	opened   int
	sessions map[string]map[string]chan string // answers by question
}

// forget ends all sessions and their calls.
func (n *numbering) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, questions := range n.sessions {
		for _, answer := range questions {
			close(answer)
		}
	}
	n.sessions = nil
}

func (n *numbering) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m, _ := transport.ParseMessage(body)
	n.mu.Lock()
	defer n.mu.Unlock()
	questions := n.sessions[r.Header.Get("Mcp-Session-Id")]
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case m.Method == "initialize":
		n.opened++
		id := fmt.Sprint("session", n.opened)
		n.sessions = map[string]map[string]chan string{id: {}}
		w.Header().Set("Mcp-Session-Id", id)
		say(w, fmt.Sprintf(`{"jsonrpc":"2.0","id":%v,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`, m.ID))
	case questions == nil:
		w.WriteHeader(http.StatusNotFound)
	case m.Method == "tools/call":
		id, answer := len(questions), make(chan string, 1)
		questions[fmt.Sprint(id)] = answer
		stream(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"elicitation/create\",\"params\":{\"message\":\"Who?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}\n\n", id))
		n.mu.Unlock()
		text, ok := <-answer
		n.mu.Lock()
		if ok {
			stream(w, fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%v,\"result\":{\"content\":[{\"type\":\"text\",\"text\":%q}]}}\n\n", m.ID, text))
		}
	default:
		if answer := questions[m.ID.String()]; m.IsResponse() && answer != nil {
			answer <- string(m.Result)
		}
		w.WriteHeader(http.StatusAccepted)
	}
}

// A gateway forwards an answer only to a question of the session that it answers: in another
// session, the same ID may belong to a question to another user.
func TestLostSessionForwardedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(numbering)
		f := &forgetful{site: serve(t, server)}
		declared := &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{Form: &struct{}{}}}
		c := f.dial(t, &mcp.ClientOptions{Capabilities: declared, Forward: true})
		ask := func() *mcp.InputRequiredError {
			var asked *mcp.InputRequiredError
			if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"}); !errors.As(err, &asked) {
				t.Fatalf("the call returned %v", err)
			}
			return asked
		}
		answer := func(asked *mcp.InputRequiredError, text string) (string, error) {
			retry := mcp.Resume{InputResponses: map[string]json.RawMessage{}, RequestState: asked.Result.RequestState}
			for key := range asked.Result.InputRequests {
				retry.InputResponses[key] = json.RawMessage(text)
			}
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask", Resume: retry})
			if err != nil {
				return "", err
			}
			return res.Content[0].(*mcp.TextContent).Text, nil
		}
		late, unnoticed := ask(), ask()
		server.forget()
		go answer(unnoticed, `{"unnoticed":true}`) // the call has failed
		synctest.Wait()
		second, third := ask(), ask()
		if got, err := answer(late, `{"late":true}`); err == nil {
			t.Errorf("the call in the lost session returned %q", got)
		}
		<-time.After(time.Minute)
		for text, asked := range map[string]*mcp.InputRequiredError{`{"second":true}`: second, `{"third":true}`: third} {
			if got, err := answer(asked, text); got != text {
				t.Errorf("the answer %s arrived as %s, %v", text, got, err)
			}
		}
	})
}
