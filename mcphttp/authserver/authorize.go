// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	loginAge = 10 * time.Minute // from the first page until the user is back
	maxState = 2 << 10
)

// A login is an authorization request that was checked, on its way through the browser.
type login struct {
	Client    string   `json:"c"`
	Name      string   `json:"n"`
	Host      string   `json:"h,omitzero"`
	Redirect  string   `json:"r"`
	State     string   `json:"s,omitzero"`
	Challenge string   `json:"p"`
	Scopes    []string `json:"o,omitzero"`
	JKT       string   `json:"j,omitzero"`
	Expires   int64    `json:"e"`

	Browser string `json:"b"`          // the hash of the browser's cookie
	Asked   bool   `json:"a,omitzero"` // the page was shown, and the user agreed
	User    string `json:"u,omitzero"` // if not asked: who agreed before
	Pending string `json:"i,omitzero"` // the identity of a user who is asked after having logged in

	Nonce    string `json:"x,omitzero"` // for the provider
	Verifier string `json:"v,omitzero"`
}

// authorize receives a user from a client. Nothing is stored yet. Until the redirect URI is
// known to be the client's, every error is a page: otherwise anyone could use this server to
// send people anywhere.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	params, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(r.URL.RawQuery) > 8<<10 || len(params["client_id"]) != 1 || len(params["redirect_uri"]) > 1 {
		s.errorPage(w, http.StatusBadRequest, "The link that brought you here is broken.")
		return
	}
	if !s.limit.allow(r, costRequest) {
		s.busyPage(w)
		return
	}
	c, err := s.client(r, params.Get("client_id"))
	if err != nil {
		s.clientPage(w, r, err)
		return
	}
	redirect := params.Get("redirect_uri")
	if redirect == "" && len(c.Redirects) == 1 {
		redirect = c.Redirects[0]
	}
	if !matches(c.Redirects, redirect) {
		s.errorPage(w, http.StatusBadRequest, "The program wants you to be sent to a place that it has not registered.")
		return
	}
	l := &login{Client: c.ID, Name: c.Name, Host: c.Host, Redirect: redirect, Expires: time.Now().Add(loginAge).Unix()}
	if err := s.readRequest(l, params); err != nil {
		s.offerBack(w, l, s.problemOf(r, err))
		return
	}
	l.Browser = s.browser(w, r)
	if user := s.lastUser(r); user != "" && s.remembers(r.Context(), user, l) {
		l.User = user
		s.toProvider(w, r, l)
		return
	}
	s.ask(w, r, l)
}

func (s *Server) clientPage(w http.ResponseWriter, r *http.Request, err error) {
	p := &problem{}
	switch {
	case errors.As(err, &p) && p.status == http.StatusTooManyRequests:
		s.busyPage(w)
	default:
		s.opts.Logger.InfoContext(r.Context(), "authserver: unknown client", "error", oneLine(err))
		s.errorPage(w, http.StatusBadRequest, "The program that sent you here is unknown, or its registration has expired. Remove its connection to this server, and connect again.")
	}
}

// readRequest checks the parameters other than the client and the redirect URI.
func (s *Server) readRequest(l *login, params url.Values) error {
	l.State = params.Get("state")
	if len(l.State) > maxState || !utf8.ValidString(l.State) {
		l.State = ""
		return refuse("invalid_request", "the state is too long, or not UTF-8")
	}
	if err := checkOnce(params); err != nil {
		return err
	}
	if err := s.checkResource(params); err != nil {
		return err
	}
	l.Challenge = params.Get("code_challenge")
	switch {
	case params.Get("response_type") != "code":
		return refuse("unsupported_response_type", "only code is supported")
	case params.Get("response_mode") != "" && params.Get("response_mode") != "query":
		return refuse("invalid_request", "only the response mode query is supported")
	case !isHash(l.Challenge) || params.Get("code_challenge_method") != "S256":
		return refuse("invalid_request", "PKCE with S256 is required")
	case params.Has("request") || params.Has("request_uri"):
		return refuse("request_not_supported", "request objects are not supported")
	case params.Get("prompt") == "none":
		return refuse("interaction_required", "the user must be asked")
	}
	if l.JKT = params.Get("dpop_jkt"); l.JKT != "" && !isHash(l.JKT) {
		return refuse("invalid_request", "dpop_jkt is not a thumbprint")
	}
	for scope := range strings.FieldsSeq(params.Get("scope")) {
		if slices.Contains(s.opts.Scopes, scope) && !slices.Contains(l.Scopes, scope) {
			l.Scopes = append(l.Scopes, scope)
		}
	}
	return nil
}

// isHash reports whether a text is an encoded SHA-256 sum. The decoder skips line breaks.
func isHash(text string) bool {
	sum, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(sum) == sha256.Size && !strings.ContainsAny(text, "\r\n")
}

// offerBack is sendBack for a user who has not agreed to anything yet. Everyone can register
// a client, and could use a wrong request of it to send people from this origin to any other
// (RFC 9700, section 4.11.2), or to open a program with whatever is in the link, which a browser may
// have been told to do for this origin. So they see where the link leads before they follow it.
func (s *Server) offerBack(w http.ResponseWriter, l *login, p *problem) {
	if withoutPort(l.Redirect) != "" {
		s.sendBack(w, l, p) // any page can send a user to a port of this computer
		return
	}
	s.page(w, p.status, errorTemplate, &errorPage{
		Text: "The program that sent you here has asked for something that this server does not do.", Place: placeOf(l.Redirect), Link: template.URL(s.backLink(l, errorParams(p))), //nolint:gosec // isRedirect has checked its scheme
	})
}

// sendBack sends the browser to the client with an error. The redirect URI was checked.
func (s *Server) sendBack(w http.ResponseWriter, l *login, p *problem) {
	s.redirect(w, l, errorParams(p))
}

func errorParams(p *problem) url.Values {
	return url.Values{"error": {p.Code}, "error_description": {p.Description}}
}

// backLink returns the client's redirect URI with a response in it.
func (s *Server) backLink(l *login, params url.Values) string {
	params.Set("iss", s.issuer)
	if l.State != "" {
		params.Set("state", l.State)
	}
	return withParams(l.Redirect, params)
}

func (s *Server) redirect(w http.ResponseWriter, l *login, params url.Values) {
	s.pageHeader(w)
	w.Header().Set("Location", s.backLink(l, params))
	w.WriteHeader(http.StatusSeeOther)
}
