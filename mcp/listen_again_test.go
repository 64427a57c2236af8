// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
)

// replaced is a server that can be replaced by another, which ends the subscriptions
// at it in good order, as a server does that shuts down.
type replaced struct {
	mcp.Handler
	replace chan struct{}
	ready   chan struct{} // there is another one
}

func (r *replaced) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	if req.Method != mcp.MethodListen {
		return r.Handler.ServeMCP(ctx, req)
	}
	select {
	case <-r.ready:
		return r.Handler.ServeMCP(ctx, req)
	default:
	}
	ctx, end := context.WithCancelCause(ctx)
	go func() {
		<-r.replace
		end(mcp.ErrClosed)
	}()
	return r.Handler.ServeMCP(ctx, req)
}

// Who listens to a mux hears of changes in a mount, and who listens in the legacy era
// hears of changes in what is served, also after that has been replaced: first of
// everything, because in between nobody told of what changed.
func TestListenToAReplacedServer(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		for name, around := range map[string]func(mcp.Handler) (h mcp.Handler, prefix string){
			"mounted": func(h mcp.Handler) (mcp.Handler, string) {
				mux := mcp.NewMux("outer", "v1", quiet())
				mux.Mount("m_", h)
				return mux, "mount:m_:"
			},
			"served": func(h mcp.Handler) (mcp.Handler, string) { return h, "" },
		} {
			if name == "served" && version == mcp.LatestVersion {
				continue // the client's subscription is the server's, and ends with it
			}
			t.Run(name+", "+version, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					inner := mcp.NewMux("inner", "v1", quiet())
					inner.Tool("a", says("a"))
					inner.Resource("note://a", reads("a"))
					server := &replaced{inner, make(chan struct{}), make(chan struct{})}
					h, prefix := around(server)
					c := connect(t, h, &mcp.ClientOptions{Version: version})
					heard := make(chan mcp.Change, 8)
					filter := mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{prefix + "note://a"}}
					if _, err := c.Listen(t.Context(), filter, func(ch mcp.Change) { heard <- ch }); err != nil {
						t.Fatal(err)
					}
					close(server.replace)
					synctest.Wait()
					inner.Tool("b", says("b")) // nobody tells of it
					close(server.ready)
					want := map[mcp.Change]bool{
						{Method: mcp.NotificationToolsListChanged}:                          true,
						{Method: mcp.NotificationResourceUpdated, URI: prefix + "note://a"}: true,
					}
					for len(want) > 0 {
						got := <-heard
						if !want[got] {
							t.Fatalf("heard %+v, want one of %v", got, want)
						}
						delete(want, got)
					}
					inner.ResourceUpdated("note://a")
					if got := <-heard; got.Method != mcp.NotificationResourceUpdated {
						t.Errorf("afterwards heard %+v", got)
					}
				})
			})
		}
	}
}

// What cannot tell of changes is asked once, and what ends every subscription at once
// is left alone for longer and longer.
func TestListenToWhoCannotTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused, brief := 0, 0
		refusing := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodListen {
				refused++
			}
			return nil, mcp.NewMethodNotFoundError(req.Method)
		})
		ending := mcp.NewMux("ending", "v1", quiet())
		ending.Tool("a", says("a"))
		mux := mcp.NewMux("outer", "v1", quiet())
		mux.Mount("r_", refusing)
		mux.Mount("e_", mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodListen {
				brief++
				return &mcp.ListenResult{}, nil
			}
			return ending.ServeMCP(ctx, req)
		}))
		c := connect(t, mux, nil)
		s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Hour)
		s.Close()
		synctest.Wait()
		if refused != 1 || brief < 60 || brief > 70 {
			t.Errorf("asked %d times what cannot tell, and %d times in an hour what ends at once; want once, and about once a minute", refused, brief)
		}
	})
}

// A mount that comes while somebody listens tells of changes as soon as it is there.
func TestListenToALateMount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("outer", "v1", quiet())
		mux.Tool("a", says("a"))
		c := connect(t, mux, nil)
		heard := make(chan mcp.Change, 8)
		if _, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(ch mcp.Change) { heard <- ch }); err != nil {
			t.Fatal(err)
		}
		inner := mcp.NewMux("inner", "v1", quiet())
		inner.Tool("b", says("b"))
		slow := make(chan struct{})
		mux.Mount("m_", mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodListen {
				<-slow
			}
			return inner.ServeMCP(ctx, req)
		}))
		<-heard // of the mount
		synctest.Wait()
		inner.Tool("c", says("c")) // nobody listens to it yet
		synctest.Wait()
		if len(heard) > 0 {
			t.Fatal("heard of it: the test shows nothing")
		}
		close(slow)
		<-heard
	})
}
