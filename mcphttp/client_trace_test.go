// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// tracedEvents records the calls of a trace, in order.
type tracedEvents struct {
	mu     sync.Mutex
	events []string
}

func (e *tracedEvents) addf(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, fmt.Sprintf(format, args...))
}

// take returns the events so far and clears them.
func (e *tracedEvents) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	events := e.events
	e.events = nil
	return events
}

func (e *tracedEvents) trace() *mcptrace.ClientTrace {
	return &mcptrace.ClientTrace{
		Retry:     func(i mcptrace.RetryInfo) { e.addf("retry %s", i.Method) },
		Reconnect: func(i mcptrace.ReconnectInfo) { e.addf("reconnect %s", i.Kind) },
		Challenge: func(i mcptrace.ChallengeInfo) { e.addf("challenge %d %s", i.Status, i.Header["Www-Authenticate"]) },
	}
}

// An unreadable response is traced with the reason.
func TestClientTraceOfAnUnreadableResponse(t *testing.T) {
	url := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		request, err := transport.ParseMessage(body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(transport.AppendResult(nil, request.ID, []byte(`{"twice":1,"twice":2}`)))
	}))
	var reasons []error
	ctx := mcptrace.WithClientTrace(t.Context(), &mcptrace.ClientTrace{WireRead: func(i mcptrace.WireInfo) { reasons = append(reasons, i.Err) }})
	_, err := mcp.NewClient("traced", "v1", &mcp.ClientOptions{Version: mcp.LatestVersion, Logger: quiet}).Connect(ctx, mcphttp.NewTransport(url, nil))
	if !errors.Is(err, mcp.ErrUnreadable) || len(reasons) == 0 || reasons[0] == nil {
		t.Errorf("%v, traced with %v", err, reasons)
	}
}

// A challenge from the server is traced, in both eras.
func TestClientTraceOfAChallenge(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		var e tracedEvents
		url := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="x"`)
			w.WriteHeader(http.StatusUnauthorized)
		}))
		ctx := mcptrace.WithClientTrace(t.Context(), e.trace())
		_, err := mcp.NewClient("traced", "v1", &mcp.ClientOptions{Version: version}).Connect(ctx, mcphttp.NewTransport(url, nil))
		if want := []string{`challenge 401 [Bearer realm="x"]`}; err == nil || !slices.Equal(e.take(), want) {
			t.Errorf("%s: the challenge is not traced (%v)", version, err)
		}
	}
}

// A stream that breaks off is reopened, and the trace attributes that to its call.
func TestClientTraceOfAStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		mux.Tool("long", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			if err := mcphttp.CloseStream(ctx); err != nil {
				return "", err
			}
			mcp.Progress(ctx, 1, 2, "")
			<-time.After(time.Minute)
			return "done", nil
		}, nil))
		var e tracedEvents
		f := newForgetful(t, mux)
		c := f.dial(t, &mcp.ClientOptions{})
		got, err := mcp.Call[string](mcptrace.WithClientTrace(t.Context(), e.trace()), c, "long", nil)
		if events := e.take(); err != nil || got != "done" || len(events) == 0 || events[0] != "reconnect stream" {
			t.Errorf("got %q, %v; traced %q", got, err, events)
		}
	})
}

// A lost session is reopened, and the call is sent again.
func TestClientTraceOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e tracedEvents
		f := newForgetful(t, plainMux())
		c := f.dial(t, &mcp.ClientOptions{})
		f.forget()
		if _, err := mcp.Call[string](mcptrace.WithClientTrace(t.Context(), e.trace()), c, "echo", nil); err != nil {
			t.Fatal(err)
		}
		if got, want := e.take(), []string{"reconnect session", "retry tools/call"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
