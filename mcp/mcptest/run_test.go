// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/middleware"
)

// weather returns a server whose tool queries another server over HTTP.
func weather(client *http.Client, url string) *mcp.Mux {
	mux := mcp.NewMux("weather", "v1.0.0", nil)
	mux.Tool("weather", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return "", err
		}
		res, err := client.Do(r)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		return string(text), err
	}, nil))
	return mux
}

// Idle connections that net/http keeps for later requests are not leaks, on either side.
func TestFindingU9KeepAliveConnectionsAreNoLeaks(t *testing.T) {
	for _, secure := range []bool{false, true} {
		t.Run(map[bool]string{false: "http1", true: "http2"}[secure], func(t *testing.T) {
			other := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "sunny") }))
			other.EnableHTTP2 = secure
			if secure {
				other.StartTLS()
			} else {
				other.Start()
			}
			defer other.Close()
			mcptest.Run(t, weather(other.Client(), other.URL), func(t *testing.T, c *mcp.Conn) {
				if got, err := mcp.Call[string](t.Context(), c, "weather", nil); err != nil || got != "sunny" {
					t.Errorf("got %q, %v", got, err)
				}
			})
		})
	}
}

// An HTTP response that is not closed is a leak, and so is a handler that is still running.
func TestFindingU9BusyConnectionsAreLeaks(t *testing.T) {
	block := make(chan struct{})
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-block
	}))
	defer other.Close()
	f := &failing{TB: t}
	mcptest.NoLeaks(f)
	res, err := other.Client().Get(other.URL)
	if err != nil {
		t.Fatal(err)
	}
	f.cleanup()
	for _, want := range []string{"TestFindingU9BusyConnectionsAreLeaks.func1(", "persistConn).readLoop(", "IgnoreLeaks"} {
		if !strings.Contains(f.text, want) {
			t.Errorf("%s is not reported in %q", want, f.text)
		}
	}
	close(block)
	_ = res.Body.Close()
}

// openPool simulates a database pool, which runs a goroutine until it is closed.
func openPool() (closePool func()) {
	done := make(chan struct{})
	go poolMain(done)
	return func() { close(done) }
}

func poolMain(done <-chan struct{}) { <-done }

// A goroutine that a handler starts on its first call and keeps running can be ignored by
// name.
func TestFindingU9PoolsAreIgnoredByName(t *testing.T) {
	var closePool func()
	mux := mcp.NewMux("pool", "v1.0.0", nil)
	mux.Tool("query", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		if closePool == nil {
			closePool = openPool()
		}
		return "row", nil
	}, nil))
	client := &mcptest.Client{IgnoreLeaks: []string{"mcptest_test.poolMain"}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if _, err := mcp.Call[string](t.Context(), c, "query", nil); err != nil {
			t.Error(err)
		}
	})
	closePool()
}

// A parallel test does not fail because of the goroutines of other tests.
func TestFindingU9ParallelTestsAreNotChecked(t *testing.T) {
	t.Parallel()
	mux := calculator()
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		t.Parallel()
		t.Cleanup(openPool())
		if err := c.Ping(t.Context()); err != nil && c.Version() != mcp.LatestVersion {
			t.Error(err)
		}
	})
}

// A client of the legacy era keeps a stream open. The test ends anyway, whatever it closes
// and in whichever order.
func TestFindingU10ServeEndsWithOpenStreams(t *testing.T) {
	router := http.NewServeMux()
	router.Handle("/mcp", mcphttp.NewHandler(calculator(), nil))
	started := time.Now()
	t.Run("dial", func(t *testing.T) {
		mcptest.NoLeaks(t)
		url := mcptest.Serve(t, router)
		c := mcptest.Dial(t, mcphttp.NewTransport(url+"/mcp", nil), &mcp.ClientOptions{Version: mcp.LegacyVersions()[0]})
		if got, err := mcp.Call[addOut](t.Context(), c, "add", addIn{1, 2}); err != nil || got.Sum != 3 {
			t.Errorf("got %v, %v", got, err)
		}
	})
	t.Run("never closed", func(t *testing.T) {
		events := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "data: begun\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		res, err := http.Get(mcptest.Serve(t, events))
		if err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(res.Body).ReadString('\n'); err != nil || line != "data: begun\n" {
			t.Errorf("got %q, %v", line, err)
		}
	})
	if took := time.Since(started); took > 8*time.Second {
		t.Errorf("it took %v to end the servers", took)
	}
}

// Each run has its own handler, so a limit used up by one run does not affect the next.
func TestFindingU16HandlerPerRun(t *testing.T) {
	closed := 0
	limited := func(t *testing.T) mcp.Handler {
		t.Cleanup(func() { closed++ })
		mux := calculator()
		mux.Use(middleware.RateLimit(middleware.ByPrincipal, middleware.NewTokenBucket(5, time.Hour, nil)))
		return mux
	}
	runs := 0
	mcptest.RunNew(t, limited, func(t *testing.T, c *mcp.Conn) {
		if closed != runs {
			t.Errorf("%d handlers were closed after %d runs", closed, runs)
		}
		runs++
		if _, err := mcp.Call[addOut](t.Context(), c, "add", addIn{1, 2}); err != nil {
			t.Error(err)
		}
	})
	if runs < 11 || closed != runs {
		t.Errorf("%d runs, %d of their handlers were closed", runs, closed)
	}
}

// Typed calls, progress and a caller work with every kind of test connection.
func TestFindingU16EveryConnection(t *testing.T) {
	ada := &mcp.Principal{Issuer: "test", Subject: "ada"}
	mux := mcp.NewMux("callers", "v1.0.0", nil)
	mux.Tool("whoami", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 1, "")
		return mcp.PrincipalFromContext(ctx).Subject, nil
	}, nil))
	check := func(t *testing.T, c *mcp.Conn) {
		t.Helper()
		progress := 0
		ctx := mcp.WithProgress(t.Context(), func(*mcp.ProgressParams) { progress++ })
		if got, err := mcp.Call[string](ctx, c, "whoami", nil); err != nil || got != "ada" || progress != 1 {
			t.Errorf("got %q, %v, and %d times progress", got, err, progress)
		}
	}
	client := &mcptest.Client{Principal: ada}
	client.Run(t, mux, check)
	check(t, client.Connect(t, mux))
	as := mcptest.As(ada)
	check(t, mcptest.Connect(t, as(mux)))
	check(t, mcptest.Dial(t, mcp.InProcess(as(mux)), nil))
	for _, path := range mcptest.Paths() {
		check(t, mcptest.Dial(t, path.Serve(t, as(mux)), nil))
	}
	url := mcptest.Serve(t, mcphttp.NewRouter(as(mux), nil))
	check(t, mcptest.Dial(t, mcphttp.NewTransport(url+"/mcp", nil), nil))
	res, _, err := mcptest.Do(t, as(mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		return mcp.PrincipalFromContext(ctx).Subject, nil
	}, nil)), mcptest.NewRequest(mcp.MethodCallTool, map[string]any{"name": "whoami"}))
	if err != nil || res.(*mcp.CallToolResult).Content[0].(*mcp.TextContent).Text != "ada" {
		t.Errorf("got %+v, %v", res, err)
	}
}
