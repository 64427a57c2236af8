// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/go-psi/psi/internal/test/leak"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

var raceEnabled bool

type sumIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

type sumOut struct {
	Sum int `json:"sum"`
}

func passThrough(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) { return next.ServeMCP(ctx, req) })
}

// adder returns a mux with a typed tool that adds two integers, and three middlewares.
func adder() *mcp.Mux {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(passThrough, passThrough, passThrough)
	mux.Tool("add", mcp.ToolFunc(func(_ context.Context, in sumIn) (sumOut, error) { return sumOut{in.A + in.B}, nil }, nil))
	return mux
}

// serveBytes does what a transport does for one message.
func serveBytes(tb testing.TB, h mcp.Handler, dst, message []byte) []byte {
	m, err := transport.ParseMessage(message)
	if err != nil {
		tb.Fatal(err)
	}
	req := requestOf(tb, m)
	res, err := core.Serve(tb.Context(), h, req, nil, nil)
	return mcp.AppendResponse(dst, req, res, err)
}

// Allocations stay within measured budgets. Lower a budget when the number drops.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, too")
	}
	many := mcp.NewMux("m", "v1", quiet())
	for i := range 1000 {
		many.Tool(fmt.Sprintf("tool%03d", i), mcp.ToolFunc(func(context.Context, sumIn) (sumOut, error) { return sumOut{}, nil }, nil))
	}
	for _, test := range []struct {
		name    string
		h       mcp.Handler
		message string
		budget  float64
		want    string
	}{
		{"tools/call", adder(), eras[0].request("1", "tools/call", `"name":"add","arguments":{"a":1,"b":2}`), callBudget, `"structuredContent":{"sum":3}`},
		{"tools/list", many, eras[0].request("1", "tools/list", ""), listBudget, `"name":"tool999"`},
	} {
		message := []byte(test.message)
		dst := serveBytes(t, test.h, nil, message)
		if !bytes.Contains(dst, []byte(test.want)) {
			t.Fatalf("%s: got %.300s", test.name, dst)
		}
		got := testing.AllocsPerRun(200, func() { dst = serveBytes(t, test.h, dst[:0], message) })
		t.Logf("%s: %v allocations", test.name, got)
		if got > test.budget {
			t.Errorf("%s: %v allocations are over the budget of %v", test.name, got, test.budget)
		}
	}
}

const (
	callBudget   = 8
	listBudget   = 6
	clientBudget = 18
)

func BenchmarkCallTool(b *testing.B) {
	mux := adder()
	message := []byte(eras[0].request("1", "tools/call", `"name":"add","arguments":{"a":1,"b":2}`))
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = serveBytes(b, mux, dst[:0], message)
	}
}

// cannedServer answers every request with the same result.
type cannedServer struct{ result []byte }

func (s cannedServer) Connect(context.Context, transport.Receiver) (transport.Conn, error) {
	return s, nil
}

func (s cannedServer) Call(_ context.Context, m *transport.Outgoing) (*transport.Message, error) {
	return &transport.Message{ID: m.ID, Result: s.result}, nil
}
func (cannedServer) Send(context.Context, *transport.Outgoing) error { return nil }
func (cannedServer) Close() error                                    { return nil }
func (cannedServer) Done() <-chan struct{}                           { return nil }
func (cannedServer) Err() error                                      { return nil }
func (cannedServer) Info() transport.Info                            { return transport.Info{} }

// Client calls whose context has no trace allocate no more than before tracing was added.
func TestClientAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, too")
	}
	c, err := mcp.NewClient("c", "v1", nil).Connect(t.Context(), cannedServer{[]byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"content":[]}`)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, params := t.Context(), &mcp.CallToolParams{Name: "add", Arguments: []byte(`{"a":1,"b":2}`)}
	got := testing.AllocsPerRun(200, func() {
		if _, err := c.CallTool(ctx, params); err != nil {
			t.Fatal(err)
		}
	})
	if t.Logf("%v allocations", got); got > clientBudget {
		t.Errorf("%v allocations are over the budget of %v", got, clientBudget)
	}
}

// BenchmarkRegister registers typed tools, which infers and compiles their schemas and
// checks them for keywords that model providers reject. Servers do this once, at startup.
func BenchmarkRegister(b *testing.B) {
	type in struct{ A, B int }
	add := func(_ context.Context, p in) (int, error) { return p.A + p.B, nil }
	mux := mcp.NewMux("test", "v1", nil)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		mux.Tool(fmt.Sprint("tool", i), mcp.ToolFunc(add, nil))
	}
}

// The tests must not leak goroutines.
func TestMain(m *testing.M) { leak.Main(m) }

// busy returns a server that offers everything a client can call, and a mux mounted in it.
func busy() *mcp.Mux {
	inner := mcp.NewMux("inner", "v1", quiet())
	inner.Tool("t", says("inner"))
	mux := mcp.NewMux("busy", "v1", &mcp.MuxOptions{Logger: quiet().Logger, Bus: store.NewMemory(nil)})
	mux.Mount("in_", inner)
	mux.Tool("t", says("hello"))
	mux.Tool("fails", mcp.ToolFunc(func(context.Context, none) (string, error) { return "", errors.New("no") }, nil))
	mux.Tool("tells", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.Progress(ctx, 1, 1, "done")
		mcp.ClientLogger(ctx).Info("told")
		return "told", nil
	}, nil))
	mux.Tool("asks", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Once(ctx, "once", func(context.Context) (string, error) { return "once", nil })
		if err != nil {
			return "", err
		}
		name, err := mcp.Elicit[namedField](ctx, "name", "Name?")
		return name.Name, err
	}, nil))
	mux.Tool("waits", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.Progress(ctx, 0, 1, "waits")
		<-ctx.Done()
		return "", ctx.Err()
	}, nil))
	mux.Prompt("p", promptSays("hello"))
	mux.Resource("test://r", reads("hello"))
	return mux
}

// unchecked returns an in-memory transport without the checks of mcptest, which remember
// some calls.
func unchecked(t *testing.T, h mcp.Handler) transport.Transport {
	return transport.FromStream(func(context.Context) (transport.Stream, error) {
		near, far := transport.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- mcpstdio.ServeStream(context.Background(), h, far, &mcpstdio.StreamOptions{Logger: quiet().Logger})
		}()
		t.Cleanup(func() { <-served })
		return near, nil
	})
}

// Repeated client operations leave nothing behind: no map entries in the client, gateway or
// server, and no timers.
func TestNothingIsKept(t *testing.T) {
	for _, path := range []struct{ name, front, back string }{
		{"2026-07-28", "2026-07-28", ""}, {"2025-11-25", "2025-11-25", ""},
		{"gateway to 2026-07-28", "2025-11-25", "2026-07-28"}, {"gateway to 2025-11-25", "2026-07-28", "2025-11-25"},
	} {
		for name, again := range whatClientsDo {
			t.Run(path.name+"/"+name, func(t *testing.T) {
				server, prefix := busy(), ""
				if path.back != "" {
					back := connectTo(t, unchecked(t, server), &mcp.ClientOptions{Version: path.back, Forward: true, CallTimeout: time.Hour})
					server, prefix = mcp.NewMux("gateway", "v1", quiet()), "b_"
					server.Mount(prefix, back)
				}
				c := connectTo(t, unchecked(t, server), &mcp.ClientOptions{Version: path.front, CallTimeout: time.Hour, LogLevel: mcp.LoggingLevelDebug, Elicit: answering})
				wantNoGrowth(t, func() error { return again(t, c, prefix) })
			})
		}
	}
}

// whatClientsDo contains functions that each use a connection to a busy server once. Behind
// a gateway, the names of the server have the prefix.
var whatClientsDo = map[string]func(t *testing.T, c *mcp.Conn, prefix string) error{
	"call": func(t *testing.T, c *mcp.Conn, prefix string) error {
		_, err := c.CallTool(t.Context(), tool(prefix+"t", ""))
		return err
	},
	"failed call": func(t *testing.T, c *mcp.Conn, prefix string) error {
		res, err := c.CallTool(t.Context(), tool(prefix+"fails", ""))
		if err == nil && !res.IsError {
			err = fmt.Errorf("the call returned %v", res)
		}
		return err
	},
	"unknown tool": func(t *testing.T, c *mcp.Conn, prefix string) error {
		if _, err := c.CallTool(t.Context(), tool(prefix+"unknown", "")); err == nil {
			return errors.New("the call succeeded")
		}
		return nil
	},
	"call with progress": func(t *testing.T, c *mcp.Conn, prefix string) error {
		_, err := c.CallTool(mcp.WithProgress(t.Context(), func(*mcp.ProgressParams) {}), tool(prefix+"tells", ""))
		return err
	},
	"call with questions": func(t *testing.T, c *mcp.Conn, prefix string) error {
		_, err := c.CallTool(t.Context(), tool(prefix+"asks", ""))
		return err
	},
	"cancelled call": func(t *testing.T, c *mcp.Conn, prefix string) error {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, err := c.CallTool(mcp.WithProgress(ctx, func(*mcp.ProgressParams) { cancel() }), tool(prefix+"waits", ""))
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return fmt.Errorf("the call returned %w", err)
	},
	"lists": func(t *testing.T, c *mcp.Conn, _ string) error {
		_, err := c.ListTools(t.Context(), nil)
		return err
	},
	"ping": func(t *testing.T, c *mcp.Conn, _ string) error { return c.Ping(t.Context()) },
	"roots": func(t *testing.T, c *mcp.Conn, _ string) error {
		return errors.Join(c.AddRoots(t.Context(), mcp.Root{URI: "file:///r"}), c.RemoveRoots(t.Context(), "file:///r"))
	},
	"subscription": func(t *testing.T, c *mcp.Conn, _ string) error {
		s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {})
		if err != nil {
			return err
		}
		s.Close()
		<-s.Done()
		return s.Err()
	},
}

// Repeated server operations leave nothing behind.
func TestNothingIsRegistered(t *testing.T) {
	mux := busy()
	other := mcp.NewMux("other", "v1", quiet())
	other.Tool("t", says("hello"))
	for name, again := range map[string]func() error{
		"registrations": func() error {
			mux.Tool("new", says("hello"))
			mux.Prompt("new", promptSays("hello"))
			mux.Resource("test://new", reads("hello"))
			mux.Resource("test://{new}", reads("hello"))
			mux.RemoveTool("new")
			mux.RemovePrompt("new")
			mux.RemoveResource("test://new", "test://{new}")
			return nil
		},
		"failed update": func() error {
			if mux.Update(func(m *mcp.Mux) { m.Tool("new", says("hello")); m.Tool("t", says("hello")) }) == nil {
				return errors.New("the update succeeded")
			}
			return nil
		},
		"mounts": func() error {
			mux.Mount("new_", other)
			mux.Unmount("new_")
			return nil
		},
		"connections": func() error {
			client := mcp.NewClient("client", "v1", nil)
			c, err := client.Connect(t.Context(), mcp.InProcess(mux))
			if err != nil {
				return err
			}
			return c.Close()
		},
		"upstreams": func() error {
			u := mcp.NewClient("client", "v1", nil).Maintain(t.Context(), mcp.InProcess(mux), nil)
			_, err := u.Conn(t.Context())
			return errors.Join(err, u.Close())
		},
	} {
		t.Run(name, func(t *testing.T) { wantNoGrowth(t, again) })
	}
}

// wantNoGrowth calls again many times and fails if the calls leave objects on the heap.
func wantNoGrowth(t *testing.T, again func() error) {
	t.Helper()
	const calls = 100
	run := func() (objects int64) {
		for range calls {
			if err := again(); err != nil {
				t.Fatal(err)
			}
		}
		var stats runtime.MemStats
		runtime.GC()
		runtime.GC() // the first leaves the former contents of pools
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapObjects)
	}
	var grown []int64
	for before, n := run(), 0; n < 10; n++ { // other goroutines may allocate at the same time
		after := run()
		if grown = append(grown, after-before); after-before < calls/2 {
			return
		}
		before = after
	}
	t.Errorf("each time, %d calls left so many objects: %d", calls, grown)
}
