// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"errors"
	"net/url"
	"strconv"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptrace"
)

// A challenge is traced whether or not the user consents, and so is the use of a stored
// token.
func TestClientTrace(t *testing.T) {
	w := newWorld(t)
	var got string
	ctx := mcptrace.WithClientTrace(t.Context(), &mcptrace.ClientTrace{
		Challenge: func(i mcptrace.ChallengeInfo) { got += "challenge " + strconv.Itoa(i.Status) + ", " },
		Retry:     func(mcptrace.RetryInfo) { got += "retry, " },
		CacheHit:  func(i mcptrace.CacheInfo) { got += "cached " + i.Kind + " " + i.Name + ", " },
	})
	check := func(when, want string, err error) {
		t.Helper()
		if got != want || err != nil {
			t.Errorf("%s: %q, %v; want %q", when, got, err, want)
		}
		got = ""
	}
	w.login.redirect = func(params url.Values) {
		params.Del("code")
		params.Set("error", "access_denied")
	}
	if _, err := post(ctx, w.transport(nil), "", "hello"); !errors.Is(err, mcp.ErrUnauthorized) {
		t.Errorf("got %v", err)
	}
	check("a user who refuses", "challenge 401, ", nil)
	w.login.redirect = nil
	rt := w.transport(nil)
	_, err := post(ctx, rt, "", "hello")
	check("a user who agrees", "challenge 401, retry, ", err)
	_, err = post(ctx, rt, "", "hello")
	check("with a token", "", err)
	_, err = post(ctx, w.transport(nil), "", "hello")
	check("with a stored token", "challenge 401, cached token "+serverURL+", retry, ", err)
}
