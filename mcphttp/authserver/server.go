// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/internal/seal"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp/auth"
)

// Options configure a [Server].
type Options struct {
	// Provider is the identity provider that authenticates the users. It is required. Its
	// registered redirect URI must be the path /callback at the origin of the MCP server.
	Provider *Provider
	// Scopes are the scopes that clients can get. Others are ignored. Nil means none.
	Scopes []string
	// Identify returns the user for the claims of the provider: those of the ID token, of
	// the user info, or of both. It decides who may log in, for example by domain or
	// organization; an e-mail address counts only if email_verified is true. If it returns an
	// error, the login is denied. The principal must have a Subject of at most 1 KiB; it has at
	// most 256 grants at a time, so do not give the same one to many people. If its Scopes are
	// not nil, the user gets no others. Its Claims become claims of the access token, at most
	// 4 KiB of JSON. [TokenFromContext] returns the provider's token. Nil means that every user of the
	// provider may log in, and that the provider's subject is the Subject.
	//
	// Identify is asked again each time a client refreshes its tokens, about every five
	// minutes: with the claims that came with the provider's last token, and the user info as
	// it is now. So a user who has left loses access then, or gets fewer scopes. If the provider
	// gives no refresh token, it cannot be asked any more once its token has expired: then Identify
	// is asked with what it has said last, for as long as the client refreshes. An error, or
	// another Subject, ends the grant; an error that wraps a [net.Error] only fails this
	// refresh or login, and the client can repeat it.
	Identify func(ctx context.Context, claims map[string]any) (*mcp.Principal, error)

	// Values keeps logins and grants. All replicas must share it. Nil means the memory of
	// this process.
	Values store.Values
	// Keys seal and sign; each has at least 32 bytes. The first key seals and signs; the others
	// only open and verify what an earlier first key has made. All replicas must share them.
	// They are required with Values. Nil means a random key for this process.
	Keys [][]byte

	// Consent replaces the page that asks the user. It is executed with a [*ConsentPage], and
	// must contain a form that posts the fields token and answer ("allow" or "deny") to the
	// page's Action. Scripts are blocked. Nil means a plain page.
	Consent *template.Template
	// Egress fetches the metadata documents of clients, from URLs that strangers choose. Nil
	// means a transport that dials public addresses only and uses no proxy. A custom Egress
	// must check addresses itself.
	Egress http.RoundTripper
	// Logger receives diagnostic messages, without secrets. Nil means slog.Default.
	Logger *slog.Logger
}

// A Server is the authorization server of one MCP server. It is an [http.Handler] for the
// origin of the MCP server, and safe for concurrent use. It must be created by [New].
//
// The paths are /register, /authorize, /consent, /callback, /token, /revoke, /jwks, and the
// well-known paths of metadata. Behind a proxy, wrap it in middleware that sets
// RemoteAddr to the client's address: limits are per address.
type Server struct {
	resource string // the MCP server's URL
	issuer   string // its origin
	secure   bool   // https
	opts     Options

	ring     *seal.Ring
	signer   *signer
	provider *provider
	tokens   *auth.JWT
	verifier auth.Verifier
	proofs   *auth.DPoP
	fetch    *http.Client
	limit    *limiter
	mux      *http.ServeMux
}

// minKey is the minimum length of a key. Signatures are derived from it.
const minKey = 32

// New returns a Server for an MCP server with the given URL: https, or http on a loopback
// address, without a query. It returns an error if the URL or an option is invalid, or if there
// is no Provider. It does not connect to the provider yet.
func New(resource string, opts *Options) (*Server, error) {
	u, err := url.Parse(resource)
	if err != nil || u.Host == "" || u.User != nil || strings.ContainsAny(resource, "?#") || u.Scheme != "https" && (u.Scheme != "http" || !network.IsLoopback(u.Hostname())) {
		return nil, errors.New("authserver: the resource must be an https URL, or http on this machine, without user, query and fragment")
	}
	origin := u.Scheme + "://" + u.Host
	if !strings.HasPrefix(resource, origin) || origin != strings.ToLower(origin) || u.Path != "" && u.JoinPath().EscapedPath() != u.EscapedPath() {
		return nil, fmt.Errorf("authserver: the resource %q: clients ask for it with its scheme and host in lower case, and without //, . and .. in its path", resource)
	}
	if opts == nil || opts.Provider == nil {
		return nil, errors.New("authserver: Options.Provider is required")
	}
	s := &Server{resource: resource, issuer: origin, secure: u.Scheme == "https", opts: *opts}
	if err := s.setDefaults(); err != nil {
		return nil, err
	}
	s.limit = newLimiter(s.opts.Logger)
	if s.ring, err = seal.NewRing(s.opts.Keys...); err != nil {
		return nil, err
	}
	if s.provider, err = newProvider(s.opts.Provider, s.issuer+"/callback"); err != nil {
		return nil, err
	}
	if s.signer, err = newSigner(s.opts.Keys); err != nil {
		return nil, err
	}
	if s.tokens, err = auth.NewJWT(s.issuer, resource, &auth.JWTOptions{Keys: s.signer.public, Algorithms: []string{"EdDSA"}}); err != nil {
		return nil, err
	}
	if s.proofs, err = auth.NewDPoP(s.tokens, resource, &auth.DPoPOptions{Replay: s.opts.Values}); err != nil {
		return nil, err
	}
	s.verifier = auth.FirstOf(auth.Bearer(s.tokens), s.proofs)
	s.fetch = newFetcher(s.opts.Egress)
	path, err := auth.MetadataPath(resource)
	if err != nil {
		return nil, err
	}
	s.mux = s.routes(path)
	return s, nil
}

func (s *Server) setDefaults() error {
	o := &s.opts
	for _, scope := range o.Scopes {
		if scope == "" || strings.ContainsFunc(scope, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
			return fmt.Errorf("authserver: Options.Scopes: %q is not a scope", scope)
		}
	}
	o.Scopes = slices.Clone(o.Scopes)
	for i, key := range o.Keys {
		if len(key) < minKey {
			return fmt.Errorf("authserver: Options.Keys: key %d has %d bytes, want at least %d", i, len(key), minKey)
		}
	}
	if o.Values != nil && len(o.Keys) == 0 {
		return errors.New("authserver: Options.Values needs Options.Keys: no other process, and none after a restart, could open what this one stores")
	}
	if len(o.Keys) == 0 {
		key := make([]byte, minKey)
		_, _ = rand.Read(key) // never fails
		o.Keys = [][]byte{key}
	}
	if o.Values == nil {
		o.Values = store.NewMemory(nil)
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Consent == nil {
		o.Consent = consentPage
	}
	return checkConsent(o.Consent)
}

// checkConsent returns an error for a page whose answer can never count. A template that fails for
// these data may work for others.
func checkConsent(t *template.Template) error {
	if clone, err := t.Clone(); err == nil { // the owner may go on defining templates, which is an error after Execute
		t = clone
	}
	var body bytes.Buffer
	token := newID()
	err := t.Execute(&body, &ConsentPage{Name: "a client", Place: "client.example", Resource: "https://mcp.example.com/mcp", Scopes: []string{"read"}, Action: "/consent", Token: token})
	if err == nil && !strings.Contains(body.String(), token) {
		return errors.New("authserver: Options.Consent: the page lacks {{.Token}}, the value of its form's field token")
	}
	return nil
}

// Verifier returns the verifier of the tokens that the server issues, for [auth.Require].
// Tokens are checked by their signature: an access token remains valid until it expires, within
// five minutes, even if its grant has been revoked.
func (s *Server) Verifier() auth.Verifier {
	s.mustBeMade()
	return s.verifier
}

// Metadata returns the metadata of the MCP server. The Server also serves it.
func (s *Server) Metadata() *auth.Metadata {
	s.mustBeMade()
	return &auth.Metadata{Resource: s.resource, AuthorizationServers: []string{s.issuer}, ScopesSupported: slices.Clone(s.opts.Scopes)}
}

// ServeHTTP implements [http.Handler].
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mustBeMade()
	s.mux.ServeHTTP(w, r)
}

// mustBeMade panics unless the server was created by New.
func (s *Server) mustBeMade() { made.Check(s != nil && s.signer != nil, "authserver: a Server", "New") }

// bodyTime is how long the body of a request may take to arrive.
const bodyTime = 10 * time.Second

func (s *Server) routes(metadataPath string) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle(metadataPath, auth.MetadataHandler(s.Metadata()))
	for path, body := range s.documents() {
		mux.Handle(path, body)
	}
	mux.HandleFunc("GET /authorize", s.authorize)
	mux.HandleFunc("POST /consent", s.consent)
	mux.HandleFunc("GET /callback", s.callback)
	for path, serve := range map[string]func(*http.Request) (any, error){"/register": s.register, "/token": s.token, "/revoke": s.revoke} {
		mux.Handle(path, s.api(serve))
	}
	return mux
}
