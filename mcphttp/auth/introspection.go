// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/mcp"
)

const (
	maxIntrospection = 256 << 10        // maximum length of a response in bytes
	maxLookups       = 32               // maximum number of requests in flight; more would not be answered faster
	maxPending       = 1024             // maximum number of waiting tokens, without proven ones
	maxProven        = 16 << 10         // maximum number of proven tokens, which were valid before
	provenAge        = time.Hour        // how long a token counts as proven
	refusedAge       = 10 * time.Second // how long a negative response is cached
)

// IntrospectionOptions configure an [Introspection]. Nil means the zero
// IntrospectionOptions.
type IntrospectionOptions struct {
	// ClientID and ClientSecret are the credentials of this server at the endpoint,
	// sent as HTTP basic authentication. For other credentials, use a Client whose
	// Transport adds them.
	ClientID, ClientSecret string
	// Issuer is the issuer of the tokens. A response that names another issuer is rejected.
	// Empty means the issuer named in the response or, if there is none, the endpoint's
	// origin.
	Issuer string
	// RequireIssuer rejects a response without an issuer, which RFC 7662 allows. Set it if
	// the endpoint handles tokens of several issuers: otherwise a token without an issuer
	// is attributed to Issuer.
	RequireIssuer bool
	// Audiences are additional accepted audiences.
	Audiences []string
	// InsecureAnyAudience accepts tokens with any audience or none. Use it only with an
	// authorization server that does not report audiences and issues tokens for this server
	// only: otherwise any server that receives a user's token can impersonate the user
	// here.
	InsecureAnyAudience bool
	// Identify is as in [JWTOptions], except that the subject of a token is the claim sub or,
	// if there is neither sub nor username, client_id: many authorization servers report no
	// user for a token that a client got for itself. Return another subject if yours reports
	// none for tokens of users, either, who would all be the same caller, or if clients can
	// choose their client_id, which could be the sub of a user.
	Identify func(ctx context.Context, claims map[string]any) (*mcp.Principal, error)

	// CacheAge is how long a positive response is cached by the token's hash, but never after
	// the token has expired. A revocation takes effect within this time. Negative responses are
	// cached for some seconds. 0 means one minute, negative no caching.
	CacheAge time.Duration
	// Source returns the source of a request, used to share the endpoint fairly. Nil means
	// the remote address of the connection, or its first 64 bits for IPv6. Behind a reverse
	// proxy, this address is the same for all callers: return the address that the proxy
	// reports. All tokens passed to VerifyToken have the same source.
	Source func(r *http.Request) string
	// Client sends the requests. Redirects are not followed. Nil means a client with
	// defaults. Each request is limited to 10 seconds and 256 KiB.
	Client *http.Client
}

// An Introspection verifies access tokens by querying the authorization server (RFC 7662).
// It supports tokens of any format. Revocation takes effect as soon as the cached response
// expires. As a [Verifier] it reads bearer tokens, as [Bearer] does. It is safe for
// concurrent use. It must be created by [NewIntrospection].
//
// The response must state that the token is active, and contain its audience and subject or
// client. exp, nbf and iat are checked, tolerating a clock skew of one minute. All claims are
// in [mcp.Principal.Claims].
//
// The number of requests to the endpoint in flight is limited. Further requests wait: those
// about tokens that were valid a short time ago go first, and of the others each source is
// served in turn. If too many wait, the last request of the source with the most waiting
// requests is rejected.
type Introspection struct {
	endpoint string
	opts     IntrospectionOptions
	rules    rules
	fetch    *fetcher
	turns    *turns
	lookups  async.Flight[digest, *mcp.Principal]
	good     *cache[*mcp.Principal]
	bad      *cache[error]
	proven   *cache[struct{}]
}

// NewIntrospection returns an Introspection that queries endpoint about tokens for the
// given audience, usually the server's URL as in [Metadata]. opts may be nil. An error says
// which argument is invalid: nothing is sent yet.
func NewIntrospection(endpoint, audience string, opts *IntrospectionOptions) (*Introspection, error) {
	u, err := parseEndpoint("the introspection endpoint", endpoint)
	if err != nil {
		return nil, err
	}
	o := opts.withDefaults()
	i := &Introspection{
		endpoint: endpoint, opts: o,
		rules: rules{
			issuer: o.Issuer, leeway: defaultLeeway, orClient: true,
			identify: o.Identify, otherIssuer: u.Scheme + "://" + u.Host,
		},
		fetch:  newFetcher(o.Client, maxIntrospection),
		turns:  newTurns(maxLookups, maxPending),
		good:   cacheFor[*mcp.Principal](o.CacheAge),
		bad:    cacheFor[error](o.CacheAge),
		proven: newCache[struct{}](maxProven),
	}
	if !o.InsecureAnyAudience {
		if i.rules.audiences, err = audienceList(audience, o.Audiences); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// Audience returns the audience that NewIntrospection was called with, for [Require]. It is
// "" with InsecureAnyAudience.
func (i *Introspection) Audience() string {
	i.mustBeMade()
	if i.opts.InsecureAnyAudience {
		return ""
	}
	return i.rules.audiences[0]
}

// mustBeMade panics unless the verifier was created by NewIntrospection.
func (i *Introspection) mustBeMade() {
	made.Check(i != nil && i.opts.Source != nil, "auth: an Introspection", "NewIntrospection")
}

// Verify implements [Verifier].
func (i *Introspection) Verify(r *http.Request) (*mcp.Principal, error) {
	i.mustBeMade()
	return bearer{i}.Verify(r)
}

func (o *IntrospectionOptions) withDefaults() IntrospectionOptions {
	var opts IntrospectionOptions
	if o != nil {
		opts = *o
	}
	setDefault(&opts.CacheAge, time.Minute)
	if opts.Source == nil {
		opts.Source = func(r *http.Request) string { return network.CallerPrefix(r.RemoteAddr) }
	}
	return opts
}

// VerifyToken implements [TokenVerifier].
func (i *Introspection) VerifyToken(ctx context.Context, token string) (*mcp.Principal, error) {
	i.mustBeMade()
	return i.verify(ctx, nil, token)
}

func (i *Introspection) verifyTokenOf(r *http.Request, token string) (*mcp.Principal, error) {
	return i.verify(r.Context(), r, token)
}

// verify verifies the token of r, which may be nil.
func (i *Introspection) verify(ctx context.Context, r *http.Request, token string) (*mcp.Principal, error) {
	if len(token) > maxToken {
		return nil, NewInvalidTokenError("the token is longer than %d bytes", maxToken)
	}
	key, now := digestOf(token), time.Now()
	if p, ok := i.good.get(key, now); ok {
		return p, nil
	}
	if err, ok := i.bad.get(key, now); ok {
		return nil, err
	}
	source := ""
	if r != nil {
		source = i.opts.Source(r)
	}
	p, err := i.lookups.Do(ctx, key, func(ctx context.Context) (*mcp.Principal, error) { return i.lookUp(ctx, key, source, token) })
	if panicked, ok := errors.AsType[*async.PanicError](err); ok { // in a user's RoundTripper
		err = fmt.Errorf("auth: introspection: panic: %v", panicked.Value)
	}
	return p, err
}

// lookUp waits for the token's turn, queries the endpoint, and caches the response.
func (i *Introspection) lookUp(ctx context.Context, key digest, source, token string) (*mcp.Principal, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	_, proven := i.proven.get(key, time.Now())
	if err := i.turns.acquire(ctx, source, proven); err != nil {
		return nil, fmt.Errorf("auth: introspection: %w", err)
	}
	defer i.turns.release()
	p, err := i.introspect(ctx, token)
	now := time.Now()
	if _, refused := errors.AsType[*Error](err); refused {
		i.bad.put(key, err, now.Add(refusedAge))
		if proven {
			i.proven.put(key, struct{}{}, now) // no longer proven
		}
	}
	if err != nil {
		return nil, err
	}
	i.proven.put(key, struct{}{}, now.Add(provenAge))
	until := now.Add(i.opts.CacheAge)
	if !p.Expiry.IsZero() && p.Expiry.Before(until) {
		until = p.Expiry
	}
	i.good.put(key, p, until)
	return p, nil
}

func (i *Introspection) introspect(ctx context.Context, token string) (*mcp.Principal, error) {
	r, err := i.request(ctx, token)
	if err != nil {
		return nil, fmt.Errorf("auth: introspection: %w", err)
	}
	text, err := i.fetch.do(r)
	if err != nil {
		return nil, fmt.Errorf("auth: introspection: %w", err)
	}
	var claims map[string]any
	if err := json.Unmarshal(text, &claims); err != nil {
		return nil, fmt.Errorf("auth: introspection: the answer: %w", err)
	}
	if active, _ := claims["active"].(bool); !active {
		return nil, NewInvalidTokenError("the token is not, or no longer, valid")
	}
	switch issuer := claims["iss"]; {
	case i.opts.RequireIssuer && (issuer == nil || issuer == ""):
		return nil, NewInvalidTokenError("the issuer of the token is unknown").because(errors.New("the answer has no iss, which IntrospectionOptions.RequireIssuer wants"))
	case i.rules.issuer != "" && issuer == nil:
		claims["iss"] = i.rules.issuer // the endpoint is this issuer's
	}
	return i.rules.principal(ctx, claims, time.Now())
}

func (i *Introspection) request(ctx context.Context, token string) (*http.Request, error) {
	form := url.Values{"token": {token}, "token_type_hint": {"access_token"}}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, i.endpoint, strings.NewReader(form))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if i.opts.ClientID != "" {
		r.SetBasicAuth(url.QueryEscape(i.opts.ClientID), url.QueryEscape(i.opts.ClientSecret))
	}
	return r, nil
}

var errBusy = errors.New("auth: too many tokens are being verified")

// turns limits the number of concurrent lookups. The others wait: proven tokens go first,
// then one token of each source in turn, so that a source with many requests delays only
// itself. If too many are waiting, the last waiter of the source with the most waiters is
// rejected. Before a token is verified, the only fair criteria are its source and whether it
// was valid before.
type turns struct {
	max  int // maximum number running
	room int // maximum number waiting, not counting proven tokens

	mu      sync.Mutex
	running int
	proven  []*waiter
	sources map[string][]*waiter // none of the lists is empty
	order   []string             // of the sources, next one first
	waiting int                  // in sources
}

// A waiter receives nil when its turn comes, or an error if it is rejected.
type waiter struct{ turn chan error }

func newTurns(most, room int) *turns {
	return &turns{max: most, room: room, sources: map[string][]*waiter{}}
}

// acquire waits for a turn. The caller must call release afterwards.
func (t *turns) acquire(ctx context.Context, source string, proven bool) error {
	t.mu.Lock()
	if t.running < t.max { // so nothing is waiting
		t.running++
		t.mu.Unlock()
		return nil
	}
	w := &waiter{make(chan error, 1)}
	if proven {
		t.proven = append(t.proven, w)
	} else if !t.queueLocked(source, w) {
		t.mu.Unlock()
		return errBusy
	}
	t.mu.Unlock()
	select {
	case err := <-w.turn:
		return err
	case <-ctx.Done():
		t.giveUp(source, w)
		return context.Cause(ctx)
	}
}

// queueLocked adds a waiter of a source. It returns false if there is no room.
func (t *turns) queueLocked(source string, w *waiter) bool {
	if t.waiting >= t.room && !t.shedLocked(len(t.sources[source])+1) {
		return false
	}
	if t.sources[source] == nil {
		t.order = append(t.order, source)
	}
	t.sources[source] = append(t.sources[source], w)
	t.waiting++
	return true
}

// shedLocked rejects the last waiter of the source with the most waiters. If that source
// does not have more waiters than others, it returns false.
func (t *turns) shedLocked(others int) bool {
	most := ""
	for source, list := range t.sources {
		if len(list) > len(t.sources[most]) {
			most = source
		}
	}
	last := len(t.sources[most]) - 1
	if last < others {
		return false
	}
	t.sources[most][last].turn <- errBusy
	t.removeLocked(most, last)
	return true
}

func (t *turns) removeLocked(source string, i int) {
	t.waiting--
	t.sources[source] = slices.Delete(t.sources[source], i, i+1)
	if len(t.sources[source]) == 0 {
		delete(t.sources, source)
		t.order = slices.DeleteFunc(t.order, func(s string) bool { return s == source })
	}
}

// release passes the turn on to the next waiter.
func (t *turns) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case len(t.proven) > 0:
		t.proven[0].turn <- nil
		t.proven = slices.Delete(t.proven, 0, 1)
	case len(t.order) > 0:
		source := t.order[0]
		t.order = append(slices.Delete(t.order, 0, 1), source) // it is last now
		t.sources[source][0].turn <- nil
		t.removeLocked(source, 0)
	default:
		t.running--
	}
}

// giveUp removes a waiter whose context is done. If the waiter has got its turn in the
// meantime, giveUp passes it on.
func (t *turns) giveUp(source string, w *waiter) {
	t.mu.Lock()
	i := slices.Index(t.sources[source], w)
	if i >= 0 {
		t.removeLocked(source, i)
	}
	j := slices.Index(t.proven, w)
	if j >= 0 {
		t.proven = slices.Delete(t.proven, j, j+1)
	}
	t.mu.Unlock()
	if i < 0 && j < 0 && <-w.turn == nil {
		t.release()
	}
}
