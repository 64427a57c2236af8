// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Credentials of the only user. The password is public, because it is written here.
const (
	User     = "ada"
	Password = "test"
)

// request is what a client asks a user to authorize.
type request struct {
	client      *client
	redirectURI string // one of the client's
	state       string
	challenge   string // of PKCE, with S256
	resource    string // the server that the token is for
	scopes      []string
}

// authorize shows the form and handles its submission, both at the URL built by the client.
func (s *server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a := &request{
		client: s.client(q.Get("client_id")), redirectURI: q.Get("redirect_uri"),
		state: q.Get("state"), challenge: q.Get("code_challenge"), resource: q.Get("resource"),
		scopes: slices.DeleteFunc(strings.Fields(q.Get("scope")), func(name string) bool { return !slices.Contains(s.scopes, name) }),
	}
	if a.client == nil || !slices.Contains(a.client.RedirectURIs, a.redirectURI) {
		// Without a registered address there is nowhere to redirect to, not even with an
		// error.
		http.Error(w, "This client, or where it wants you to come back to, is not known here.", http.StatusBadRequest)
		return
	}
	if problem := a.problem(q); problem != "" {
		s.back(w, r, a, "error", problem)
		return
	}
	switch {
	case r.Method != http.MethodPost:
		ask(w, http.StatusOK, a, "")
	case r.PostFormValue("answer") != "allow":
		s.back(w, r, a, "error", "access_denied")
	case !isUser(r.PostFormValue("user"), r.PostFormValue("password")):
		ask(w, http.StatusForbidden, a, "That is not right.")
	default:
		s.back(w, r, a, "code", s.grant(a, User))
	}
}

// problem returns the error code for an invalid request, or "".
func (a *request) problem(q url.Values) string {
	resource, err := url.Parse(a.resource)
	switch {
	case q.Get("response_type") != "code":
		return "unsupported_response_type"
	case q.Get("code_challenge_method") != "S256" || len(a.challenge) != 43:
		return "invalid_request" // without PKCE, anyone who obtains the code could use it
	case err != nil || !resource.IsAbs() || resource.Fragment != "":
		return "invalid_target"
	case len(a.scopes) == 0:
		return "invalid_scope"
	}
	return ""
}

// back redirects the user to the client, and identifies the issuer (RFC 9207).
func (s *server) back(w http.ResponseWriter, r *http.Request, a *request, name, value string) {
	to, err := url.Parse(a.redirectURI)
	if err != nil {
		http.Error(w, "There is no way back.", http.StatusInternalServerError) // already validated
		return
	}
	q := to.Query()
	q.Set(name, value)
	q.Set("state", a.state)
	q.Set("iss", s.issuer)
	to.RawQuery = q.Encode()
	http.Redirect(w, r, to.String(), http.StatusSeeOther)
}

func isUser(name, password string) bool {
	return isSame(name, User) && isSame(password, Password)
}

var page = template.Must(template.New("authorize").Parse(`<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>Log in</title>
<style>body { font: 1rem/1.5 sans-serif; max-width: 30rem; margin: 4rem auto } label { display: block } b { overflow-wrap: anywhere }</style>
<h1>Log in</h1>
<p>For trying out only: the name is ada, the password is test.</p>
<p>A program that calls itself <b>{{.Name}}</b> asks to use <b>{{.Resource}}</b> on your behalf, and waits at <b>{{.Host}}</b>. It may then:</p>
<ul>{{range .Scopes}}<li>{{.}}</li>{{end}}</ul>
<form method="post">
{{with .Problem}}<p role="alert">{{.}}</p>{{end}}
<label>Name <input name="user" autocomplete="username" required autofocus></label>
<label>Password <input name="password" type="password" autocomplete="current-password" required></label>
<button name="answer" value="allow">Allow</button>
<button name="answer" value="deny" formnovalidate>Deny</button>
</form>
</html>
`))

// ask shows the form, with the problem of the previous attempt if there was one.
func ask(w http.ResponseWriter, status int, a *request, problem string) {
	host := ""
	if u, err := url.Parse(a.redirectURI); err == nil {
		host = u.Host
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = page.Execute(w, map[string]any{ // the browser may be gone
		"Name": a.client.Name, "Resource": a.resource, "Host": host, "Scopes": a.scopes, "Problem": problem,
	})
}
