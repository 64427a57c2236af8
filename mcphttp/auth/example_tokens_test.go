// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcphttp/auth/authtest"
)

// The issuer is asked about each token, which may have any form. A revoked token is
// rejected after at most a minute.
func ExampleNewIntrospection() {
	login := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := `{"active":false}`
		if id, secret, _ := r.BasicAuth(); id == "files" && secret == "of-the-server" && r.FormValue("token") == "f7Kq" {
			answer = `{"active":true,"sub":"alice","scope":"files:read","aud":"https://mcp.example.com/mcp"}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answer)
	}))
	defer login.Close()
	tokens, err := auth.NewIntrospection(login.URL, "https://mcp.example.com/mcp", &auth.IntrospectionOptions{
		ClientID: "files", ClientSecret: "of-the-server",
	})
	if err != nil {
		log.Println(err)
		return
	}
	h := auth.Require(tokens, nil)(whoami())

	for _, token := range []string{"f7Kq", "0000"} {
		r := modern("whoami")
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// called by alice
	// 200
	// 401
}

// A stolen token that is bound to a key is useless. auth.FirstOf also accepts tokens that
// are not bound.
func ExampleNewDPoP() {
	const resource = "https://mcp.example.com/mcp"
	login := &authtest.Issuer{URL: "https://login.example.com", Audience: resource}
	tokens, err := auth.NewJWT(login.URL, resource, &auth.JWTOptions{Keys: login.JWKS()})
	if err != nil {
		log.Fatal(err)
	}
	bound, err := auth.NewDPoP(tokens, resource, nil)
	if err != nil {
		log.Fatal(err)
	}
	h := auth.Require(bound, nil)(whoami())

	key := authtest.NewProofKey() // the client's
	stolen := login.Token(authtest.Claims{"sub": "alice", "cnf": key.Confirmation()})
	for _, proof := range []string{key.Proof(http.MethodPost, resource, stolen, nil), ""} {
		r := modern("whoami")
		r.Header.Set("Authorization", "DPoP "+stolen)
		r.Header.Set("DPoP", proof)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// called by alice
	// 200
	// 401
}

// Tokens can be verified without an HTTP request. Identify adds a requirement, and may
// return another caller.
func ExampleJWT_VerifyToken() {
	login := &authtest.Issuer{URL: "https://login.example.com", Audience: "https://mcp.example.com/mcp"}
	tokens, err := auth.NewJWT(login.URL, login.Audience, &auth.JWTOptions{
		Keys: login.JWKS(), // nil: the keys that the issuer publishes
		Identify: func(ctx context.Context, claims map[string]any) (*mcp.Principal, error) {
			if tenant, _ := claims["tenant"].(string); tenant != "" && tenant != "acme" {
				return nil, auth.NewInvalidTokenError("tenant %q is not served here", tenant)
			}
			return nil, nil // the caller that the token names
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	p, err := tokens.VerifyToken(context.Background(), login.Token(authtest.Claims{"sub": "alice", "scope": "files:read files:list"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Subject, p.Scopes)
	_, err = tokens.VerifyToken(context.Background(), login.Token(authtest.Claims{"tenant": "globex"}))
	fmt.Println(err)
	// Output:
	// alice [files:read files:list]
	// auth: invalid_token: tenant "globex" is not served here
}
