// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcphttp/oauth"
)

// The metadata that a program sends when it registers.
func TestRegistrationRequest(t *testing.T) {
	for name, test := range map[string]struct {
		registration oauth.Registration
		dpop         *oauth.Key
		want         map[string]any
	}{
		"nothing": {want: map[string]any{"client_name": "MCP client"}},
		"all": {
			oauth.Registration{Name: "app", URI: "https://app.example", LogoURI: "https://app.example/logo", ApplicationType: "native"}, new(oauth.Key),
			map[string]any{"client_name": "app", "client_uri": "https://app.example", "logo_uri": "https://app.example/logo", "application_type": "native", "dpop_bound_access_tokens": true},
		},
	} {
		w := newWorld(t)
		_, _ = post(t.Context(), w.transport(&oauth.Options{DPoP: test.dpop, Grant: &oauth.AuthorizationCode{Redirector: w.receiver, Registration: test.registration}}), "", "hello")
		want := map[string]any{
			"redirect_uris": []any{"https://app.example/callback"}, "grant_types": []any{"authorization_code", "refresh_token"},
			"response_types": []any{"code"}, "token_endpoint_auth_method": "none", "application_type": "web",
		}
		maps.Copy(want, test.want)
		if len(w.login.clients) != 1 || fmt.Sprint(w.login.clients[0]) != fmt.Sprint(want) {
			t.Errorf("%s: registered as\n%v, want\n%v", name, w.login.clients, want)
		}
	}
}

// A client registers for the first authentication method that it supports and the server
// lists, and uses the method that it was assigned.
func TestRegistrationMethods(t *testing.T) {
	for _, test := range []struct {
		listed      []string
		asked, used string
	}{
		{nil, "none", "client_secret_basic"}, {[]string{"private_key_jwt"}, "none", ""},
		{[]string{"client_secret_post", "none"}, "none", "none"},
		{[]string{"client_secret_post", "client_secret_basic"}, "client_secret_basic", "client_secret_basic"},
		{[]string{"client_secret_post"}, "client_secret_post", "client_secret_post"},
	} {
		w := newWorld(t)
		w.login.metadata["token_endpoint_auth_methods_supported"] = test.listed
		w.login.register = func(body map[string]any) (int, map[string]any) {
			answer := map[string]any{"client_id": "id", "client_secret": "s"}
			if test.used != "" {
				answer["token_endpoint_auth_method"] = test.used
			}
			return 201, answer
		}
		got, err := post(t.Context(), w.transport(nil), "", "hello")
		if asked := w.login.clients[0]["token_endpoint_auth_method"]; asked != test.asked {
			t.Errorf("%q: registered for %v, want %s", test.listed, asked, test.asked)
		}
		if test.used == "" {
			if err == nil {
				t.Errorf("%q: %q", test.listed, got)
			}
			continue
		}
		if err != nil || got != served {
			t.Errorf("%q: %q, %v", test.listed, got, err)
			continue
		}
		g := w.login.granted("")[0]
		used := map[bool]string{true: "none", false: "client_secret_post"}[!g.form.Has("client_secret")]
		if g.basic == "id:s" {
			used = "client_secret_basic"
		}
		if used != test.used {
			t.Errorf("%q: used %s, want %s", test.listed, used, test.used)
		}
	}
}

// A registration is reused until its secret expires, if it does, unless the redirect URI has
// changed or the server has forgotten the client.
func TestRegistrationIsKept(t *testing.T) {
	const life = 3600
	for _, test := range []struct {
		expires       any // seconds from now, 0 for never
		after         time.Duration
		uri           string
		registrations int
	}{
		{0, 1000 * time.Hour, "https://app.example/callback", 1},
		{life, life * time.Second, "https://app.example/callback", 1},
		{life, (life + 1) * time.Second, "https://app.example/callback", 2},
		{0, 0, "https://app.example/elsewhere", 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.login.register = func(map[string]any) (int, map[string]any) {
				answer := map[string]any{"client_id": "id", "client_secret_expires_at": 0}
				if test.expires != 0 {
					answer["client_secret_expires_at"] = time.Now().Unix() + life
				}
				return 201, answer
			}
			use := func(uri string) {
				rt := w.transport(&oauth.Options{Grant: &oauth.AuthorizationCode{Redirector: oauth.NewRedirector(uri, w.visit)}})
				w.mustPost(rt, "", served)
				rt.Close()
			}
			use("https://app.example/callback")
			<-time.After(test.after + 1)
			w.login.revoke()
			use(test.uri)
			if n := len(w.login.clients); n != test.registrations {
				t.Errorf("%+v: %d registrations", test, n)
			}
		})
	}
	w := newWorld(t)
	w.login.token = func(rw http.ResponseWriter, r *http.Request) bool {
		if r.PostForm.Get("client_id") != "client-1" {
			return false
		}
		writeJSON(rw, 401, map[string]any{"error": "invalid_client"})
		return true
	}
	rt := w.transport(nil)
	if got, err := post(t.Context(), rt, "", "hello"); err == nil {
		t.Errorf("with a client that is not known: %q", got)
	}
	w.mustPost(rt, "", served)
}

// registeredURIs records the URIs that a Redirector receives.
type registeredURIs struct {
	oauth.Redirector
	told []string
}

func (r *registeredURIs) Open(ctx context.Context, registered string) (oauth.Redirect, error) {
	r.told = append(r.told, registered)
	return r.Redirector.Open(ctx, registered)
}

// A Redirector receives the registered URI.
func TestRegisteredURI(t *testing.T) {
	w := newWorld(t)
	r := &registeredURIs{Redirector: w.receiver}
	for range 2 {
		rt := w.transport(&oauth.Options{Grant: &oauth.AuthorizationCode{Redirector: r}})
		w.mustPost(rt, "", served)
		w.login.revoke()
	}
	if !slices.Equal(r.told, []string{"", "https://app.example/callback"}) {
		t.Errorf("told %q", r.told)
	}
	w = newWorld(t)
	w.store, r = damaged{`{"client_id":"id","redirect_uris":[]}`}, &registeredURIs{Redirector: w.receiver}
	w.mustPost(w.transport(&oauth.Options{Grant: &oauth.AuthorizationCode{Redirector: r}}), "", served)
	if !slices.Equal(r.told, []string{""}) {
		t.Errorf("told %q of a registration without URIs", r.told)
	}
}

// A MemoryStore keeps at most 10,000 values.
func TestMemoryStoreBounds(t *testing.T) {
	s := oauth.NewMemoryStore()
	for n := range 10_001 {
		if err := s.Save(t.Context(), oauth.StoreKey{Issuer: fmt.Sprint(n)}, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if n == 9_999 || n == 10_000 {
			kept := 0
			for i := range n + 1 {
				if got, _ := s.Load(t.Context(), oauth.StoreKey{Issuer: fmt.Sprint(i)}); got != nil {
					kept++
				}
			}
			if kept != 10_000 {
				t.Errorf("%d of %d values are kept", kept, n+1)
			}
		}
	}
}

// A value of up to 1 MiB is read from a regular file of the store, and from nothing else. A
// value that cannot be saved is not part of the store.
func TestFileStoreBounds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tokens")
	s, key := oauth.NewFileStore(dir), oauth.StoreKey{Issuer: "i"}
	for size, good := range map[int]bool{1 << 20: true, 1<<20 + 1: false} {
		if err := s.Save(t.Context(), key, make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Load(t.Context(), key); good != (err == nil && len(got) == size) {
			t.Errorf("%d bytes: %d, %v", size, len(got), err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := errors.Join(os.Remove(files[0]), os.MkdirAll(filepath.Join(files[0], "x"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Load(t.Context(), key); err == nil {
		t.Errorf("read %q from a directory", got)
	}
	if err := s.Save(t.Context(), key, []byte("x")); err == nil {
		t.Error("saved over a directory")
	}
	if err := s.Save(t.Context(), key, nil); err == nil {
		t.Error("removed a directory that is not empty")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v is left, %v", left, err)
	}
	below := oauth.NewFileStore(filepath.Join(dir, "file"))
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := below.Save(t.Context(), key, []byte("x")); err == nil {
		t.Error("saved below a file")
	}
	if got, err := below.Load(t.Context(), key); err == nil {
		t.Errorf("read %q below a file", got)
	}
	if got, err := oauth.NewFileStore(filepath.Join(dir, "none")).Load(t.Context(), key); got != nil || err != nil {
		t.Errorf("without a directory: %q, %v", got, err)
	}
}

// A request whose body cannot be read, or cannot be read again, fails with the reason.
func TestBodyThatFails(t *testing.T) {
	broken := errors.New("the disk is broken")
	w := newWorld(t)
	body := &stream{Reader: readerFunc(func([]byte) (int, error) { return 0, broken })}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, serverURL, body)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := w.transport(nil).RoundTrip(req); !errors.Is(err, broken) || !body.closed {
		t.Errorf("%v, %v, closed: %t", res, err, body.closed)
	}
	if req, err = http.NewRequestWithContext(t.Context(), http.MethodPost, serverURL, strings.NewReader("hello")); err != nil {
		t.Fatal(err)
	}
	get, n := req.GetBody, 0
	req.GetBody = func() (io.ReadCloser, error) {
		if n++; n == 2 {
			return nil, broken
		}
		return get()
	}
	if res, err := w.transport(nil).RoundTrip(req); !errors.Is(err, broken) {
		t.Errorf("the second time: %v, %v", res, err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// If the network fails, the request fails with the same error, with or without a token.
func TestServerIsGone(t *testing.T) {
	w := newWorld(t)
	rt := w.transport(nil)
	host := w.hosts[origin(serverURL)]
	for range 2 {
		delete(w.hosts, origin(serverURL))
		if got, err := post(t.Context(), rt, "", "hello"); err == nil || !strings.Contains(err.Error(), "no such host") {
			t.Errorf("%q, %v", got, err)
		}
		w.hosts[origin(serverURL)] = host
		w.mustPost(rt, "", served)
	}
}

// A 403 that is not about scopes is returned as the server's response.
func TestForbidden(t *testing.T) {
	for _, challenge := range []string{"", `Bearer error="insufficient_permissions", scope="a"`, `Bearer error="insufficient_scope"`} {
		w := newWorld(t)
		host := w.hosts[origin(serverURL)]
		rt := w.transport(nil)
		w.mustPost(rt, "", served)
		w.hosts[origin(serverURL)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost {
				host.ServeHTTP(rw, r)
				return
			}
			rw.Header().Set("WWW-Authenticate", challenge)
			rw.WriteHeader(http.StatusForbidden)
		})
		w.mustPost(rt, "", "403")
		w.wantAuthorizations(1)
		if n := w.asked("POST " + serverURL); n != 3 {
			t.Errorf("%s: %d requests, want 3", challenge, n)
		}
	}
}

// The default port of a URL may be omitted.
func TestUsualPorts(t *testing.T) {
	for server, to := range map[string]string{"https://mcp.example/mcp": "https://mcp.example:443/mcp", "http://localhost/mcp": "http://localhost:80/mcp"} {
		w := newWorld(t)
		w.server.url, w.server.metadata["resource"] = server, server
		w.hosts[origin(server)], w.hosts[origin(to)] = w.server, w.server
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader("hello"))
		if err != nil {
			t.Fatal(err)
		}
		if res, err := w.transport(nil).RoundTrip(req); err != nil || res.StatusCode != http.StatusOK {
			t.Errorf("%s: %v, %v", to, res, err)
		}
	}
}

// The query of a server's URL is part of the server's identifier.
func TestServerWithQuery(t *testing.T) {
	const server = "https://mcp.example/mcp?tenant=a"
	w := newWorld(t)
	w.server.url, w.server.challenge, w.server.metadata = server, "Bearer", nil
	w.server.issuer.url = "https://mcp.example"
	w.hosts[origin(serverURL)] = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/mcp" || strings.HasPrefix(r.URL.Path, "/.well-known/") {
			w.server.ServeHTTP(rw, r)
			return
		}
		w.login.ServeHTTP(rw, r)
	})
	w.login.redirect = func(params url.Values) { params.Del("iss") }
	w.mustPost(w.transport(nil), "", served)
	if got := w.login.authorizations()[0].Get("resource"); got != server {
		t.Errorf("resource is %q, want %q", got, server)
	}
}
