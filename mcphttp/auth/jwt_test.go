// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/go-psi/psi/internal/test/golden"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/auth"
)

func TestJWTGood(t *testing.T) {
	now := time.Now().Unix()
	for name, good := range map[string]string{
		"ES256":                     token(nil),
		"RS256":                     sign(jose.RS256, "rsa", rsaKey(), nil, usual(nil)),
		"PS512":                     sign(jose.PS512, "rsa", rsaKey(), nil, usual(nil)),
		"without kid":               sign(jose.ES256, "", ecKey(), nil, usual(nil)),
		"typ JWT":                   sign(jose.ES256, "ec", ecKey(), claims{"typ": "JWT"}, usual(nil)),
		"typ in full":               sign(jose.ES256, "ec", ecKey(), claims{"typ": "application/AT+jwt"}, usual(nil)),
		"audience with a slash":     token(claims{"aud": resource + "/"}),
		"one of several audiences":  token(claims{"aud": []string{"https://other.example.com", resource}}),
		"clock of the issuer ahead": token(claims{"iat": now + 30, "nbf": now + 30}),
		"expired a moment ago":      token(claims{"exp": now - 30}),
		"fractions of seconds":      token(claims{"exp": float64(now) + 600.5}),
		"another name for us":       token(claims{"aud": "api://files"}),
		"no nbf and no iat":         token(claims{"nbf": nil, "iat": nil}),
	} {
		if _, err := verify(t, newJWT(auth.JWTOptions{Audiences: []string{"api://files"}}), good); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// T67: the other way around.
	slash := must(auth.NewJWT(issuer, resource+"/", &auth.JWTOptions{Keys: published()}))
	if _, err := verify(t, slash, token(nil)); err != nil {
		t.Error(err)
	}
}

// Attacks: none of these tokens is valid.
func TestJWTAttacks(t *testing.T) {
	now := time.Now().Unix()
	header := claims{"alg": "none", "typ": "at+jwt", "kid": "rsa"}
	withAlg := func(alg string) claims { return claims{"alg": alg, "typ": "at+jwt", "kid": "rsa"} }
	nothing := func([]byte) []byte { return nil }
	hs := func(secret []byte) func([]byte) []byte {
		return func(input []byte) []byte {
			mac := hmac.New(sha256.New, secret)
			mac.Write(input)
			return mac.Sum(nil)
		}
	}
	der := must(x509.MarshalPKIXPublicKey(rsaKey().Public()))
	pemKey := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	jwk := must(json.Marshal(jose.JSONWebKey{Key: rsaKey().Public(), KeyID: "rsa"}))
	embedded := jose.JSONWebKey{Key: otherKey().Public()}
	good := token(nil)
	parts := strings.Split(good, ".")
	var problems []string
	for name, bad := range map[string]string{
		"another audience":            token(claims{"aud": "https://other.example.com/mcp"}),
		"audience of another path":    token(claims{"aud": "https://mcp.example.com/other"}),
		"audience with more":          token(claims{"aud": resource + "/x"}),
		"no audience":                 token(claims{"aud": nil}),
		"audience that is no text":    token(claims{"aud": 7}),
		"audiences that are no texts": token(claims{"aud": []any{resource, 7}}),
		"another issuer":              token(claims{"iss": "https://evil.example.com"}),
		"issuer with a slash":         token(claims{"iss": issuer + "/"}),
		"no issuer":                   token(claims{"iss": nil}),
		"expired":                     token(claims{"exp": now - 61}),
		"no exp":                      token(claims{"exp": nil}),
		"exp that is null":            token(claims{"exp": json.RawMessage("null")}),
		"exp that is a text":          token(claims{"exp": "9999999999"}),
		"exp that is huge":            token(claims{"exp": 1e300}),
		"exp that is negative":        token(claims{"exp": -1}),
		"not yet valid":               token(claims{"nbf": now + 90}),
		"issued in the future":        token(claims{"iat": now + 90}),
		"no subject":                  token(claims{"sub": nil}),
		"subject that is no text":     token(claims{"sub": 7}),
		"alg none":                    forge(header, usual(nil), nothing),
		"alg None":                    forge(withAlg("None"), usual(nil), nothing),
		"no alg":                      forge(claims{"typ": "at+jwt"}, usual(nil), nothing),
		"no signature":                parts[0] + "." + parts[1] + ".",
		"HS256 with the public key":   forge(withAlg("HS256"), usual(nil), hs(der)),
		"HS256 with the PEM key":      forge(withAlg("HS256"), usual(nil), hs(pemKey)),
		"HS256 with the JWK":          forge(withAlg("HS256"), usual(nil), hs(jwk)),
		"HS256 with nothing":          forge(withAlg("HS256"), usual(nil), hs(nil)),
		"RS256 with the EC key's id":  sign(jose.RS256, "ec", rsaKey(), nil, usual(nil)),
		"another key of the same id":  sign(jose.ES256, "ec", otherKey(), nil, usual(nil)),
		"another key without id":      sign(jose.ES256, "", otherKey(), nil, usual(nil)),
		"a key of its own (jwk)":      sign(jose.ES256, "", otherKey(), claims{"jwk": embedded}, usual(nil)),
		"a URL of its own (jku)":      sign(jose.ES256, "x", otherKey(), claims{"jku": "https://evil.example.com/keys"}, usual(nil)),
		"an unknown id":               sign(jose.ES256, "../../dev/null", otherKey(), nil, usual(nil)),
		"another type":                sign(jose.ES256, "ec", ecKey(), claims{"typ": "dpop+jwt"}, usual(nil)),
		"type of a logout token":      sign(jose.ES256, "ec", ecKey(), claims{"typ": "logout+jwt"}, usual(nil)),
		"what has to be understood":   sign(jose.ES256, "ec", ecKey(), claims{"crit": []string{"x"}, "x": 1}, usual(nil)),
		"payload that is not encoded": sign(jose.ES256, "ec", ecKey(), claims{"crit": []string{"b64"}, "b64": false}, usual(nil)),
		"claims of another token":     parts[0] + "." + encode(must(json.Marshal(usual(claims{"sub": "root"})))) + "." + parts[2],
		"JSON serialization":          must(jose.ParseSignedCompact(good, []jose.SignatureAlgorithm{jose.ES256})).FullSerialize(),
		"an encrypted token":          "a.b.c.d.e",
		"nothing":                     "",
		"dots":                        "..",
		"another tenant":              token(claims{"tenant": "evil"}),
		"longer than a token can be":  strings.Repeat("a", 17<<10),
		"claim that stands twice":     forgeTwice(),
	} {
		t.Run(name, func(t *testing.T) {
			j := newJWT(auth.JWTOptions{Identify: func(_ context.Context, claims map[string]any) (*mcp.Principal, error) {
				if tenant, ok := claims["tenant"]; ok && tenant != "acme" {
					return nil, auth.NewInvalidTokenError("the token is of another tenant")
				}
				return nil, nil
			}})
			_, err := verify(t, j, bad)
			if e, ok := errors.AsType[*auth.Error](err); !ok || e.Code != auth.CodeInvalidToken {
				t.Errorf("got %v", err)
			}
			problems = append(problems, fmt.Sprintf("%s: %v\n", name, err))
		})
	}
	golden.Check(t, "jwt", strings.Join(slices.Sorted(slices.Values(problems)), ""))
}

// forgeTwice returns a token with a valid signature but a duplicate claim.
func forgeTwice() string {
	text := must(json.Marshal(usual(nil)))
	text = append(text[:len(text)-1], `,"sub":"root"}`...)
	signer := must(jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: ecKey(), KeyID: "ec"}}, nil))
	return must(must(signer.Sign(text)).CompactSerialize())
}

func TestJWTAlgorithms(t *testing.T) {
	j := newJWT(auth.JWTOptions{Algorithms: []string{"ES256"}})
	if _, err := verify(t, j, token(nil)); err != nil {
		t.Error(err)
	}
	if _, err := verify(t, j, sign(jose.RS256, "rsa", rsaKey(), nil, usual(nil))); err == nil {
		t.Error("RS256 is good")
	}
}

// Useless and dangerous keys in a set are ignored. The other keys are used.
func TestJWKSOddKeys(t *testing.T) {
	good := must(json.Marshal(jose.JSONWebKey{Key: ecKey().Public(), KeyID: "ec"}))
	set := `{"keys":[{"kty":"oct","kid":"rsa","k":"c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA"},` +
		`{"kty":"XYZ","kid":"new"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},` + string(good) + `],"more":1}`
	j := newJWT(auth.JWTOptions{Keys: []byte(set)})
	if _, err := verify(t, j, token(nil)); err != nil {
		t.Error(err)
	}
}

func TestScopes(t *testing.T) {
	for _, c := range []struct {
		changes claims
		want    []string
	}{
		{claims{"scope": "a b"}, []string{"a", "b"}},
		{claims{"scope": []string{"a", "b"}}, []string{"a", "b"}},
		{claims{"scope": nil, "scp": []string{"a", "b"}}, []string{"a", "b"}},
		{claims{"scope": nil, "scp": "a b"}, []string{"a", "b"}},
		{claims{"scope": "a", "scp": "b a"}, []string{"a", "b"}},
		{claims{"scope": 7}, nil},
		{claims{"scope": []any{"a", 7}}, nil},
		{claims{"scope": nil}, nil},
	} {
		if p, err := verify(t, newJWT(auth.JWTOptions{}), token(c.changes)); err != nil || !slices.Equal(p.Scopes, c.want) {
			t.Errorf("%v: got %v, %v", c.changes, p, err)
		}
	}
}

// Identify decides who the caller is. What it leaves open is that of the token.
func TestIdentify(t *testing.T) {
	expiry := time.Now().Add(time.Minute).Truncate(time.Second)
	type key struct{}
	for name, test := range map[string]struct {
		returns *mcp.Principal
		want    string // issuer, subject, scopes and whether the expiry is earlier than that of the token
	}{
		"nothing":        {nil, issuer + " alice [files:read] false"},
		"a subject":      {&mcp.Principal{Subject: "robot"}, issuer + " robot [files:read] false"},
		"all":            {&mcp.Principal{Issuer: "i", Subject: "robot", Scopes: []string{"a"}, Expiry: expiry}, "i robot [a] true"},
		"no scopes":      {&mcp.Principal{Subject: "robot", Scopes: []string{}}, issuer + " robot [] false"},
		"a later expiry": {&mcp.Principal{Subject: "robot", Expiry: expiry.Add(1000 * time.Hour)}, issuer + " robot [files:read] false"},
		"other claims":   {&mcp.Principal{Subject: "robot", Claims: map[string]any{}}, issuer + " robot [files:read] false"},
		"no subject":     {&mcp.Principal{Issuer: "i"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJWT(auth.JWTOptions{Identify: func(ctx context.Context, claims map[string]any) (*mcp.Principal, error) {
				if ctx.Value(key{}) != "v" || claims["sub"] != "alice" {
					t.Errorf("the context is %v, the claims %v", ctx, claims)
				}
				return test.returns, nil
			}})
			p, err := j.VerifyToken(context.WithValue(t.Context(), key{}, "v"), token(claims{"sub": "alice", "scope": "files:read"}))
			if test.want == "" {
				if !isRefusal(err) {
					t.Errorf("got %v, %v", p, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(p.Issuer, " ", p.Subject, " ", p.Scopes, " ", p.Expiry.Equal(expiry)); got != test.want || p.Claims["sub"] != "alice" {
				t.Errorf("got %s with the claims %v, want %s with those of the token", got, p.Claims, test.want)
			}
		})
	}
}

// A cached token is valid until it expires.
func TestJWTCacheExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := auth.CacheFor(newJWT(auth.JWTOptions{Leeway: -1}), time.Hour)
		tok := token(claims{"exp": time.Now().Unix() + 60})
		for _, want := range []bool{true, true, false} {
			if _, err := verify(t, j, tok); (err == nil) != want {
				t.Errorf("after %v: %v", time.Now(), err)
			}
			pass(30 * time.Second)
		}
	})
}

// A token is accepted for five minutes without calling Identify again.
func TestJWTCacheAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		j := newJWT(auth.JWTOptions{Identify: func(context.Context, map[string]any) (*mcp.Principal, error) { asked++; return nil, nil }})
		tok := token(nil)
		for range 13 {
			_, _ = verify(t, j, tok)
			pass(50 * time.Second)
		}
		if asked != 3 {
			t.Errorf("Identify was called %d times in ten minutes", asked)
		}
	})
}

// Some issuers put no aud into access tokens, but say in another claim whose they are.
func TestFindingRM7TokenWithoutAudience(t *testing.T) {
	const client = "7client"
	cognito := map[string][]string{"client_id": {client, "7other"}}
	clerk := map[string][]string{"azp": {"https://app.example.com"}}
	both := map[string][]string{"client_id": {client}, "azp": {client}}
	for name, test := range map[string]struct {
		accepted map[string][]string
		changes  claims
		good     bool
	}{
		"by default":                 {nil, claims{"aud": nil, "client_id": client}, false},
		"the client":                 {cognito, claims{"aud": nil, "client_id": client}, true},
		"the second client":          {cognito, claims{"aud": nil, "client_id": "7other"}, true},
		"aud is null":                {cognito, claims{"aud": json.RawMessage("null"), "client_id": client}, true},
		"the authorized party":       {clerk, claims{"aud": nil, "azp": "https://app.example.com"}, true},
		"one of two claims":          {both, claims{"aud": nil, "azp": client, "client_id": "x"}, true},
		"an aud that is ours":        {cognito, claims{"client_id": "x"}, true},
		"another client":             {cognito, claims{"aud": nil, "client_id": "x"}, false},
		"the client with a slash":    {cognito, claims{"aud": nil, "client_id": client + "/"}, false},
		"in another claim":           {cognito, claims{"aud": nil, "azp": client}, false},
		"no such claim":              {cognito, claims{"aud": nil}, false},
		"a claim that is empty":      {cognito, claims{"aud": nil, "client_id": ""}, false},
		"a claim that is no text":    {cognito, claims{"aud": nil, "client_id": []string{client}}, false},
		"an ID token of the client":  {cognito, claims{"aud": client, "client_id": client}, false},
		"an aud of another server":   {cognito, claims{"aud": "https://other.example.com", "client_id": client}, false},
		"an empty aud":               {cognito, claims{"aud": "", "client_id": client}, false},
		"an empty list of audiences": {cognito, claims{"aud": []string{}, "client_id": client}, false},
	} {
		p, err := verify(t, newJWT(auth.JWTOptions{AudienceClaims: test.accepted}), token(test.changes))
		if (err == nil) != test.good {
			t.Errorf("%s: got %v, %v", name, p, err)
		}
		if e, ok := errors.AsType[*auth.Error](err); err != nil && (!ok || e.Description != "the token is for another audience") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The options are copied.
	j := newJWT(auth.JWTOptions{AudienceClaims: both})
	both["client_id"][0], both["azp"] = "x", nil
	if _, err := verify(t, j, token(claims{"aud": nil, "client_id": client})); err != nil {
		t.Error(err)
	}
}

// The error says which claim was missing, and which option admits such tokens.
func TestFindingRM7Errors(t *testing.T) {
	for want, accepted := range map[string]map[string][]string{
		"JWTOptions.AudienceClaims":                nil,
		`client_id is "x", expected one of ["7a"]`: {"client_id": {"7a"}},
	} {
		_, err := verify(t, newJWT(auth.JWTOptions{AudienceClaims: accepted}), token(claims{"aud": nil, "client_id": "x"}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
