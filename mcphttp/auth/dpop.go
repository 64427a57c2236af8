// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-json-experiment/json"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

const (
	headerDPoP  = "Dpop"       // canonical
	headerNonce = "Dpop-Nonce" // canonical
	maxProof    = 8 << 10      // bytes
	maxProofID  = 256          // bytes of a jti
	maxAhead    = time.Minute  // how far the clock of a client may be ahead
)

// DPoPOptions configure a [DPoP]. Nil means the zero DPoPOptions.
type DPoPOptions struct {
	// Window is the maximum age of a proof, according to its iat. 0 means 5 minutes, the
	// maximum that MCP allows. To tolerate fast client clocks, iat may also be up to a
	// minute in the future, but at most Window.
	Window time.Duration
	// URL returns the URL to which the client sent a request, without query and fragment.
	// Nil means the path of the request at the origin of the resource, which is correct
	// unless a proxy rewrites paths.
	URL func(r *http.Request) string

	// RequireNonce requires a server nonce in each proof, so that proofs cannot be made in
	// advance. A nonce is valid for some minutes. NonceKey is a secret of at least 32 bytes
	// that replicas share; nil means a random one for this process.
	RequireNonce bool
	NonceKey     []byte

	// Replay stores the used proofs of several replicas, so that each proof is accepted only
	// once. Nil means that they are kept in the memory of this process. With Replay, new proofs
	// of a key that has used up its share are rejected until its old ones expire, so that one
	// caller cannot fill the store.
	Replay store.Values
}

// maxProofs is the maximum number of used proofs in the memory of a process, which take less
// than 32 MB: at one proof for each request, nearly a thousand requests per second. One key
// may have up to a sixteenth of them, and the number of keys is limited to an eighth.
const maxProofs = 1 << 18

// A DPoP is a [Verifier] of access tokens that are bound to a key. The client proves with
// each request that it has the key (RFC 9449), so a stolen token is useless without it. A
// DPoP is safe for concurrent use. It must be created by [NewDPoP].
//
// A proof may be signed with RS, PS and ES with 256, 384 and 512 bits, and EdDSA. A process
// remembers a limited number of used proofs, of each key and in all. If more arrive within the
// window, the oldest proofs of the keys with the most are dropped, and other proofs of those
// keys issued at that time or earlier are rejected.
type DPoP struct {
	tokens     TokenVerifier
	resource   string // without a trailing slash
	origin     string // "https://mcp.example.com"
	algorithms []jose.SignatureAlgorithm
	window     time.Duration
	url        func(r *http.Request) string
	nonces     *nonces // nil if nonces are not required
	used       replay
}

// NewDPoP returns a DPoP. tokens verifies the access tokens, which must have the claim
// cnf.jkt. resource is as in [Metadata]. opts may be nil. An error says which argument is
// invalid. NewDPoP panics if tokens is nil.
func NewDPoP(tokens TokenVerifier, resource string, opts *DPoPOptions) (*DPoP, error) {
	if tokens == nil {
		panic("auth: NewDPoP wants a verifier of tokens")
	}
	var o DPoPOptions
	if opts != nil {
		o = *opts
	}
	setDefault(&o.Window, 5*time.Minute)
	u, err := parseResource(resource)
	if err != nil {
		return nil, err
	}
	used := newMemoryReplay(o.Window, maxProofs)
	d := &DPoP{
		tokens: tokens, resource: withoutSlash(resource), origin: u.Scheme + "://" + u.Host, algorithms: asymmetric,
		window: o.Window, url: o.URL, used: used,
	}
	if d.url == nil {
		d.url = d.urlOf
	}
	if o.RequireNonce {
		if d.nonces, err = newNonces(o.NonceKey); err != nil {
			return nil, err
		}
	}
	if o.Replay != nil {
		d.used = newSharedReplay(used, o.Replay)
	}
	return d, nil
}

// Audience returns the resource that NewDPoP was called with, for [Require].
func (d *DPoP) Audience() string {
	d.mustBeMade()
	return d.resource
}

// urlOf returns the URL of a request. It does not trust the Host header.
func (d *DPoP) urlOf(r *http.Request) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if !strings.HasPrefix(path, "/") { // a whole URL, as clients send to proxies
		path = r.URL.EscapedPath()
	}
	return d.origin + path
}

// mustBeMade panics unless the verifier was created by NewDPoP.
func (d *DPoP) mustBeMade() {
	made.Check(d != nil && d.tokens != nil, "auth: a DPoP", "NewDPoP")
}

// Challenges implements [Challenger].
func (d *DPoP) Challenges() []string {
	d.mustBeMade()
	names := make([]string, len(d.algorithms))
	for i, a := range d.algorithms {
		names[i] = string(a)
	}
	return []string{schemeDPoP + ` algs="` + strings.Join(names, " ") + `"`}
}

// stamp adds the nonce for the client's next request to h.
func (d *DPoP) stamp(h http.Header, r *http.Request) {
	if d.nonces != nil && strings.EqualFold(schemeOf(r), schemeDPoP) {
		h[headerNonce] = []string{d.nonces.current(time.Now())}
	}
}

// Verify implements [Verifier].
func (d *DPoP) Verify(r *http.Request) (*mcp.Principal, error) {
	d.mustBeMade()
	token, err := credentialsOf(r, schemeDPoP)
	if err != nil {
		return nil, err
	}
	p, err := verifyToken(d.tokens, r, token)
	if err != nil || p == nil {
		return nil, inScheme(err)
	}
	jkt, err := keyOf(r, p)
	if err != nil {
		return nil, inScheme(err)
	}
	if err := d.prove(r, token, jkt); err != nil {
		return nil, inScheme(err)
	}
	return p, nil
}

// inScheme makes a rejection use the DPoP challenge.
func inScheme(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Scheme != "" {
		return err
	}
	c := *e // the error may be shared
	c.Scheme = schemeDPoP
	return &c
}

// keyOf returns the thumbprint of the key that a token is bound to.
func keyOf(r *http.Request, p *mcp.Principal) (string, error) {
	bound, err := checkCertificateBinding(r, p)
	if err != nil {
		return "", err
	}
	jkt, ok := bound["jkt"].(string)
	if !ok || jkt == "" {
		return "", NewInvalidTokenError("the token is not bound to a key (cnf.jkt)")
	}
	if len(bound) > 1 {
		return "", NewInvalidTokenError("the token is bound to more than is known here")
	}
	return jkt, nil
}

// A proof holds the claims of a DPoP proof.
type proof struct {
	ID     string   `json:"jti"`
	Method string   `json:"htm"`
	URL    string   `json:"htu"`
	Issued *float64 `json:"iat"`
	Token  string   `json:"ath"`
	Nonce  string   `json:"nonce"`
}

// prove checks the proof of a request (RFC 9449, section 4.3).
func (d *DPoP) prove(r *http.Request, token, jkt string) error {
	values := r.Header[headerDPoP]
	if len(values) != 1 {
		return unproven("there must be one header DPoP, not %d", len(values))
	}
	claims, err := d.open(values[0], jkt)
	if err != nil {
		return err
	}
	if err := d.checkRequest(claims, r, token); err != nil {
		return err
	}
	now := time.Now()
	issued, ok := timeOf(*claims.Issued)
	if !ok || issued.Before(now.Add(-d.window)) {
		return unproven("the iat of the proof is more than %v ago", d.window)
	}
	if ahead := min(d.window, maxAhead); issued.After(now.Add(ahead)) {
		return unproven("the iat of the proof is more than %v ahead", ahead)
	}
	if d.nonces != nil && !d.nonces.isValid(claims.Nonce, now) {
		e := unproven("the proof needs the nonce of the header DPoP-Nonce")
		e.Code, e.Header = CodeUseNonce, http.Header{headerNonce: {d.nonces.current(now)}}
		return e
	}
	return d.use(r.Context(), claims.ID, jkt, issued)
}

// use records a proof, and returns an error if it was used before.
func (d *DPoP) use(ctx context.Context, id, jkt string, issued time.Time) error {
	fresh, err := d.used.first(ctx, usedProof{jkt, id, issued}, issued.Add(d.window))
	if err != nil {
		return fmt.Errorf("auth: the proofs that were used: %w", err)
	}
	if !fresh {
		return unproven("the proof was used before, is too old, or is one of too many")
	}
	return nil
}

func unproven(format string, args ...any) *Error {
	return &Error{Code: CodeInvalidProof, Description: fmt.Sprintf(format, args...), Scheme: schemeDPoP}
}

// open parses a proof and verifies it with the key of the given thumbprint.
func (d *DPoP) open(text, jkt string) (*proof, error) {
	if len(text) > maxProof {
		return nil, unproven("the proof is longer than %d bytes", maxProof)
	}
	signed, err := jose.ParseSignedCompact(text, d.algorithms)
	if err != nil {
		return nil, unproven("the proof is not a JWT signed with an allowed algorithm").because(err)
	}
	header := signed.Signatures[0].Protected
	if err := checkHeader(header, "dpop+jwt"); err != nil {
		return nil, unproven("the header of the proof is wrong").because(err)
	}
	key := header.JSONWebKey
	if key == nil || !isStrongPublic(key) {
		return nil, unproven("the proof must have a public key (jwk)")
	}
	thumbprint, err := key.Thumbprint(crypto.SHA256)
	if err != nil || !sameText(base64.RawURLEncoding.EncodeToString(thumbprint), jkt) {
		return nil, unproven("the proof is signed with another key than the token is bound to")
	}
	payload, err := signed.Verify(key.Key)
	if err != nil {
		return nil, unproven("the signature of the proof is wrong")
	}
	claims := &proof{}
	if err := json.Unmarshal(payload, claims); err != nil {
		return nil, unproven("the claims of the proof are wrong").because(err)
	}
	if claims.ID == "" || len(claims.ID) > maxProofID || claims.Issued == nil {
		return nil, unproven("the proof must have an iat, and a jti of at most %d bytes", maxProofID)
	}
	return claims, nil
}

// checkRequest checks that a proof was made for the request. token is "" at a token endpoint.
func (d *DPoP) checkRequest(claims *proof, r *http.Request, token string) error {
	sum := sha256.Sum256([]byte(token))
	switch {
	case claims.Method != r.Method:
		return unproven("the htm of the proof is not %s", r.Method)
	case !sameURL(claims.URL, d.url(r)):
		return unproven("the htu of the proof is not the URL of the request").because(fmt.Errorf("htu is %.200q, expected %q", claims.URL, d.url(r)))
	case token != "" && !sameText(claims.Token, base64.RawURLEncoding.EncodeToString(sum[:])):
		return unproven("the ath of the proof does not match the token")
	}
	return nil
}

// sameURL reports whether two URLs are equivalent, without query and fragment.
func sameURL(a, b string) bool {
	if a == b {
		return true
	}
	u, err := url.Parse(a)
	if err != nil || u.User != nil {
		return false
	}
	v, err := url.Parse(b)
	return err == nil && plainURL(u) == plainURL(v)
}

func plainURL(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	return scheme + "://" + host + path
}

// nonceAge is how long a nonce is sent to clients. It remains valid for as long again.
const nonceAge = 5 * time.Minute

// nonces derives nonces from the time and a secret. It stores none of them, and replicas
// with the same secret accept each other's nonces.
type nonces struct {
	key []byte

	mu           sync.Mutex
	period       int64
	last, newest string // of the previous and the current period
}

func newNonces(key []byte) (*nonces, error) {
	if key == nil {
		key = make([]byte, 32)
		_, _ = rand.Read(key) // it never fails
	}
	if len(key) < 32 {
		return nil, errors.New("auth: DPoPOptions.NonceKey has less than 32 bytes")
	}
	return &nonces{key: slices.Clone(key)}, nil
}

func (n *nonces) derive(period int64) string {
	mac := hmac.New(sha256.New, n.key)
	_, _ = mac.Write(binary.BigEndian.AppendUint64([]byte("psi dpop nonce "), uint64(period)))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:18])
}

func (n *nonces) at(now time.Time) (last, newest string) {
	period := now.UnixNano() / int64(nonceAge)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.newest == "" || n.period != period {
		n.period, n.last, n.newest = period, n.derive(period-1), n.derive(period)
	}
	return n.last, n.newest
}

func (n *nonces) current(now time.Time) string {
	_, newest := n.at(now)
	return newest
}

func (n *nonces) isValid(nonce string, now time.Time) bool {
	last, newest := n.at(now)
	return sameText(nonce, newest) || sameText(nonce, last)
}
