// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

// lateStore is a store whose next Get can be delayed: it returns the value at the time of
// the call.
type lateStore struct {
	*store.Memory
	late atomic.Pointer[chan struct{}]
}

func (s *lateStore) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	data, version, err := s.Memory.Get(ctx, key)
	if late := s.late.Swap(nil); late != nil {
		<-*late
	}
	return data, version, err
}

// Changes that a client makes at one replica, while another replica looks up the session for
// its first request, apply there, too: subscriptions and the log level.
func TestSharedSessionChangesWhileItIsRestored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		slow, mux := &lateStore{Memory: shared}, reporting()
		one := serve(t, newHandler(t, tools(), &mcphttp.Options{Store: shared, Heartbeat: -1, Logger: quiet}))
		two := serve(t, newHandler(t, mux, &mcphttp.Options{Store: slow, Heartbeat: -1, Logger: quiet}))
		h := one.open("2025-11-25")
		found := make(chan struct{})
		slow.late.Store(&found)
		streams := make(chan *http.Response, 1)
		go func() { streams <- two.do(two.request(t.Context(), http.MethodGet, "", h)) }()
		synctest.Wait()
		whole(t, one.post(subscribe("test://doc"), h))
		whole(t, one.post(setLevel("error"), h))
		close(found)
		own := read(t, <-streams)
		own.next()
		mux.ResourceUpdated("test://doc")
		if got := within(t, time.Minute, "an update", messages(own)); !strings.Contains(got, "test://doc") {
			t.Errorf("got %s", got)
		}
		synctest.Wait()
		if got := whole(t, two.post(call(5, "report"), h)); strings.Contains(got.body, "detail") {
			t.Errorf("logged below the level of the session: %s", got.body)
		}
		one.close()
		two.close()
	})
}

// A replica that does not hear of anything yet when a client changes its session at another
// replica knows of the change once it gets the stream.
func TestSharedSessionChangesBeforeItIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deaf, mux := &deafStore{Memory: store.NewMemory(nil), hears: make(chan struct{})}, tools()
		one := serve(t, newHandler(t, tools(), optionsWith(deaf.Memory)))
		two := serve(t, newHandler(t, mux, optionsWith(deaf)))
		h := one.open("2025-11-25")
		answersHello(t, two, h) // from now on, it has the session
		whole(t, one.post(subscribe("test://doc"), h))
		close(deaf.hears)
		synctest.Wait()
		own := read(t, two.do(two.request(t.Context(), http.MethodGet, "", h)))
		own.next()
		mux.ResourceUpdated("test://doc")
		if got := within(t, time.Minute, "an update", messages(own)); !strings.Contains(got, "test://doc") {
			t.Errorf("got %s", got)
		}
		one.close()
		two.close()
	})
}

// A log level is stored as it was set, even if a change at another replica intervenes.
func TestSharedLevelOverlaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		slow := &lateStore{Memory: shared}
		one := serve(t, newHandler(t, reporting(), &mcphttp.Options{Store: slow, Heartbeat: -1, Logger: quiet}))
		two := serve(t, newHandler(t, tools(), optionsWith(shared)))
		h := one.open("2025-11-25")
		found := make(chan struct{})
		slow.late.Store(&found)
		set := make(chan reply, 1)
		go func() { set <- whole(t, one.post(setLevel("error"), h)) }()
		synctest.Wait()
		whole(t, two.post(subscribe("test://doc"), h))
		synctest.Wait()
		close(found)
		<-set
		synctest.Wait()
		if got := whole(t, one.post(call(5, "report"), h)); strings.Contains(got.body, "detail") {
			t.Errorf("logged below the level of the session: %s", got.body)
		}
		one.close()
		two.close()
	})
}

// reporting returns a mux with a tool that logs.
func reporting() *mcp.Mux {
	mux := tools()
	mux.Tool("report", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.ClientLogger(ctx).Info("detail")
		return "reported", nil
	}, nil))
	return mux
}

func setLevel(level string) string {
	return `{"jsonrpc":"2.0","id":4,"method":"logging/setLevel","params":{"level":"` + level + `"}}`
}
