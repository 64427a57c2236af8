// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
	"github.com/go-psi/psi/mcphttp/auth/authtest"
	"github.com/go-psi/psi/mcphttp/authserver"
)

// A world is an MCP server with two replicas behind a balancer that sends each request to
// the other one: no step of a login finds what the one before it left in memory.
type world struct {
	t        *testing.T
	url      string // of the balancer
	replicas []*authserver.Server
	turn     atomic.Uint64
	idp      *idp
	values   *store.Memory
	logs     *safeBuffer
	egress   roundTrip // serves the metadata documents of clients

	transport http.RoundTripper // of browsers, clients and replicas; nil means the network
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newWorld(t *testing.T, change ...func(*authserver.Options)) *world {
	t.Helper()
	w := &world{t: t, idp: &idp{t: t}}
	mcptest.ServeFunc(t, w.idp.serve)
	w.url = mcptest.ServeFunc(t, func(url string) http.Handler { return w.balancer(url, change) })
	return w
}

// newQuietWorld is newWorld without a network, for tests in which time passes.
func newQuietWorld(t *testing.T, change ...func(*authserver.Options)) *world {
	t.Helper()
	w := &world{t: t, idp: &idp{t: t}, url: "http://127.0.0.1:1"}
	hosts := map[string]http.Handler{}
	w.transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		in := r.Clone(r.Context())
		in.RequestURI, in.RemoteAddr = r.URL.RequestURI(), "192.0.2.1:1"
		if in.Body == nil {
			in.Body = http.NoBody
		}
		rec := httptest.NewRecorder()
		hosts[r.URL.Host].ServeHTTP(rec, in)
		res := rec.Result()
		res.Request = r
		return res, nil
	})
	hosts["127.0.0.1:2"] = w.idp.serve("http://127.0.0.1:2")
	hosts["127.0.0.1:1"] = w.balancer(w.url, change)
	return w
}

func (w *world) balancer(url string, change []func(*authserver.Options)) http.Handler {
	w.values, w.logs = store.NewMemory(nil), &safeBuffer{}
	w.egress = func(*http.Request) (*http.Response, error) { return nil, http.ErrServerClosed }
	var handlers []http.Handler
	for range 2 {
		opts := &authserver.Options{
			Provider: authserver.OIDC(w.idp.issuer.URL, "psi", "secret"), Values: w.values, Keys: [][]byte{bytes.Repeat([]byte("k"), 32)}, Scopes: []string{"read", "write"},
			Egress: roundTrip(func(r *http.Request) (*http.Response, error) { return w.egress(r) }),
			Logger: slog.New(slog.NewTextHandler(w.logs, nil)),
		}
		opts.Provider.Client = &http.Client{Transport: w.transport}
		for _, c := range change {
			c(opts)
		}
		front, err := authserver.New(url+"/mcp", opts)
		if err != nil {
			w.t.Fatal(err)
		}
		w.replicas = append(w.replicas, front)
		handlers = append(handlers, w.serve(front))
	}
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		handlers[w.turn.Add(1)%2].ServeHTTP(rw, r)
	})
}

// browser returns a new browser in this world.
func (w *world) browser() *browser {
	b := newBrowser(w.t)
	b.client.Transport = w.transport
	return b
}

// serve returns the MCP server behind a front door.
func (w *world) serve(front *authserver.Server) http.Handler {
	mux := mcp.NewMux("who", "v1.0.0", nil)
	mux.Tool("me", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		return mcp.PrincipalFromContext(ctx).Subject, nil
	}, nil))
	mux.Tool("upstream", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		token, err := front.TokenSource(ctx).Token()
		if err != nil {
			return "", err
		}
		return token.AccessToken, nil
	}, nil))
	mux.Tool("write", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		if !mcp.PrincipalFromContext(ctx).HasScope("write") {
			return "", mcp.NewInsufficientScopeError("write")
		}
		return "written", nil
	}, nil))
	h := http.NewServeMux()
	h.Handle("/", front)
	h.Handle("/mcp", auth.Require(front.Verifier(), &auth.Options{Metadata: front.Metadata(), Scopes: []string{"read"}})(mcphttp.NewHandler(mux, nil)))
	return h
}

// An idp is the identity provider.
type idp struct {
	t      *testing.T
	issuer *authtest.Issuer

	mu         sync.Mutex
	user       string
	codes      map[string]url.Values
	refreshes  int
	withdrawn  bool
	once       bool // it issues no refresh tokens
	lifetime   int  // of access tokens, in seconds
	change     func(authtest.Claims)
	info       map[string]any  // of the user
	fresh      authtest.Claims // of the ID token that comes with a refresh, if not nil
	last       string          // access token: user info is not given for others
	padding    string          // of access tokens
	onInfo     func()          // called before the user info is looked up
	slow       time.Duration   // how long a refresh takes
	refuseOnce bool            // the next question for user info
	refusal    int             // the status for a token that has ended; 401 by default
}

func (p *idp) serve(base string) http.Handler {
	p.user, p.codes, p.lifetime = "ada", map[string]url.Values{}, 3600
	p.info = map[string]any{"id": 4711, "login": "ada"}
	p.issuer = &authtest.Issuer{URL: base, Audience: "psi"}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]string{"issuer": base, "authorization_endpoint": base + "/auth", "token_endpoint": base + "/token", "jwks_uri": base + "/keys"})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(p.issuer.JWKS()) })
	mux.HandleFunc("/user", p.userInfo)
	mux.HandleFunc("/auth", p.authorize)
	mux.HandleFunc("/token", p.token)
	return mux
}

func (p *idp) userInfo(w http.ResponseWriter, r *http.Request) {
	if p.onInfo != nil {
		p.onInfo()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	once := p.refuseOnce
	p.refuseOnce = false
	if p.withdrawn || once || r.Header.Get("Authorization") != "Bearer "+p.last {
		w.WriteHeader(cmp.Or(p.refusal, http.StatusUnauthorized))
		return
	}
	writeJSON(w, p.info)
}

func (p *idp) login(user string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.user = user
}

func (p *idp) authorize(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	q := r.URL.Query()
	q.Set("user", p.user)
	code := rand.Text()
	p.codes[code] = q
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

func (p *idp) token(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("grant_type") == "refresh_token" && p.slow > 0 {
		<-time.After(p.slow)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	answer := map[string]any{"access_token": "upstream-" + rand.Text() + p.padding, "token_type": "Bearer", "refresh_token": "upstream-refresh", "expires_in": p.lifetime}
	p.last = answer["access_token"].(string)
	if p.once {
		delete(answer, "refresh_token")
	}
	if r.FormValue("grant_type") == "refresh_token" {
		p.refreshes++
		p.lifetime = 3600
		if p.withdrawn {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			writeJSON(w, map[string]string{"error": "invalid_grant"})
			return
		}
		answer["expires_in"] = 3600
		if p.fresh != nil {
			answer["id_token"] = p.issuer.Token(p.fresh)
		}
		writeJSON(w, answer)
		return
	}
	q := p.codes[r.FormValue("code")]
	delete(p.codes, r.FormValue("code"))
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if q == nil || q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	claims := authtest.Claims{"sub": q.Get("user"), "nonce": q.Get("nonce")}
	if p.change != nil {
		p.change(claims)
	}
	answer["id_token"] = p.issuer.Token(claims)
	writeJSON(w, answer)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	body, _ := json.Marshal(v)
	_, _ = w.Write(body)
}

// A browser has cookies, and follows redirects until it sees a page or is sent to a client.
type browser struct {
	t      *testing.T
	client *http.Client
	answer string // to the question for consent
	asked  int    // for consent
	logins int
	page   string // the last one
	status int
}

func newBrowser(t *testing.T) *browser {
	jar, _ := cookiejar.New(nil)
	return &browser{t: t, answer: "allow", client: &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// step sends a request and returns where it redirects to.
func (b *browser) step(method, to string, form url.Values) *url.URL {
	b.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	req, err := http.NewRequest(method, to, body)
	if err != nil {
		b.t.Fatal(err)
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	res, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	b.page, b.status = string(text), res.StatusCode
	next, _ := res.Location()
	return next
}

var tokenField = regexp.MustCompile(`name="token" value="([^"]*)"`)

// form returns the token of the page that asks for consent, or "".
func (b *browser) form() string {
	if m := tokenField.FindStringSubmatch(b.page); m != nil {
		return html.UnescapeString(m[1])
	}
	return ""
}

var backLink = regexp.MustCompile(`<a href="([^"]*)">Go there`)

// back returns where the page offers to go with an error, or nil.
func (b *browser) back() *url.URL {
	m := backLink.FindStringSubmatch(b.page)
	if m == nil {
		return nil
	}
	u, err := url.Parse(html.UnescapeString(m[1]))
	if err != nil {
		b.t.Error(err)
	}
	return u
}

// visit goes on until the browser is sent to a client, whose parameters it returns, or sees
// a page without a question.
func (b *browser) visit(to string) url.Values {
	b.t.Helper()
	b.logins++
	next := b.step(http.MethodGet, to, nil)
	for {
		switch {
		case next == nil && b.form() != "":
			b.asked++
			u, _ := url.Parse(to)
			next = b.step(http.MethodPost, u.Scheme+"://"+u.Host+"/consent", url.Values{"token": {b.form()}, "answer": {b.answer}})
		case next == nil:
			return nil
		case next.Host == "app.example" || next.Path == "/cb":
			return next.Query()
		default:
			next = b.step(http.MethodGet, next.String(), nil)
		}
	}
}

const (
	appURI   = "https://app.example/cb"
	localURI = "http://127.0.0.1:7/cb" // of a program of the user's, whose consent is remembered
	verifier = "a-code-verifier-that-has-at-least-forty-three-characters"
)

func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// post sends a form, or JSON, and returns the response.
func (w *world) post(path string, body any) (int, map[string]any) {
	w.t.Helper()
	var res *http.Response
	var err error
	client := &http.Client{Transport: w.transport}
	if form, ok := body.(url.Values); ok {
		res, err = client.PostForm(w.url+path, form)
	} else {
		data, _ := json.Marshal(body)
		res, err = client.Post(w.url+path, "application/json", bytes.NewReader(data))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	var answer map[string]any
	data, _ := io.ReadAll(res.Body)
	_ = json.Unmarshal(data, &answer)
	return res.StatusCode, answer
}

// register registers a client.
func (w *world) register(name string, redirects ...string) string {
	w.t.Helper()
	status, answer := w.post("/register", map[string]any{"client_name": name, "redirect_uris": redirects})
	id, _ := answer["client_id"].(string)
	if status != http.StatusCreated || id == "" {
		w.t.Fatalf("registration: %d %v", status, answer)
	}
	return id
}

// link returns the URL to which a client sends its user. Changes are pairs.
func (w *world) link(client string, changes ...string) string {
	q := url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {appURI}, "state": {"its-state"}, "scope": {"read"},
		"code_challenge": {challenge()}, "code_challenge_method": {"S256"}, "resource": {w.url + "/mcp"},
	}
	for i := 0; i < len(changes); i += 2 {
		q.Set(changes[i], changes[i+1])
		if changes[i+1] == "" {
			q.Del(changes[i])
		}
	}
	return w.url + "/authorize?" + q.Encode()
}

// code logs a new browser in, and returns the code that its client gets.
func (w *world) code(client string) string {
	w.t.Helper()
	b := w.browser()
	code := b.visit(w.link(client)).Get("code")
	if code == "" {
		w.t.Fatalf("no code: %d %s", b.status, b.page)
	}
	return code
}

func (w *world) redeem(client, code string, changes ...string) (int, map[string]any) {
	w.t.Helper()
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {appURI}, "client_id": {client}, "code_verifier": {verifier}, "resource": {w.url + "/mcp"}}
	for i := 0; i < len(changes); i += 2 {
		form.Set(changes[i], changes[i+1])
	}
	return w.post("/token", form)
}

func (w *world) refresh(client string, tokens map[string]any) (int, map[string]any) {
	w.t.Helper()
	text, _ := tokens["refresh_token"].(string)
	return w.post("/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {text}, "client_id": {client}})
}

// status returns how the MCP server answers a token.
func (w *world) status(token any) int {
	w.t.Helper()
	req, _ := http.NewRequest(http.MethodPost, w.url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	req.Header.Set("Authorization", "Bearer "+token.(string))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := (&http.Client{Transport: w.transport}).Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// document serves a client's metadata document.
func (w *world) document(doc func() map[string]any) {
	w.egress = func(r *http.Request) (*http.Response, error) {
		rec := httptest.NewRecorder()
		writeJSON(rec, doc())
		res := rec.Result()
		res.Request = r
		return res, nil
	}
}

// decode decodes an object, or returns nil.
func decode(data []byte) (v map[string]any) {
	_ = json.Unmarshal(data, &v)
	return v
}

// reservedClaims is an Identify whose principals have all claims that are not its to set.
func reservedClaims(_ context.Context, claims map[string]any) (*mcp.Principal, error) {
	p := &mcp.Principal{Subject: claims["sub"].(string), Claims: map[string]any{"team": "x"}}
	for _, name := range []string{"iss", "aud", "sub", "client_id", "scope", "scp", "exp", "iat", "nbf", "jti", "cnf", "act", "psi_grant"} {
		p.Claims[name] = "x"
	}
	return p, nil
}

// claimsOf returns the claims of an access token.
func claimsOf(tokens map[string]any) map[string]any {
	text, _ := tokens["access_token"].(string)
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return nil
	}
	body, _ := base64.RawURLEncoding.DecodeString(parts[1])
	return decode(body)
}
