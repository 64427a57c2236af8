// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/go-psi/psi/mcphttp/oauth"
)

// agreeing acts as a user who consents to everything.
func agreeing(_ context.Context, url string) error {
	fmt.Println("a browser is opened")
	go func() {
		if res, err := http.Get(url); err == nil {
			_ = res.Body.Close()
		}
	}()
	return nil
}

// Users log in once: the next run of the program finds the token in the directory.
func ExampleNewFileStore() {
	server, login := protected()
	defer server.Close()
	defer login.Close()
	dir, err := os.MkdirTemp("", "tokens") // rather os.UserConfigDir, and a directory below it
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)

	for range 2 {
		auth := oauth.NewTransport(server.URL+"/mcp", &oauth.Options{
			Grant:  &oauth.AuthorizationCode{Redirector: &oauth.Loopback{OpenBrowser: agreeing}},
			Store:  oauth.NewFileStore(dir),
			Logger: slog.New(slog.DiscardHandler),
		})
		fmt.Println(auth.Authorize(context.Background()))
		_ = auth.Close()
	}
	// Output:
	// a browser is opened
	// <nil>
	// <nil>
}

// Transports that share a store share its tokens and registrations.
func ExampleNewMemoryStore() {
	server, login := protected()
	defer server.Close()
	defer login.Close()
	store := oauth.NewMemoryStore()

	for range 2 {
		auth := oauth.NewTransport(server.URL+"/mcp", &oauth.Options{
			Grant:  &oauth.AuthorizationCode{Redirector: &oauth.Loopback{OpenBrowser: agreeing}},
			Store:  store,
			Logger: slog.New(slog.DiscardHandler),
		})
		fmt.Println(auth.Authorize(context.Background()))
		_ = auth.Close()
	}
	// Output:
	// a browser is opened
	// <nil>
	// <nil>
}

// A program identified by its platform needs no credentials.
func ExampleWorkloadIdentity() {
	server, login := protected()
	defer server.Close()
	defer login.Close()

	auth := oauth.NewTransport(server.URL+"/mcp", &oauth.Options{
		Grant: &oauth.WorkloadIdentity{
			Issuer: login.URL,
			Assertion: func(_ context.Context, to oauth.AuthorizationServer) (string, error) {
				fmt.Println("the platform is asked for a JWT:", to.Issuer == login.URL)
				return "a.signed.jwt", nil // often the content of a file, or what a metadata service answers
			},
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	defer auth.Close()
	fmt.Println(auth.Authorize(context.Background()))
	// Output:
	// the platform is asked for a JWT: true
	// <nil>
}

// A user who is logged in to the enterprise is not prompted again.
func ExampleEnterpriseGrant() {
	server, login := protected()
	defer server.Close()
	defer login.Close()
	idp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("the provider is shown", r.FormValue("subject_token"))
		writeJSON(w, http.StatusOK, map[string]any{
			"access_token": "an-id-jag", "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag", "token_type": "N_A",
		})
	}))
	defer idp.Close()

	auth := oauth.NewTransport(server.URL+"/mcp", &oauth.Options{
		Grant: &oauth.EnterpriseGrant{
			Provider: oauth.IdentityProvider{TokenEndpoint: idp.URL, Client: oauth.Client{ID: "editor"}},
			Subject: func(context.Context) (oauth.SubjectToken, error) {
				return oauth.SubjectToken{Token: "the ID token of the login"}, nil
			},
			Client: oauth.Client{Issuer: login.URL, ID: "editor"},
		},
		Logger: slog.New(slog.DiscardHandler),
	})
	defer auth.Close()
	fmt.Println(auth.Authorize(context.Background()))
	// Output:
	// the provider is shown the ID token of the login
	// <nil>
}
