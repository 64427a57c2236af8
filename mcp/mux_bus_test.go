// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
)

// A wire is a bus that can be cut. It counts published messages and subscriptions.
type wire struct {
	store.Topics

	mu                       sync.Mutex
	isCut                    bool
	published, subscriptions int
	longest                  int    // message published, in bytes
	lose                     func() // reports lost messages to the last subscription
	fail                     func() // ends the last subscription with errCut
}

func newWire() *wire { return &wire{Topics: store.NewMemory(nil)} }

var errCut = errors.New("the wire is cut")

func (w *wire) cut(isCut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.isCut = isCut
}

func (w *wire) counts() (published, subscriptions int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.published, w.subscriptions
}

func (w *wire) Publish(ctx context.Context, topic string, message []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isCut {
		return errCut
	}
	w.published++
	w.longest = max(w.longest, len(message))
	return w.Topics.Publish(ctx, topic, message)
}

func (w *wire) Subscribe(ctx context.Context, topic string) (store.Subscription, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isCut {
		return nil, errCut
	}
	sub, err := w.Topics.Subscribe(ctx, topic)
	w.subscriptions++
	lossy := &lossySubscription{Subscription: sub, wire: w, lost: make(chan struct{}, 1)}
	w.lose = func() { lossy.lost <- struct{}{}; _ = w.Topics.Publish(ctx, topic, []byte("lost")) }
	w.fail = func() { _ = w.Topics.Publish(ctx, topic, []byte("fail")) }
	return lossy, err
}

type lossySubscription struct {
	store.Subscription

	wire *wire
	lost chan struct{}
}

func (s *lossySubscription) Next(ctx context.Context) ([]byte, error) {
	message, err := s.Subscription.Next(ctx)
	if string(message) == "lost" {
		<-s.lost
		return nil, store.ErrOverflow
	}
	if string(message) == "fail" {
		return nil, errCut
	}
	return message, err
}

func (s *lossySubscription) Close() error {
	s.wire.mu.Lock()
	defer s.wire.mu.Unlock()
	s.wire.subscriptions--
	return s.Subscription.Close()
}

// newReplica returns a mux with a tool and a resource.
func newReplica(bus store.Topics) *mcp.Mux {
	opts := quiet()
	opts.Bus = bus
	mux := mcp.NewMux("replica", "v1", opts)
	mux.Tool("tool", says(""))
	mux.Resource("file:///a", reads(""))
	return mux
}

var everyChange = mcp.SubscriptionFilter{ToolsListChanged: true, ResourcesListChanged: true, ResourceSubscriptions: []string{"file:///a"}}

// changesHeardBy subscribes a client and returns its changes.
func changesHeardBy(t *testing.T, c *mcp.Conn) <-chan mcp.Change {
	t.Helper()
	changes := make(chan mcp.Change, 16)
	sub, err := c.Listen(t.Context(), everyChange, func(c mcp.Change) { changes <- c })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sub.Close() })
	return changes
}

// A change at one replica reaches clients of another, in every era and on every path.
func TestBus(t *testing.T) {
	var bus store.Topics
	mcptest.RunNew(t, func(*testing.T) mcp.Handler {
		bus = store.NewMemory(nil)
		return newReplica(bus)
	}, func(t *testing.T, c *mcp.Conn) {
		changes, other := changesHeardBy(t, c), newReplica(bus)
		mcptest.Connect(t, other)
		other.ResourceUpdated("file:///a")
		if got := <-changes; got != (mcp.Change{Method: mcp.NotificationResourceUpdated, URI: "file:///a"}) {
			t.Errorf("heard %+v of an update at another replica", got)
		}
		other.Tool("new", says(""))
		if got := <-changes; got.Method != mcp.NotificationToolsListChanged {
			t.Errorf("heard %+v of a new tool at another replica", got)
		}
	})
}

// quietly checks that there are no more changes.
func quietly(t *testing.T, changes <-chan mcp.Change) {
	t.Helper()
	synctest.Wait()
	if len(changes) > 0 {
		t.Errorf("heard %+v", <-changes)
	}
}

// everythingOnce checks that every subscribed change is reported exactly once.
func everythingOnce(t *testing.T, changes <-chan mcp.Change) {
	t.Helper()
	got := map[mcp.Change]int{}
	for range 3 {
		got[<-changes]++
	}
	if len(got) != 3 {
		t.Errorf("heard %v, want each of the changes subscribed to", got)
	}
	quietly(t, changes)
}

func TestBusIsForReplicasOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newWire()
		mux := newReplica(bus)
		if n, _ := bus.counts(); n > 0 {
			t.Error("a mux that nobody has used published its registrations")
		}
		c := mcptest.Connect(t, mux)
		if _, n := bus.counts(); n != 0 {
			t.Errorf("%d subscriptions without a listener", n)
		}
		changes := changesHeardBy(t, c)
		mux.ResourceUpdated("file:///a")
		if got := <-changes; got.URI != "file:///a" {
			t.Errorf("heard %+v", got)
		}
		quietly(t, changes) // not again from the bus
		stranger := mcp.NewMux("stranger", "v1", &mcp.MuxOptions{Bus: bus})
		stranger.ResourceUpdated("file:///a")
		quietly(t, changes)
		if _, n := bus.counts(); n != 1 {
			t.Errorf("%d subscriptions with a listener", n)
		}
		_ = c.Close()
		synctest.Wait()
		if _, n := bus.counts(); n != 0 {
			t.Errorf("%d subscriptions after the last listener has gone", n)
		}
	})
}

func TestBusThatLosesMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newWire()
		changes := changesHeardBy(t, mcptest.Connect(t, newReplica(bus)))
		bus.lose()
		everythingOnce(t, changes)
	})
}

// A subscription made while the bus is cut is acknowledged. Once the bus works again,
// everything is reported as changed.
func TestBusThatIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newWire()
		bus.cut(true)
		began := time.Now()
		changes := changesHeardBy(t, mcptest.Connect(t, newReplica(bus)))
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("subscribing took %v, want a second", waited)
		}
		quietly(t, changes)
		other := newReplica(bus)
		other.ResourceUpdated("file:///a") // sent once the bus works again
		bus.cut(false)
		everythingOnce(t, changes)
		<-time.After(10 * time.Second)
		if published, _ := bus.counts(); published != 1 {
			t.Errorf("%d messages were published, want the one that had to wait", published)
		}
	})
}

// The same happens if it is made while the bus is slow.
func TestBusThatIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bus := newWire()
		changes := changesHeardBy(t, mcptest.Connect(t, newReplica(slowTopics{bus})))
		quietly(t, changes)
		<-time.After(5 * time.Second)
		everythingOnce(t, changes)
	})
}

// slowTopics takes five seconds for each subscription.
type slowTopics struct{ store.Topics }

func (s slowTopics) Subscribe(ctx context.Context, topic string) (store.Subscription, error) {
	<-time.After(5 * time.Second)
	return s.Topics.Subscribe(ctx, topic)
}

// Many changes are published together, in messages small enough for every store. If there
// are too many, one message says that everything changed.
func TestBusGathersChanges(t *testing.T) {
	for _, test := range []struct {
		updates  int
		uri      string
		messages int
	}{{1, "file:///%d", 1}, {1000, "file:///%d", 20}, {5000, "file:///%d", 1}, {2, "file:///" + strings.Repeat("x", 5000) + "%d", 1}, {9, "file:///" + strings.Repeat("x", 1000) + "%d", 3}} {
		t.Run(fmt.Sprint(test.updates), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				bus := newWire()
				changes := changesHeardBy(t, mcptest.Connect(t, newReplica(bus)))
				other := newReplica(bus)
				other.ResourceUpdated("file:///a") // published immediately
				<-changes
				for i := range test.updates {
					other.ResourceUpdated(fmt.Sprintf(test.uri, i))
				}
				<-time.After(time.Second)
				if n, _ := bus.counts(); n < 2 || n > test.messages+2 {
					t.Errorf("%d messages were published, want about %d", n, test.messages)
				}
				if bus.mu.Lock(); bus.longest > 4000 {
					t.Errorf("a message has %d bytes", bus.longest)
				}
				bus.mu.Unlock()
			})
		})
	}
}

// A failed bus subscription is logged and renewed, and everything is reported as changed.
func TestBusThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		bus := newWire()
		mux := mcp.NewMux("replica", "v1", &mcp.MuxOptions{Bus: bus, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		mux.Tool("tool", says(""))
		mux.Resource("file:///a", reads(""))
		changes := changesHeardBy(t, mcptest.Connect(t, mux))
		for n := range 2 {
			bus.fail()
			everythingOnce(t, changes)
			if got := strings.Count(log.String(), `msg="mcp: changes at other replicas are not received" error="the wire is cut"`); got != n+1 {
				t.Errorf("after %d failures: logged %s", n+1, log.String())
			}
			if _, subscriptions := bus.counts(); subscriptions != 1 {
				t.Errorf("there are %d subscriptions", subscriptions)
			}
		}
	})
}

// A bus that is cut for a minute loses changes. Each lost message is logged once.
func TestBusThatStaysCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedBuffer
		bus := newWire()
		bus.cut(true)
		mux := mcp.NewMux("replica", "v1", &mcp.MuxOptions{Bus: bus, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		mux.Resource("file:///a", reads(""))
		if _, err := callTool(t, mux, "none", ""); err == nil { // changes are published once the mux is in use
			t.Fatal("there is a tool")
		}
		mux.ResourceUpdated("file:///a")
		<-time.After(59 * time.Second)
		synctest.Wait()
		if got := log.String(); got != "" {
			t.Errorf("within a minute: %s", got)
		}
		<-time.After(2 * time.Second)
		synctest.Wait()
		if got := log.String(); strings.Count(got, "other replicas were not notified of changes") != 1 || !strings.Contains(got, errCut.Error()) {
			t.Errorf("logged: %s", got)
		}
		bus.cut(false)
		<-time.After(10 * time.Minute)
		if published, _ := bus.counts(); published != 0 {
			t.Errorf("%d messages were published", published)
		}
	})
}

// Replicas also find each other if the name of the server is not a valid store key.
func TestBusOfLongName(t *testing.T) {
	for _, name := range []string{"short", "two words", strings.Repeat("long", 1000)} {
		synctest.Test(t, func(t *testing.T) {
			bus := newWire()
			replica := func(name string) *mcp.Mux {
				mux := mcp.NewMux(name, "v1", &mcp.MuxOptions{Bus: bus, Logger: quiet().Logger})
				mux.Tool("tool", says(""))
				mux.Resource("file:///a", reads(""))
				return mux
			}
			changes := changesHeardBy(t, mcptest.Connect(t, replica(name)))
			for _, other := range []string{name + "x", name} {
				replica := replica(other)
				mcptest.Connect(t, replica)
				replica.ResourceUpdated("file:///a")
				synctest.Wait()
				if heard := len(changes); heard > 0 != (other == name) {
					t.Errorf("%.20q hears %d changes of %.20q", name, heard, other)
				}
			}
		})
	}
}
