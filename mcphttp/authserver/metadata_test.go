// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcphttp/authserver"
)

// Both documents say the same, whole.
func TestMetadata(t *testing.T) {
	front, err := authserver.New("https://mcp.example.com/mcp", &authserver.Options{Provider: authserver.GitHub("id", "secret"), Scopes: []string{"read"}})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"issuer":"https://mcp.example.com","authorization_endpoint":"https://mcp.example.com/authorize","token_endpoint":"https://mcp.example.com/token",` +
		`"registration_endpoint":"https://mcp.example.com/register","revocation_endpoint":"https://mcp.example.com/revoke","jwks_uri":"https://mcp.example.com/jwks","scopes_supported":["read"],` +
		`"response_types_supported":["code"],"response_modes_supported":["query"],"grant_types_supported":["authorization_code","refresh_token"],"code_challenge_methods_supported":["S256"],` +
		`"token_endpoint_auth_methods_supported":["none","client_secret_basic","client_secret_post"],"revocation_endpoint_auth_methods_supported":["none","client_secret_basic","client_secret_post"],` +
		`"authorization_response_iss_parameter_supported":true,"client_id_metadata_document_supported":true,` +
		`"dpop_signing_alg_values_supported":["ES256","ES384","ES512","EdDSA","PS256","PS384","PS512","RS256","RS384","RS512"]}`
	for _, path := range []string{"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"} {
		for _, method := range []string{http.MethodGet, http.MethodOptions, http.MethodPost} {
			rec := httptest.NewRecorder()
			front.ServeHTTP(rec, httptest.NewRequest(method, path, nil))
			h := rec.Header()
			if h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Headers") != "*" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s %s: %v", method, path, h)
			}
			switch method {
			case http.MethodGet:
				if rec.Body.String() != want || h.Get("Content-Type") != "application/json" || h.Get("Cache-Control") != "public, max-age=300" {
					t.Errorf("%s: %v\n%s", path, h, rec.Body)
				}
			case http.MethodOptions:
				if rec.Code != http.StatusNoContent {
					t.Errorf("%s %s: status %d", method, path, rec.Code)
				}
			default:
				if rec.Code != http.StatusMethodNotAllowed || h.Get("Allow") == "" {
					t.Errorf("%s %s: status %d", method, path, rec.Code)
				}
			}
		}
	}
}

// Pages of any origin may use the endpoints of clients, and only by POST.
func TestCORS(t *testing.T) {
	front, err := authserver.New("https://mcp.example.com/mcp", &authserver.Options{Provider: authserver.GitHub("id", "secret")})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/register", "/token", "/revoke"} {
		for method, status := range map[string]int{http.MethodOptions: http.StatusNoContent, http.MethodGet: http.StatusMethodNotAllowed, http.MethodPost: http.StatusBadRequest, http.MethodPut: http.StatusMethodNotAllowed} {
			rec := httptest.NewRecorder()
			front.ServeHTTP(rec, httptest.NewRequest(method, path, nil))
			h := rec.Header()
			if rec.Code != status || h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Access-Control-Allow-Credentials") != "" || h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s %s: status %d, %v", method, path, rec.Code, h)
			}
			if method == http.MethodOptions && (h.Get("Access-Control-Allow-Methods") != "POST" || !strings.Contains(h.Get("Access-Control-Allow-Headers"), "DPoP")) {
				t.Errorf("%s: %v", path, h)
			}
			if method == http.MethodPost && h.Get("Content-Type") != "application/json" {
				t.Errorf("%s: %v", path, h)
			}
			if status == http.StatusMethodNotAllowed && h.Get("Allow") != "POST, OPTIONS" {
				t.Errorf("%s %s: %v", method, path, h)
			}
		}
	}
	// The pages are for the user's browser alone.
	for _, path := range []string{"/authorize", "/callback"} {
		for _, method := range []string{http.MethodPost, http.MethodOptions} {
			rec := httptest.NewRecorder()
			front.ServeHTTP(rec, httptest.NewRequest(method, path, nil))
			if rec.Code != http.StatusMethodNotAllowed || rec.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s %s: status %d, %v", method, path, rec.Code, rec.Header())
			}
		}
	}
}
