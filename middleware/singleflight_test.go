// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/middleware"
)

// slowly is a server that takes a second, or less if its context is done.
type slowly struct {
	calls, ended atomic.Int32
	res          mcp.Result
	panics       any
}

func (s *slowly) ServeMCP(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
	s.calls.Add(1)
	defer s.ended.Add(1)
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if s.panics != nil {
		panic(s.panics)
	}
	return s.res, nil
}

func TestSingleflight(t *testing.T) {
	list := func(string) *mcp.Request { return outgoing(t, mcp.MethodListTools, nil) }
	state := "s"
	for name, test := range map[string]struct {
		of   func(who string) *mcp.Request
		res  mcp.Result
		want int32
	}{
		"the same":        {list, &mcp.ListToolsResult{}, 1},
		"the same of two": {func(who string) *mcp.Request { return as(&mcp.Principal{Subject: who}, list(who)) }, &mcp.ListToolsResult{}, 2},
		"different parameters": {func(who string) *mcp.Request {
			return outgoing(t, mcp.MethodReadResource, &mcp.ReadResourceParams{URI: who})
		}, &mcp.EmptyResult{}, 2},
		"of different traces": {func(who string) *mcp.Request {
			return outgoing(t, mcp.MethodReadResource, map[string]any{"uri": "a:", "_meta": map[string]any{"traceparent": who, "x": 1}})
		}, &mcp.EmptyResult{}, 1},
		"with different metadata": {func(who string) *mcp.Request {
			return outgoing(t, mcp.MethodReadResource, map[string]any{"uri": "a:", "_meta": map[string]any{"traceparent": "t", "x": who}})
		}, &mcp.EmptyResult{}, 2},
		"calls":         {func(string) *mcp.Request { return outgoing(t, mcp.MethodCallTool, &mcp.CallToolParams{Name: "t"}) }, mcp.TextResult(""), 10},
		"subscriptions": {func(string) *mcp.Request { return outgoing(t, mcp.MethodListen, nil) }, &mcp.ListenResult{}, 10},
		"state": {func(string) *mcp.Request {
			return outgoing(t, mcp.MethodGetPrompt, &mcp.GetPromptParams{Resume: mcp.Resume{RequestState: &state}})
		}, &mcp.EmptyResult{}, 10},
		"progress": {func(string) *mcp.Request {
			return outgoing(t, mcp.MethodListTools, map[string]any{"_meta": map[string]any{mcp.MetaProgressToken: 1}})
		}, &mcp.EmptyResult{}, 10},
		"an answer that asks": {list, &mcp.InputRequired{}, 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slowly{res: test.res}
				h := middleware.Singleflight()(s)
				var wg sync.WaitGroup
				for i := range 10 {
					wg.Go(func() {
						res, err := h.ServeMCP(t.Context(), test.of([]string{"a:ann", "b:bob"}[i%2]))
						if res != test.res || err != nil {
							t.Errorf("got %v, %v", res, err)
						}
					})
				}
				wg.Wait()
				if got := s.calls.Load(); got != test.want {
					t.Errorf("the server was asked %d times, want %d", got, test.want)
				}
				if _, err := h.ServeMCP(t.Context(), list("")); err != nil || s.calls.Load() != test.want+1 {
					t.Error("what is over was shared")
				}
			})
		})
	}
}

// A caller that leaves does not affect the others. If all have left, the request is
// cancelled and later callers send a new one.
func TestSingleflightCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowly{res: &mcp.ListToolsResult{}}
		h := middleware.Singleflight()(s)
		join := func() (leave context.CancelCauseFunc, errs chan error) {
			ctx, cancel := context.WithCancelCause(t.Context())
			errs = make(chan error, 1)
			go func() {
				_, err := h.ServeMCP(ctx, outgoing(t, mcp.MethodListTools, nil))
				errs <- err
			}()
			synctest.Wait()
			return cancel, errs
		}
		leave1, errs1 := join()
		leave2, errs2 := join()
		leave1(errLost)
		if err := <-errs1; !errors.Is(err, errLost) {
			t.Errorf("who left got %v", err)
		}
		if err := <-errs2; err != nil || s.calls.Load() != 1 {
			t.Errorf("who stayed got %v, after %d calls", err, s.calls.Load())
		}
		leave2(nil)

		leave1, errs1 = join()
		leave2, errs2 = join()
		leave1(errLost)
		leave2(errLost)
		synctest.Wait()
		if s.ended.Load() != 2 {
			t.Error("nobody waits, but the request goes on")
		}
		leave3, errs3 := join()
		if err := <-errs3; err != nil || s.calls.Load() != 3 {
			t.Errorf("who came later got %v, after %d calls", err, s.calls.Load())
		}
		leave3(nil)
		<-errs1
		<-errs2
	})
}

// A panic reaches all callers.
func TestSingleflightPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowly{panics: "boom"}
		l, out := lines()
		h := middleware.Recover(l)(middleware.Singleflight()(s))
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				_, err := h.ServeMCP(t.Context(), outgoing(t, mcp.MethodListTools, nil))
				wantCode(t, err, mcp.CodeInternalError)
			})
		}
		wg.Wait()
		if s.calls.Load() != 1 {
			t.Errorf("%d calls, logged %s", s.calls.Load(), out)
		}
	})
}

func ExampleSingleflight() {
	mux := mcp.NewMux("server", "v1.0.0", nil)
	mux.Resource("test:config", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "contents", nil }, nil))
	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	// Of equal requests, one is looked up, sent, and retried.
	conn.Use(middleware.NewCache(nil).Middleware, middleware.Singleflight(), middleware.Retry(nil))
	res, err := conn.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test:config"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Contents[0].Text)
	// Output: contents
}
