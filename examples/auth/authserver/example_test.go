// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/go-psi/psi/examples/auth/authserver"
)

// Clients find out from the metadata how to go on.
func ExampleNew() {
	server := authserver.New("http://127.0.0.1:8081", "notes:read")
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/.well-known/oauth-authorization-server", http.NoBody))
	var metadata struct {
		Authorize string   `json:"authorization_endpoint"`
		Scopes    []string `json:"scopes_supported"`
	}
	err := json.NewDecoder(w.Body).Decode(&metadata)
	fmt.Println(metadata.Authorize, metadata.Scopes, err)
	// Output: http://127.0.0.1:8081/authorize [notes:read] <nil>
}
