// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"net/http"
	"time"
)

// The cookies. On https their names begin with __Host-: no other domain and no page without
// https can set such a cookie for this origin.
const (
	cookieBrowser = "psi-browser"
	cookieUser    = "psi-user"
)

func (s *Server) cookieName(name string) string {
	if s.secure {
		return "__Host-" + name
	}
	return name
}

func (s *Server) setCookie(w http.ResponseWriter, name, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // not Secure only on this machine without https
		Name: s.cookieName(name), Value: value, Path: "/", MaxAge: int(age.Seconds()),
		Secure: s.secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	})
}

// cookie opens a cookie of ours. If there are several of that name, one of them is somebody
// else's, and none is believed.
func (s *Server) cookie(r *http.Request, name, kind string) (value, secret string) {
	all := r.CookiesNamed(s.cookieName(name))
	if len(all) != 1 || s.open(kind, all[0].Value, &secret) != nil {
		return "", ""
	}
	return all[0].Value, secret
}

// browser returns the hash of a secret that only this browser has, so that what begins in it
// can end only in it. Logins in several tabs share it.
func (s *Server) browser(w http.ResponseWriter, r *http.Request) string {
	value, secret := s.cookie(r, cookieBrowser, kindBrowser)
	if secret == "" {
		secret = newID()
		value, _ = s.sealed(kindBrowser, secret) // a text can be encoded
	}
	s.setCookie(w, cookieBrowser, value, loginAge)
	return hash(secret)
}

// isBrowserOf reports whether a login began in this browser.
func (s *Server) isBrowserOf(r *http.Request, l *login) bool {
	_, secret := s.cookie(r, cookieBrowser, kindBrowser)
	return secret != "" && sameText(hash(secret), l.Browser)
}

// lastUser returns the user who last agreed in this browser, or "". It only spares a page:
// the user still logs in, and must be this one. A request that a page of any site has caused spares
// none: a program opens the browser, while an attacker sends a link. Old browsers do not tell.
func (s *Server) lastUser(r *http.Request) string {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "none" {
		return ""
	}
	_, user := s.cookie(r, cookieUser, kindUser)
	return user
}
