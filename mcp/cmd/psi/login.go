// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/mcp/config"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// errLogin is returned instead of logging in from a script, where no page should open
// unexpectedly.
var errLogin = errors.New("the server requires a login; run psi in a terminal, or with -login; or send a key or token with -header")

// httpClient returns the HTTP client for the server at a URL. If the server requires a
// login, the client uses the token of an earlier login, or asks the user to log in. Tokens
// are stored in files that only the user can read. login may be nil; flags replace its
// fields. A login needs a terminal or -login: a script that opens a browser is a surprise,
// and registers a client for nothing.
func (e *env) httpClient(url string, login *config.OAuth) (*http.Client, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, fmt.Errorf("there is no place for the tokens of logins: %w", err)
	}
	o := e.client.oauth
	if login != nil {
		o.ClientID, o.CallbackPort = cmp.Or(o.ClientID, login.ClientID), cmp.Or(o.CallbackPort, login.CallbackPort)
		o.AuthorizationServerMetadata = cmp.Or(o.AuthorizationServerMetadata, login.AuthorizationServerMetadata)
		if len(o.Scopes) == 0 {
			o.Scopes = login.Scopes
		}
	}
	grant := &oauth.AuthorizationCode{Registration: oauth.Registration{Name: "psi"}}
	if o.ClientID != "" {
		grant.Clients = []oauth.Client{{ID: o.ClientID}}
	}
	loopback := oauth.Loopback{OpenBrowser: e.browse}
	if o.CallbackPort != 0 {
		loopback.RedirectURI = fmt.Sprintf("http://localhost:%d/callback", o.CallbackPort)
	}
	grant.Redirector = &redirector{loopback, e.client.login || !e.stdinServes && e.term.isInteractive()}
	t := oauth.NewTransport(url, &oauth.Options{
		AuthorizationServerMetadata: o.AuthorizationServerMetadata,
		Grant:                       grant,
		Scopes:                      o.Scopes,
		Store:                       oauth.NewFileStore(filepath.Join(dir, "psi", "tokens")),
		Logger:                      e.log,
	})
	e.onClose(func() { _ = t.Close() }) // tokens are no longer needed
	e.login = t
	return &http.Client{Transport: t}, nil
}

// A redirector sends users to the login page, if that is allowed.
type redirector struct {
	loopback oauth.Loopback
	allowed  bool
}

func (r *redirector) Open(ctx context.Context, registered string) (oauth.Redirect, error) {
	if !r.allowed {
		return nil, errLogin
	}
	return r.loopback.Open(ctx, registered)
}

// browse opens the login page. It also prints the address, for machines without a browser.
func (e *env) browse(ctx context.Context, page string) error {
	e.term.printf("The server wants you to log in:\n  %s\n", printable.Line(page))
	if err := oauth.OpenBrowser(ctx, page); err != nil {
		e.term.printf("No browser could be opened. Please open that page in one on this machine.\n")
	}
	return nil
}
