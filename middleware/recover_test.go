// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

func panicking(v any) mcp.Handler {
	return mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { panic(v) })
}

// T43: a panic is logged once, with its stack, and fails only its request.
func TestRecover(t *testing.T) {
	for _, test := range []struct {
		v         any
		want      int
		wantCause error
	}{{"SECRET", 1, nil}, {errLost, 1, nil}, {mcp.ErrAbortHandler, 0, mcp.ErrAbortHandler}} {
		inner, logged := lines()
		outer, loggedOutside := lines()
		mux := serving(panicking(test.v), middleware.Recover(inner))
		_, err := core.Serve(t.Context(), mux, call("t"), nil, outer)
		wantCode(t, err, mcp.CodeInternalError)
		var coded *mcp.Error
		if errors.As(err, &coded) && strings.Contains(coded.Message, fmt.Sprint(test.v)) {
			t.Errorf("the peer is told %q", coded.Message)
		}
		if test.wantCause != nil && !errors.Is(err, test.wantCause) {
			t.Errorf("got %v, which is not %v", err, test.wantCause)
		}
		if got := strings.Count(logged.String(), "handler panicked"); got != test.want {
			t.Errorf("%v: logged %d times, want %d:\n%s", test.v, got, test.want, logged)
		}
		if test.want > 0 && !strings.Contains(logged.String(), "recover_test.go") {
			t.Errorf("the stack is not in %s", logged)
		}
		if loggedOutside.Len() > 0 {
			t.Errorf("the transport logged it, too: %s", loggedOutside)
		}
	}
}

// A recovered panic has its original stack, even if the handler runs on another goroutine.
func TestRecoverKeepsStacks(t *testing.T) {
	for name, apart := range map[string]mcp.Middleware{"Singleflight": middleware.Singleflight()} {
		l, out := lines()
		req := outgoing(t, mcp.MethodListTools, nil)
		_, err := mcp.Chain(panicking("boom"), middleware.Recover(l), apart).ServeMCP(t.Context(), req)
		wantCode(t, err, mcp.CodeInternalError)
		if !strings.Contains(out.String(), "panic=boom") || !strings.Contains(out.String(), "panicking") {
			t.Errorf("%s: logged %s", name, out)
		}
		l, out = lines()
		_, err = core.Serve(t.Context(), apart(panicking("boom")), req, nil, l)
		wantCode(t, err, mcp.CodeInternalError)
		if strings.Count(out.String(), "handler panicked") != 1 || !strings.Contains(out.String(), "panicking") {
			t.Errorf("%s: the transport logged %s", name, out)
		}
		_, err = core.Serve(t.Context(), apart(panicking(mcp.ErrAbortHandler)), req, nil, slog.Default())
		if !errors.Is(err, mcp.ErrAbortHandler) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestRecoverInEveryEra(t *testing.T) {
	l, _ := lines()
	mux := serving(panicking("SECRET"), middleware.Recover(l))
	mux.Tool("fine", says("fine"))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "t"})
		wantCode(t, err, mcp.CodeInternalError)
		if strings.Contains(fmt.Sprint(err), "SECRET") {
			t.Errorf("the peer was told %v", err)
		}
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "fine"}); err != nil {
			t.Error(err)
		}
	})
}

func ExampleRecover() {
	mux := mcp.NewMux("server", "v1.0.0", nil)
	mux.Use(middleware.Recover(slog.New(slog.DiscardHandler)))
	mux.Tool("crash", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { panic("out of luck") }, nil))

	// There is no transport here that would recover.
	req, err := mcp.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "crash"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = mux.ServeMCP(context.Background(), req)
	fmt.Println(err)
	// Output: internal error (code -32603): panic: out of luck
}
