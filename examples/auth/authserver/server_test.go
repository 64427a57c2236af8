// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"github.com/go-psi/psi/examples/auth/authserver"
	"github.com/go-psi/psi/mcp/mcptest"
)

const redirectURI = "http://127.0.0.1/callback"

// serve serves an authorization server.
func serve(t *testing.T) (issuer string) {
	t.Helper()
	return mcptest.ServeFunc(t, func(url string) http.Handler { return authserver.New(url, "read", "write") })
}

// authorize gets the form of a login, or has the user fill it in and send it, and
// follows no redirect.
func authorize(t *testing.T, method, issuer string, q url.Values) *http.Response {
	t.Helper()
	form := url.Values{"user": {authserver.User}, "password": {authserver.Password}, "answer": {"allow"}}
	req, err := http.NewRequestWithContext(t.Context(), method, issuer+"/authorize?"+q.Encode(), strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res
}

// sentBack returns with what the user is sent back to the client.
func sentBack(t *testing.T, issuer string, q url.Values) url.Values {
	t.Helper()
	back, err := authorize(t, http.MethodPost, issuer, q).Location()
	if err != nil {
		t.Fatal(err)
	}
	if got := back.Query(); got.Get("iss") != issuer || got.Get("state") != "xyz" {
		t.Fatalf("sent back to %s", back)
	}
	return back.Query()
}

// register returns the id of a client that has registered, "" for one that may not.
func register(t *testing.T, issuer, redirectURI string) (id string) {
	t.Helper()
	res, err := http.Post(issuer+"/register", "application/json", strings.NewReader(fmt.Sprintf(`{"redirect_uris":[%q]}`, redirectURI)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var answer struct {
		ID string `json:"client_id"`
	}
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || (res.StatusCode == http.StatusCreated) != (answer.ID != "") {
		t.Fatal(res.Status, err)
	}
	return answer.ID
}

// asks is what a client asks for, with its verifier.
func asks(id, verifier string) url.Values {
	return url.Values{
		"response_type": {"code"}, "client_id": {id}, "redirect_uri": {redirectURI}, "state": {"xyz"}, "scope": {"read"},
		"code_challenge": {oauth2.S256ChallengeFromVerifier(verifier)}, "code_challenge_method": {"S256"}, "resource": {"https://mcp.example.com"},
	}
}

// redeemed is what the token endpoint answers.
func redeemed(t *testing.T, issuer string, form url.Values) (answer struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Error   string `json:"error"`
},
) {
	t.Helper()
	res, err := http.PostForm(issuer+"/token", form)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || (res.StatusCode == http.StatusOK) != (answer.Error == "") {
		t.Fatal(res.Status, err)
	}
	return answer
}

// Nobody is sent to where the client has not said that it is.
func TestOpenRedirect(t *testing.T) {
	issuer := serve(t)
	id := register(t, issuer, redirectURI)
	for name, change := range map[string]url.Values{
		"elsewhere":      {"redirect_uri": {"https://evil.example/"}},
		"below":          {"redirect_uri": {redirectURI + "/../evil"}},
		"nowhere":        {"redirect_uri": {""}},
		"another client": {"client_id": {"someone"}},
	} {
		q := asks(id, "verifier")
		q.Set("scope", "") // which is wrong, too
		for key := range change {
			q.Set(key, change.Get(key))
		}
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			res := authorize(t, method, issuer, q)
			if res.StatusCode != http.StatusBadRequest || res.Header.Get("Location") != "" {
				t.Errorf("%s, %s: %s to %q", name, method, res.Status, res.Header.Get("Location"))
			}
		}
	}
	for _, uri := range []string{"http://evil.example/", "javascript:alert(1)", "https://user@evil.example", "https://x/#y", "//evil.example", "http://127.0.0.1.evil.example/"} {
		if register(t, issuer, uri) != "" {
			t.Errorf("%s may be registered", uri)
		}
	}
}

// TestKeys is about codes and refresh tokens: each is good once, and using it again
// ends what it was given for.
func TestKeys(t *testing.T) {
	issuer := serve(t)
	id, verifier := register(t, issuer, redirectURI), oauth2.GenerateVerifier()
	code := func() url.Values {
		return url.Values{
			"grant_type": {"authorization_code"}, "code": {sentBack(t, issuer, asks(id, verifier)).Get("code")}, "client_id": {id},
			"redirect_uri": {redirectURI}, "code_verifier": {verifier}, "resource": {"https://mcp.example.com"},
		}
	}
	for name, value := range map[string]string{
		"code_verifier": "guess", "redirect_uri": redirectURI + "2", "client_id": register(t, issuer, redirectURI), "resource": "https://other.example.com",
	} {
		form := code()
		form.Set(name, value)
		if got := redeemed(t, issuer, form); got.Error != "invalid_grant" {
			t.Errorf("%s: %+v", name, got)
		}
	}

	form := code()
	first := redeemed(t, issuer, form)
	next := func(key string) url.Values {
		return url.Values{"grant_type": {"refresh_token"}, "refresh_token": {key}, "client_id": {id}, "resource": {"https://mcp.example.com"}}
	}
	second := redeemed(t, issuer, next(first.Refresh))
	if first.Access == "" || second.Access == "" || second.Access == first.Access || second.Refresh == first.Refresh {
		t.Fatalf("%+v, then %+v", first, second)
	}
	for _, old := range []url.Values{form, next(first.Refresh), next(second.Refresh)} {
		if got := redeemed(t, issuer, old); got.Error != "invalid_grant" {
			t.Errorf("%v is good again: %+v", old, got)
		}
	}
}

// What a client does wrong it learns where it is, and the user is not asked.
func TestProblems(t *testing.T) {
	issuer := serve(t)
	id := register(t, issuer, redirectURI)
	for name, test := range map[string]struct{ value, want string }{
		"response_type":         {"token", "unsupported_response_type"},
		"code_challenge":        {"", "invalid_request"},
		"code_challenge_method": {"plain", "invalid_request"},
		"resource":              {"", "invalid_target"},
		"scope":                 {"admin", "invalid_scope"},
	} {
		q := asks(id, "verifier")
		q.Set(name, test.value)
		if back := sentBack(t, issuer, q); back.Get("error") != test.want || back.Has("code") {
			t.Errorf("%s: sent back with %v, want %s", name, back, test.want)
		}
	}
}
