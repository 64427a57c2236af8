// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
)

// A client that comes back to another replica, for its session's own stream, hears of
// what changed while no replica listened for it.
func TestSharedOwnStreamGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := store.NewMemory(nil)
		handlers, muxes := [2]*mcphttp.Handler{}, [2]*mcp.Mux{tools(), tools()}
		for i, mux := range muxes {
			handlers[i] = newHandler(t, mux, &mcphttp.Options{Store: shared, Heartbeat: -1})
		}
		one, two := serve(t, handlers[0]), serve(t, handlers[1])
		h := one.open("2025-11-25")
		own := read(t, one.do(one.request(t.Context(), "GET", "", h)))
		first, _ := own.next() // its id is where to come back to
		if err := handlers[0].Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		muxes[1].Tool("new", mcp.HandlerFunc(nil))
		<-time.After(time.Second)
		back := two.do(two.request(t.Context(), "GET", "", with(h, header{"Last-Event-ID": first.LastEventID})))
		if back.StatusCode == http.StatusNotFound {
			return // then the client knows that it may have missed something
		}
		again, heard := read(t, back), make(chan string, 8)
		go func() {
			for e, ok := again.next(); ok; e, ok = again.next() {
				if e.Data != "" {
					heard <- e.Data
				}
			}
		}()
		select {
		case got := <-heard:
			if !strings.Contains(got, mcp.NotificationToolsListChanged) {
				t.Errorf("heard %s", got)
			}
		case <-time.After(time.Minute):
			t.Error("a change was missed, and the client is not told that it may have been")
		}
	})
}
