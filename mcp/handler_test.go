// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// T48: cancelling a call cancels the context of its handler, and no other request. Over
// HTTP, a client of the modern era cancels by disconnecting, which carries no reason.
func TestCancel(t *testing.T) {
	causes := make(chan error, 1)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.Progress(ctx, 1, 0, "begun")
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return "too late", nil
	}, nil))
	release := make(chan struct{})
	mux.Tool("other", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.Progress(ctx, 1, 0, "begun")
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-release:
			return "unharmed", nil
		}
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		begun, done := make(chan struct{}), make(chan string)
		go func() {
			ctx := mcp.WithProgress(t.Context(), func(*mcp.ProgressParams) { close(begun) })
			res, err := c.CallTool(ctx, tool("other", ""))
			if err != nil {
				t.Error(err)
				res = &mcp.CallToolResult{}
			}
			done <- textOf(res)
		}()
		<-begun
		ctx, cancel := context.WithCancel(t.Context())
		_, err := c.CallTool(mcp.WithProgress(ctx, func(*mcp.ProgressParams) { cancel() }), tool("wait", ""))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the call ended with %v", err)
		}
		cause := <-causes
		var cancelled *mcp.CancelError
		switch {
		case strings.Contains(t.Name(), "modern/http"):
			if !errors.Is(cause, context.Canceled) {
				t.Errorf("the cause is %v", cause)
			}
		case !errors.As(cause, &cancelled) || cancelled.Reason == "":
			t.Errorf("the cause is %v, want a CancelError with the reason", cause)
		}
		release <- struct{}{}
		if got := <-done; got != "unharmed" {
			t.Errorf("the other call got %q", got)
		}
	})
}

// T48: cancelled requests are not answered. Cancelling an unknown or answered request, or a
// malformed cancellation, has no effect.
func TestCancelledIsNotAnswered(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		<-ctx.Done()
		return "too late", nil
	}, nil))
	mux.Tool("hello", says("hi"))
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			p := newPeer(t, mux, era)
			p.send(era.request("1", "tools/call", `"name":"wait"`))
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}`)
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`)
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled"}`)
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"bored"}}`)
			p.send(era.request("2", "tools/call", `"name":"hello"`))
			if got := p.read(); got.ID != mcp.IntID(2) || !strings.Contains(string(got.Result), "hi") {
				t.Errorf("got %s %s %v", got.ID, got.Result, got.Error)
			}
			if said := p.finish(); len(said) > 0 {
				t.Errorf("got %q as well", said)
			}
		})
	}
}

// A cancellation sent immediately after its request takes effect, however busy the server
// is.
func TestCancelAtOnce(t *testing.T) {
	const calls = 100
	causes := make(chan error, calls)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return "too late", nil
	}, nil))
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			wire, err := memory(t, mux).Connect(t.Context(), func(*transport.Message) {})
			if err != nil {
				t.Fatal(err)
			}
			send := func(id mcp.ID, method, body string) {
				if err := wire.Send(t.Context(), &transport.Outgoing{ID: id, Method: method, Body: []byte(body)}); err != nil {
					t.Error(err)
				}
			}
			if era.open != nil {
				if _, err := wire.Call(t.Context(), &transport.Outgoing{ID: mcp.StringID("open"), Method: "initialize", Body: []byte(era.open[0])}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range calls {
				id := strconv.Itoa(i + 1)
				send(mcp.IntID(int64(i+1)), "tools/call", era.request(id, "tools/call", `"name":"wait"`))
				send(mcp.ID{}, "notifications/cancelled", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
			}
			wire.Close()
			for range calls {
				var cancelled *mcp.CancelError
				if cause := <-causes; !errors.As(cause, &cancelled) {
					t.Fatalf("a call ended with %v", cause)
				}
			}
		})
	}
}

// lockedBuffer is a concurrency-safe log buffer.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// panicky returns a server whose handlers all panic, except for one.
func panicky(v any) *mcp.Mux {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("fine", says("fine"))
	mux.Tool("t", mcp.ToolFunc(func(context.Context, none) (string, error) { panic(v) }, nil))
	mux.Prompt("p", mcp.PromptFunc(func(context.Context, struct {
		A string `json:"a,omitempty"`
	}) (string, error) {
		panic(v)
	}, &mcp.Prompt{
		Completers: map[string]mcp.Completer{"a": func(context.Context, *mcp.CompleteParams) ([]string, error) { panic(v) }},
	}))
	mux.Resource("r:r", mcp.ResourceFunc(func(context.Context, none) (string, error) { panic(v) }, nil))
	mux.Resource("l:{x}", mcp.WithDescription(reads(""), &mcp.Resource{
		List: func(context.Context, *mcp.ListParams) (*mcp.ListResourcesResult, error) { panic(v) },
	}))
	mux.Handle("vendor/m", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { panic(v) }))
	mux.Handle("notifications/n", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { panic(v) }))
	return mux
}

// T43: a panic fails only the request whose handler panicked. The peer learns nothing about
// its value.
func TestPanics(t *testing.T) {
	mcptest.Run(t, panicky("secret"), func(t *testing.T, c *mcp.Conn) {
		for method, params := range map[string]any{
			mcp.MethodCallTool:      tool("t", ""),
			mcp.MethodGetPrompt:     &mcp.GetPromptParams{Name: "p"},
			mcp.MethodReadResource:  &mcp.ReadResourceParams{URI: "r:r"},
			mcp.MethodListResources: nil,
			mcp.MethodComplete: &mcp.CompleteParams{
				Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "p"}, Argument: mcp.CompleteArgument{Name: "a"},
			},
			"vendor/m": nil,
		} {
			_, err := serveRaw(t, c, method, params)
			wantCode(t, err, mcp.CodeInternalError)
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: the peer was told %v", method, err)
			}
		}
		if err := c.Notify(t.Context(), "notifications/n", nil); err != nil {
			t.Error(err)
		}
		if got := mustCall(t, c, "fine", ""); got != "fine" {
			t.Errorf("after that got %q", got)
		}
	})
}

// T43: the stack of a panic is logged once. That of ErrAbortHandler is not logged.
func TestPanicIsLogged(t *testing.T) {
	for _, test := range []struct {
		v    any
		want int
	}{{"boom", 1}, {mcp.ErrAbortHandler, 0}} {
		var out lockedBuffer
		logger := slog.New(slog.NewTextHandler(&out, nil))
		mux := panicky(test.v)
		outer := mcp.NewMux("outer", "v1", quiet())
		outer.Mount("in_", mux)
		req := mcptest.NewRequest(mcp.MethodCallTool, tool("in_t", ""))
		_, err := core.Serve(t.Context(), outer, req, nil, logger)
		wantCode(t, err, mcp.CodeInternalError)
		if got := strings.Count(out.String(), "handler panicked"); got != test.want {
			t.Errorf("%v: logged %d times:\n%s", test.v, got, out.String())
		}
		if test.want > 0 && !strings.Contains(out.String(), "handler_test.go") {
			t.Errorf("the stack is not in %s", out.String())
		}
	}
}

// A plain Handler without a Mux also finds its request and its caller in the context.
func TestContextWithoutMux(t *testing.T) {
	others := mcp.NewMux("others", "v1", nil)
	handler := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method != mcp.MethodCallTool {
			return others.ServeMCP(ctx, req)
		}
		if mcp.RequestFromContext(ctx) != req {
			t.Error("the context has another request")
		}
		p := mcp.PrincipalFromContext(ctx)
		if p == nil || !p.HasScope("write") {
			return mcp.TextResult("nobody"), nil
		}
		return mcp.TextResult(p.Subject), nil
	})
	for _, tt := range []struct {
		principal *mcp.Principal
		want      string
	}{
		{&mcp.Principal{Issuer: "https://issuer.example", Subject: "ann", Scopes: []string{"write"}}, "ann"},
		{nil, "nobody"},
	} {
		t.Run(tt.want, func(t *testing.T) {
			client := mcptest.Client{Principal: tt.principal}
			client.Run(t, handler, func(t *testing.T, c *mcp.Conn) {
				got, err := mcp.Call[string](t.Context(), c, "who", struct{}{})
				if err != nil || got != tt.want {
					t.Errorf("got %q, %v; want %q", got, err, tt.want)
				}
			})
		})
	}
}

// The methods of a nil Principal describe an unauthenticated caller.
func TestNilPrincipal(t *testing.T) {
	nobody := mcp.PrincipalFromContext(t.Context())
	if nobody.HasScope("write") || nobody.Is(&mcp.Principal{Subject: "ann"}) || !nobody.Is(nil) {
		t.Error("a nil Principal is somebody")
	}
}

// A key identifies a caller: no issuer or subject can be chosen so that two callers share one.
func TestPrincipalKey(t *testing.T) {
	callers := []*mcp.Principal{nil, {}, {Subject: "ann"}, {Issuer: "https://a", Subject: "ann"}, {Issuer: "https://b", Subject: "ann"}, {Subject: "https://aann"},
		{Issuer: "https://aann"}, {Issuer: "1:", Subject: "x"}, {Issuer: "1", Subject: ":x"}, {Issuer: "a\x00", Subject: "b"}, {Issuer: "a", Subject: "\x00b"}}
	for i, a := range callers {
		for j, b := range callers {
			if (a.Key() == b.Key()) != (i == j) || a.Is(b) != (i == j) {
				t.Errorf("%+v and %+v have the keys %q and %q; Is reports %t", a, b, a.Key(), b.Key(), a.Is(b))
			}
		}
	}
	again := &mcp.Principal{Issuer: "https://a", Subject: "ann", Scopes: []string{"read"}}
	if again.Key() != callers[3].Key() {
		t.Errorf("with another token, the key of a caller is %q, and was %q", again.Key(), callers[3].Key())
	}
}
