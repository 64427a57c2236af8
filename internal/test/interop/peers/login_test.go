// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"context"
	"io"
	"net/http"
	"testing"

	"github.com/go-psi/psi/examples/auth/authserver"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcphttp/auth/authtest"
	"github.com/go-psi/psi/middleware"
)

// newProtected returns a server that requires tokens of the issuer, verified by v.
func newProtected(t *testing.T, resource, issuer string, v auth.Verifier) *mcphttp.Router {
	t.Helper()
	mux := mcp.NewMux("notes", "v1", &mcp.MuxOptions{Logger: logger(t)})
	mux.Tool("whoami", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		return mcp.PrincipalFromContext(ctx).Subject, nil
	}, nil))
	mux.With(middleware.RequireScopes("notes:write")).Tool("write", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		return "written", nil
	}, nil))
	metadata := &auth.Metadata{Resource: resource, AuthorizationServers: []string{issuer}, ScopesSupported: []string{"notes:read"}}
	opts := &auth.Options{Metadata: metadata, Scopes: []string{"notes:read"}, Logger: logger(t)}
	router := mcphttp.NewRouter(mux, &mcphttp.RouterOptions{
		Options:    &mcphttp.Options{Logger: logger(t)},
		Middleware: []func(http.Handler) http.Handler{auth.Require(v, opts)},
	})
	router.Handle(must(auth.MetadataPath(resource)), auth.MetadataHandler(metadata))
	return router
}

// runLogin runs login.mjs in both eras.
func runLogin(t *testing.T, mode, resource string, args ...string) {
	t.Helper()
	for _, era := range []string{"auto", "legacy"} {
		if out, err := node(t, "login.mjs", append([]string{mode, resource, era}, args...)...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", era, err, out)
		}
	}
}

// The official TypeScript SDK discovers the authorization server, registers, logs in, and
// logs in again when a tool requires another scope.
func TestTypeScriptLogsIn(t *testing.T) {
	issuer := mcptest.ServeFunc(t, func(url string) http.Handler { return authserver.New(url, "notes:read", "notes:write") })
	resource := mcptest.ServeFunc(t, func(url string) http.Handler {
		return newProtected(t, url+"/mcp", issuer, must(auth.NewJWT(issuer, url+"/mcp", nil)))
	}) + "/mcp"
	runLogin(t, "login", resource)
}

// The official TypeScript SDK proves possession of its token's key, with a nonce if the
// server requires one.
func TestTypeScriptProves(t *testing.T) {
	for name, nonces := range map[string]bool{"without nonces": false, "with nonces": true} {
		t.Run(name, func(t *testing.T) {
			var issuer *authtest.Issuer
			resource := mcptest.ServeFunc(t, func(url string) http.Handler {
				issuer = authtest.NewIssuer(t, url+"/mcp")
				tokens := must(auth.NewJWT(issuer.URL, url+"/mcp", nil))
				return newProtected(t, url+"/mcp", issuer.URL, must(auth.NewDPoP(tokens, url+"/mcp", &auth.DPoPOptions{RequireNonce: nonces})))
			}) + "/mcp"
			tokens := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				claims := authtest.Claims{"sub": "ada", "scope": "notes:read", "cnf": map[string]string{"jkt": r.FormValue("jkt")}}
				_, _ = io.WriteString(w, issuer.Token(claims))
			}))
			runLogin(t, "proof", resource, tokens)
		})
	}
}

// must returns v. It panics if there is an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
