// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcphttp/oauth"
)

// network contains all hosts by their origins, with a log of their requests.
type network struct {
	mu    sync.Mutex
	hosts map[string]http.Handler
	log   []string // "METHOD URL"
	auth  []string // "origin Authorization"
}

func (n *network) RoundTrip(req *http.Request) (*http.Response, error) {
	at := req.URL.Scheme + "://" + req.URL.Host
	n.mu.Lock()
	n.log = append(n.log, req.Method+" "+at+req.URL.Path)
	if a := req.Header.Get("Authorization"); a != "" {
		n.auth = append(n.auth, at+" "+a)
	}
	h := n.hosts[at]
	n.mu.Unlock()
	if h == nil {
		return nil, fmt.Errorf("no such host: %s", at)
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	in := req.Clone(req.Context())
	if in.Body == nil {
		in.Body = http.NoBody
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, in)
	in.Body.Close()
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	res := rec.Result()
	res.Request = req
	return res, nil
}

// asked returns the number of requests whose log line starts with prefix.
func (n *network) asked(prefix string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := 0
	for _, line := range n.log {
		if strings.HasPrefix(line, prefix) {
			count++
		}
	}
	return count
}

// seen reports whether a host got an Authorization header that contains a text.
func (n *network) seen(origin, text string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.ContainsFunc(n.auth, func(line string) bool { return strings.HasPrefix(line, origin+" ") && strings.Contains(line, text) })
}

// grantRecord describes an issued token.
type grantRecord struct {
	form  url.Values
	scope string
	basic string // id:secret of Basic authentication
	proof string
}

// issuer is an authorization server. Its fields may be changed before it is used.
type issuer struct {
	url      string
	metadata map[string]any
	noIss    bool
	iss      string                                            // sent in redirects, "" for its URL
	token    func(w http.ResponseWriter, r *http.Request) bool // returns true if it has answered
	redirect func(params url.Values)                           // changes the response
	refresh  string                                            // the valid refresh token, "" for none
	lifetime any                                               // expires_in
	answers  func(form url.Values, answer map[string]any)      // changes a token response
	register func(body map[string]any) (int, map[string]any)   // nil answers with a public client
	valid    map[string]string                                 // scopes by access token
	mu       sync.Mutex
	requests []url.Values // of authorization
	grants   []grantRecord
	clients  []map[string]any
	revoked  []url.Values // revocation requests
	refuses  int          // status of their answers, 0 for 200
}

func newIssuer(at string) *issuer {
	return &issuer{url: at, lifetime: 3600, valid: map[string]string{}, metadata: map[string]any{
		"issuer":                           at,
		"authorization_endpoint":           at + "/authorize",
		"token_endpoint":                   at + "/token",
		"registration_endpoint":            at + "/register",
		"code_challenge_methods_supported": []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
		"token_endpoint_auth_methods_supported":          []string{"none"},
	}}
}

// localIssuer returns an authorization server on this machine.
func localIssuer() (*issuer, *httptest.Server) {
	as := newIssuer("")
	login := httptest.NewServer(as)
	as.url = login.URL
	for name, path := range map[string]string{"issuer": "", "authorization_endpoint": "/authorize", "token_endpoint": "/token", "registration_endpoint": "/register"} {
		as.metadata[name] = login.URL + path
	}
	return as, login
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(err)
	}
}

func (s *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/token" {
		r.ParseForm()
		if s.token != nil && s.token(w, r) { // may block
			s.record(r)
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		writeJSON(w, 200, s.metadata)
	case "/register":
		s.serveRegistration(w, r)
	case "/authorize":
		s.serveAuthorize(w, r)
	case "/token":
		s.serveToken(w, r)
	case "/revoke":
		r.ParseForm()
		s.revoked = append(s.revoked, r.PostForm)
		w.WriteHeader(max(s.refuses, http.StatusOK))
	default:
		http.NotFound(w, r)
	}
}

func (s *issuer) serveRegistration(w http.ResponseWriter, r *http.Request) {
	var body map[string]any
	json.NewDecoder(r.Body).Decode(&body)
	s.clients = append(s.clients, body)
	if s.register != nil {
		status, answer := s.register(body)
		writeJSON(w, status, answer)
		return
	}
	writeJSON(w, 201, map[string]any{"client_id": fmt.Sprintf("client-%d", len(s.clients)), "token_endpoint_auth_method": "none"})
}

func (s *issuer) serveAuthorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	s.requests = append(s.requests, q)
	back := url.Values{"code": {fmt.Sprintf("code-%d", len(s.requests))}, "state": {q.Get("state")}}
	if !s.noIss {
		back.Set("iss", s.url)
	}
	if s.iss != "" {
		back.Set("iss", s.iss)
	}
	if s.redirect != nil {
		s.redirect(back)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (s *issuer) serveToken(w http.ResponseWriter, r *http.Request) {
	rec := recordOf(r)
	refuse := func(code string) { writeJSON(w, 400, map[string]any{"error": code, "error_description": "no"}) }
	rec.scope = r.PostForm.Get("scope")
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		var n int
		fmt.Sscanf(r.PostForm.Get("code"), "code-%d", &n)
		if n < 1 || n > len(s.requests) {
			refuse("invalid_grant")
			return
		}
		q := s.requests[n-1]
		sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
		if base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") || q.Get("resource") != r.PostForm.Get("resource") {
			refuse("invalid_grant")
			return
		}
		rec.scope = q.Get("scope")
	case "refresh_token":
		if s.refresh == "" || r.PostForm.Get("refresh_token") != s.refresh {
			refuse("invalid_grant")
			return
		}
	}
	s.grants = append(s.grants, rec)
	access := fmt.Sprintf("%s#%d", strings.TrimPrefix(s.url, "https://"), len(s.grants))
	s.valid[access] = rec.scope
	answer := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": s.lifetime}
	if rec.scope != "" {
		answer["scope"] = rec.scope
	}
	if s.refresh != "" {
		s.refresh += "+"
		answer["refresh_token"] = s.refresh
	}
	if s.answers != nil {
		s.answers(r.PostForm, answer)
	}
	writeJSON(w, 200, answer)
}

func recordOf(r *http.Request) grantRecord {
	id, secret, _ := r.BasicAuth()
	return grantRecord{form: r.PostForm, basic: id + ":" + secret, proof: r.Header.Get("DPoP")}
}

func (s *issuer) record(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants = append(s.grants, recordOf(r))
}

// revoke revokes all tokens.
func (s *issuer) revoke() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.valid)
}

func (s *issuer) scopesOf(token string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	scopes, ok := s.valid[token]
	return scopes, ok
}

// granted returns the token responses for a grant type, or all of them if kind is "".
func (s *issuer) granted(kind string) []grantRecord {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []grantRecord
	for _, g := range s.grants {
		if kind == "" || g.form.Get("grant_type") == kind {
			found = append(found, g)
		}
	}
	return found
}

func (s *issuer) authorizations() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// resource is an MCP server that only checks authorization. The X-Scope header of a request
// names the scope that it requires.
type resource struct {
	url       string
	issuer    *issuer
	metadata  map[string]any // nil for none
	challenge string         // instead of the usual one
	deny      bool           // reject every token
	step      func(n int) string
	steps     int
	mu        sync.Mutex
}

func (s *resource) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource") {
		if s.metadata == nil {
			http.NotFound(w, r)
			return
		}
		writeJSON(w, 200, s.metadata)
		return
	}
	body, _ := io.ReadAll(r.Body)
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	scopes, ok := s.issuer.scopesOf(token)
	need := r.Header.Get("X-Scope")
	if s.step != nil && ok {
		need = s.step(s.steps)
		s.steps++
	}
	switch {
	case !ok || s.deny:
		challenge := s.challenge
		if challenge == "" {
			challenge = `Bearer realm="a, \"b\"", resource_metadata="` + origin(s.url) + `/.well-known/oauth-protected-resource/mcp"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
		w.WriteHeader(http.StatusUnauthorized)
	case need != "" && !slices.Contains(strings.Fields(scopes), need):
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+need+`"`)
		w.WriteHeader(http.StatusForbidden)
	default:
		fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, body)
	}
}

func origin(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		panic(err)
	}
	return u.Scheme + "://" + u.Host
}

// world is an MCP server at mcp.example whose tokens are issued by login.example.
type world struct {
	*network
	t        *testing.T
	server   *resource
	login    *issuer
	receiver oauth.Redirector
	store    oauth.Store
}

const (
	serverURL = "https://mcp.example/mcp"
	loginURL  = "https://login.example"
)

func newWorld(t *testing.T) *world {
	login := newIssuer(loginURL)
	server := &resource{url: serverURL, issuer: login, metadata: map[string]any{
		"resource": serverURL, "authorization_servers": []string{loginURL},
	}}
	w := &world{t: t, server: server, login: login, store: oauth.NewMemoryStore()}
	w.network = &network{hosts: map[string]http.Handler{origin(serverURL): server, loginURL: login}}
	w.receiver = oauth.NewRedirector("https://app.example/callback", w.visit)
	return w
}

// visit acts as a user who consents to everything.
func (w *world) visit(ctx context.Context, to string) (url.Values, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return nil, err
	}
	res, err := w.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	back, err := res.Location()
	if err != nil {
		return nil, fmt.Errorf("the authorization page answered %s", res.Status)
	}
	return back.Query(), nil
}

// transport returns a transport in this world, with missing options filled in.
func (w *world) transport(opts *oauth.Options) *oauth.Transport {
	if opts == nil {
		opts = &oauth.Options{}
	}
	o := *opts
	if o.Base == nil {
		o.Base = w.network
	}
	if o.Egress == nil {
		o.Egress = w.checked()
	}
	if o.Store == nil {
		o.Store = w.store
	}
	if o.Grant == nil {
		o.Grant = &oauth.AuthorizationCode{Redirector: w.receiver}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	t := oauth.NewTransport(w.server.url, &o)
	w.t.Cleanup(func() { t.Close() })
	return t
}

// checked returns the network for requests to authorization servers. It checks that they
// accept JSON, that their responses are closed, and that none of their contexts is left when
// the test ends.
func (w *world) checked() http.RoundTripper {
	open := map[*closing]string{}
	var contexts []context.Context
	var mu sync.Mutex
	w.t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, to := range open {
			w.t.Errorf("the response of %s was not closed", to)
		}
		for _, ctx := range contexts {
			if ctx.Err() == nil {
				w.t.Error("the context of a request is not done")
			}
		}
	})
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		if got := req.Header.Get("Accept"); got != "application/json" {
			w.t.Errorf("%s %s accepts %q", req.Method, req.URL, got)
		}
		res, err := w.RoundTrip(req)
		mu.Lock()
		defer mu.Unlock()
		contexts = append(contexts, req.Context())
		if err != nil {
			return nil, err
		}
		body := &closing{ReadCloser: res.Body}
		body.closed = func() {
			mu.Lock()
			defer mu.Unlock()
			delete(open, body)
		}
		open[body], res.Body = req.URL.String(), body
		return res, nil
	})
}

// closing reports when it is closed.
type closing struct {
	io.ReadCloser
	closed func()
}

func (c *closing) Close() error {
	c.closed()
	return c.ReadCloser.Close()
}

// post sends a request to the server and returns the status and the body.
func post(ctx context.Context, rt http.RoundTripper, scope, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, serverURL, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	if scope != "" {
		req.Header.Set("X-Scope", scope)
	}
	res, err := rt.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return strings.TrimSpace(fmt.Sprint(res.StatusCode, " ", string(text))), err
}

func (w *world) mustPost(rt http.RoundTripper, scope, want string) {
	w.t.Helper()
	got, err := post(w.t.Context(), rt, scope, "hello")
	if err != nil || got != want {
		w.t.Fatalf("post: %q, %v; want %q", got, err, want)
	}
}

const served = "200 POST /mcp hello"

// mustFail checks that the request fails with a given error.
func (w *world) mustFail(rt http.RoundTripper, reason error) {
	w.t.Helper()
	got, err := post(w.t.Context(), rt, "", "hello")
	if err == nil || !errors.Is(err, reason) {
		w.t.Fatalf("post: %q, %v; want %v", got, err, reason)
	}
}

// wantRefreshes checks the number of token refreshes.
func (w *world) wantRefreshes(want int) {
	w.t.Helper()
	if n := len(w.login.granted("refresh_token")); n != want {
		w.t.Errorf("%d refreshes, want %d", n, want)
	}
}

// wantAuthorizations checks how often the user was prompted.
func (w *world) wantAuthorizations(want int) {
	w.t.Helper()
	if n := len(w.login.authorizations()); n != want {
		w.t.Errorf("%d authorizations, want %d", n, want)
	}
}
