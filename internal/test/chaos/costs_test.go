// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcphttp"
)

// A meter is a store that counts its operations.
type meter struct {
	store.Store

	mu    sync.Mutex
	ops   map[string]int
	bytes int
}

func (m *meter) count(op string, bytes int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ops[op]++
	m.bytes += bytes
}

func (m *meter) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	m.count("Get", 0)
	return m.Store.Get(ctx, key)
}

func (m *meter) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	m.count("Put", len(key)+len(value))
	return m.Store.Put(ctx, key, value, version, ttl)
}

func (m *meter) Take(ctx context.Context, key string) ([]byte, error) {
	m.count("Take", 0)
	return m.Store.Take(ctx, key)
}

func (m *meter) Publish(ctx context.Context, topic string, message []byte) error {
	if topic != "psi/alive" { // a heartbeat of the process, not caused by a client
		m.count("Publish", len(topic)+len(message))
	}
	return m.Store.Publish(ctx, topic, message)
}

func (m *meter) String() string {
	var parts []string
	for _, op := range []string{"Get", "Put", "Take", "Publish"} {
		if n := m.ops[op]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, op))
		}
	}
	return strings.Join(parts, ", ")
}

// Each client operation costs a known number of store operations. A call of the latest
// revision that elicits nothing costs none.
func TestCosts(t *testing.T) {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		c := newCosts(t, version)
		c.measure(w, version+" connect", c.connect)
		none := version + " call"
		c.measure(w, none, func() error { return c.call("echo", in{Text: "x"}, "x") })
		if got := c.meter.String(); got != "" {
			t.Errorf("a call costs the store %s", got)
		}
		c.measure(w, version+" call with 5 progress events", func() error { return c.call("work", in{Text: "x", Steps: 5}, "x") })
		c.measure(w, version+" call with two questions", func() error { return c.call("ask", in{Text: "x"}, "re:xare:xb") })
		c.measure(w, version+" task of 4 steps and a question", func() error { return c.call("render", in{Text: "x", Steps: 4}, "x012re:x3") })
		c.measure(w, version+" disconnect", c.conn.Close)
	}
	_ = w.Flush() // writes to memory
	t.Log("\n" + out.String())
}

type costs struct {
	t     *testing.T
	meter *meter
	url   string
	conn  *mcp.Conn
	opts  mcp.ClientOptions
}

func newCosts(t *testing.T, version string) *costs {
	t.Helper()
	c := &costs{t: t, meter: &meter{Store: store.NewMemory(nil), ops: map[string]int{}}}
	mux := mcp.NewMux("costs", "v1", nil)
	manager := tasks.New("costs", &tasks.Options{Store: c.meter, PollInterval: 100 * time.Millisecond})
	manager.Register(mux)
	mux.Tool("echo", mcp.ToolFunc(echo, nil))
	mux.Tool("ask", mcp.ToolFunc(ask, nil))
	mux.Tool("work", mcp.ToolFunc(work, nil))
	mux.With(manager.Background(nil)).Tool("render", mcp.ToolFunc(render, nil))
	endpoint := mcphttp.NewHandler(mux, &mcphttp.Options{Sessions: mcphttp.SessionOptions{
		Shared: &mcphttp.SharedSessions{Values: c.meter, URL: "http://only.one/", Keys: [][]byte{make([]byte, 32)}},
	}})
	srv := httptest.NewServer(endpoint)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = endpoint.Shutdown(ctx)
		_ = manager.Shutdown(ctx)
		srv.Close()
	})
	c.url = srv.URL
	c.opts = mcp.ClientOptions{
		Version: version, Logger: quiet, Extensions: []*mcp.ClientExtension{tasks.Client()},
		Elicit: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: fmt.Appendf(nil, `{"text":"re:%s"}`, p.Message)}, nil
		},
	}
	return c
}

func (c *costs) connect() (err error) {
	c.conn, err = mcp.NewClient("costs", "v1", &c.opts).Connect(c.t.Context(), mcphttp.NewTransport(c.url, nil))
	return err
}

func (c *costs) call(tool string, in in, want string) error {
	ctx := mcp.WithProgress(c.t.Context(), func(*mcp.ProgressParams) {})
	if tool == "echo" {
		ctx = c.t.Context()
	}
	got, err := mcp.Call[string](ctx, c.conn, tool, in)
	return check(err, got, want)
}

// measure calls do and writes its store operations to w.
func (c *costs) measure(w *tabwriter.Writer, what string, do func() error) {
	c.t.Helper()
	c.meter.mu.Lock()
	c.meter.ops, c.meter.bytes = map[string]int{}, 0
	c.meter.mu.Unlock()
	if err := do(); err != nil {
		c.t.Fatalf("%s: %v", what, err)
	}
	c.meter.mu.Lock()
	defer c.meter.mu.Unlock()
	fmt.Fprintf(w, "%s\t%v\t%d bytes\n", what, c.meter, c.meter.bytes)
}

// BenchmarkStore measures the latency of each store operation, one at a time.
func BenchmarkStore(b *testing.B) {
	for _, engine := range []string{"nats", "redis"} {
		if engine == "redis" && !hasRedis() {
			continue
		}
		log, err := os.Create(filepath.Join(b.TempDir(), "log"))
		if err != nil {
			b.Fatal(err)
		}
		defer log.Close()
		world, err := newWorld(b.Context(), &config{store: engine}, b.TempDir(), log)
		if err != nil {
			b.Fatal(err)
		}
		defer world.close()
		shared, err := openStore(b.Context(), &world.replicas[0].role)
		if err != nil {
			b.Fatal(err)
		}
		ctx, value := b.Context(), make([]byte, 500)
		var version uint64
		for op, do := range map[string]func() error{
			"Put":     func() (err error) { version, err = shared.Put(ctx, "key", value, version, time.Hour); return err },
			"Get":     func() error { _, _, err := shared.Get(ctx, "key"); return err },
			"Publish": func() error { return shared.Publish(ctx, "topic", value) },
		} {
			b.Run(engine+"/"+op, func(b *testing.B) {
				if op == "Get" && version == 0 {
					version, _ = shared.Put(ctx, "key", value, 0, time.Hour)
				}
				for b.Loop() {
					if err := do(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
