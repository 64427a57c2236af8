// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2"
)

const redirectURI = "http://127.0.0.1/callback"

// allow is how a user logs in.
func allow(password string) url.Values {
	return url.Values{"user": {theUser}, "password": {password}, "answer": {"allow"}}
}

// registered registers a client.
func registered(t *testing.T, issuer string) (id string) {
	t.Helper()
	res, err := http.Post(issuer+"/register", "application/json", strings.NewReader(fmt.Sprintf(`{"redirect_uris":[%q]}`, redirectURI)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var c client
	if err := json.NewDecoder(res.Body).Decode(&c); err != nil || res.StatusCode != http.StatusCreated {
		t.Fatal(res.Status, err)
	}
	return c.ID
}

// asks is what a client asks for, with its verifier.
func asks(id, verifier string) url.Values {
	return url.Values{
		"response_type": {"code"}, "client_id": {id}, "redirect_uri": {redirectURI}, "state": {"xyz"}, "scope": {scopeRead},
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
	issuer := serveLogin(t)
	id := registered(t, issuer)
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
			res, err := roundTrip(t.Context(), method, issuer+"/authorize?"+q.Encode(), allow(thePassword))
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if res.StatusCode != http.StatusBadRequest || res.Header.Get("Location") != "" {
				t.Errorf("%s, %s: %s to %q", name, method, res.Status, res.Header.Get("Location"))
			}
		}
	}
	for _, uri := range []string{"http://evil.example/", "javascript:alert(1)", "https://user@evil.example", "https://x/#y", "//evil.example", "http://127.0.0.1.evil.example/"} {
		if !isUnsafe(uri) {
			t.Errorf("%s may be registered", uri)
		}
	}
}

// TestKeys is about codes and refresh tokens: each is good once, and using it again
// ends what it was given for.
func TestKeys(t *testing.T) {
	issuer := serveLogin(t)
	id, verifier := registered(t, issuer), oauth2.GenerateVerifier()
	code := func() url.Values {
		res, err := roundTrip(t.Context(), http.MethodPost, issuer+"/authorize?"+asks(id, verifier).Encode(), allow(thePassword))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		back, err := res.Location()
		if q := back.Query(); err != nil || q.Get("iss") != issuer || q.Get("state") != "xyz" {
			t.Fatal(back, err)
		}
		return url.Values{
			"grant_type": {byCode}, "code": {back.Query().Get("code")}, "client_id": {id},
			"redirect_uri": {redirectURI}, "code_verifier": {verifier}, "resource": {"https://mcp.example.com"},
		}
	}
	for name, value := range map[string]string{
		"code_verifier": "guess", "redirect_uri": redirectURI + "2", "client_id": registered(t, issuer), "resource": "https://other.example.com",
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
		return url.Values{"grant_type": {byRefresh}, "refresh_token": {key}, "client_id": {id}, "resource": {"https://mcp.example.com"}}
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
