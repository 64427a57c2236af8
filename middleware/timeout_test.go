// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// cooperative returns a tool that returns when its context is done.
func cooperative() mcp.Handler {
	return mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	}, nil)
}

func TestTimeout(t *testing.T) {
	late := func(res mcp.Result, err error) mcp.Handler {
		return mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			<-time.After(2 * time.Second)
			return res, err
		})
	}
	for name, test := range map[string]struct {
		h        mcp.Handler
		wantCode int
		wantTime time.Duration
	}{
		"cooperative":        {cooperative(), mcp.CodeTimeout, time.Second},
		"late error":         {late(nil, errLost), mcp.CodeTimeout, 2 * time.Second},
		"late failed result": {late(mcp.ErrorResult(errors.New("no")), nil), mcp.CodeTimeout, 2 * time.Second},
		"late result":        {late(mcp.TextResult("yes"), nil), 0, 2 * time.Second},
		"early error":        {answering(nil, mcp.Errorf(7, "no")), 7, 0},
		"early result":       {says("yes"), 0, 0},
		"the context's own":  {mcp.Chain(cooperative(), middleware.Timeout(time.Minute)), mcp.CodeTimeout, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				_, _, err := mcptest.Do(t, serving(test.h, middleware.Timeout(time.Second)), call("t"))
				wantCode(t, err, test.wantCode)
				if took := time.Since(begun); took != test.wantTime {
					t.Errorf("it took %v, want %v", took, test.wantTime)
				}
				if test.wantCode == mcp.CodeTimeout && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v is no deadline", err)
				}
			})
		})
	}
	mustPanic(t, "Timeout(0)", func() { middleware.Timeout(0) })
}

// Cancelling a request does not make it fail with a timeout.
func TestTimeoutAndCancel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errLost)
	res, err := middleware.Timeout(time.Minute)(cooperative()).ServeMCP(ctx, call("t"))
	if err == nil && textOf(t, res) != "lost" {
		t.Errorf("got %v, %v", res, err)
	}
}

// Subscriptions have no deadline.
func TestTimeoutLeavesSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := serving(says(""), middleware.Timeout(time.Second), middleware.Concurrency(1, 0))
		c := mcptest.Connect(t, mux)
		changes := listen(t, c, mcp.SubscriptionFilter{ToolsListChanged: true})
		<-time.After(time.Hour)
		mux.Tool("new", says(""))
		<-time.After(time.Second)
		select {
		case change := <-changes:
			if change.Method != mcp.NotificationToolsListChanged {
				t.Errorf("got %+v", change)
			}
		default:
			t.Fatal("the subscription has ended")
		}
	})
}

func TestTimeoutInEveryEra(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.With(middleware.Timeout(time.Millisecond)).Tool("t", cooperative()) // not the handshake, which may take longer
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "t"})
		wantCode(t, err, mcp.CodeTimeout)
	})
}

func ExampleTimeout() {
	mux := mcp.NewMux("server", "v1.0.0", nil)
	mux.With(middleware.Timeout(10*time.Millisecond)).Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done() // or any call with a context
		return "", ctx.Err()
	}, nil))
	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	_, err = conn.CallTool(ctx, &mcp.CallToolParams{Name: "wait"})
	fmt.Println(err)
	// Output: the request took longer than 10ms (code 408)
}
