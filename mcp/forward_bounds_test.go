// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
)

// listenThrough subscribes through a connection to a server whose subscriptions do what
// script says, and returns what arrives. The subscriber reads nothing until script is done.
func listenThrough(t *testing.T, script func(notify func(method string, params map[string]any))) (arrived []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method != mcp.MethodListen {
					return next.ServeMCP(ctx, req)
				}
				script(func(method string, params map[string]any) {
					if params["_meta"] == nil {
						params["_meta"] = map[string]any{mcp.MetaSubscriptionID: req.ID}
					}
					_ = req.Notify(ctx, method, params)
				})
				<-ctx.Done()
				return nil, context.Cause(ctx)
			})
		})
		c := connect(t, mux, quietClient(mcp.LatestVersion))
		req, err := mcp.NewRequest(mcp.MethodListen, json.RawMessage(`{"notifications":{"taskIds":["a"],"resourceSubscriptions":["r:a"]}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.ID = mcp.IntID(1)
		ctx, cancel := context.WithCancel(t.Context())
		reads, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = core.Serve(ctx, c, req, notifier(func(method string, params json.RawMessage) {
				if len(params) > 1000 {
					params = params[:1000]
				}
				arrived = append(arrived, fmt.Sprintf("%s %s", strings.TrimPrefix(method, "notifications/"), params))
				<-reads
			}), quiet().Logger)
		}()
		<-time.After(time.Minute)
		close(reads)
		synctest.Wait()
		cancel()
		<-ended
		_ = c.Close()
	})
	return arrived
}

// Notifications of an extension arrive if the server has accepted any of the subscription,
// and if they belong to it.
func TestForwardedExtensions(t *testing.T) {
	accept := map[string]any{"taskIds": []string{"a"}}
	type object = map[string]any
	for name, c := range map[string]struct {
		accepted, note object
		want           int // after the acknowledgement
	}{
		"accepted":     {accept, object{"taskId": "a"}, 1},
		"of no one":    {accept, object{"_meta": object{}}, 0},
		"not accepted": {object{"resourceSubscriptions": []string{"r:a"}}, object{}, 0},
	} {
		got := listenThrough(t, func(notify func(string, object)) {
			notify("notifications/tasks", maps.Clone(c.note)) // too early
			notify(mcp.NotificationAcknowledged, object{"notifications": c.accepted})
			notify("notifications/tasks", maps.Clone(c.note))
		})
		if len(got) != c.want+1 || !strings.HasPrefix(got[0], "subscriptions/acknowledged") {
			t.Errorf("%s: %q arrived", name, got)
		}
	}
}

// While the subscriber does not read, as many notifications of an extension wait for it as
// changes: 1024, and 16 MiB.
func TestForwardedExtensionBounds(t *testing.T) {
	for size, want := range map[int]int{0: 1024, 1 << 20: 15} {
		got := listenThrough(t, func(notify func(string, map[string]any)) {
			notify(mcp.NotificationAcknowledged, map[string]any{"notifications": map[string]any{"taskIds": []string{"a"}}})
			<-time.After(time.Second) // the subscriber begins to read it
			for i := range 1100 {
				if size == 0 || i < 20 {
					notify("notifications/tasks", map[string]any{"taskId": fmt.Sprint(i), "x": strings.Repeat("x", size)})
				}
			}
		})
		if n := len(slices.DeleteFunc(got, func(s string) bool { return !strings.HasPrefix(s, "tasks") })); n != want {
			t.Errorf("of notifications with %d bytes, %d arrived, want %d", size, n, want)
		}
	}
}
