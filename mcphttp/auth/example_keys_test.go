// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
)

// whoami is a server that tells its callers who they are.
func whoami() *mcphttp.Handler {
	mux := mcp.NewMux("whoami", "v1.0.0", nil)
	mux.Tool("whoami", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		fmt.Println("called by", mcp.PrincipalFrom(ctx).Subject)
		return "", nil
	}, nil))
	return mcphttp.NewHandler(mux, nil)
}

// The server keeps no keys, only their hashes.
func ExampleHashedAPIKeys() {
	hash, err := auth.ParseKeyHash("0c07b77ccb38e66e8f6cb9bde5f9d8e6ba3fd24ed2f5b38a4d7a5b4b4cf5cf2a")
	if err != nil {
		panic(err)
	}
	keys := auth.HashedAPIKeys(map[auth.KeyHash]*mcp.Principal{
		hash:                                {Subject: "acme"},
		auth.HashKey("pk_9f2b6c1d8e7a4350"): {Subject: "globex"},
	}, &auth.KeyOptions{Header: "X-Api-Key"})
	h := auth.Require(keys, nil)(whoami())

	for _, key := range []string{"pk_9f2b6c1d8e7a4350", "pk_0000000000000000"} {
		r := modern("whoami")
		r.Header.Set("X-Api-Key", key)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// called by globex
	// 200
	// 401
}

// People have tokens, of which those that are bound to a key need its proof, and
// programs have API keys.
func ExampleAnyOf() {
	const resource = "https://mcp.example.com/mcp"
	tokens := auth.NewJWT("https://login.example.com", resource, &auth.JWTOptions{Keys: published()})
	keys := auth.APIKeys(map[string]*mcp.Principal{"pk_9f2b6c1d8e7a4350": {Subject: "robot"}}, nil)
	h := auth.Require(auth.AnyOf(tokens, auth.NewDPoP(tokens, resource, nil), keys), &auth.Options{Resource: resource})(whoami())

	for _, credentials := range []string{token(nil), "pk_9f2b6c1d8e7a4350"} {
		r := modern("whoami")
		r.Header.Set("Authorization", "Bearer "+credentials)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	// Output:
	// called by alice
	// called by robot
}
