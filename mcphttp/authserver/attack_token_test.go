// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/go-psi/psi/mcphttp/auth/authtest"
	"github.com/go-psi/psi/mcphttp/authserver"
)

// A code verifier has 43 to 128 characters (RFC 7636, section 4.1).
func TestVerifierLength(t *testing.T) {
	w := newWorld(t)
	id := w.register("app", appURI)
	for size, ok := range map[int]bool{0: false, 42: false, 43: true, 128: true, 129: false} {
		verifier := strings.Repeat("v", size)
		sum := sha256.Sum256([]byte(verifier))
		code := newBrowser(t).visit(w.link(id, "code_challenge", base64.RawURLEncoding.EncodeToString(sum[:]))).Get("code")
		if status, answer := w.redeem(id, code, "code_verifier", verifier); (status == http.StatusOK) != ok {
			t.Errorf("%d characters: %d %v", size, status, answer)
		}
	}
}

// Scopes that this server does not have are not granted, and none is granted twice.
func TestUnknownScopes(t *testing.T) {
	w := newWorld(t)
	id := w.register("app", appURI)
	for scope, want := range map[string]string{"": "", "admin": "", "read admin read": "read", "write read": "write read", "READ": "", "read,write": "", "\tread": "read"} {
		status, answer := w.redeem(id, newBrowser(t).visit(w.link(id, "scope", scope)).Get("code"))
		if status != http.StatusOK || answer["scope"] != want {
			t.Errorf("%q: %d %v, want %q", scope, status, answer["scope"], want)
		}
	}
}

// A refresh may ask for less, and gets it; the next one may ask for all again.
func TestFewerScopes(t *testing.T) {
	w := newWorld(t)
	id := w.register("app", appURI)
	_, tokens := w.redeem(id, newBrowser(t).visit(w.link(id, "scope", "read write")).Get("code"))
	for _, step := range [][2]string{{"read", "read"}, {"", "read write"}, {"write", "write"}, {"read write", "read write"}, {"write write read write", "read write"}} {
		form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens["refresh_token"].(string)}, "client_id": {id}, "scope": {step[0]}}
		var status int
		if status, tokens = w.post("/token", form); status != http.StatusOK || tokens["scope"] != step[1] {
			t.Fatalf("%q: %d %v", step[0], status, tokens)
		}
	}
}

// Whoever tries codes, tokens, clients and secrets learns nothing from the answers: what was
// never issued, was used, has ended or is of somebody else is refused in the same words. That
// no time tells either follows from how they are found: all are opened by a key (AES-GCM), or
// looked up by their hash.
func TestAnswersTellNothing(t *testing.T) {
	w := newWorld(t)
	id, other := w.register("app", appURI), w.register("app", appURI)
	used := w.code(id)
	_, tokens := w.redeem(id, used)
	_, second := w.refresh(id, tokens)
	_, _ = w.post("/revoke", url.Values{"token": {second["refresh_token"].(string)}, "client_id": {id}})
	_, others := w.redeem(other, w.code(other))
	stranger := newWorld(t)
	sid := stranger.register("app", appURI)
	_, strangers := stranger.redeem(sid, stranger.code(sid))

	type answer struct {
		status int
		body   map[string]any
	}
	same := func(what string, answers map[string]answer) {
		t.Helper()
		var first *answer
		for name, a := range answers {
			if first == nil {
				first = &a
			}
			if a.status != first.status || !maps.Equal(a.body, first.body) || a.body["error"] == nil {
				t.Errorf("%s: %s: %v, another has %v", what, name, a, *first)
			}
		}
	}
	redeem := func(code string, changes ...string) answer {
		status, body := w.redeem(id, code, changes...)
		return answer{status, body}
	}
	refresh := func(tokens map[string]any) answer { status, body := w.refresh(id, tokens); return answer{status, body} }
	same("codes", map[string]answer{
		"never issued": redeem("x"), "used": redeem(used), "of another client": redeem(w.code(other)), "wrong verifier": redeem(w.code(id), "code_verifier", verifier+"x"),
		"another redirect URI": redeem(w.code(id), "redirect_uri", appURI+"x"), "a refresh token": redeem(others["refresh_token"].(string)), "of another server": redeem(stranger.code(sid)),
	})
	same("refresh tokens", map[string]answer{
		"never issued": refresh(map[string]any{"refresh_token": "x"}), "revoked": refresh(second), "of another client": refresh(others), "of another server": refresh(strangers), "a code": refresh(map[string]any{"refresh_token": used}),
	})
	secret := func(client, secret string) answer {
		status, body := w.post("/token", url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "client_secret": {secret}})
		return answer{status, body}
	}
	_, confidential := w.post("/register", map[string]any{"redirect_uris": []string{appURI}, "token_endpoint_auth_method": "client_secret_post"})
	same("clients", map[string]answer{
		"unknown": secret("x", "y"), "of another server": secret(sid, ""), "no secret": secret(confidential["client_id"].(string), ""), "wrong secret": secret(confidential["client_id"].(string), "x"), "a secret too many": secret(id, "x"),
	})
	for name, token := range map[string]string{"never issued": "x", "used": tokens["refresh_token"].(string), "revoked": second["refresh_token"].(string), "of another client": others["refresh_token"].(string), "none": ""} {
		if status, body := w.post("/revoke", url.Values{"token": {token}, "client_id": {id}}); status != http.StatusOK || len(body) != 0 {
			t.Errorf("revoking a token that is %s: %d %v", name, status, body)
		}
	}
	if status, _ := w.refresh(other, others); status != http.StatusOK {
		t.Errorf("another client's token: status %d", status)
	}
}

// A code that was asked for with a key is of no use without it, and a grant that was
// redeemed with a key stays with it.
func TestStolenProof(t *testing.T) {
	w := newWorld(t)
	id := w.register("app", appURI)
	mine, thief := authtest.NewProofKey(), authtest.NewProofKey()
	jkt, _ := mine.Confirmation()["jkt"].(string)
	send := func(form url.Values, proofs ...string) (int, map[string]any) {
		r := httptest.NewRequest(http.MethodPost, w.url+"/token", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, p := range proofs {
			r.Header.Add("DPoP", p)
		}
		rec := httptest.NewRecorder()
		w.replicas[0].ServeHTTP(rec, r)
		return rec.Code, decode(rec.Body.Bytes())
	}
	proof := func(k *authtest.ProofKey, method, to string) string {
		return k.Proof(method, to, "", authtest.Claims{"ath": nil})
	}
	code := func() url.Values {
		code := newBrowser(t).visit(w.link(id, "dpop_jkt", jkt)).Get("code")
		return url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {appURI}, "client_id": {id}, "code_verifier": {verifier}}
	}
	endpoint := w.url + "/token"
	used := proof(mine, http.MethodPost, endpoint)
	for name, c := range map[string]struct {
		proofs []string
		code   string
	}{
		"no proof": {nil, "invalid_grant"}, "another key": {[]string{proof(thief, http.MethodPost, endpoint)}, "invalid_grant"},
		"another endpoint": {[]string{proof(mine, http.MethodPost, w.url+"/revoke")}, "invalid_dpop_proof"}, "another method": {[]string{proof(mine, http.MethodGet, endpoint)}, "invalid_dpop_proof"},
		"two proofs": {[]string{proof(mine, http.MethodPost, endpoint), proof(thief, http.MethodPost, endpoint)}, "invalid_dpop_proof"}, "no proof at all": {[]string{"x"}, "invalid_dpop_proof"},
	} {
		if status, answer := send(code(), c.proofs...); status != http.StatusBadRequest || answer["error"] != c.code {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
	status, tokens := send(code(), used)
	if status != http.StatusOK || tokens["token_type"] != "DPoP" {
		t.Fatalf("%d %v", status, tokens)
	}
	refresh := url.Values{"grant_type": {"refresh_token"}, "client_id": {id}, "refresh_token": {tokens["refresh_token"].(string)}}
	for name, proofs := range map[string][]string{"a proof used before": {used}, "no proof": nil, "another key": {proof(thief, http.MethodPost, endpoint)}} {
		if status, answer := send(refresh, proofs...); status != http.StatusBadRequest || answer["access_token"] != nil {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
	if status, answer := send(refresh, proof(mine, http.MethodPost, endpoint)); status != http.StatusOK || answer["token_type"] != "DPoP" {
		t.Errorf("the key: %d %v", status, answer)
	}
	// As a bearer token, it is refused.
	if status := w.status(tokens["access_token"]); status != http.StatusUnauthorized {
		t.Errorf("without the key: status %d", status)
	}
}

// records is a log handler that keeps the texts of all attributes as they come, as a handler
// would that escapes nothing.
type records struct {
	mu    sync.Mutex
	texts []string
}

func (*records) Enabled(context.Context, slog.Level) bool { return true }
func (h *records) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h *records) WithGroup(string) slog.Handler          { return h }
func (h *records) Handle(_ context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.texts = append(h.texts, r.Message)
	r.Attrs(func(a slog.Attr) bool { h.texts = append(h.texts, a.Value.String()); return true })
	return nil
}

// What clients, their documents and the provider say adds no line to the log and moves no
// cursor, whatever the owner's handler escapes.
func TestInjectedLogs(t *testing.T) {
	const evil = "\nlevel=ERROR msg=\"all is well\"\r\x1b[31m\u202e\u2028"
	logs := &records{}
	w := newWorld(t, func(o *authserver.Options) { o.Logger = slog.New(logs) })
	answers := []func(*http.Request) (*http.Response, error){
		func(*http.Request) (*http.Response, error) { return nil, textError(evil) },
		func(r *http.Request) (*http.Response, error) {
			rec := httptest.NewRecorder()
			rec.Header()["Content-Type"] = []string{evil}
			res := rec.Result()
			res.Request = r
			return res, nil
		},
	}
	for _, answer := range answers {
		w.egress = answer
		newBrowser(t).step(http.MethodGet, w.link("https://client.example/app.json"), nil)
	}
	for _, doc := range []map[string]any{
		{"client_id": evil, "redirect_uris": []string{appURI}}, {"client_id": "https://client.example/app.json", "redirect_uris": []string{evil}},
		{"client_id": "https://client.example/app.json", "redirect_uris": []string{appURI}, "token_endpoint_auth_method": evil},
	} {
		w.document(func() map[string]any { return doc })
		newBrowser(t).step(http.MethodGet, w.link("https://client.example/app.json"), nil)
	}
	newBrowser(t).step(http.MethodGet, w.link(evil), nil)
	id := w.register(evil, appURI)
	newBrowser(t).visit(w.link(id, "state", evil, "scope", evil))
	w.idp.change = func(c authtest.Claims) { c["iss"], c["sub"] = evil, evil }
	newBrowser(t).visit(w.link(id))
	if len(logs.texts) < 10 {
		t.Errorf("only %q", logs.texts)
	}
	for _, text := range logs.texts {
		if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' }) {
			t.Errorf("%q", text)
		}
	}
}

type textError string

func (e textError) Error() string { return string(e) }

// A stolen grant is logged with its user.
func TestReplayIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newQuietWorld(t)
		id := w.register("app", appURI)
		_, first := w.redeem(id, w.code(id))
		_, _ = w.refresh(id, first)
		<-time.After(time.Minute)
		_, _ = w.refresh(id, first)
		if !strings.Contains(w.logs.String(), "used twice") || !strings.Contains(w.logs.String(), "subject=ada") {
			t.Errorf("%s", w.logs)
		}
	})
}

// Keys that were removed open and sign nothing any more.
func TestRemovedKey(t *testing.T) {
	keys := [][]byte{bytes.Repeat([]byte("o"), 32)}
	w := newWorld(t, func(o *authserver.Options) { o.Keys = keys })
	id := w.register("app", appURI)
	_, tokens := w.redeem(id, w.code(id))
	front, err := authserver.New(w.url+"/mcp", &authserver.Options{Provider: authserver.GitHub("id", "secret"), Values: w.values, Keys: [][]byte{bytes.Repeat([]byte("n"), 32)}})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
	r.Header.Set("Authorization", "Bearer "+tokens["access_token"].(string))
	if p, err := front.Verifier().Verify(r); err == nil {
		t.Errorf("%v", p)
	}
	rec := httptest.NewRecorder()
	front.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, w.link(id), nil))
	if rec.Code != http.StatusBadRequest {
		t.Errorf("status %d", rec.Code)
	}
}

// Behind another provider, grants of the one before have ended: its subjects may be other people, and
// its tokens are not for the new one.
func TestReplacedProvider(t *testing.T) {
	keys := [][]byte{bytes.Repeat([]byte("k"), 32)}
	w := newWorld(t, gitHubLike, func(o *authserver.Options) { o.Keys = keys })
	id := w.register("app", appURI)
	_, tokens := w.redeem(id, w.code(id))
	front, err := authserver.New(w.url+"/mcp", &authserver.Options{
		Provider: authserver.OIDC("https://other.example", "id", "secret"), Values: w.values, Keys: keys, Scopes: []string{"read"},
	})
	if err != nil {
		t.Fatal(err)
	}
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {tokens["refresh_token"].(string)}, "client_id": {id}}
	r := httptest.NewRequest(http.MethodPost, "/token", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	rec := httptest.NewRecorder()
	if front.ServeHTTP(rec, r); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "invalid_grant") {
		t.Errorf("%d %s %v", rec.Code, rec.Body, claimsOf(decode(rec.Body.Bytes())))
	}
	if status, answer := w.refresh(id, tokens); status != http.StatusOK {
		t.Errorf("at the old one: %d %v", status, answer)
	}
}

// Only this server sets the claims by which tokens are verified.
func TestReservedClaims(t *testing.T) {
	w := newWorld(t, func(o *authserver.Options) { o.Identify = reservedClaims })
	id := w.register("app", appURI)
	_, tokens := w.redeem(id, w.code(id))
	_, payload, _ := strings.Cut(tokens["access_token"].(string), ".")
	payload, _, _ = strings.Cut(payload, ".")
	body, _ := base64.RawURLEncoding.DecodeString(payload)
	claims := decode(body)
	for name, want := range map[string]any{"iss": w.url, "aud": w.url + "/mcp", "sub": "ada", "client_id": id, "scope": "read", "scp": nil, "cnf": nil, "act": nil, "nbf": nil, "team": "x"} {
		if !reflect.DeepEqual(claims[name], want) {
			t.Errorf("%s is %v, want %v", name, claims[name], want)
		}
	}
	for _, name := range []string{"exp", "iat", "jti", "psi_grant"} {
		if claims[name] == nil || claims[name] == "x" {
			t.Errorf("%s is %v", name, claims[name])
		}
	}
}
