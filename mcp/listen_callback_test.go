// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// remarking is a mux with a tool that says something besides its answer.
func remarking() *mcp.Mux {
	mux := mcp.NewMux("test", "v1", quiet())
	mux.Tool("remark", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		return "", mcp.RequestFromContext(ctx).Notify(ctx, "notifications/remark", struct{}{})
	}, nil))
	return mux
}

// A client may subscribe in any of the functions that it is told something by, which
// are called one after the other: the server's agreement does not wait for its turn.
func TestListenInCallback(t *testing.T) {
	tools := mcp.SubscriptionFilter{ToolsListChanged: true}
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		t.Run("a notification, "+version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mux := remarking()
				listening, heard := make(chan error, 1), make(chan mcp.Change, 8)
				c := connect(t, mux, &mcp.ClientOptions{Version: version, Notification: func(ctx context.Context, c *mcp.Conn, note *mcp.Request) {
					if note.Method == "notifications/remark" {
						_, err := c.Listen(ctx, tools, func(ch mcp.Change) { heard <- ch })
						listening <- err
					}
				}})
				if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "remark"}); err != nil {
					t.Fatal(err)
				}
				if err := <-listening; err != nil {
					t.Fatal(err)
				}
				mux.Tool("new", uncalled)
				if got := <-heard; got.Method != mcp.NotificationToolsListChanged {
					t.Errorf("heard %+v", got)
				}
			})
		})
		t.Run("a change, "+version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mux := remarking()
				c := connect(t, mux, &mcp.ClientOptions{Version: version})
				listening, heard := make(chan error, 8), make(chan mcp.Change, 8)
				if _, err := c.Listen(t.Context(), tools, func(mcp.Change) {
					_, err := c.Listen(t.Context(), tools, func(ch mcp.Change) { heard <- ch })
					listening <- err
				}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // a legacy server does not say when it has subscribed
				mux.Tool("new", uncalled)
				if err := <-listening; err != nil {
					t.Fatal(err)
				}
				mux.Tool("newer", uncalled)
				if got := <-heard; got.Method != mcp.NotificationToolsListChanged {
					t.Errorf("heard %+v", got)
				}
			})
		})
	}
}

// A subscription that the server refuses does not wait either.
func TestRefusedListenInCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := remarking()
		mux.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method == mcp.MethodListen {
					return nil, mcp.Errorf(mcp.CodeInvalidRequest, "no")
				}
				return next.ServeMCP(ctx, req)
			})
		})
		listening := make(chan error, 1)
		c := connect(t, mux, &mcp.ClientOptions{Version: mcp.LatestVersion, Notification: func(ctx context.Context, c *mcp.Conn, _ *mcp.Request) {
			_, err := c.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {})
			listening <- err
		}})
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "remark"}); err != nil {
			t.Fatal(err)
		}
		if err := <-listening; mcp.CodeOf(err) != mcp.CodeInvalidRequest {
			t.Errorf("Listen returned %v", err)
		}
	})
}

// The agreement comes before the changes, and the end after them, however slow the
// function is that is told of them.
func TestListenOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := remarking()
		mux.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method != mcp.MethodListen {
					return next.ServeMCP(ctx, req)
				}
				meta := mcp.Meta{}
				meta.Set(mcp.MetaSubscriptionID, req.ID)
				err := req.Notify(ctx, mcp.NotificationAcknowledged, &mcp.AcknowledgedParams{Meta: meta})
				for i := range 3 {
					uri := fmt.Sprintf("r:%d", i)
					err = errors.Join(err, req.Notify(ctx, mcp.NotificationResourceUpdated, &mcp.ResourceUpdatedParams{URI: uri, Meta: meta}))
				}
				return &mcp.ListenResult{}, err
			})
		})
		ours, theirs := transport.Pipe()
		go func() { _ = mcpstdio.ServeStream(t.Context(), mux, theirs, nil) }()
		there := transport.FromStream(func(context.Context) (transport.Stream, error) { return ours, nil })
		c := connectTo(t, there, &mcp.ClientOptions{Version: mcp.LatestVersion})
		agreed := make(chan struct{})
		var heard []string
		s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{"r:0"}}, func(ch mcp.Change) {
			<-agreed
			<-time.After(time.Minute)
			heard = append(heard, ch.URI)
		})
		if err != nil {
			t.Fatal(err)
		}
		close(agreed)
		<-s.Done()
		if got := fmt.Sprint(heard); s.Err() != nil || got != "[r:0 r:1 r:2]" {
			t.Errorf("when it had ended (%v), it had told of %s", s.Err(), got)
		}
	})
}
