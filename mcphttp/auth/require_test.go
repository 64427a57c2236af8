// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"bufio"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/test/memnet"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/auth"
)

// Problems and their responses, according to RFC 6750 and MCP.
func TestRequire(t *testing.T) {
	const where = `resource_metadata="` + metadata + `"`
	opts := func() *auth.Options {
		return &auth.Options{Metadata: &auth.Metadata{Resource: resource}, Scopes: []string{"files:read", "files:list"}}
	}
	for _, c := range []struct {
		name      string
		r         *http.Request
		status    int
		challenge string
	}{
		{"good", bearing(token(nil)), 200, ""},
		{"scheme in lower case", request("Authorization", "bearer "+token(nil)), 200, ""},
		{"no credentials", request(), 401, `Bearer scope="files:read files:list", ` + where},
		{"another scheme", request("Authorization", "Basic YWxpY2U6c2VjcmV0"), 401, `Bearer scope="files:read files:list", ` + where},
		{"expired", bearing(token(claims{"exp": time.Now().Unix() - 3600})), 401,
			`Bearer error="invalid_token", error_description="the token has expired", scope="files:read files:list", ` + where},
		{"too few scopes", bearing(token(claims{"scope": "files:read"})), 403,
			`Bearer error="insufficient_scope", scope="files:read files:list", ` + where},
		{"no token", request("Authorization", "Bearer"), 400, `Bearer error="invalid_request", ` +
			`error_description="the header Authorization must be the word Bearer and a token of at most 16384 bytes", scope="files:read files:list", ` + where},
		{"two tokens", request("Authorization", "Bearer a", "Authorization", "Bearer "+token(nil)), 400,
			`Bearer error="invalid_request", error_description="the header Authorization appears more than once", scope="files:read files:list", ` + where},
		{"a blank in the token", request("Authorization", "Bearer a b"), 400, ""},
		{"a control character", request("Authorization", "Bearer a\x7fb"), 400, ""},
		{"a token without end", request("Authorization", "Bearer "+strings.Repeat("a", 1<<20)), 400, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := ask(newJWT(auth.JWTOptions{}), opts(), c.r)
			if a.Code != c.status || a.challenge() != c.challenge && c.challenge != "" {
				t.Errorf("got %d %s\nwant %d %s\n%s", a.Code, a.challenge(), c.status, c.challenge, a.Body)
			}
			if (a.caller != nil) != (c.status == 200) {
				t.Errorf("the handler was called for %v", a.caller)
			}
			if c.status != 200 && !strings.Contains(a.Body.String(), `"error":{"code":`) {
				t.Errorf("the body is %s", a.Body)
			}
		})
	}
}

func TestPrincipal(t *testing.T) {
	a := ask(newJWT(auth.JWTOptions{}), nil, bearing(token(claims{"tenant": "acme"})))
	p := a.caller
	if p == nil || p.Issuer != issuer || p.Subject != "alice" || !p.HasScope("files:list") || p.Claims["tenant"] != "acme" || p.Expiry.IsZero() {
		t.Errorf("the caller is %+v", p)
	}
}

// Tokens in the URL are ignored, because URLs end up in logs, histories and referrers.
func TestQueryIsIgnored(t *testing.T) {
	r := request()
	r.URL.RawQuery = "access_token=" + token(nil)
	if a := ask(newJWT(auth.JWTOptions{}), nil, r); a.Code != http.StatusUnauthorized || a.caller != nil {
		t.Errorf("got %d", a.Code)
	}
}

// T32: browsers send preflight requests without credentials. CORS answers them outside of
// Require. Other OPTIONS requests are like all requests without credentials: many handlers,
// such as http.FileServerFS, serve every method alike.
func TestPreflight(t *testing.T) {
	const page = "https://app.example.com"
	files := http.FileServerFS(fstest.MapFS{"secret.txt": {Data: []byte("secret")}})
	protected := auth.Require(newJWT(auth.JWTOptions{}), &auth.Options{Logger: quiet})(files)
	for _, c := range []struct {
		name    string
		handler http.Handler
		header  http.Header
		status  int
	}{
		{"preflight", mcphttp.CORS(page)(protected), http.Header{"Origin": {page}, "Access-Control-Request-Method": {"POST"}}, 200},
		{"preflight without CORS", protected, http.Header{"Origin": {page}, "Access-Control-Request-Method": {"POST"}}, 401},
		{"other OPTIONS", mcphttp.CORS(page)(protected), http.Header{"Origin": {page}}, 401},
	} {
		r := httptest.NewRequest(http.MethodOptions, "https://mcp.example.com/secret.txt", nil)
		r.Header = c.header
		w := httptest.NewRecorder()
		if c.handler.ServeHTTP(w, r); w.Code != c.status || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s: got %d, want %d: %s", c.name, w.Code, c.status, w.Body)
		}
	}
}

// Scopes that include others are expanded once, for Require and for everything behind it.
func TestImplies(t *testing.T) {
	opts := &auth.Options{Scopes: []string{"files:read"}, Expand: func(granted []string) []string {
		if slices.Contains(granted, "files:admin") {
			return append(slices.Clone(granted), "files:read", "files:list")
		}
		return granted
	}}
	tokens := newJWT(auth.JWTOptions{}) // which returns the same principal for all requests with a token
	for range 2 {
		for scope, want := range map[string]int{"files:admin": 200, "files": 403} {
			a := ask(tokens, opts, bearing(token(claims{"scope": scope, "jti": scope})))
			if a.Code != want || want == 200 && !slices.Equal(a.caller.Scopes, []string{"files:admin", "files:read", "files:list"}) {
				t.Errorf("%s: got %d, want %d, and the caller is %+v", scope, a.Code, want, a.caller)
			}
		}
	}
}

// The verifier's error decides whether the caller is rejected or asked to retry.
func TestVerifierErrors(t *testing.T) {
	alice := &mcp.Principal{Subject: "alice"}
	for _, c := range []struct {
		name   string
		p      *mcp.Principal
		err    error
		status int
		want   string
	}{
		{"known", alice, nil, 200, ""},
		{"nobody", nil, nil, 503, ""},
		{"not found out", nil, errors.New("the secret database is down"), 503, ""},
		{"no credentials", nil, auth.ErrNoCredentials, 401, "Bearer"},
		{"refused", nil, auth.NewInvalidTokenError("no %s", "way"), 401, `Bearer error="invalid_token", error_description="no way"`},
		{"wrapped", nil, errors.Join(auth.NewInvalidTokenError("no way")), 401, `Bearer error="invalid_token", error_description="no way"`},
		{"both", alice, auth.NewInvalidTokenError("no way"), 401, `Bearer error="invalid_token", error_description="no way"`},
		{"quoted", nil, auth.NewInvalidTokenError("a \"quote\" \\ and\r\nX-Header: ä"), 401, `Bearer error="invalid_token", error_description="a 'quote' ? and??X-Header: ?"`},
	} {
		a := ask(auth.VerifierFunc(func(*http.Request) (*mcp.Principal, error) { return c.p, c.err }), &auth.Options{}, request())
		if a.Code != c.status || a.challenge() != c.want || strings.Contains(a.Body.String(), "secret") {
			t.Errorf("%s: got %d %q\n%s", c.name, a.Code, a.challenge(), a.Body)
		}
		if a.Code == http.StatusServiceUnavailable && a.Header().Get("Retry-After") == "" {
			t.Errorf("%s: nothing says when to try again", c.name)
		}
		if got := a.log.String(); (a.Code == http.StatusServiceUnavailable) != strings.Contains(got, "credentials could not be verified") {
			t.Errorf("%s: the log is %q", c.name, got)
		}
	}
}

func TestFirstOf(t *testing.T) {
	is := func(err error) auth.Verifier {
		return auth.VerifierFunc(func(*http.Request) (*mcp.Principal, error) { return nil, err })
	}
	alice := auth.VerifierFunc(func(*http.Request) (*mcp.Principal, error) { return &mcp.Principal{Subject: "alice"}, nil })
	none, one, two, down := is(auth.ErrNoCredentials), is(auth.NewInvalidTokenError("one")), is(auth.NewInvalidTokenError("two")), is(errors.New("down"))
	for _, c := range []struct {
		name   string
		v      auth.Verifier
		status int
		want   string
	}{
		{"the first that knows", auth.FirstOf(none, one, alice, down), 200, ""},
		{"the first refusal", auth.FirstOf(none, one, two), 401, "one"},
		{"what is open goes first", auth.FirstOf(one, down), 503, ""},
		{"no credentials at all", auth.FirstOf(none, none), 401, "Bearer"},
	} {
		if a := ask(c.v, &auth.Options{}, request()); a.Code != c.status || !strings.Contains(a.challenge(), c.want) {
			t.Errorf("%s: got %d %s", c.name, a.Code, a.challenge())
		}
	}
}

// What a program writes panics.
func TestMistakesPanic(t *testing.T) {
	v := newJWT(auth.JWTOptions{})
	for name, f := range map[string]func(){
		"no verifier":        func() { auth.Require(nil, nil) },
		"nil in FirstOf":     func() { auth.FirstOf(v, nil) },
		"scope with a blank": func() { auth.Require(v, &auth.Options{Scopes: []string{"a b"}}) },
		"scope with a quote": func() { auth.Require(v, &auth.Options{Scopes: []string{`a"b`}}) },
		"resource over http": func() {
			auth.Require(v, &auth.Options{Metadata: &auth.Metadata{Resource: "http://mcp.example.com/mcp"}})
		},
		"resource with fragment": func() { auth.Require(v, &auth.Options{Metadata: &auth.Metadata{Resource: resource + "#x"}}) },
		"no resource":            func() { auth.Require(v, &auth.Options{Metadata: &auth.Metadata{}}) },
		"no server":              func() { auth.MetadataHandler(&auth.Metadata{Resource: resource}) },
		"metadata of no server":  func() { auth.MetadataHandler(&auth.Metadata{Resource: "/mcp", AuthorizationServers: []string{issuer}}) },
		"short API key":          func() { auth.APIKeys(map[string]*mcp.Principal{"secret": {}}, nil) },
		"API key of nobody":      func() { auth.APIKeys(map[string]*mcp.Principal{"0123456789abcdef": nil}, nil) },
		"no lookup":              func() { auth.LookupAPIKeys(nil, nil) },
		"no tokens":              func() { auth.Bearer(nil) },
		"no tokens to be bound":  func() { _, _ = auth.NewDPoP(nil, resource, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "auth: ") {
					t.Errorf("it says %q", text)
				}
			}()
			f()
		})
	}
}

// What comes from the environment is an error.
func TestMistakesOfConfiguration(t *testing.T) {
	jwt := func(issuer, audience string, opts auth.JWTOptions) error {
		_, err := auth.NewJWT(issuer, audience, &opts)
		return err
	}
	introspection := func(endpoint, audience string) error {
		_, err := auth.NewIntrospection(endpoint, audience, nil)
		return err
	}
	dpop := func(resource string, opts auth.DPoPOptions) error {
		_, err := auth.NewDPoP(newJWT(auth.JWTOptions{}), resource, &opts)
		return err
	}
	_, relativePath := auth.MetadataPath("/mcp")
	_, relativeURL := auth.MetadataURL("/mcp")
	for name, err := range map[string]error{
		"relative resource":      relativePath,
		"relative URL":           relativeURL,
		"audience of a slash":    jwt(issuer, resource, auth.JWTOptions{Audiences: []string{"/"}}),
		"no issuer":              jwt("", resource, auth.JWTOptions{}),
		"no audience":            jwt(issuer, "", auth.JWTOptions{}),
		"malformed issuer":       jwt("https://login.example.com:port", resource, auth.JWTOptions{}),
		"issuer over http":       jwt("http://login.example.com", resource, auth.JWTOptions{}),
		"keys over http":         jwt(issuer, resource, auth.JWTOptions{JWKSURL: "http://login.example.com/keys"}),
		"symmetric algorithm":    jwt(issuer, resource, auth.JWTOptions{Algorithms: []string{"HS256"}}),
		"algorithm none":         jwt(issuer, resource, auth.JWTOptions{Algorithms: []string{"none"}}),
		"no algorithm":           jwt(issuer, resource, auth.JWTOptions{Algorithms: []string{}}),
		"keys that are none":     jwt(issuer, resource, auth.JWTOptions{Keys: []byte(`{"keys":[]}`)}),
		"a claim without values": jwt(issuer, resource, auth.JWTOptions{AudienceClaims: map[string][]string{"client_id": nil}}),
		"introspection by http":  introspection("http://login.example.com/i", resource),
		"no audience to look at": introspection("https://login.example.com/i", ""),
		"proofs over http":       dpop("http://mcp.example.com/mcp", auth.DPoPOptions{}),
		"short nonce key":        dpop(resource, auth.DPoPOptions{RequireNonce: true, NonceKey: []byte("x")}),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "auth: ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Require refuses a verifier of tokens that clients would not get: they would be sent for
// other tokens again and again.
func TestRequireComparesTheAudience(t *testing.T) {
	const other, elsewhere = "https://staging.example.com/mcp", "https://login.example.com/introspect"
	here, there := newJWT(auth.JWTOptions{}), must(auth.NewJWT(issuer, other, &auth.JWTOptions{Audiences: []string{resource}}))
	anyone := auth.VerifierFunc(func(*http.Request) (*mcp.Principal, error) { return nil, auth.ErrNoCredentials })
	for name, c := range map[string]struct {
		v    auth.Verifier
		good bool
	}{
		"the same":                {here, true},
		"the same with a slash":   {must(auth.NewJWT(issuer, resource+"/", nil)), true},
		"a verifier without one":  {anyone, true},
		"any audience":            {must(auth.NewIntrospection(elsewhere, "", &auth.IntrospectionOptions{InsecureAnyAudience: true})), true},
		"several":                 {auth.FirstOf(anyone, here, must(auth.NewDPoP(here, resource, nil))), true},
		"another":                 {there, false},
		"another of bearers":      {auth.Bearer(there), false},
		"another that is asked":   {must(auth.NewIntrospection(elsewhere, other, nil)), false},
		"another resource proven": {must(auth.NewDPoP(here, other, nil)), false},
		"another that is bound":   {must(auth.NewDPoP(there, resource, nil)), false},
		"another of several":      {auth.FirstOf(here, there), false},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				text, _ := recover().(string)
				if c.good != (text == "") || !c.good && (!strings.Contains(text, other) || !strings.Contains(text, resource)) {
					t.Errorf("it says %q", text)
				}
			}()
			auth.Require(c.v, &auth.Options{Metadata: &auth.Metadata{Resource: resource}})
		})
	}
}

// Verifiers that are called without Require do not accept a second credential either.
func TestTwoCredentials(t *testing.T) {
	tokens := newJWT(auth.JWTOptions{})
	for name, v := range map[string]auth.Verifier{"Bearer": auth.Bearer(tokens), "DPoP": must(auth.NewDPoP(tokens, resource, nil))} {
		_, err := v.Verify(request("Authorization", name+" "+token(nil), "Authorization", name+" "+token(nil)))
		if e, ok := errors.AsType[*auth.Error](err); !ok || e.Code != auth.CodeInvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// net/http reads the rest of a short body before it responds. A client without credentials
// cannot use that to keep a connection open.
func TestSlowBodyOfRefusedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		server := &http.Server{Handler: auth.Require(auth.APIKeys(map[string]*mcp.Principal{"key-of-ada-0123456789": {Subject: "ada"}}, nil), nil)(http.NotFoundHandler())}
		go func() { _ = server.Serve(l) }()
		defer server.Close()
		conn, err := l.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go func() {
			_, _ = io.WriteString(conn, "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
		}()
		begun := time.Now()
		timer := time.AfterFunc(time.Hour, func() { _ = conn.Close() })
		defer timer.Stop()
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("no answer after %v: %v", time.Since(begun), err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusUnauthorized || !res.Close || time.Since(begun) > time.Minute {
			t.Errorf("status %d after %v, and the connection is closed: %v", res.StatusCode, time.Since(begun), res.Close)
		}
		<-time.After(time.Second) // net/http lingers before it closes a connection
	})
}
