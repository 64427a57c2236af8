// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/middleware"
)

// judged is an error that reports whether it is temporary.
type judged bool

func (judged) Error() string     { return "judged" }
func (j judged) Transient() bool { return bool(j) }

func TestRetryWhat(t *testing.T) {
	state := "s"
	asking := mcp.Resume{RequestState: &state}
	for name, test := range map[string]struct {
		method string
		params any
		want   int
	}{
		"discovery":      {mcp.MethodDiscover, nil, 2},
		"tools":          {mcp.MethodListTools, nil, 2},
		"prompts":        {mcp.MethodListPrompts, nil, 2},
		"resources":      {mcp.MethodListResources, nil, 2},
		"templates":      {mcp.MethodListResourceTemplates, nil, 2},
		"resource":       {mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "a:a"}, 2},
		"prompt":         {mcp.MethodGetPrompt, &mcp.GetPromptParams{Name: "p"}, 2},
		"completion":     {mcp.MethodComplete, &mcp.CompleteParams{}, 2},
		"state":          {mcp.MethodGetPrompt, &mcp.GetPromptParams{Name: "p", Resume: asking}, 1},
		"an answer":      {mcp.MethodReadResource, map[string]any{"uri": "a:a", "inputResponses": map[string]any{}}, 1},
		"call":           {mcp.MethodCallTool, &mcp.CallToolParams{Name: "read"}, 1},
		"subscription":   {mcp.MethodListen, nil, 1},
		"another method": {"vendor/m", nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{fails: 1, err: io.ErrUnexpectedEOF, res: &mcp.EmptyResult{}}
				_, err := middleware.Retry(nil)(s).ServeMCP(t.Context(), outgoing(t, test.method, test.params))
				if s.calls != test.want || (err == nil) != (test.want == 2) {
					t.Errorf("asked %d times, got %v", s.calls, err)
				}
			})
		})
	}
}

func TestRetryWhen(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		opts *middleware.RetryOptions
		want int
	}{
		"broken off":            {fmt.Errorf("x: %w", io.ErrUnexpectedEOF), nil, 4},
		"end":                   {io.EOF, nil, 4},
		"network":               {&url.Error{Op: "Post", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}, nil, 4},
		"limited":               {mcp.NewRateLimitedError(time.Second, "x"), nil, 4},
		"limited, time unknown": {mcp.Errorf(mcp.CodeRateLimited, "x"), nil, 4},
		"says so":               {fmt.Errorf("x: %w", judged(true)), nil, 4},
		"says not":              {judged(false), nil, 1},
		"too long":              {mcp.NewRateLimitedError(time.Minute, "x"), nil, 1},
		"not too long":          {mcp.NewRateLimitedError(10*time.Second, "x"), nil, 4},
		"internal":              {mcp.Errorf(mcp.CodeInternalError, "x"), nil, 1},
		"something":             {errLost, nil, 1},
		"closed":                {fmt.Errorf("%w: %w", mcp.ErrClosed, io.EOF), nil, 1},
		"who":                   {mcp.ErrUnauthorized, nil, 1},
		"cancelled":             {&url.Error{Op: "Post", Err: context.Canceled}, nil, 1},
		"too late":              {&mcp.TimeoutError{}, nil, 1},
		"fewer":                 {io.EOF, &middleware.RetryOptions{Attempts: 2}, 2},
		"once":                  {io.EOF, &middleware.RetryOptions{Attempts: 1}, 1},
		"as one likes":          {errLost, &middleware.RetryOptions{Transient: func(err error) bool { return errors.Is(err, errLost) }}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{fails: 100, err: test.err}
				_, err := middleware.Retry(test.opts)(s).ServeMCP(t.Context(), outgoing(t, mcp.MethodListTools, nil))
				if s.calls != test.want || !errors.Is(err, test.err) {
					t.Errorf("asked %d times, want %d; got %v", s.calls, test.want, err)
				}
			})
		})
	}
}

// Delays grow up to the maximum, respect the server's delays, and are skipped if they are
// useless.
func TestRetryPauses(t *testing.T) {
	opts := &middleware.RetryOptions{Attempts: 9}
	measure := func(t *testing.T, timeout time.Duration, err error) []time.Duration {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		var pauses []time.Duration
		last := time.Now()
		h := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			pauses = append(pauses, time.Since(last))
			last = time.Now()
			return nil, err
		})
		if _, got := middleware.Retry(opts)(h).ServeMCP(ctx, outgoing(t, mcp.MethodListTools, nil)); !errors.Is(got, err) {
			t.Errorf("got %v", got)
		}
		if wasted := time.Since(last); wasted > 0 {
			t.Errorf("waited %v for nothing", wasted)
		}
		return pauses[1:]
	}
	synctest.Test(t, func(t *testing.T) {
		for range 100 {
			pauses, want := measure(t, time.Hour, io.EOF), 200*time.Millisecond
			for _, pause := range pauses {
				if len(pauses) != 8 || pause > want || pause < want/2 {
					t.Fatalf("pauses %v", pauses)
				}
				want = min(2*want, 10*time.Second)
			}
		}
		for i, pause := range measure(t, time.Hour, mcp.NewRateLimitedError(2*time.Second, "x")) {
			if pause <= 2*time.Second || pause > 12*time.Second {
				t.Errorf("pause %d is %v", i, pause)
			}
		}
		if pauses := measure(t, 2*time.Second, mcp.NewRateLimitedError(2*time.Second, "x")); len(pauses) != 0 {
			t.Errorf("beyond the deadline: pauses %v", pauses)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Millisecond, cancel)
		begun := time.Now()
		s := &server{fails: 100, err: io.EOF}
		_, err := middleware.Retry(nil)(s).ServeMCP(ctx, outgoing(t, mcp.MethodListTools, nil))
		if s.calls != 1 || !errors.Is(err, io.EOF) || time.Since(begun) != time.Millisecond {
			t.Errorf("cancelled in a pause: asked %d times, got %v after %v", s.calls, err, time.Since(begun))
		}
	})
}

// Calls of tools are retried as long as the server lists the tools as read-only or
// idempotent.
func TestRetryTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := &mcp.ListToolsResult{Tools: []*mcp.Tool{
			nil, {Name: "plain"},
			{Name: "read", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true)}},
			{Name: "put", Annotations: &mcp.ToolAnnotations{IdempotentHint: new(true), ReadOnlyHint: new(false)}},
			{Name: "post", Annotations: &mcp.ToolAnnotations{IdempotentHint: new(false)}},
		}}
		calls := 0
		h := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodListTools {
				return list, nil
			}
			calls++
			return nil, io.EOF
		})
		check := func(mw mcp.Handler, want map[string]int) {
			t.Helper()
			for name, n := range want {
				calls = 0
				_, _ = mw.ServeMCP(t.Context(), outgoing(t, mcp.MethodCallTool, &mcp.CallToolParams{Name: name}))
				if calls != n {
					t.Errorf("%s was called %d times, want %d", name, calls, n)
				}
			}
		}
		learn := func(mw mcp.Handler) { _, _ = mw.ServeMCP(t.Context(), outgoing(t, mcp.MethodListTools, nil)) }
		retry := middleware.Retry(&middleware.RetryOptions{Tools: true})
		one, other := retry(h), retry(h)
		check(one, map[string]int{"read": 1})
		learn(one)
		check(one, map[string]int{"plain": 1, "read": 4, "put": 4, "post": 1, "unknown": 1})
		check(other, map[string]int{"read": 1}) // another server
		list = &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "read"}}}
		learn(one)
		check(one, map[string]int{"read": 1})
		off := middleware.Retry(nil)(h)
		learn(off)
		check(off, map[string]int{"put": 1})
	})
}

func ExampleRetry() {
	mux := mcp.NewMux("server", "v1.0.0", nil)
	mux.Use(middleware.RateLimit(middleware.ByTool, middleware.NewTokenBucket(1, 20*time.Millisecond, nil)))
	mux.Tool("hello", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil))
	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	conn.Use(middleware.Retry(&middleware.RetryOptions{Attempts: 2}))
	var names []string
	for range 3 { // more often than the server allows
		res, err := conn.ListTools(ctx, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		names = append(names, res.Tools[0].Name)
	}
	fmt.Println(strings.Join(names, " "))
	// Output: hello hello hello
}
