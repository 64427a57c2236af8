// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"errors"
	"html"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/oauth2"

	"github.com/go-psi/psi/examples/login/provider"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcphttp/authserver"
	"github.com/go-psi/psi/mcphttp/oauth"
)

func newFront(resource, issuer, id, secret string, shared store.Values, keys [][]byte) (http.Handler, error) {
	provider := authserver.OIDC(issuer, id, secret)
	provider.Scopes = append(provider.Scopes, "offline_access") // for refresh tokens
	front, err := authserver.New(resource, &authserver.Options{
		Provider: provider,
		Scopes:   []string{"notes:read", "notes:write"},
		Identify: admit,
		Values:   shared, Keys: keys, // nil in one process
	})
	if err != nil {
		return nil, err
	}
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.Tool("profile", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		return loadProfile(oauth2.NewClient(ctx, front.TokenSource(ctx))) // with the user's token of the provider
	}, nil))

	protect := auth.Require(front.Verifier(), &auth.Options{Metadata: front.Metadata()})
	router := mcphttp.NewRouter(mux, &mcphttp.RouterOptions{
		Options:    &mcphttp.Options{AllowedHosts: []string{"notes.example.com"}},
		Middleware: []func(http.Handler) http.Handler{protect},
	})
	router.Handle("/*", front)
	return router, nil
}

// admit lets in who has a verified address of the domain.
func admit(_ context.Context, claims map[string]any) (*mcp.Principal, error) {
	email, _ := claims["email"].(string)
	if claims["email_verified"] != true || !strings.HasSuffix(email, "@example.com") {
		return nil, errors.New("this server is for example.com")
	}
	subject, _ := claims["sub"].(string) // which never changes, as addresses do
	return &mcp.Principal{Subject: subject, Claims: map[string]any{"email": email}}, nil
}

// behindProxy takes the client's address from the end of X-Forwarded-For, where the proxy has
// put it: what is before it, anyone may have written. Only the proxy may reach the server.
func behindProxy(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all := strings.Join(r.Header.Values("X-Forwarded-For"), ",")
		if client := strings.TrimSpace(all[strings.LastIndex(all, ",")+1:]); net.ParseIP(client) != nil {
			r.RemoteAddr = net.JoinHostPort(client, "0")
		}
		next.ServeHTTP(w, r)
	})
}

// TestBehindProxy believes the proxy, and not its clients.
func TestBehindProxy(t *testing.T) {
	for want, lines := range map[string][]string{
		"192.0.2.1:1234":  {"192.0.2.7, unknown"}, // that of httptest
		"203.0.113.9:0":   {"10.0.0.1, 203.0.113.9"},
		"[2001:db8::1]:0": {"10.0.0.1", "2001:db8::1"},
		"198.51.100.23:0": {"198.51.100.23"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header["X-Forwarded-For"] = lines
		behindProxy(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.RemoteAddr != want {
				t.Errorf("%q: the address is %s, want %s", lines, r.RemoteAddr, want)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	}
}

// loadProfile is a request to the provider's API. It returns the user's token.
func loadProfile(client *http.Client) (string, error) {
	token, err := client.Transport.(*oauth2.Transport).Source.Token()
	if err != nil {
		return "", err
	}
	return token.AccessToken, nil
}

// TestFront logs in at two replicas that share a store, with a new replica for each request.
func TestFront(t *testing.T) {
	issuer, shared := mcptest.ServeFunc(t, provider.New), store.NewMemory(nil)
	keys := [][]byte{[]byte(strings.Repeat("k", 32))}
	resource := mcptest.ServeFunc(t, func(base string) http.Handler {
		var replicas [2]http.Handler
		for i := range replicas {
			var err error
			if replicas[i], err = newFront(base+"/mcp", issuer, provider.ClientID, provider.ClientSecret, shared, keys); err != nil {
				t.Fatal(err)
			}
		}
		var n atomic.Uint64
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Host = "notes.example.com" // as a proxy passes it on
			replicas[n.Add(1)%2].ServeHTTP(w, r)
		})
	}) + "/mcp"
	login := oauth.NewTransport(resource, &oauth.Options{
		Grant: &oauth.AuthorizationCode{Redirector: oauth.NewRedirector("http://127.0.0.1:7/callback", visit)},
	})
	defer login.Close()
	conn := mcptest.Dial(t, mcphttp.NewTransport(resource, &mcphttp.TransportOptions{Client: &http.Client{Transport: login}}), nil)
	for range 2 {
		if got, err := mcp.Call[string](t.Context(), conn, "profile", nil); err != nil || got == "" {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

// visit is a browser, whose user ada agrees to everything.
func visit(_ context.Context, page string) (url.Values, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	var back url.Values
	client := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if r.URL.Port() != "7" {
			return nil
		}
		back = r.URL.Query()
		return http.ErrUseLastResponse
	}}
	res, err := client.Get(page)
	for err == nil && back == nil { // consent, and the login at the provider
		text, failed := io.ReadAll(res.Body)
		if res.Body.Close(); failed != nil || res.StatusCode != http.StatusOK {
			return nil, errors.Join(failed, errors.New(res.Status))
		}
		form, to := url.Values{"user": {"ada"}}, *res.Request.URL
		if token := regexp.MustCompile(`name="token" value="([^"]*)"`).FindStringSubmatch(string(text)); token != nil {
			to.Path, to.RawQuery = "/consent", ""
			form = url.Values{"token": {html.UnescapeString(token[1])}, "answer": {"allow"}}
		}
		res, err = client.PostForm(to.String(), form)
	}
	return back, err
}

// TestFoundAndAdmitted checks that clients can find the front door, and who passes it.
func TestFoundAndAdmitted(t *testing.T) {
	front, err := newFront("https://notes.example.com/mcp", "https://login.example.com", "id", "secret", nil, nil)
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
	for email, verified := range map[string]any{"ada@example.com": false, "eve@example.org": true, "": nil} {
		if p, err := admit(t.Context(), map[string]any{"sub": "1", "email": email, "email_verified": verified}); err == nil {
			t.Errorf("%q, %v: admitted as %v", email, verified, p)
		}
	}
}
