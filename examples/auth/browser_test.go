// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/go-psi/psi/mcphttp/oauth"
)

// errStay means that the user was not sent back.
var errStay = errors.New("the page stays")

// browser is a user's, and what the client in it sends goes through it. It is used
// for one thing after the other.
type browser struct {
	user, password string
	deny           bool

	asked []string // the scopes of each login
	token string   // the last Authorization that was sent
}

func (b *browser) receiver() oauth.Redirector { return oauth.NewRedirector(redirectURI, b.visit) }

// RoundTrip implements http.RoundTripper.
func (b *browser) RoundTrip(r *http.Request) (*http.Response, error) {
	b.token = r.Header.Get("Authorization")
	return http.DefaultTransport.RoundTrip(r)
}

const redirectURI = "http://127.0.0.1/callback"

var field = regexp.MustCompile(`<input name="([^"]*)"`)

// visit shows a page, fills in its form, and returns with what it is sent back with.
func (b *browser) visit(ctx context.Context, page string) (url.Values, error) {
	res, err := roundTrip(ctx, http.MethodGet, page, nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	html, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	b.asked = append(b.asked, res.Request.URL.Query().Get("scope"))
	form := url.Values{"answer": {"allow"}}
	if b.deny {
		form.Set("answer", "deny")
	}
	for _, match := range field.FindAllStringSubmatch(string(html), -1) {
		form.Set(match[1], map[string]string{"user": b.user, "password": b.password}[match[1]])
	}
	res, err = roundTrip(ctx, http.MethodPost, page, form)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	back, err := res.Location()
	if err != nil || !strings.HasPrefix(back.String(), redirectURI+"?") {
		return nil, errors.Join(errStay, err)
	}
	return back.Query(), nil
}

// roundTrip follows no redirects.
func roundTrip(ctx context.Context, method, to string, form url.Values) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, to, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return http.DefaultTransport.RoundTrip(req)
}
