// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/authserver"
)

func admit(_ context.Context, claims map[string]any) (*mcp.Principal, error) {
	subject, _ := claims["sub"].(string)
	return &mcp.Principal{Subject: subject}, nil
}

// TestFront checks that clients can find the front door, and register at it.
func TestFront(t *testing.T) {
	id, secret := "id", "secret"
	front, err := authserver.New("https://notes.example.com/mcp", &authserver.Options{
		Provider: authserver.GitHub(id, secret), // or OIDC, Google, Entra, Okta, Auth0, Cognito, Keycloak
		Scopes:   []string{"notes:read", "notes:write"},
		Identify: admit, // who may come in
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/.well-known/oauth-authorization-server":   `"registration_endpoint":"https://notes.example.com/register"`,
		"/.well-known/oauth-protected-resource/mcp": `"authorization_servers":["https://notes.example.com"]`,
	} {
		w := httptest.NewRecorder()
		front.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "https://notes.example.com"+path, nil))
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
