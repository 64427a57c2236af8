// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcphttp/oauth"
)

// upgrading answers requests to the chosen paths with 101. The body of that response is a
// connection, on which nothing comes, and which no context ends.
type upgrading struct {
	http.RoundTripper

	path    string
	isWell  atomic.Bool
	refused atomic.Int64
}

func (u *upgrading) RoundTrip(r *http.Request) (*http.Response, error) {
	if u.isWell.Load() || !strings.Contains(r.URL.Path, u.path) {
		return u.RoundTripper.RoundTrip(r)
	}
	u.refused.Add(1)
	connection, _ := io.Pipe()
	return &http.Response{StatusCode: http.StatusSwitchingProtocols, Header: http.Header{"Upgrade": {"websocket"}}, Body: connection, ContentLength: -1, Request: r}, nil
}

// A server that switches to another protocol fails the login. When it is well again, so is the
// next login.
func TestFindingY1SwitchingProtocolsFailsTheLogin(t *testing.T) {
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-authorization-server", "/register", "/token"} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				u := &upgrading{RoundTripper: w.network, path: path}
				transport := w.transport(&oauth.Options{Base: u, Egress: u})
				get := func() error {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					req, err := http.NewRequestWithContext(ctx, http.MethodGet, serverURL, nil)
					if err != nil {
						t.Fatal(err)
					}
					res, err := transport.RoundTrip(req)
					if err == nil {
						_ = res.Body.Close()
					}
					return err
				}
				start := time.Now()
				if err := get(); err == nil || u.refused.Load() == 0 || time.Since(start) > time.Minute/2 {
					t.Errorf("after %v: %v", time.Since(start), err)
				}
				u.isWell.Store(true)
				<-time.After(10 * time.Minute) // failures are remembered for a while
				if err := get(); err != nil {
					t.Errorf("when the server is well again: %v", err)
				}
			})
		})
	}
}
