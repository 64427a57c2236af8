// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/auth"
)

// A token that is accepted only because of the leeway opens a subscription that lasts until
// the token is no longer accepted.
func TestSubscriptionWithinTheLeeway(t *testing.T) {
	const listen = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("server", "v1.0.0", nil)
		mux.Tool("tool", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil))
		h := auth.Require(newJWT(auth.JWTOptions{}), nil)(handler(mux))
		tok := token(claims{"exp": time.Now().Add(-30 * time.Second).Unix()})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(listen))
		for name, value := range map[string]string{
			"Authorization": "Bearer " + tok, "Content-Type": "application/json", "Accept": "text/event-stream",
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen",
		} {
			r.Header.Set(name, value)
		}
		began, w := time.Now(), httptest.NewRecorder()
		h.ServeHTTP(w, r)
		body, _ := io.ReadAll(w.Body)
		if took := time.Since(began); w.Code != http.StatusOK || took != 30*time.Second {
			t.Errorf("status %d, ended after %v: %s", w.Code, took, body)
		}
	})
}
