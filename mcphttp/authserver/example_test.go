// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcphttp/authserver"
)

// A server for the members of one Google Workspace domain.
func ExampleNew() {
	front, err := authserver.New("https://mcp.example.com/mcp", &authserver.Options{
		Provider: authserver.Google("4711.apps.googleusercontent.com", os.Getenv("CLIENT_SECRET")),
		Scopes:   []string{"notes:read"},
		Identify: func(_ context.Context, claims map[string]any) (*mcp.Principal, error) {
			if claims["hd"] != "example.com" {
				return nil, fmt.Errorf("%v is not in example.com", claims["email"])
			}
			subject, _ := claims["sub"].(string)
			return &mcp.Principal{Subject: subject, Claims: map[string]any{"email": claims["email"]}}, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	router := http.NewServeMux()
	router.Handle("/", front)
	router.Handle("/mcp", auth.Require(front.Verifier(), &auth.Options{Metadata: front.Metadata()})(mcphttp.NewHandler(mux, nil)))

	// A client looks for the authorization server.
	rec := httptest.NewRecorder()
	router.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "https://mcp.example.com/.well-known/oauth-protected-resource/mcp", nil))
	fmt.Println(rec.Body)
	// Output: {"resource":"https://mcp.example.com/mcp","authorization_servers":["https://mcp.example.com"],"scopes_supported":["notes:read"],"bearer_methods_supported":["header"]}
}
