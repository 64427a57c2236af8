// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcphttp/authserver"
)

// A client with a secret must send it, in the way that it has registered. A wrong secret does
// not use up the code.
func TestConfidentialClients(t *testing.T) {
	for _, method := range []string{"client_secret_basic", "client_secret_post"} {
		w := newWorld(t)
		status, answer := w.post("/register", map[string]any{"client_name": "app", "redirect_uris": []string{appURI}, "token_endpoint_auth_method": method})
		id, _ := answer["client_id"].(string)
		secret, _ := answer["client_secret"].(string)
		if status != http.StatusCreated || len(secret) < 20 || answer["client_secret_expires_at"] == nil || strings.Contains(id, secret) {
			t.Fatalf("%s: %d %v", method, status, answer)
		}
		code := w.code(id)
		redeem := func(basic, post string) (int, map[string]any) {
			form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {appURI}, "code_verifier": {verifier}, "resource": {w.url + "/mcp"}}
			if basic == "" {
				form.Set("client_id", id)
			}
			if post != "" {
				form.Set("client_secret", post)
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/token", strings.NewReader(form.Encode()))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			if basic != "" {
				r.SetBasicAuth(url.QueryEscape(id), url.QueryEscape(basic))
			}
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			var answer map[string]any
			data, _ := io.ReadAll(res.Body)
			_ = json.Unmarshal(data, &answer)
			if asks := res.Header.Get("WWW-Authenticate") == "Basic"; asks != (res.StatusCode == http.StatusUnauthorized && basic != "") {
				t.Errorf("%s: status %d, header %v", method, res.StatusCode, res.Header)
			}
			return res.StatusCode, answer
		}
		right, other := [2]string{secret, ""}, [2]string{"", secret}
		if method == "client_secret_post" {
			right, other = other, right
		}
		for name, wrong := range map[string][2]string{"no secret": {}, "another secret": {right[0] + strings.Repeat("x", min(1, len(right[0]))), right[1] + strings.Repeat("x", min(1, len(right[1])))}, "another way": other, "both ways": {secret, secret}} {
			if status, answer := redeem(wrong[0], wrong[1]); status != http.StatusUnauthorized || answer["error"] != "invalid_client" {
				t.Errorf("%s: %s: %d %v", method, name, status, answer)
			}
		}
		if status, answer := redeem(right[0], right[1]); status != http.StatusOK || answer["access_token"] == nil {
			t.Errorf("%s: the right secret: %d %v", method, status, answer)
		}
	}
}

// A provider whose metadata is not its own, or leads elsewhere, is not used.
func TestWrongProviders(t *testing.T) {
	doc := map[string]any{}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, doc) }))
	t.Cleanup(provider.Close)
	for name, change := range map[string]string{
		"another issuer": "issuer", "authorization over http": "authorization_endpoint", "tokens over http": "token_endpoint", "keys over http": "jwks_uri",
	} {
		w, b := newWorld(t, func(o *authserver.Options) { o.Provider = authserver.OIDC(provider.URL, "psi", "secret") }), newBrowser(t)
		doc = map[string]any{"issuer": provider.URL, "authorization_endpoint": provider.URL + "/auth", "token_endpoint": provider.URL + "/token", "jwks_uri": provider.URL + "/keys"}
		doc[change] = "http://provider.example/" + change
		b.step(http.MethodGet, w.link(w.register("app", appURI)), nil)
		to := b.step(http.MethodPost, w.url+"/consent", url.Values{"token": {b.form()}, "answer": {"allow"}})
		if to != nil {
			t.Errorf("%s: sent to %v", name, to)
		}
	}
}

func TestWrongScopes(t *testing.T) {
	for _, scope := range []string{"", "a b", "ä", `"`, `\`} {
		_, err := authserver.New("https://mcp.example.com/mcp", &authserver.Options{Provider: authserver.GitHub("id", "secret"), Scopes: []string{"read", scope}})
		if err == nil || !strings.Contains(err.Error(), "is not a scope") {
			t.Errorf("%q: %v", scope, err)
		}
	}
}
