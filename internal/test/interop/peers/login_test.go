// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-psi/psi/examples/auth/authserver"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcphttp/auth/authtest"
	front "github.com/go-psi/psi/mcphttp/authserver"
	"github.com/go-psi/psi/mcpstdio"
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

// The official TypeScript SDK logs in through package authserver, with an OpenID provider behind
// it that does not know MCP; it refreshes, several calls at a time, and logs out.
func TestTypeScriptAtTheFrontDoor(t *testing.T) {
	port := freePort(t)
	resource := mcptest.ServeFunc(t, func(url string) http.Handler {
		listening(t, startProvider(t, port, url+"/callback"))
		return newFront(t, url, "http://127.0.0.1:"+port)
	}) + "/mcp"
	runLogin(t, "front", resource)
}

// mcp-remote, which connects hosts that speak standard input and output only, logs in at the
// front door when its user opens the page that it names, and keeps what it gets: the second time
// there is no page.
func TestMCPRemoteAtTheFrontDoor(t *testing.T) {
	port := freePort(t)
	resource := mcptest.ServeFunc(t, func(url string) http.Handler {
		listening(t, startProvider(t, port, url+"/callback"))
		return newFront(t, url, "http://127.0.0.1:"+port)
	}) + "/mcp"
	kept := t.TempDir()
	for _, logins := range []int{1, 0} {
		cmd := node(t, "node_modules/mcp-remote/dist/proxy.js", resource, "--allow-http")
		cmd.Env = append(cmd.Environ(), "MCP_REMOTE_CONFIG_DIR="+kept, "PATH="+filepath.Dir(must(exec.LookPath("node")))) // no browser is there
		pages := make(chan string, 10)
		ended := make(chan struct{})
		go func() { // ends with the channel
			defer close(ended)
			for page := range pages {
				if out, err := node(t, "visit.mjs", page).CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			}
		}()
		opts := &mcpstdio.CommandOptions{Logger: logger(t), Stderr: &pageFinder{pages: pages, prefix: strings.TrimSuffix(resource, "/mcp") + "/authorize?"}}
		conn, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Logger: logger(t)}).Connect(limited(t), mcpstdio.NewCommand(cmd, opts))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := mcp.Call[string](t.Context(), conn, "whoami", nil); got != "ada@example.com" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
		_ = conn.Close()
		if got := opts.Stderr.(*pageFinder).found; got != logins {
			t.Errorf("%d logins, want %d", got, logins)
		}
		close(pages)
		<-ended
	}
}

// A pageFinder sends the lines with a prefix that are written to it.
type pageFinder struct {
	pages  chan string
	prefix string
	line   []byte
	found  int
}

func (f *pageFinder) Write(p []byte) (int, error) {
	f.line = append(f.line, p...)
	for {
		line, rest, ok := bytes.Cut(f.line, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		f.line = rest
		if text := strings.TrimSpace(string(line)); strings.HasPrefix(text, f.prefix) {
			f.found++
			put(f.pages, text)
		}
	}
}

// startProvider starts npm's oidc-provider, and returns its address.
func startProvider(t *testing.T, port, redirectURI string) string {
	t.Helper()
	start(t, node(t, "oidc.mjs", port, redirectURI))
	return "127.0.0.1:" + port
}

// newFront returns a server behind authserver, whose users have an account at the issuer.
func newFront(t *testing.T, url, issuer string) http.Handler {
	t.Helper()
	provider := front.OIDC(issuer, "psi", "a-secret")
	provider.UserInfoURL = issuer + "/me"
	door := must(front.New(url+"/mcp", &front.Options{
		Provider: provider, Scopes: []string{"notes:read", "notes:write"}, Logger: logger(t),
		Identify: func(_ context.Context, claims map[string]any) (*mcp.Principal, error) {
			email, _ := claims["email"].(string)
			return &mcp.Principal{Subject: email}, nil
		},
	}))
	router := newProtected(t, url+"/mcp", url, door.Verifier())
	router.Handle("/*", door)
	return router
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
