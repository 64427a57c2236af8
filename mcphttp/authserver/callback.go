// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"net/http"
	"net/url"
	"time"
)

const codeAge = time.Minute

// callback receives the user from the provider. It goes on only in the browser in which the
// login began: otherwise an attacker could begin one, and have a victim finish it.
func (s *Server) callback(w http.ResponseWriter, r *http.Request) {
	if !s.limit.allow(r, costRequest) {
		s.busyPage(w)
		return
	}
	params, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || checkOnce(params) != nil {
		s.errorPage(w, http.StatusBadRequest, "The link that brought you here is broken.")
		return
	}
	l := &login{}
	if err := s.take(r.Context(), kindLogin, params.Get("state"), l); err != nil {
		s.failurePage(w, r, err)
		return
	}
	if !s.isBrowserOf(r, l) {
		s.errorPage(w, http.StatusForbidden, "This login did not begin in this browser. If you did not begin it, somebody may have tried to use your account. Otherwise start again; cookies must be allowed.")
		return
	}
	if iss := params.Get("iss"); params.Has("iss") && iss != s.provider.Issuer && s.provider.Issuer != "" {
		s.errorPage(w, http.StatusBadRequest, "This answer is not from the identity provider.")
		return
	}
	if params.Get("code") == "" {
		s.sendBack(w, l, &problem{Code: "access_denied", Description: "the login at the identity provider has failed"})
		return
	}
	who, err := s.provider.exchange(r.Context(), params.Get("code"), l)
	if err == nil {
		err = s.identify(r.Context(), who)
	}
	if err != nil {
		s.opts.Logger.WarnContext(r.Context(), "authserver: a login fails", "error", oneLine(err))
		p := &problem{Code: "access_denied", Description: "the user may not log in"}
		if isUnsure(r.Context(), err) {
			p = errFailed
		}
		s.sendBack(w, l, p)
		return
	}
	if !who.Upstream.Expiry.IsZero() && who.Upstream.Refresh == "" {
		s.opts.Logger.WarnContext(r.Context(), "authserver: the provider gives no refresh token, so a user who leaves it keeps access; many need the scope offline_access in Provider.Scopes")
	}
	s.admit(w, r, l, who)
}

// admit gives the client its code if this user has agreed: just now, or before. In the second
// case, the user who has logged in may be another one than who agreed, and is asked.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, l *login, who *account) {
	if l.Asked || l.User == who.User.Subject && s.remembers(r.Context(), who.User.Subject, l) {
		s.finish(w, r, l, who)
		return
	}
	l.Pending, l.User, l.Expires = newID(), "", time.Now().Add(loginAge).Unix()
	if err := s.put(r.Context(), kindPending, l.Pending, who, loginAge); err != nil {
		s.failurePage(w, r, err)
		return
	}
	s.browser(w, r) // the same, for as long as the user may take
	s.ask(w, r, l)
}

// A grant is what a user has granted to a client. It lasts as long as it is refreshed. Its code
// is in it, so that the code is exchanged in the one write that begins the grant: a replica that
// is killed has done all of it or nothing.
type grant struct {
	account `json:",inline,embed"`

	Client  string   `json:"c"`
	Granted []string `json:"o,omitzero"` // scopes; see scopes
	JKT     string   `json:"j,omitzero"` // the key of the client, if it has proved one
	Code    *code    `json:"q,omitzero"` // until it is exchanged
	Count   int      `json:"n"`          // of refresh tokens so far; see check
	Renewed []int64  `json:"r,omitzero"` // when the last ones were exchanged, Unix time in ns
}

// A code is what must come with an authorization code, whose text is the grant's ID, sealed.
type code struct {
	Redirect  string `json:"r"`
	Challenge string `json:"p"`
	JKT       string `json:"j,omitzero"`
}

// finish stores the grant and sends the browser to the client with a code.
func (s *Server) finish(w http.ResponseWriter, r *http.Request, l *login, who *account) {
	ctx := r.Context()
	g := &grant{account: *who, Client: l.Client, Granted: l.Scopes, Code: &code{l.Redirect, l.Challenge, l.JKT}}
	id := newID()
	text, err := s.sealed(kindCode, id)
	if err == nil {
		err = s.put(ctx, kindGrant, id, g, codeAge)
	}
	if err == nil {
		err = s.remember(ctx, who.User.Subject, id, l)
	}
	if err != nil {
		s.failurePage(w, r, err)
		return
	}
	if user, err := s.sealed(kindUser, who.User.Subject); err == nil {
		s.setCookie(w, cookieUser, user, consentAge)
	}
	s.redirect(w, l, url.Values{"code": {text}})
}
