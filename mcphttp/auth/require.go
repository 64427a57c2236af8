// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// Options configure [Require]. Nil means the zero Options.
type Options struct {
	// Metadata describes the server. Its [MetadataURL] is in each challenge, and
	// [MetadataHandler] serves it there. Nil means a server without OAuth.
	Metadata *Metadata
	// Scopes are required for every request and listed in the first challenge. Keep the set
	// small: clients can request more when needed.
	Scopes []string
	// Expand returns the scopes of a caller whose credentials grant the given ones, such as
	// "notes", "notes:read" and "notes:write" for "notes". The principal that handlers see
	// has them, so that [mcp.Principal.HasScope] and all middleware know them. Expand must
	// not modify its argument. Nil means the granted scopes.
	Expand func(granted []string) []string
	// Logger receives the reasons for rejections at level debug, and failures to verify
	// credentials as warnings. Nil means slog.Default.
	Logger *slog.Logger
}

// Require returns HTTP middleware that authenticates requests with v. The caller becomes
// the principal of the MCP request: see [mcphttp.WithPrincipal]. opts may be nil. Require
// panics if opts are invalid or v is nil. It also panics if v, one of [FirstOf], or the
// verifier of its tokens has a method Audience() string that names another server than the
// metadata, because clients would get tokens that v rejects.
//
// Requests that v does not authenticate are rejected as specified by RFC 6750: 401 without an
// error code if there are no credentials, 401 if they are invalid, 400 if they are malformed,
// and 403 if they lack Scopes. If an MCP handler returns [mcp.NewInsufficientScopeError], the
// response is a 403 that lists all scopes required by the handler and by Scopes. CORS
// middleware such as [mcphttp.CORS] must wrap Require: preflight requests have no credentials,
// and web pages must be able to read rejections.
func Require(v Verifier, opts *Options) func(http.Handler) http.Handler {
	if v == nil {
		panic("auth: Require wants a verifier")
	}
	g := newGate(v, opts)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r, next) })
	}
}

// A gate is the state shared by the handlers of one Require.
type gate struct {
	verifier Verifier
	stamper  stamper // nil if the verifier adds no headers
	opts     Options
	ask      *challenges
	stepUp   []func(scopes []string) string // indexed like ask.schemes
}

func newGate(v Verifier, opts *Options) *gate {
	g := &gate{verifier: v}
	if opts != nil {
		g.opts = *opts
	}
	if g.opts.Logger == nil {
		g.opts.Logger = slog.Default()
	}
	for _, s := range g.opts.Scopes {
		if !isScope(s) {
			panic(fmt.Sprintf("auth: Options.Scopes: %q is not a scope", s))
		}
	}
	metadata := ""
	if m := g.opts.Metadata; m != nil {
		var err error
		if metadata, err = MetadataURL(m.Resource); err == nil {
			err = checkAudience(v, withoutSlash(m.Resource))
		}
		if err != nil {
			panic(err.Error())
		}
	}
	g.ask = newChallenges(v, &g.opts, metadata)
	for _, s := range g.ask.schemes {
		name := nameOf(s)
		g.stepUp = append(g.stepUp, func(scopes []string) string { return g.ask.insufficient(name, scopes) })
	}
	g.stamper, _ = v.(stamper)
	return g
}

// checkAudience checks that v, a Verifier or a TokenVerifier, wants tokens for the resource.
// An empty audience is any.
func checkAudience(v any, resource string) error {
	var inner []error
	switch v := v.(type) {
	case firstOf:
		for _, one := range v {
			inner = append(inner, checkAudience(one, resource))
		}
	case bearer:
		inner = append(inner, checkAudience(v.tokens, resource))
	case *DPoP:
		inner = append(inner, checkAudience(v.tokens, resource))
	}
	if a, ok := v.(interface{ Audience() string }); ok {
		if audience := withoutSlash(a.Audience()); audience != "" && audience != resource {
			return fmt.Errorf("auth: Require: the verifier %T accepts tokens for %q, and Options.Metadata makes clients ask for tokens for %q; "+
				"make the verifier with Metadata.Resource, and list other names of the server as its Audiences", v, redact.URL(audience), redact.URL(resource))
		}
	}
	return errors.Join(inner...)
}

func (g *gate) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	p, err := g.verify(r)
	if err != nil {
		g.refuse(w, r, err)
		return
	}
	if g.stamper != nil {
		g.stamper.stamp(w.Header(), r)
	}
	scheme := max(0, g.ask.index(schemeOf(r)))
	next.ServeHTTP(w, mcphttp.WithChallenge(mcphttp.WithPrincipal(r, p), g.stepUp[scheme]))
}

func (g *gate) verify(r *http.Request) (*mcp.Principal, error) {
	if len(r.Header["Authorization"]) > 1 {
		return nil, malformed("the header Authorization appears more than once")
	}
	p, err := g.verifier.Verify(r)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, errors.New("auth: the verifier returned neither a principal nor an error")
	}
	if p.Subject == "" {
		return nil, errors.New("auth: the verifier returned a principal without a Subject, which tells it from others")
	}
	if g.opts.Expand != nil {
		expanded := *p // verifiers return the same principal for many requests
		expanded.Scopes = g.opts.Expand(p.Scopes)
		p = &expanded
	}
	for _, needed := range g.opts.Scopes {
		if !p.HasScope(needed) {
			return nil, &Error{Code: CodeInsufficientScope, Scheme: schemeOf(r)}
		}
	}
	return p, nil
}

// refusedBodyTime is how long the rest of a rejected request may take to arrive.
const refusedBodyTime = 10 * time.Second

// refuse rejects a request. The challenges are in the header; the body is a JSON-RPC error
// for people and clients.
func (g *gate) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if r.ContentLength != 0 { // net/http reads the rest of a short body before it sends the response
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(refusedBodyTime)) // not all writers support deadlines
	}
	e, refused := errors.AsType[*Error](err)
	switch {
	case errors.Is(err, ErrNoCredentials):
		g.opts.Logger.LogAttrs(r.Context(), slog.LevelDebug, "auth: no credentials")
		g.answer(w, http.StatusUnauthorized, g.ask.plain, mcp.Errorf(mcp.CodeInvalidRequest, "the request needs credentials"))
	case !refused:
		g.unknown(w, r, err)
	default:
		g.opts.Logger.LogAttrs(r.Context(), slog.LevelDebug, "auth: refused", slog.Any("error", err))
		for key, values := range e.Header {
			w.Header()[http.CanonicalHeaderKey(key)] = values
		}
		g.answer(w, e.status(), g.ask.refusal(e), g.problem(e))
	}
}

func (g *gate) problem(e *Error) error {
	switch {
	case e.Code == CodeInsufficientScope:
		return mcp.NewInsufficientScopeError(g.opts.Scopes...)
	case e.Description == "":
		return mcp.Errorf(mcp.CodeInvalidRequest, "%s", e.code())
	}
	return mcp.Errorf(mcp.CodeInvalidRequest, "%s: %s", e.code(), e.Description)
}

// unknown responds with 503 to a request whose credentials could not be verified.
func (g *gate) unknown(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() == nil || !errors.Is(err, context.Canceled) {
		g.opts.Logger.LogAttrs(r.Context(), slog.LevelWarn, "auth: credentials could not be verified", slog.Any("error", err))
	}
	w.Header().Set("Retry-After", "5")
	g.answer(w, http.StatusServiceUnavailable, nil, mcp.Errorf(mcp.CodeInternalError, "the credentials cannot be verified at the moment; try again later"))
}

func (g *gate) answer(w http.ResponseWriter, status int, challenges []string, problem error) {
	body := mcp.AppendResponse(nil, nil, nil, problem)
	header := w.Header()
	if challenges != nil {
		header["Www-Authenticate"] = challenges
	}
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Type", "application/json")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // the client may be gone
}
