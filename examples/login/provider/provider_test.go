// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package provider_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/oauth2"

	"github.com/go-psi/psi/examples/login/provider"
)

// A server asks the provider about a user again with the refresh token, each of which is used once.
func TestRefresh(t *testing.T) {
	idp := provider.New("http://127.0.0.1:8081")
	post := func(path string, form url.Values) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.SetBasicAuth(url.QueryEscape(provider.ClientID), url.QueryEscape(provider.ClientSecret))
		w := httptest.NewRecorder()
		idp.ServeHTTP(w, r)
		return w
	}
	redeem := func(form url.Values) (refresh string) {
		var res struct {
			Refresh string `json:"refresh_token"`
			ID      string `json:"id_token"`
		}
		if w := post("/token", form); w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), &res) != nil || res.ID == "" {
			t.Fatalf("%v: %d %s", form, w.Code, w.Body)
		}
		return res.Refresh
	}

	verifier := oauth2.GenerateVerifier()
	query := url.Values{"client_id": {provider.ClientID}, "redirect_uri": {"http://127.0.0.1/callback"}, "code_challenge": {oauth2.S256ChallengeFromVerifier(verifier)}}
	back, err := url.Parse(post("/login?"+query.Encode(), url.Values{"user": {"ada"}}).Header().Get("Location"))
	if err != nil {
		t.Fatal(err)
	}
	first := redeem(url.Values{"grant_type": {"authorization_code"}, "code": {back.Query().Get("code")}, "code_verifier": {verifier}})
	second := redeem(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {first}})
	for _, form := range []url.Values{
		{"grant_type": {"refresh_token"}, "refresh_token": {first}},
		{"grant_type": {"authorization_code"}, "code": {second}, "code_verifier": {verifier}},
	} {
		if w := post("/token", form); w.Code != http.StatusBadRequest {
			t.Errorf("%v: %d %s", form, w.Code, w.Body)
		}
	}
}
