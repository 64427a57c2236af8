// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// The stream of a session has the updates of all resources that the session subscribed to,
// although a mux decides about 100 of them for one request. Unsubscribing takes any spelling
// of a URI.
func TestFindingX12SessionsKeepAllSubscriptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 250
		mux := mcp.NewMux("m", "v1", nil)
		mux.Resource("Notes://{id}", mcp.ResourceFunc(func(context.Context, map[string]string) (string, error) { return "", nil }, nil))
		one := serve(t, newHandler(t, mux, &mcphttp.Options{Heartbeat: -1}))
		h := one.open("2025-11-25")
		about := func(method string, uri string) {
			t.Helper()
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"resources/%s","params":{"uri":%q}}`, method, uri)
			if got := whole(t, one.post(body, h)); got.status != http.StatusOK || strings.Contains(got.body, `"error"`) {
				t.Fatalf("%s %s: %+v", method, uri, got)
			}
		}
		for i := range n {
			about("subscribe", fmt.Sprint("Notes://", i))
		}
		about("unsubscribe", "notes://7")
		own := read(t, one.do(one.request(t.Context(), http.MethodGet, "", h)))
		synctest.Wait()
		for i := range n {
			mux.ResourceUpdated(fmt.Sprint("notes://", i))
		}
		updated := map[string]bool{}
		for len(updated) < n-1 {
			if e, ok := own.next(); !ok {
				break
			} else if _, uri, found := strings.Cut(e.Data, `"uri":"`); found {
				updated[strings.TrimRight(uri, `"}`)] = true
			}
		}
		if len(updated) != n-1 || updated["Notes://7"] || !updated["Notes://249"] {
			t.Errorf("notified of %d resources", len(updated))
		}
	})
}
