// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// reluctant returns a server with the resources res://a and res://b that never answers the
// first subscription to res://b.
func reluctant() *mcp.Mux {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("res://a", reads("a"))
	mux.Resource("res://b", reads("b"))
	waits := true
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			var p mcp.ListenParams
			if req.Method == mcp.MethodListen && req.Decode(&p) == nil && waits && slices.Contains(p.Notifications.ResourceSubscriptions, "res://b") {
				waits = false
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			return next.ServeMCP(ctx, req)
		})
	})
	return mux
}

// A subscription that is cancelled before the server acknowledges it is removed.
func TestSubscribeGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s spy
		c := connectTo(t, s.on(memory(t, reluctant())), &mcp.ClientOptions{Version: "2025-11-25"})
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			_, err := c.Listen(ctx, mcp.SubscriptionFilter{ResourceSubscriptions: []string{"res://a", "res://b"}}, func(mcp.Change) {})
			failed <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Errorf("Listen returned %v", err)
		}
		synctest.Wait()
		if n := len(s.sent("resources/unsubscribe")); n != 1 {
			t.Errorf("%d resources were unsubscribed from, want the one that had been subscribed to", n)
		}
	})
}

// A subscription to a resource receives updates even if an earlier one to the same resource
// is cancelled in the meantime.
func TestSubscribeAfterOneWhoGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := reluctant()
		c := connect(t, mux, &mcp.ClientOptions{Version: "2025-11-25"})
		ctx, cancel := context.WithCancel(t.Context())
		go c.Subscribe(ctx, "res://b", func(string) {})
		synctest.Wait()
		heard, subscribed := make(chan string, 8), make(chan error, 1)
		go func() {
			_, err := c.Subscribe(t.Context(), "res://b", func(uri string) { heard <- uri })
			subscribed <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-subscribed; err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		mux.ResourceUpdated("res://b")
		synctest.Wait()
		if len(heard) != 1 {
			t.Errorf("heard of %d updates", len(heard))
		}
	})
}

// A subscription fails if the server ends it without acknowledging it, even without an
// error.
func TestSubscriptionWithoutAgreement(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == mcp.MethodListen {
			return &mcp.EmptyResult{}, nil
		}
		return mux.ServeMCP(ctx, req)
	})
	conn, err := mcp.NewClient("c", "v1", nil).Connect(t.Context(), mcp.InProcess(h))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s, err := conn.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {})
	if s != nil || err == nil || !strings.Contains(err.Error(), "before it agreed to it") {
		t.Errorf("got %v, %v", s, err)
	}
}

// A change that belongs to a subscription is delivered only to that subscription, in both
// eras. A legacy server announces changes with or without a subscription; those without are
// delivered as notifications.
func TestChangesOfSubscriptionsAreNoNotifications(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, mcp.LegacyVersions()[0]} {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mux := mcp.NewMux("m", "v1", quiet())
				mux.Tool("old", uncalled)
				mux.Resource("res://a", reads("a"))
				var notes, changes []string
				c := connect(t, mux, &mcp.ClientOptions{Version: version, Notification: func(_ context.Context, _ *mcp.Conn, note *mcp.Request) {
					notes = append(notes, note.Method)
				}})
				filter := mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"res://a"}}
				sub, err := c.Listen(t.Context(), filter, func(ch mcp.Change) { changes = append(changes, ch.Method+" "+ch.URI) })
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // a legacy server does not acknowledge subscriptions
				mux.Tool("new", uncalled)
				synctest.Wait()
				mux.ResourceUpdated("res://a")
				synctest.Wait()
				if want := []string{mcp.NotificationToolsListChanged + " ", mcp.NotificationResourceUpdated + " res://a"}; !slices.Equal(changes, want) {
					t.Errorf("the subscription was told %q, want %q", changes, want)
				}
				if len(notes) > 0 {
					t.Errorf("Notification was called for %q as well", notes)
				}
				sub.Close()
				synctest.Wait()
				mux.RemoveTool("new")
				<-time.After(time.Minute) // changes in quick succession are coalesced
				synctest.Wait()
				var want []string
				if version != mcp.LatestVersion {
					want = []string{mcp.NotificationToolsListChanged}
				}
				if !slices.Equal(notes, want) || len(changes) != 2 {
					t.Errorf("after the subscription: notifications %q, want %q; changes %q", notes, want, changes)
				}
			})
		})
	}
}

// replaced is a server that can be replaced by another one. It then ends its subscriptions
// without an error, as a server does that shuts down.
type replaced struct {
	mcp.Handler
	replace chan struct{}
	ready   chan struct{} // closed when the replacement is ready
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

// Subscribers of a mux receive changes of a mount, and legacy subscribers receive changes
// of the served handler, even after it was replaced. They are first notified that
// everything changed, because changes may have been missed in between.
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
				continue // the subscription goes directly to the server and ends with it
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
					inner.Tool("b", says("b")) // nothing announces it
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

// A mount that does not support subscriptions is asked once. One that ends every
// subscription immediately is asked at increasing intervals.
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

// A mount added during a subscription delivers changes from then on.
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
		<-heard // about the mount
		synctest.Wait()
		inner.Tool("c", says("c")) // there is no subscription to it yet
		synctest.Wait()
		if len(heard) > 0 {
			t.Fatal("heard of it: the test shows nothing")
		}
		close(slow)
		<-heard
	})
}

// remarking returns a mux with a tool that sends a notification before its result.
func remarking() *mcp.Mux {
	mux := mcp.NewMux("test", "v1", quiet())
	mux.Tool("remark", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		return "", mcp.RequestFromContext(ctx).Notify(ctx, "notifications/remark", struct{}{})
	}, nil))
	return mux
}

// A client may subscribe in any of its callbacks. They run one at a time, but the
// acknowledgement does not wait for its turn.
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
				synctest.Wait() // a legacy server does not acknowledge subscriptions
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

// A subscription that the server rejects in a callback does not block either.
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

// The acknowledgement precedes all changes, and the end of the subscription follows them,
// even if the callback is slow.
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

// When a server ends a subscription, it sends the result first and the cancellation second
// (the pages on subscriptions and on cancellation differ). In the other order, the official
// TypeScript client takes the result for a response to an unknown request.
func TestSubscriptionEndsWithItsResult(t *testing.T) {
	mux := mcp.NewMux("test", "v1.0.0", nil)
	mux.Tool("a", says("a"))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ours, theirs := transport.Pipe()
	served := make(chan error, 1)
	go func() { served <- mcpstdio.ServeStream(ctx, mux, theirs, nil) }()

	listen := `{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	if err := ours.Write(t.Context(), []byte(listen)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		data, err := ours.Read(t.Context())
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		var message struct {
			ID     string `json:"id"`
			Method string `json:"method"`
		}
		if err := json.Unmarshal(data, &message); err != nil {
			t.Fatal(err)
		}
		got = append(got, message.Method+message.ID)
		stop() // once it is acknowledged
	}
	want := []string{mcp.NotificationAcknowledged, "l", mcp.NotificationCancelled}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got %q, want %q", got, want)
	}
	if err := <-served; !errors.Is(err, context.Canceled) {
		t.Errorf("serving ended with %v", err)
	}
}

// A client that spells a URI differently than the server gets updates under the URI it
// subscribed to.
func TestSubscriptionInAnotherSpelling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Resource("notes://{+path}", reads("text"))
		conn := mcptest.Connect(t, mux)
		for subscribed, updated := range map[string]string{
			"notes://caf%C3%A9":    "notes://caf%C3%A9",
			"notes://café":         "notes://caf%C3%A9",
			"notes://caf%c3%a9":    "notes://caf%C3%A9",
			"notes://%63af%c3%a9/": "notes://caf%C3%A9/menu",
		} {
			s, changes := listen(t, conn, mcp.SubscriptionFilter{ResourceSubscriptions: []string{subscribed}})
			mux.ResourceUpdated(updated)
			synctest.Wait()
			if got := received(changes); !slices.Equal(got, []string{subscribed}) {
				t.Errorf("subscribed to %s: received %q", subscribed, got)
			}
			s.Close()
			<-s.Done()
		}
	})
}

// The cost of a subscription does not grow with the number of those in the session:
// subscribing and unsubscribing do not read the other resources again.
func TestSubscriptionsAreReadOnce(t *testing.T) {
	var reads atomic.Int64
	note := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		reads.Add(1)
		return &mcp.ReadResourceResult{}, nil
	})
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("notes://{id}", note)
	p := newPeer(t, mux, eras[1])
	const n = 50
	send := func(what, method string, uri func(i int) string, most int64) {
		t.Helper()
		reads.Store(0)
		for i := range n {
			p.send(eras[1].request(fmt.Sprint(i), method, fmt.Sprintf(`"uri":%q`, uri(i))))
			if got := p.read(); got.Error != nil {
				t.Fatal(got.Error)
			}
		}
		if got := reads.Load(); got > most {
			t.Errorf("%s: %d requests read %d resources, want %d", what, n, got, most)
		}
	}
	each := func(i int) string { return fmt.Sprint("notes://", i) }
	send("new ones", "resources/subscribe", each, 2*n)
	send("the same", "resources/subscribe", each, n)
	send("none of them", "resources/unsubscribe", func(int) string { return "notes://x" }, 0)
	mux.ResourceUpdated("notes://7")
	if got := p.receive(); !strings.Contains(got, "notes://7") {
		t.Errorf("got %s", got)
	}
	send("all of them", "resources/unsubscribe", each, 0)
	mux.ResourceUpdated("notes://7")
	p.send(eras[1].request("1", "ping", ""))
	if got := p.receive(); strings.Contains(got, "notes://7") {
		t.Errorf("got %s", got)
	}
}

// If a resource hangs, subscribing to it occupies one request, which the client can cancel.
func TestSubscribeIsCancelled(t *testing.T) {
	var reads atomic.Int64
	hangs, left := make(chan struct{}), make(chan struct{})
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("notes://ok", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.ReadResourceResult{}, nil
	}))
	mux.Resource("notes://hangs", mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
		switch reads.Add(1) {
		case 2: // before the update is sent to the session
			close(hangs)
			<-ctx.Done()
			close(left)
		case 3: // for the next request, if it is served before the first has ended
			return nil, mcp.NewResourceNotFoundError("notes://hangs")
		}
		return &mcp.ReadResourceResult{}, nil
	}))
	p := newPeer(t, mux, eras[1])
	p.send(eras[1].request("1", "resources/subscribe", `"uri":"notes://hangs"`))
	<-hangs
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	<-left
	p.send(eras[1].request("2", "resources/subscribe", `"uri":"notes://ok"`))
	if got := p.read(); got.Error != nil {
		t.Error(got.Error)
	}
	mux.ResourceUpdated("notes://hangs")
	mux.ResourceUpdated("notes://ok")
	if got := p.receive(); !strings.Contains(got, "notes://ok") {
		t.Errorf("got %s", got)
	}
}

// updating returns a server whose subscriptions send n updates once blocked is closed, and then
// end or, if remains is true, stay open.
func updating(n int, remains bool, blocked <-chan struct{}) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method != mcp.MethodListen {
			return mcp.NewMux("m", "v1", quiet()).ServeMCP(ctx, req)
		}
		meta := mcp.Meta{mcp.MetaSubscriptionID: json.RawMessage(`"s"`)}
		accepted := mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"notes://0/"}}
		if err := req.Notify(ctx, mcp.NotificationAcknowledged, &mcp.AcknowledgedParams{Notifications: accepted, Meta: meta}); err != nil {
			return nil, err
		}
		<-blocked
		for i := range n {
			if err := req.Notify(ctx, mcp.NotificationResourceUpdated, &mcp.ResourceUpdatedParams{URI: fmt.Sprintf("notes://0/%d", i), Meta: meta}); err != nil {
				return nil, err
			}
		}
		if remains {
			<-ctx.Done()
		}
		return &mcp.ListenResult{}, nil
	})
}

// forwarded serves a subscription through a connection, whose sender does not read on after the
// acknowledgement until all updates have arrived, and returns the notifications.
func forwarded(t *testing.T, updates int, remains bool) (notes []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		blocked, reading := make(chan struct{}), make(chan struct{})
		conn := connectTo(t, mcp.InProcess(updating(updates, remains, blocked)), nil)
		ctx, cancel := context.WithCancel(t.Context())
		sender := notifying(func(method string, params json.RawMessage) {
			if method == mcp.NotificationAcknowledged {
				close(blocked)
				<-reading
				return
			}
			notes = append(notes, method+string(params))
		})
		filter := mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"notes://0/"}}
		req := mcptest.NewRequest(mcp.MethodListen, &mcp.ListenParams{Notifications: filter})
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = core.Serve(ctx, conn, req, sender, quiet().Logger)
		}()
		synctest.Wait()
		close(reading)
		synctest.Wait()
		cancel()
		<-done
		_ = conn.Close()
	})
	return notes
}

// If more changes wait for the sender of a subscription than a client keeps, everything in the
// subscription counts as changed.
func TestMoreChangesThanAreKept(t *testing.T) {
	if notes := forwarded(t, 1000, true); len(notes) != 1000 {
		t.Errorf("got %d notifications of 1000", len(notes))
	}
	notes := forwarded(t, 2000, true)
	if len(notes) != 2 || !strings.Contains(notes[0], mcp.NotificationToolsListChanged) || !strings.Contains(notes[1], `"notes://0/"`) {
		t.Errorf("got %d notifications: %.500q", len(notes), notes)
	}
}

// The changes that arrive just before a subscription ends are passed on.
func TestChangesBeforeTheEnd(t *testing.T) {
	for range 20 { // the end and the changes are noticed in any order
		if notes := forwarded(t, 3, false); len(notes) != 3 {
			t.Fatalf("got %q", notes)
		}
	}
}
