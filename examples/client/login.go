// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-psi/psi/mcphttp/oauth"
)

// authorized makes a transport that has the user log in when the server asks for it.
// What comes of that is kept in the user's configuration, for the next time.
func (t *terminal) authorized(server string) (*oauth.Transport, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, fmt.Errorf("-login: there is no place for tokens: %w", err)
	}
	return oauth.NewTransport(server, &oauth.Options{
		Grant: &oauth.AuthorizationCode{
			Redirector:   &oauth.Loopback{OpenBrowser: t.browse},
			Registration: oauth.Registration{Name: "psi example client"},
		},
		Store: oauth.NewFileStore(filepath.Join(dir, "psi-example-client", "tokens")),
	}), nil
}

// browse opens the page where the user logs in. It also says where that is, for a
// machine without a browser.
func (t *terminal) browse(ctx context.Context, page string) error {
	t.take()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "The server wants you to log in:\n  %s\n", oneLine(page))
	if err := oauth.OpenBrowser(ctx, page); err != nil {
		fmt.Fprintln(t.out, "No browser could be opened. Please open that page in one on this machine.")
	}
	return nil
}
