// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcphttp/auth/authtest"
)

const (
	issuer   = "https://login.example.com"
	resource = "https://mcp.example.com/mcp"
	metadata = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
)

// quiet is a logger for tests that cause warnings. It discards everything.
var quiet = slog.New(slog.DiscardHandler)

var (
	rsaKey   = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	ecKey    = sync.OnceValue(newECKey)
	otherKey = sync.OnceValue(newECKey)
)

func newECKey() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// claims are the claims of a token. Nil values are omitted.
type claims = authtest.Claims

// usual returns the claims of a valid token, with changes applied.
func usual(changes claims) claims {
	c := claims{"sub": "alice", "nbf": time.Now(), "scope": "files:read files:list"}
	maps.Copy(c, changes)
	return (&authtest.Issuer{URL: issuer, Audience: resource}).Claims(c)
}

// sign returns a JWT. Its header has the usual members, with changes applied.
func sign(alg jose.SignatureAlgorithm, kid string, key any, header, c claims) string {
	opts := &jose.SignerOptions{ExtraHeaders: map[jose.HeaderKey]any{"typ": "at+jwt"}}
	for name, value := range header {
		opts.ExtraHeaders[jose.HeaderKey(name)] = value
	}
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: kid}}, opts))
	return must(must(signer.Sign(must(json.Marshal(c)))).CompactSerialize())
}

// token returns a valid token, with changes applied to its claims.
func token(changes claims) string { return sign(jose.ES256, "ec", ecKey(), nil, usual(changes)) }

// forge returns a JWT with any header and signature.
func forge(header, c claims, signature func(input []byte) []byte) string {
	input := encode(must(json.Marshal(header))) + "." + encode(must(json.Marshal(c)))
	return input + "." + encode(signature([]byte(input)))
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// keySet returns a JWK set of public keys, given by their IDs.
func keySet(keys map[string]crypto.PublicKey) []byte {
	set := jose.JSONWebKeySet{}
	for kid, key := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: key, KeyID: kid, Use: "sig"})
	}
	return must(json.Marshal(set))
}

// published returns the key set of the issuer.
func published() []byte {
	return keySet(map[string]crypto.PublicKey{"ec": ecKey().Public(), "rsa": rsaKey().Public()})
}

// newJWT returns a JWT verifier for tokens of the issuer, with the issuer's keys.
func newJWT(opts auth.JWTOptions) *auth.JWT {
	if opts.Keys == nil {
		opts.Keys = published()
	}
	return must(auth.NewJWT(issuer, resource, &opts))
}

// network answers requests by URL and counts them.
type network struct {
	mu    sync.Mutex
	pages map[string]func(r *http.Request) *http.Response
	seen  map[string]int
}

func newNetwork() *network {
	return &network{pages: map[string]func(*http.Request) *http.Response{}, seen: map[string]int{}}
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	n.seen[r.URL.String()]++
	page := n.pages[r.URL.String()]
	n.mu.Unlock()
	if page == nil {
		return respond(http.StatusNotFound, ""), nil
	}
	return page(r), nil
}

func (n *network) client() *http.Client { return &http.Client{Transport: n} }

// put serves text at a URL.
func (n *network) put(url, text string) {
	n.handle(url, func(*http.Request) *http.Response { return respond(http.StatusOK, text) })
}

func (n *network) handle(url string, page func(r *http.Request) *http.Response) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pages[url] = page
}

func (n *network) count(url string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen[url]
}

func respond(status int, text string) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: -1,
	}
}

// answer is the response of a protected handler.
type answer struct {
	*httptest.ResponseRecorder
	caller *mcp.Principal   // seen by the handler
	log    *strings.Builder // what an operator must know
}

func (a answer) challenge() string { return strings.Join(a.Header().Values("WWW-Authenticate"), " | ") }

// ask sends a request through Require to a handler that records the caller.
func ask(v auth.Verifier, opts *auth.Options, r *http.Request) answer {
	if opts == nil {
		opts = &auth.Options{Metadata: &auth.Metadata{Resource: resource}}
	}
	a := answer{ResponseRecorder: httptest.NewRecorder(), log: new(strings.Builder)}
	opts.Logger = slog.New(slog.NewTextHandler(a.log, nil))
	mux := mcp.NewMux("test", "v1", &mcp.MuxOptions{Logger: quiet})
	mux.Tool("whoami", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		a.caller = mcp.PrincipalFromContext(ctx)
		return a.caller.Subject, nil
	}, nil))
	auth.Require(v, opts)(handler(mux)).ServeHTTP(a, r)
	return a
}

// handler serves MCP over HTTP.
func handler(mux mcp.Handler) *mcphttp.Handler {
	return mcphttp.NewHandler(mux, &mcphttp.Options{Logger: quiet})
}

// request returns a request that ask's handler serves, with additional headers.
func request(header ...string) *http.Request {
	r := modern("whoami")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// modern returns a tool call.
func modern(tool string) *http.Request {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, mcp.LatestVersion)
	r := httptest.NewRequest(http.MethodPost, resource, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Protocol-Version", mcp.LatestVersion)
	r.Header.Set("Mcp-Method", mcp.MethodCallTool)
	r.Header.Set("Mcp-Name", tool)
	return r
}

func bearing(token string) *http.Request { return request("Authorization", "Bearer "+token) }

// verify verifies a token.
func verify(t *testing.T, v auth.TokenVerifier, token string) (*mcp.Principal, error) {
	t.Helper()
	p, err := v.VerifyToken(t.Context(), token)
	if (p == nil) == (err == nil) {
		t.Fatalf("got %v and %v, want one of them", p, err)
	}
	return p, err
}

// pass lets time pass in a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }
