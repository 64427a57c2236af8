// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// stubborn is a handler that takes no notice of its context. It ends when it is
// released, and then reports what became of its notification.
type stubborn struct {
	release chan any // a panic, or nil
	told    chan error
	ended   chan struct{}
}

func newStubborn() *stubborn {
	return &stubborn{make(chan any), make(chan error, 10), make(chan struct{}, 10)}
}

func (s *stubborn) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	defer func() { s.ended <- struct{}{} }()
	before := string(req.Params())
	v := <-s.release
	s.told <- req.Notify(ctx, mcp.NotificationMessage, nil)
	if string(req.Params()) != before || mcp.RequestFrom(ctx) == nil || ctx.Err() == nil {
		s.told <- errLost
	}
	if v != nil {
		panic(v)
	}
	return mcp.TextResult("late"), nil
}

func TestHardTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStubborn()
		l, out := lines()
		mux := serving(s, middleware.HardTimeout(time.Second, &middleware.HardTimeoutOptions{MaxAbandoned: 2, Logger: l}))
		begun := time.Now()
		for range 2 {
			_, _, err := mcptest.Do(t, mux, call("t"))
			wantCode(t, err, mcp.CodeTimeout)
		}
		if took := time.Since(begun); took != 2*time.Second {
			t.Errorf("it took %v", took)
		}
		_, _, err := mcptest.Do(t, mux, call("t"))
		if after, ok := mcp.RetryAfter(err); !ok || after != time.Second {
			t.Errorf("beyond the bound: got %v", err)
		}
		s.release <- nil
		s.release <- "boom"
		synctest.Wait()
		for range 2 {
			if err := <-s.told; !errors.Is(err, mcp.ErrNotDelivered) {
				t.Errorf("a late notification: got %v", err)
			}
		}
		if len(s.told) > 0 {
			t.Error("the request changed while it was being served")
		}
		if got := strings.Count(out.String(), "handler panicked"); got != 1 || !strings.Contains(out.String(), "hardtimeout_test.go") {
			t.Errorf("logged %s", out)
		}
		_, _, err = mcptest.Do(t, mux, call("t"))
		wantCode(t, err, mcp.CodeTimeout) // there is room again
		s.release <- nil
	})
}

// A handler that ends in time has its outcome.
func TestHardTimeoutInTime(t *testing.T) {
	ends := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		runtime.Goexit()
		return nil, nil
	})
	for name, test := range map[string]struct {
		h    mcp.Handler
		want int
	}{
		"result":             {says("yes"), 0},
		"error":              {answering(nil, mcp.Errorf(7, "no")), 7},
		"panic":              {panicking("boom"), mcp.CodeInternalError},
		"end of a goroutine": {ends, mcp.CodeInternalError},
	} {
		t.Run(name, func(t *testing.T) {
			mux := serving(test.h, middleware.HardTimeout(time.Minute, nil))
			_, _, err := mcptest.Do(t, mux, call("t"))
			wantCode(t, err, test.want)
		})
	}
}

// A handler that ends at its deadline has ended or was abandoned, not both, and is
// not counted for ever.
func TestHardTimeoutAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hard := middleware.HardTimeout(time.Second, &middleware.HardTimeoutOptions{MaxAbandoned: 1})
		h := hard(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			<-time.After(time.Second)
			return mcp.TextResult("just"), nil
		}))
		for range 200 {
			res, err := h.ServeMCP(t.Context(), call("t"))
			if code := mcp.CodeOf(err); (res == nil) == (err == nil) || code != 0 && code != mcp.CodeTimeout {
				t.Fatalf("got %v, %v", res, err)
			}
			synctest.Wait()
		}
	})
}

// A tool that asks is asked again, and told what was answered.
func TestHardTimeoutAsks(t *testing.T) {
	type form struct {
		Name string `json:"name"`
	}
	mux := serving(mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.Progress(ctx, 1, 2, "")
		f, err := mcp.Elicit[form](ctx, "name", "Who are you?")
		return f.Name, err
	}, nil), middleware.HardTimeout(time.Minute, nil))
	client := &mcptest.Client{Options: mcp.ClientOptions{Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return mcptest.Accept(form{"Ada"}), nil
	}}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "t"})
		if err != nil || textOf(t, res) != "Ada" {
			t.Errorf("got %v, %v", res, err)
		}
	})
}

func ExampleHardTimeout() {
	mux := mcp.NewMux("server", "v1.0.0", nil)
	release := make(chan struct{})
	defer close(release)
	slow := mux.With(middleware.HardTimeout(10*time.Millisecond, &middleware.HardTimeoutOptions{MaxAbandoned: 10}))
	slow.Tool("stuck", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		<-release // does not look at its context
		return "", nil
	}, nil))
	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	_, err = conn.CallTool(ctx, &mcp.CallToolParams{Name: "stuck"})
	fmt.Println(err)
	// Output: the request took longer than 10ms (code 408)
}
