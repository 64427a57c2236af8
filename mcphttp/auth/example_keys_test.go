// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcphttp/auth/authtest"
)

// whoami returns a server that tells callers who they are.
func whoami() *mcphttp.Handler {
	mux := mcp.NewMux("whoami", "v1.0.0", nil)
	mux.Tool("whoami", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		fmt.Println("called by", mcp.PrincipalFromContext(ctx).Subject)
		return "", nil
	}, nil))
	return mcphttp.NewHandler(mux, nil)
}

// The server stores only the hashes of keys.
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

// Users have tokens, bound or not, and programs have API keys.
func ExampleFirstOf() {
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
	keys := auth.APIKeys(map[string]*mcp.Principal{"pk_9f2b6c1d8e7a4350": {Subject: "robot"}}, nil)
	h := auth.Require(auth.FirstOf(tokens, bound, keys), nil)(whoami())

	for _, credentials := range []string{login.Token(authtest.Claims{"sub": "alice"}), "pk_9f2b6c1d8e7a4350"} {
		r := modern("whoami")
		r.Header.Set("Authorization", "Bearer "+credentials)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	// Output:
	// called by alice
	// called by robot
}

// Keys may be stored anywhere, such as in a database, as hashes.
func ExampleLookupAPIKeys() {
	customers := map[string]string{auth.HashKey("pk_9f2b6c1d8e7a4350").String(): "globex"}
	keys := auth.LookupAPIKeys(func(_ context.Context, key auth.KeyHash) (*mcp.Principal, error) {
		name, ok := customers[key.String()] // SELECT name FROM customers WHERE key_hash = ?
		if !ok {
			return nil, nil // unknown key
		}
		return &mcp.Principal{Issuer: "example", Subject: name, Scopes: []string{"reports:read"}}, nil
	}, nil)
	h := auth.Require(keys, nil)(whoami())

	r := modern("whoami")
	r.Header.Set("Authorization", "Bearer pk_9f2b6c1d8e7a4350")
	h.ServeHTTP(httptest.NewRecorder(), r)
	// Output: called by globex
}

// Clients with certificates need nothing else. The TLS server requests them with
// tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: …}.
func ExampleMutualTLS() {
	certificates := auth.MutualTLS(func(cert *x509.Certificate) (*mcp.Principal, error) {
		if cert.Subject.CommonName == "" {
			return nil, auth.NewInvalidTokenError("the certificate has no name")
		}
		return &mcp.Principal{Issuer: "example", Subject: cert.Subject.CommonName, Expiry: cert.NotAfter}, nil
	})
	h := auth.Require(certificates, nil)(whoami())

	robot := certificate("robot", "", time.Now().Add(time.Hour))
	h.ServeHTTP(httptest.NewRecorder(), over(modern("whoami"), robot, true))
	// Output: called by robot
}

// Any other authentication is a function: here, a proxy in front of the server
// authenticates the caller and passes on the name.
func ExampleVerifierFunc() {
	proxy := auth.VerifierFunc(func(r *http.Request) (*mcp.Principal, error) {
		user := r.Header.Get("X-Forwarded-User") // the proxy removes it from what comes in
		if user == "" {
			return nil, auth.ErrNoCredentials
		}
		return &mcp.Principal{Issuer: "proxy", Subject: user}, nil
	})
	h := auth.Require(proxy, nil)(whoami())

	r := modern("whoami")
	r.Header.Set("X-Forwarded-User", "ada")
	h.ServeHTTP(httptest.NewRecorder(), r)
	// Output: called by ada
}
