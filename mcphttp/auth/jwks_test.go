// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/go-psi/psi/internal/test/golden"
	"github.com/go-psi/psi/mcphttp/auth"
)

const keysURL = issuer + "/keys"

// remote returns a JWT verifier that fetches keys from a network.
func remote(n *network, opts auth.JWTOptions) *auth.JWT {
	opts.JWKSURL, opts.Client = keysURL, n.client()
	return must(auth.NewJWT(issuer, resource, &opts))
}

func publish(n *network, keys map[string]crypto.PublicKey) { n.put(keysURL, string(keySet(keys))) }

func isRefusal(err error) bool {
	_, ok := errors.AsType[*auth.Error](err)
	return ok
}

// After the issuer has changed its keys, the new one is accepted immediately. The old one is
// no longer accepted, not even for a cached token.
func TestJWKSRotation(t *testing.T) {
	for _, kid := range []string{"new", ""} {
		t.Run("kid "+kid, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork()
				publish(n, map[string]crypto.PublicKey{"ec": ecKey().Public()})
				j := remote(n, auth.JWTOptions{})
				old := token(nil)
				if _, err := verify(t, j, old); err != nil {
					t.Fatal(err)
				}
				publish(n, map[string]crypto.PublicKey{"new": otherKey().Public()})
				pass(11 * time.Second)
				if _, err := verify(t, j, sign(jose.ES256, kid, otherKey(), nil, usual(nil))); err != nil {
					t.Errorf("the new key: %v", err)
				}
				if _, err := verify(t, j, old); !isRefusal(err) {
					t.Errorf("the old key: %v", err)
				}
			})
		})
	}
}

// A key set may begin with a byte order mark.
func TestJWKSByteOrderMark(t *testing.T) {
	n := newNetwork()
	n.put(keysURL, "\ufeff"+string(keySet(map[string]crypto.PublicKey{"ec": ecKey().Public()})))
	if _, err := verify(t, remote(n, auth.JWTOptions{}), token(nil)); err != nil {
		t.Error(err)
	}
}

// A flood of tokens with unknown keys causes few fetches.
func TestJWKSFlood(t *testing.T) {
	for _, kid := range []string{"k%d", ""} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork()
			publish(n, map[string]crypto.PublicKey{"ec": ecKey().Public()})
			j := remote(n, auth.JWTOptions{})
			for i := range 1000 {
				bad := sign(jose.ES256, strings.ReplaceAll(kid, "%d", fmt.Sprint(i)), otherKey(), nil, usual(nil))
				if _, err := verify(t, j, bad); !isRefusal(err) {
					t.Fatal(err)
				}
				pass(30 * time.Millisecond) // half a minute in total
			}
			if got := n.count(keysURL); got > 4 {
				t.Errorf("%d fetches", got)
			}
			if _, err := verify(t, j, token(nil)); err != nil {
				t.Error(err)
			}
		})
	}
}

// Callers waiting for keys share one fetch, even if the first caller gives up.
func TestJWKSSingleFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.handle(keysURL, func(*http.Request) *http.Response {
			pass(time.Second)
			return respond(http.StatusOK, string(published()))
		})
		j, tok := remote(n, auth.JWTOptions{}), token(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := j.VerifyToken(ctx, tok); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the first: %v", err)
			}
		})
		synctest.Wait()
		for range 50 {
			wg.Go(func() {
				if _, err := j.VerifyToken(t.Context(), tok); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := n.count(keysURL); got != 1 {
			t.Errorf("%d fetches", got)
		}
	})
}

// If the issuer cannot be reached, known keys are used for a day. Without keys, tokens are
// neither accepted nor rejected.
func TestJWKSUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		j := remote(n, auth.JWTOptions{})
		if _, err := verify(t, j, token(nil)); err == nil || isRefusal(err) {
			t.Errorf("no keys yet: %v", err)
		}
		if a := ask(j, nil, bearing(token(nil))); a.Code != http.StatusServiceUnavailable || a.challenge() != "" {
			t.Errorf("got %d %s", a.Code, a.challenge())
		}
		publish(n, map[string]crypto.PublicKey{"ec": ecKey().Public()})
		pass(11 * time.Second)
		if _, err := verify(t, j, token(nil)); err != nil {
			t.Errorf("the keys are there again: %v", err)
		}
		n.handle(keysURL, func(*http.Request) *http.Response { return respond(http.StatusBadGateway, "") })
		for hours := range 26 {
			_, err := verify(t, j, token(claims{"jti": hours}))
			if good := hours <= 24; (err == nil) != good || isRefusal(err) {
				t.Errorf("after %d hours: %v", hours, err)
			}
			pass(time.Hour)
		}
	})
}

// Old keys are fetched again in the background.
func TestJWKSRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		publish(n, map[string]crypto.PublicKey{"ec": ecKey().Public()})
		j := remote(n, auth.JWTOptions{})
		_, _ = verify(t, j, token(nil))
		n.handle(keysURL, func(*http.Request) *http.Response {
			pass(5 * time.Second)
			return respond(http.StatusOK, string(published()))
		})
		pass(16 * time.Minute)
		began := time.Now()
		for i := range 10 {
			if _, err := verify(t, j, token(claims{"jti": i})); err != nil {
				t.Error(err)
			}
		}
		waited := time.Since(began)
		if synctest.Wait(); waited != 0 || n.count(keysURL) != 2 {
			t.Errorf("waited %v, %d fetches", waited, n.count(keysURL))
		}
		pass(10 * time.Second)
	})
}

// Responses from an attacker on the network or a broken server are not used.
func TestJWKSBadAnswers(t *testing.T) {
	redirect := func(to string) func(*http.Request) *http.Response {
		return func(*http.Request) *http.Response {
			res := respond(http.StatusFound, "")
			res.Header.Set("Location", to)
			return res
		}
	}
	text := func(s string) func(*http.Request) *http.Response {
		return func(*http.Request) *http.Response { return respond(http.StatusOK, s) }
	}
	many := strings.TrimSuffix(strings.Repeat(`{"kty":"XYZ"},`, 1000), ",")
	var problems []string
	for name, page := range map[string]func(*http.Request) *http.Response{
		"another origin":       redirect("https://evil.example.com/keys"),
		"another port":         redirect("https://login.example.com:8443/keys"),
		"down to http":         redirect("http://login.example.com/keys"),
		"a private address":    redirect("https://169.254.169.254/latest"),
		"in circles":           redirect(keysURL),
		"oversized":            text(strings.Repeat(" ", 2<<20) + string(published())),
		"too many keys":        text(`{"keys":[` + many + `]}`),
		"no keys":              text(`{"keys":[]}`),
		"no JSON":              text("<html>"),
		"an array":             text("[]"),
		"keys stand twice":     text(`{"keys":[],"keys":[]}`),
		"not a 200":            func(*http.Request) *http.Response { return respond(http.StatusNoContent, "") },
		"a client that panics": func(*http.Request) *http.Response { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			n := newNetwork()
			n.handle(keysURL, page)
			for _, evil := range []string{"https://evil.example.com/keys", "https://login.example.com:8443/keys", "http://login.example.com/keys", "https://169.254.169.254/latest"} {
				n.put(evil, string(published()))
			}
			p, err := verify(t, remote(n, auth.JWTOptions{}), token(nil))
			if err == nil || isRefusal(err) {
				t.Errorf("got %v, %v", p, err)
			}
			problems = append(problems, fmt.Sprintf("%s: %v\n", name, err))
			if got := n.count(keysURL); got > 5 {
				t.Errorf("%d requests", got)
			}
		})
	}
	golden.Check(t, "jwks", strings.Join(slices.Sorted(slices.Values(problems)), ""))
	t.Run("the same origin", func(t *testing.T) {
		n := newNetwork()
		n.handle(keysURL, redirect("/v2/keys"))
		n.put(issuer+"/v2/keys", string(published()))
		if _, err := verify(t, remote(n, auth.JWTOptions{}), token(nil)); err != nil {
			t.Error(err)
		}
	})
}

// Without a URL, the URL of the keys comes from the issuer's metadata.
func TestDiscovery(t *testing.T) {
	const tenant = issuer + "/t1"
	var problems strings.Builder
	document := func(of, keys string) string { return fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q,"more":{}}`, of, keys) }
	for _, c := range []struct {
		name, issuer, place, text string
		good                      bool
	}{
		{"OAuth", issuer, issuer + "/.well-known/oauth-authorization-server", document(issuer, keysURL), true},
		{"OpenID Connect", issuer, issuer + "/.well-known/openid-configuration", document(issuer, keysURL), true},
		{"OAuth with a path", tenant, issuer + "/.well-known/oauth-authorization-server/t1", document(tenant, keysURL), true},
		{"OpenID Connect with a path", tenant, issuer + "/.well-known/openid-configuration/t1", document(tenant, keysURL), true},
		{"OpenID Connect, appended", tenant, tenant + "/.well-known/openid-configuration", document(tenant, keysURL), true},
		{"another issuer", issuer, issuer + "/.well-known/oauth-authorization-server", document("https://evil.example.com", keysURL), false},
		{"keys over http", issuer, issuer + "/.well-known/oauth-authorization-server", document(issuer, "http://login.example.com/keys"), false},
		{"no keys", issuer, issuer + "/.well-known/oauth-authorization-server", document(issuer, ""), false},
		{"nothing", issuer, issuer + "/elsewhere", document(issuer, keysURL), false},
		{"nothing for a path", tenant, issuer + "/elsewhere", document(issuer, keysURL), false},
		{"no JSON", issuer, issuer + "/.well-known/openid-configuration", "<html>", false},
		{"a malformed URL", issuer, issuer + "/.well-known/openid-configuration", document(issuer, "https://["), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := newNetwork()
			n.put(c.place, c.text)
			n.put(keysURL, string(published()))
			n.put("http://login.example.com/keys", string(published()))
			j := must(auth.NewJWT(c.issuer, resource, &auth.JWTOptions{Client: n.client()}))
			_, err := verify(t, j, token(claims{"iss": c.issuer}))
			if (err == nil) != c.good || isRefusal(err) {
				t.Error(err)
			}
			fmt.Fprintf(&problems, "%s: %v\n", c.name, err)
		})
	}
	golden.Check(t, "discovery", problems.String())
}

// An issuer can move its keys, and need not remove those at the old URL. While its metadata
// cannot be read, the last known URL is used.
func TestKeysMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const place, moved = issuer + "/.well-known/oauth-authorization-server", issuer + "/v2/keys"
		n := newNetwork()
		n.put(place, fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q}`, issuer, keysURL))
		publish(n, map[string]crypto.PublicKey{"ec": ecKey().Public()})
		j := must(auth.NewJWT(issuer, resource, &auth.JWTOptions{Client: n.client()}))
		check := func(old, fresh bool) {
			t.Helper()
			pass(25 * time.Hour) // longer than keys are used without a fetch
			if _, err := verify(t, j, token(nil)); (err == nil) != old {
				t.Errorf("the old key: %v", err)
			}
			if _, err := verify(t, j, sign(jose.ES256, "new", otherKey(), nil, usual(nil))); (err == nil) != fresh {
				t.Errorf("the new key: %v", err)
			}
		}
		check(true, false)
		n.put(place, fmt.Sprintf(`{"issuer":%q,"jwks_uri":%q}`, issuer, moved))
		n.put(moved, string(keySet(map[string]crypto.PublicKey{"new": otherKey().Public()})))
		check(false, true)
		n.handle(place, func(*http.Request) *http.Response { return respond(http.StatusBadGateway, "") })
		check(false, true)
	})
}

// Concurrent verifications while keys change, for the race detector.
func TestJWTConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork()
		n.put(keysURL, string(published()))
		j := auth.CacheFor(remote(n, auth.JWTOptions{}), 2*time.Minute)
		var tokens []string
		for i := range 4 {
			tokens = append(tokens, token(claims{"sub": fmt.Sprint(i), "exp": time.Now().Add(time.Hour).Unix()}))
		}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				for range 20 {
					p, err := j.VerifyToken(t.Context(), tokens[i%4])
					if err != nil || p.Subject != fmt.Sprint(i%4) {
						t.Error(p, err)
					}
					pass(time.Minute)
				}
			})
		}
		wg.Wait()
	})
}
