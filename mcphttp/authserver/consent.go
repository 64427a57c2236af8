// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	_ "embed"
	"errors"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/printable"
)

// What is kept of a user.
const (
	consentAge  = 90 * 24 * time.Hour
	maxConsents = 64
	maxGrants   = 256
)

// A ConsentPage is the data with which the template in [Options.Consent] is executed. All
// fields are validated, except for Name, which the client chooses freely.
type ConsentPage struct {
	Name     string   // of the client; may be empty
	Host     string   // of the client's metadata document; empty if nothing confirms Name
	Place    string   // where the user will be sent: a host, or a description
	Local    bool     // that it is a program on the user's machine; Host does not confirm which
	Resource string   // the URL of the MCP server
	Scopes   []string // what the client asks for

	Action string // where the form is posted
	Token  string // the value of the form's field token
}

//go:embed consent.html
var consentHTML string

var consentPage = template.Must(template.New("consent").Parse(consentHTML))

//go:embed error.html
var errorHTML string

var errorTemplate = template.Must(template.New("error").Parse(errorHTML))

// ask shows the page that asks the user. Its token is the whole login, sealed.
func (s *Server) ask(w http.ResponseWriter, r *http.Request, l *login) {
	token, err := s.sealed(kindForm, l)
	if err != nil {
		s.failurePage(w, r, err)
		return
	}
	s.page(w, http.StatusOK, s.opts.Consent, &ConsentPage{
		Name: l.Name, Host: l.Host, Place: placeOf(l.Redirect), Local: !strings.HasPrefix(l.Redirect, "https://"), Resource: s.resource, Scopes: slices.Clone(l.Scopes), Action: "/consent", Token: token,
	})
}

// consent receives the user's answer. It counts only from the browser that was asked, and
// from a page of this origin.
func (s *Server) consent(w http.ResponseWriter, r *http.Request) {
	if !s.limit.allow(r, costRequest) {
		s.busyPage(w)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // not all writers support deadlines
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	form, err := formOf(r)
	l := &login{}
	switch {
	case err != nil, http.NewCrossOriginProtection().Check(r) != nil, s.open(kindForm, form.Get("token"), l) != nil, !s.isBrowserOf(r, l):
		s.errorPage(w, http.StatusForbidden, "This answer does not come from the page that asked. Please go back to your program, and start again. Cookies must be allowed.")
		return
	case time.Now().Unix() >= l.Expires:
		s.errorPage(w, http.StatusBadRequest, "This took too long. Please go back to your program, and start again.")
		return
	case form.Get("answer") != "allow":
		s.sendBack(w, l, &problem{Code: "access_denied", Description: "the user does not agree"})
		return
	}
	l.Asked = true
	if l.Pending == "" {
		s.browser(w, r) // the same, for as long as the provider may take
		s.toProvider(w, r, l)
		return
	}
	var who account
	if err := s.take(r.Context(), kindPending, l.Pending, &who); err != nil {
		s.failurePage(w, r, err)
		return
	}
	s.finish(w, r, l, &who)
}

// A record is what is kept of a user in addition to the grants themselves. Both lists are bounded,
// since a program can log in without end; the oldest elements go first.
type record struct {
	Consents []consent `json:"c,omitzero"`
	Grants   []string  `json:"g,omitzero"` // their IDs; some may have ended
}

// A consent is what a user has agreed to.
type consent struct {
	ID      string   `json:"i"`
	Scopes  []string `json:"o,omitzero"`
	Expires int64    `json:"e"`
}

// consentID identifies a consent of a user: to a client, at a redirect URI. The port of a program
// on the user's machine does not matter.
func consentID(l *login) string {
	return hash(l.Client + "\x00" + cmp.Or(withoutPort(l.Redirect), l.Redirect))
}

// isOwnProgram reports whether the client can only be a program of the user's, because no one else
// knows its ID: that of a registration for the user's machine. The URL of a document is public, and
// all users of a client at another host can see its registration. Any program on the user's machine
// could ask in the name of such a client. So could the authorization server of an attacker that the
// client has been connected to: if the client does not compare iss, it gives that server our code.
func (l *login) isOwnProgram() bool {
	return !isDocument(l.Client) && !strings.HasPrefix(l.Redirect, "https://")
}

// remembers reports whether a user has agreed to all of this before.
func (s *Server) remembers(ctx context.Context, user string, l *login) bool {
	var r record
	if !l.isOwnProgram() || s.get(ctx, kindRecord, user, &r) != nil {
		return false
	}
	id := consentID(l)
	return slices.ContainsFunc(r.Consents, func(c consent) bool {
		return c.ID == id && time.Now().Unix() < c.Expires && !slices.ContainsFunc(l.Scopes, func(scope string) bool { return !slices.Contains(c.Scopes, scope) })
	})
}

// remember records a grant of a user, and the consent if it may be used again. If the user has too
// many grants, the oldest ends.
func (s *Server) remember(ctx context.Context, user, grant string, l *login) error {
	var oldest string
	err := upsert(ctx, s, kindRecord, user, consentAge, func(r *record) error {
		if l.Asked && l.isOwnProgram() {
			r.agree(consentID(l), l.Scopes)
		}
		r.Grants, oldest = append(r.Grants, grant), ""
		if len(r.Grants) > maxGrants {
			oldest, r.Grants = r.Grants[0], r.Grants[1:]
		}
		return nil
	})
	if err != nil || oldest == "" {
		return err
	}
	s.opts.Logger.WarnContext(ctx, "authserver: a user has too many grants, and the oldest ends; a client may not keep its tokens", "subject", printable.Line(user))
	if err := s.end(ctx, oldest); !errors.Is(err, errGrant) {
		return err
	}
	return nil
}

// agree adds a consent to those that a user has given.
func (r *record) agree(id string, scopes []string) {
	if i := slices.IndexFunc(r.Consents, func(c consent) bool { return c.ID == id }); i >= 0 {
		scopes = union(r.Consents[i].Scopes, scopes)
		r.Consents = slices.Delete(r.Consents, i, i+1)
	}
	r.Consents = append(r.Consents, consent{id, scopes, time.Now().Add(consentAge).Unix()})
	r.Consents = r.Consents[max(0, len(r.Consents)-maxConsents):]
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// pageHeader sets the headers of everything that a browser shows or follows. There is no
// form-action: browsers apply it to the redirects after the form, to providers and clients.
func (s *Server) pageHeader(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Content-Type-Options", "nosniff")
}

func (s *Server) page(w http.ResponseWriter, status int, t *template.Template, data any) {
	var body bytes.Buffer
	if err := t.Execute(&body, data); err != nil {
		s.opts.Logger.Error("authserver: the page cannot be shown", "error", err)
		status = http.StatusInternalServerError
		body.Reset()
		body.WriteString("This page cannot be shown.")
	}
	s.pageHeader(w)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes()) // the browser may be gone
}

// An errorPage is what the template of errors is executed with.
type errorPage struct {
	Text  string       // of our own words
	Place string       // where Link leads
	Link  template.URL // to the client; may be empty
}

// errorPage shows a text of our own.
func (s *Server) errorPage(w http.ResponseWriter, status int, text string) {
	s.page(w, status, errorTemplate, &errorPage{Text: text})
}

func (s *Server) busyPage(w http.ResponseWriter) {
	s.errorPage(w, http.StatusTooManyRequests, "There were too many requests. Please try again in a minute.")
}

// failurePage shows that a login cannot go on.
func (s *Server) failurePage(w http.ResponseWriter, r *http.Request, err error) {
	if gone(err) {
		s.errorPage(w, http.StatusBadRequest, "This login was used already, or took too long. Please go back to your program, and start again.")
		return
	}
	s.errorPage(w, s.problemOf(r, err).status, "The login does not work at the moment. Please try again later.")
}

func sameText(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
