// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
)

const aQuestion = `{"jsonrpc":"2.0","id":"q%d","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}`

// A question that the server withdraws at once is cancelled.
func TestQuestionWithdrawnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		causes := make(chan error, 1)
		said := `[` + fmt.Sprintf(aQuestion, 1) + `,{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q1"}}]`
		c := connectTo(t, asks(said, make(chan string, 8)), &mcp.ClientOptions{
			Version: "2025-11-25",
			Elicit: func(ctx context.Context, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return nil, ctx.Err()
			},
		})
		select {
		case cause := <-causes:
			if _, ok := errors.AsType[*mcp.CancelError](cause); !ok {
				t.Errorf("it ended with %v", cause)
			}
		case <-time.After(time.Minute):
			t.Error("it goes on")
		}
		_ = c.Close()
	})
}

// A server that asks too many questions at once gets refusals, as long as it reads them.
func TestTooManyQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const asked = 3000
		var all []string
		for i := range asked {
			all = append(all, fmt.Sprintf(aQuestion, i))
		}
		var open atomic.Int64
		heard := make(chan string, asked)
		c := connectTo(t, asks(`[`+strings.Join(all, ",")+`]`, heard), &mcp.ClientOptions{
			Version: "2025-11-25", Logger: quiet().Logger,
			Elicit: func(ctx context.Context, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				open.Add(1)
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})
		synctest.Wait()
		if n := open.Load(); n == 0 || n > asked/2 || len(heard) == 0 {
			t.Errorf("%d questions wait for the user, and %d were refused", n, len(heard))
		}
		_ = c.Close()
		synctest.Wait()
	})
}

// Cancelled calls through a gateway release their places.
func TestGatewayForgetsCancelledCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := hello()
		server.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}, nil))
		c := connect(t, gateway(t, server, "2025-11-25"), nil)
		for range 1100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, err := c.CallTool(ctx, tool("b_wait", ""))
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("a call ended with %v", err)
			}
		}
		synctest.Wait()
		if got, err := mcp.Call[string](t.Context(), c, "b_hello", nil); err != nil || got != "hi" {
			t.Errorf("after that: %q, %v", got, err)
		}
	})
}

// A subscription that goes through a gateway ends without an error when the client closes
// it.
func TestForwardedSubscriptionEnds(t *testing.T) {
	for _, version := range bothEras {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer(t, connect(t, hello(), &mcp.ClientOptions{Version: version}), eras[0])
			p.send(eras[0].request("1", mcp.MethodListen, `"notifications":{"toolsListChanged":true}`))
			if got := p.receive(); !strings.Contains(got, mcp.NotificationAcknowledged) {
				t.Fatalf("got %s", got)
			}
			said := p.finish()
			if len(said) == 0 || !strings.Contains(said[0], `"resultType":"complete"`) {
				t.Errorf("%s: the subscription ended with %q", version, said)
			}
		})
	}
}

// watchedContext counts the functions that wait for its end.
type watchedContext struct {
	context.Context
	done    chan struct{}
	waiting atomic.Int64
}

func (c *watchedContext) Done() <-chan struct{} { return c.done }

// AfterFunc is called by package context when a context is derived.
func (c *watchedContext) AfterFunc(func()) func() bool {
	c.waiting.Add(1)
	return func() bool { c.waiting.Add(-1); return true }
}

// A subscription that the server has ended releases what it registered with its context,
// which may live as long as the program.
func TestEndedSubscriptionLetsGoOfItsContext(t *testing.T) {
	server := fakeServer(func(method, id string) (string, bool) {
		answer := `{"jsonrpc":"2.0","id":` + id + `,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}`
		if method == mcp.MethodListen {
			answer = `[{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}},` + answer + `]`
		}
		return answer, true
	})
	c := connectTo(t, server, nil)
	ctx := &watchedContext{Context: context.Background(), done: make(chan struct{})}
	s, err := c.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {})
	if err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if n := ctx.waiting.Load(); s.Err() != nil || n != 0 {
		t.Errorf("the subscription ended with %v, and %d wait for its context", s.Err(), n)
	}
}
