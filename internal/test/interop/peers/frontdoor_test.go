// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcphttp/authserver"
	"github.com/go-psi/psi/mcphttp/oauth"
	"github.com/go-psi/psi/mcpstdio"
)

// An identityProvider is one that knows nothing of MCP, behind package authserver.
type identityProvider struct {
	name  string
	start func(t *testing.T, redirectURI string) *authserver.Provider
	user  string   // who logs in
	pages []string // the titles of its pages
}

// The provider of npm asks for a login and then for consent, and that of Go for a login. Both
// replace refresh tokens, and their access tokens are so short that each refresh of a client
// refreshes them, too.
var identityProviders = []identityProvider{
	{"oidc-provider", startNodeProvider, "ada@example.com", []string{"Sign-in", "Sign-in"}},
	{"zitadel", func(t *testing.T, redirectURI string) *authserver.Provider {
		return startGoProvider(t, redirectURI).client()
	}, "test-user@zitadel.ch", []string{"Login"}},
}

func startNodeProvider(t *testing.T, redirectURI string) *authserver.Provider {
	t.Helper()
	port := freePort(t)
	start(t, node(t, "oidc.mjs", port, redirectURI))
	listening(t, "127.0.0.1:"+port)
	p := authserver.OIDC("http://127.0.0.1:"+port, "psi", "a-secret")
	p.UserInfoURL = p.Issuer + "/me"
	return p
}

// A goProvider is the example of zitadel/oidc, with other lifetimes.
type goProvider struct {
	*storage.Storage

	issuer string
}

func startGoProvider(t *testing.T, redirectURI string) *goProvider {
	t.Helper()
	p := &goProvider{}
	before := slog.Default() // which the example replaces
	p.issuer = mcptest.ServeFunc(t, func(url string) http.Handler {
		client := storage.WebClient("psi", "a-secret", redirectURI)
		storage.RegisterClients(client)
		p.Storage = storage.NewStorage(storage.NewUserStore(url))
		return exampleop.SetupServer(url, p, logger(t), false)
	})
	slog.SetDefault(before)
	return p
}

// CreateAccessAndRefreshTokens implements [op.Storage].
func (p *goProvider) CreateAccessAndRefreshTokens(ctx context.Context, request op.TokenRequest, current string) (id, refresh string, expiry time.Time, err error) {
	id, refresh, _, err = p.Storage.CreateAccessAndRefreshTokens(ctx, request, current)
	return id, refresh, time.Now().Add(30 * time.Second), err
}

func (p *goProvider) client() *authserver.Provider {
	c := authserver.OIDC(p.issuer, "psi", "a-secret")
	c.Scopes = append(c.Scopes, "offline_access")
	c.UserInfoURL = p.issuer + "/userinfo"
	return c
}

// newFront returns a server behind authserver. Requests are verified as change says, if it is
// not nil.
func newFront(t *testing.T, url string, provider *authserver.Provider, change func(auth.Verifier) auth.Verifier) http.Handler {
	t.Helper()
	door := must(authserver.New(url+"/mcp", &authserver.Options{
		Provider: provider, Scopes: []string{"notes:read", "notes:write"}, Logger: logger(t),
		Identify: func(_ context.Context, claims map[string]any) (*mcp.Principal, error) {
			email, _ := claims["email"].(string)
			return &mcp.Principal{Subject: email}, nil
		},
	}))
	v := door.Verifier()
	if change != nil {
		v = change(v)
	}
	router := newProtected(t, url+"/mcp", url, v)
	router.Handle("/*", door)
	return router
}

// The official TypeScript SDK logs in through package authserver, with an OpenID provider behind
// it that does not know MCP; it refreshes, several calls at a time, and logs out.
func TestTypeScriptAtTheFrontDoor(t *testing.T) {
	for _, p := range identityProviders {
		t.Run(p.name, func(t *testing.T) {
			resource := mcptest.ServeFunc(t, func(url string) http.Handler {
				return newFront(t, url, p.start(t, url+"/callback"), nil)
			}) + "/mcp"
			runLogin(t, "front", resource, p.user, strings.Join(append([]string{"Allow access?"}, p.pages...), ","))
		})
	}
}

// mcp-remote, which connects hosts that speak standard input and output only, logs in at the
// front door when its user opens the page that it names, and keeps what it gets: the second time
// there is no page.
func TestMCPRemoteAtTheFrontDoor(t *testing.T) {
	resource := mcptest.ServeFunc(t, func(url string) http.Handler {
		return newFront(t, url, startNodeProvider(t, url+"/callback"), nil)
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

// A strictServer refuses all access tokens that it has seen when it is told to, as if they had
// expired.
type strictServer struct {
	auth.Verifier

	mu      sync.Mutex
	seen    map[string]bool
	refused map[string]bool
}

func (s *strictServer) Verify(r *http.Request) (*mcp.Principal, error) {
	token := r.Header.Get("Authorization")
	s.mu.Lock()
	refused := s.refused[token]
	s.seen[token] = true
	s.mu.Unlock()
	if refused {
		return nil, auth.NewInvalidTokenError("the token has expired")
	}
	return s.Verifier.Verify(r)
}

func (s *strictServer) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused, s.seen = s.seen, map[string]bool{"": true}
}

// psi's client logs in with a browser, steps up, and refreshes. When the provider has ended the
// session of the user, the client's grant ends with the next refresh, and the user logs in again.
func TestPsiAtTheFrontDoor(t *testing.T) {
	_ = node(t, "visit.mjs") // skips the test if there are no npm packages
	strict := &strictServer{seen: map[string]bool{}}
	var provider *goProvider
	resource := mcptest.ServeFunc(t, func(url string) http.Handler {
		provider = startGoProvider(t, url+"/callback")
		return newFront(t, url, provider.client(), func(v auth.Verifier) auth.Verifier { strict.Verifier = v; return strict })
	}) + "/mcp"
	var logins atomic.Int64
	visit := func(_ context.Context, page string) error {
		logins.Add(1)
		return node(t, "visit.mjs", page).Start()
	}
	rt := oauth.NewTransport(resource, &oauth.Options{Grant: &oauth.AuthorizationCode{Redirector: &oauth.Loopback{OpenBrowser: visit}}})
	defer rt.Close()
	wire := mcphttp.NewTransport(resource, &mcphttp.TransportOptions{Client: &http.Client{Transport: rt}, Logger: logger(t)})
	conn, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Logger: logger(t)}).Connect(limited(t), wire)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, step := range []struct {
		name, tool, want string
		before           func()
		logins           int64 // in all
	}{
		{"log in", "whoami", "test-user@zitadel.ch", func() {}, 1},
		{"step up", "write", "written", func() {}, 2},
		{"refresh", "write", "written", strict.expire, 2},
		{"refresh again", "whoami", "test-user@zitadel.ch", strict.expire, 2},
		{"withdraw", "write", "written", func() { _ = provider.TerminateSession(t.Context(), "id1", "psi"); strict.expire() }, 3},
	} {
		step.before()
		if got, err := mcp.Call[string](limited(t), conn, step.tool, nil); got != step.want || err != nil {
			t.Errorf("%s: %q, %v", step.name, got, err)
		}
		if got := logins.Load(); got != step.logins {
			t.Errorf("%s: %d logins, want %d", step.name, got, step.logins)
		}
	}
}
