// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
	"github.com/go-psi/psi/middleware/otelmcp"
)

func listen() *mcp.Request {
	return mcptest.NewRequest(mcp.MethodListen, &mcp.ListenParams{Notifications: mcp.SubscriptionFilter{ToolsListChanged: true}})
}

// listening is a handler that blocks until its context is done.
var listening = mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
})

// The span of a subscription is short, on both sides.
func TestSubscription(t *testing.T) {
	for name, mw := range map[string]func(*otelmcp.Options) mcp.Middleware{"server": otelmcp.Server, "client": otelmcp.Client} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := observe(t)
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Hour)
				defer cancel()
				done := make(chan error)
				go func() {
					_, err := mw(o.options())(listening).ServeMCP(ctx, listen())
					done <- err
				}()
				<-time.After(time.Second)
				synctest.Wait()
				span := o.only(t)
				if took := span.EndTime.Sub(span.StartTime); took != time.Second || span.Name != mcp.MethodListen || statusOf(span) != "" {
					t.Errorf("%s took %s and is %q", span.Name, took, statusOf(span))
				}
				if err := <-done; err == nil {
					t.Error("it ended well")
				}
				if spans, points := o.spans(), append(o.points(t, serverDuration), o.points(t, clientDuration)...); len(spans) != 0 || len(points) != 0 {
					t.Errorf("its end has %d spans and the measurements %q", len(spans), points)
				}
			})
		})
	}
}

// The span of a rejected subscription contains the reason.
func TestSubscriptionRefused(t *testing.T) {
	o := observe(t)
	_, _ = otelmcp.Server(o.options())(answering(nil, mcp.NewInsufficientScopeError("a"))).ServeMCP(t.Context(), listen())
	span := o.only(t)
	if attrs := written(span.Attributes); !strings.Contains(attrs, "error.type=403") || !strings.HasPrefix(statusOf(span), "error") {
		t.Errorf("got %s, %s", attrs, statusOf(span))
	}
	if points := o.points(t, serverDuration); len(points) != 1 || !strings.Contains(points[0], "error.type=403") {
		t.Errorf("measured %q", points)
	}
}

// Sessions of the legacy era, and connections, are measured when they end.
func TestSessions(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		synctest.Test(t, func(t *testing.T) {
			o := observe(t)
			c := mcptest.Dial(t, mcptest.Paths()[0].Serve(t, traced(o)), &mcp.ClientOptions{Version: version})
			otelmcp.Instrument(c, o.options())
			for range 3 {
				if _, err := mcp.Call[string](t.Context(), c, "who", nil); err != nil {
					t.Fatal(err)
				}
			}
			<-time.After(time.Minute)
			if points := append(o.points(t, serverSessions), o.points(t, clientSessions)...); len(points) != 0 {
				t.Errorf("measured already: %q", points)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			want := []string{"mcp.protocol.version=" + version}
			if points := o.points(t, clientSessions); !slices.Equal(points, want) {
				t.Errorf("%s: the client measured %q", version, points)
			}
			if version == mcp.LatestVersion {
				want = nil
			}
			if points := o.points(t, serverSessions); !slices.Equal(points, want) {
				t.Errorf("%s: the server measured %q", version, points)
			}
			for _, p := range append(o.histogram(t, clientSessions), o.histogram(t, serverSessions)...) {
				if p.Sum < 60 || p.Sum > 61 {
					t.Errorf("%s: it lasted %v seconds", version, p.Sum)
				}
			}
		})
	}
}

// The ID of a session over HTTP is not recorded.
func TestSessionID(t *testing.T) {
	o := observe(t)
	var id string
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(otelmcp.Server(o.options()))
	mux.Tool("t", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		if s := mcp.SessionFromContext(ctx); s != nil {
			id = s.ID()
		}
		return "", nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		id = ""
		if _, err := mcp.Call[string](t.Context(), c, "t", nil); err != nil {
			t.Fatal(err)
		}
		spans := o.spans()
		i := slices.IndexFunc(spans, func(s tracetest.SpanStub) bool { return s.Name == "tools/call t" })
		attrs := written(spans[max(i, 0)].Attributes)
		_, recorded, _ := strings.Cut(attrs, "mcp.session.id=")
		recorded, _, _ = strings.Cut(recorded, " ")
		if (recorded != "") != (id != "") || id != "" && (strings.Contains(attrs, id) || len(recorded) != 16) {
			t.Errorf("the session %q is in %s", id, attrs)
		}
		http := strings.Contains(t.Name(), "http") || strings.HasSuffix(t.Name(), "/sse")
		if got := strings.Contains(attrs, "network.protocol.name=http network.transport=tcp"); got != http {
			t.Errorf("%s: the attributes are %s", t.Name(), attrs)
		}
	})
}

// A broken connection is measured with the error.
func TestBrokenSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := observe(t)
		gone := make(chan struct{})
		c := mcptest.Dial(t, transport.FromStream(func(context.Context) (transport.Stream, error) {
			client, server := transport.Pipe()
			go func() { _ = mcpstdio.ServeStream(t.Context(), traced(o), server, nil) }()
			return breaking{client, gone}, nil
		}), nil)
		otelmcp.Instrument(c, o.options())
		close(gone)
		<-time.After(time.Minute)
		want := []string{"error.type=_OTHER mcp.protocol.version=" + mcp.LatestVersion}
		if points := o.points(t, clientSessions); !slices.Equal(points, want) {
			t.Errorf("measured %q, want %q", points, want)
		}
		o.spans() // drop those of the handshake
		if _, err := mcp.Call[string](t.Context(), c, "who", nil); err == nil {
			t.Error("a broken connection answered")
		}
		if attrs := written(o.only(t).Attributes); !strings.Contains(attrs, "error.type=_OTHER") {
			t.Errorf("a call over it has %s", attrs)
		}
	})
}

// breaking is a stream that breaks when gone is closed.
type breaking struct {
	transport.Stream

	gone chan struct{}
}

func (b breaking) Read(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-b.gone:
			cancel(errLost)
		case <-ctx.Done():
		}
	}()
	data, err := b.Stream.Read(ctx)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, cause
	}
	return data, err
}
