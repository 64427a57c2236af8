// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcpstdio"
)

// A session ends with its connection, also when there was nothing left to wait for:
// whoever waits for it hears of that.
func TestSessionEndsWithItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var session *mcp.Session
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("keep", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			session = mcp.SessionFromContext(ctx)
			return "", nil
		}, nil))
		p := servePeer(t, mux, eras[1], nil)
		p.send(eras[1].request("1", "tools/call", `"name":"keep"`))
		p.read()
		p.finish()
		synctest.Wait()
		select {
		case <-session.Done():
		default:
			t.Error("the session has not ended")
		}
	})
}

// A handler can notify the client of its session later.
func TestSessionNotify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var session *mcp.Session
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("keep", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			session = mcp.SessionFromContext(ctx)
			return "", nil
		}, nil))
		p := servePeer(t, mux, eras[1], nil)
		p.send(eras[1].request("1", "tools/call", `"name":"keep"`))
		p.read()
		if err := session.Notify(t.Context(), "notifications/x", []int{1}); err == nil {
			t.Error("params that are no object were sent")
		}
		if err := session.Notify(t.Context(), "notifications/x", map[string]int{"n": 1}); err != nil {
			t.Error(err)
		}
		if said := p.finish(); len(said) != 1 || !strings.Contains(said[0], `"method":"notifications/x","params":{"n":1}`) {
			t.Errorf("the client was told %q", said)
		}
	})
}

// A client that says twice that the handshake is done is told of a change once.
func TestInitializedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := hello()
		p := newPeer(t, mux, eras[1])
		for range 100 {
			p.send(eras[1].open[1])
		}
		synctest.Wait()
		mux.Tool("new", says(""))
		synctest.Wait()
		if said := p.finish(); len(said) != 1 || !strings.Contains(said[0], mcp.NotificationToolsListChanged) {
			t.Errorf("the client was told %d times: %q", len(said), said)
		}
	})
}

// A handshake that failed can be made again.
func TestInitializeAgain(t *testing.T) {
	mux := hello()
	busy := true
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodDiscover && busy {
				return nil, mcp.Errorf(-1, "not now")
			}
			return next.ServeMCP(ctx, req)
		})
	})
	p := newPeer(t, mux, wireEra{})
	p.send(eras[1].open[0])
	if r := p.read(); r.Error == nil || r.Error.Code != -1 {
		t.Fatalf("the first handshake got %s, %v", r.Result, r.Error)
	}
	p.send(eras[1].request("1", "tools/list", ""))
	if r := p.read(); r.Error == nil {
		t.Error("a request was served without a handshake")
	}
	busy = false
	p.send(eras[1].open[0])
	if r := p.read(); r.Error != nil {
		t.Errorf("the second handshake got %v", r.Error)
	}
	p.send(eras[1].request("2", "tools/call", `"name":"hello"`))
	if r := p.read(); r.Error != nil {
		t.Errorf("the call got %v", r.Error)
	}
}

// StreamOptions.MaxInFlight holds for clients of both eras.
func TestMaxInFlightOfEachEra(t *testing.T) {
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				mux := mcp.NewMux("m", "v1", quiet())
				mux.Tool("slow", mcp.ToolFunc(func(context.Context, none) (string, error) { <-release; return "", nil }, nil))
				p := servePeer(t, mux, era, &mcpstdio.StreamOptions{MaxInFlight: 2})
				for i := range 3 {
					p.send(era.request(fmt.Sprint(i), "tools/call", `"name":"slow"`))
				}
				if r := p.read(); r.ID != mcp.IntID(2) || r.Error == nil {
					t.Errorf("the first answer is %s %v of %s, want a refusal of the third call", r.Result, r.Error, r.ID)
				}
				close(release)
				if said := p.finish(); len(said) != 2 {
					t.Errorf("then came %q", said)
				}
			})
		})
	}
}

// A client that cannot be asked all questions of a round is asked none: nobody would
// wait for its answers.
func TestQuestionsThatCannotAllBeAsked(t *testing.T) {
	asked := &mcp.InputRequired{InputRequests: map[string]mcp.InputRequest{"sample": {Method: mcp.MethodCreateMessage, Params: []byte(`{"messages":[],"maxTokens":1}`)}}}
	for i := range 20 {
		asked.InputRequests[fmt.Sprint(i)] = mcp.InputRequest{Method: mcp.MethodElicit, Params: []byte(`{"message":"?","requestedSchema":{"type":"object","properties":{}}}`)}
	}
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodDiscover {
				return &mcp.DiscoverResult{}, nil
			}
			return asked, nil
		}), eras[1])
		p.send(eras[1].request("1", "vendor/ask", ""))
		synctest.Wait()
		said := p.finish()
		if len(said) != 1 || !strings.Contains(said[0], fmt.Sprint(mcp.CodeMissingCapability)) {
			t.Errorf("the client was told %d things, want one error: %.300q", len(said), said)
		}
	})
}
