// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/oauth"
)

// If the context of Connect ends while the user is logging in, the error says so, and does not
// blame the server, which has answered.
func TestFindingZ6ConnectDuringALogin(t *testing.T) {
	for _, timeout := range []time.Duration{0, -1} {
		for _, version := range []string{"", mcp.LatestVersion, "2025-11-25"} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				opened := oauth.NewRedirector("https://app.example/callback", func(ctx context.Context, _ string) (url.Values, error) {
					<-ctx.Done() // the user does not come back
					return nil, context.Cause(ctx)
				})
				login := w.transport(&oauth.Options{Grant: &oauth.AuthorizationCode{Redirector: opened}})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				client := mcp.NewClient("c", "v1", &mcp.ClientOptions{Version: version, ConnectTimeout: timeout})
				_, err := client.Connect(ctx, mcphttp.NewTransport(serverURL, &mcphttp.TransportOptions{Client: &http.Client{Transport: login}}))
				want := "mcp: Connect: context deadline exceeded: the login at the server at " + serverURL + " was not completed in 1m0s"
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
					t.Errorf("%q, %v: %v", version, timeout, err)
				}
				login.Close()
				synctest.Wait()
			})
		}
	}
}
