// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"crypto"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/go-psi/psi/mcphttp/auth"
)

// A proof may be five minutes old and one minute in the future, or less if the window is
// shorter.
func TestProofTimeBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			window time.Duration
			ahead  int64 // seconds
			good   bool
		}{
			{0, -300, true}, {0, -301, false}, {0, 60, true}, {0, 61, false},
			{30 * time.Second, -30, true}, {30 * time.Second, -31, false}, {30 * time.Second, 30, true}, {30 * time.Second, 31, false},
		} {
			p := newProver()
			if err := p.use(newDPoP(auth.DPoPOptions{Window: c.window}), p.proofOf(c.ahead)); (err == nil) != c.good {
				t.Errorf("window %v, %d seconds ahead: %v", c.window, c.ahead, err)
			}
		}
	})
}

// A proof may have at most 8 KiB, and an ID of at most 256 bytes.
func TestProofSizeBounds(t *testing.T) {
	p := newProver()
	for size, good := range map[int]bool{256: true, 257: false} {
		proof := prove(p.key, p.token, nil, claims{"jti": strings.Repeat("j", size)})
		if err := p.use(newDPoP(auth.DPoPOptions{}), proof); (err == nil) != good {
			t.Errorf("an ID of %d bytes: %v", size, err)
		}
	}
	for size, good := range map[int]bool{8 << 10: true, 8<<10 + 1: false} {
		proof := padded(t, size, func(header, payload string) string {
			return prove(p.key, p.token, claims{"pad": header}, claims{"pad": payload})
		})
		if err := p.use(newDPoP(auth.DPoPOptions{}), proof); (err == nil) != good {
			t.Errorf("a proof of %d bytes: %v", size, err)
		}
	}
}

// A proof may be signed with an RSA key of 2048 to 4096 bits. Longer keys would take too
// long, so their signatures are not verified.
func TestProofKeyBounds(t *testing.T) {
	for bits, allowed := range map[uint]bool{2047: false, 2048: true, 4096: true, 4097: false} {
		key := jose.JSONWebKey{Key: rsaOfLength(bits)}
		tok := token(claims{"cnf": claims{"jkt": encode(must(key.Thumbprint(crypto.SHA256)))}})
		proof := forge(claims{"typ": "dpop+jwt", "alg": "RS256", "jwk": key}, claims{"jti": "x"}, func([]byte) []byte { return make([]byte, bits/8) })
		_, err := newDPoP(auth.DPoPOptions{}).Verify(proving(tok, proof))
		if looked := strings.Contains(fmt.Sprint(err), "the signature of the proof is wrong"); !isRefusal(err) || looked != allowed {
			t.Errorf("a key of %d bits: %v", bits, err)
		}
	}
}

// The nonce changes every five minutes. The previous one is accepted until the next change.
func TestNonceBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newDPoP(auth.DPoPOptions{RequireNonce: true, NonceKey: []byte(strings.Repeat("k", 32))})
		call := func(nonce any) answer {
			tok := token(claims{"exp": time.Now().Unix() + 7200, "cnf": claims{"jkt": thumbprint(otherKey())}})
			return ask(v, nil, proving(tok, prove(otherKey(), tok, nil, claims{"nonce": nonce})))
		}
		period := 5 * time.Minute
		pass(period - time.Duration(time.Now().UnixNano()%int64(period))) // until a period begins
		nonce := call(nil).Header().Get("DPoP-Nonce")
		for _, c := range []struct {
			after  time.Duration
			same   bool
			status int
		}{{0, true, 200}, {period - 1, true, 200}, {1, false, 200}, {period - 1, false, 200}, {1, false, 401}} {
			pass(c.after)
			if a := call(nonce); a.Code != c.status || (a.Header().Get("DPoP-Nonce") == nonce) != c.same {
				t.Errorf("%v later: got %d, and the nonce is the same: %v", c.after, a.Code, a.Header().Get("DPoP-Nonce") == nonce)
			}
		}
	})
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "less than 32 bytes") {
			t.Errorf("a key of 31 bytes: %s", v)
		}
	}()
	newDPoP(auth.DPoPOptions{RequireNonce: true, NonceKey: make([]byte, 31)})
}

// Equivalent URLs match, and no others do.
func TestProofURLBounds(t *testing.T) {
	for _, c := range []struct {
		here, proof string
		good        bool
	}{
		{"https://a.example", "https://a.example/", true},
		{"https://a.example/", "HTTPS://A.EXAMPLE:443", true},
		{"http://a.example/x", "http://a.example:80/x", true},
		{"https://a.example/x", "https://a.example:80/x", false},
		{"http://a.example/x", "http://a.example:443/x", false},
		{"https://a.example/x", "https://a.example/X", false},
		{"https://a.example/x", "https://a.example/x?q#f", true},
		{"https://a.example/x", "https://[", false},
		{"https://[", "https://a.example/x", false},
	} {
		p := newProver()
		v := newDPoP(auth.DPoPOptions{URL: func(*http.Request) string { return c.here }})
		if err := p.use(v, prove(p.key, p.token, nil, claims{"htu": c.proof})); (err == nil) != c.good {
			t.Errorf("%s for %s: %v", c.proof, c.here, err)
		}
	}
}

// A token bound to an empty key is bound to no key. The token is invalid, not the proof.
func TestTokenBoundToNothing(t *testing.T) {
	p := newProver()
	for _, jkt := range []any{"", nil, 7, []string{}} {
		p.token = token(claims{"cnf": claims{"jkt": jkt}})
		if err := p.use(newDPoP(auth.DPoPOptions{}), p.proofOf(0)); !strings.Contains(fmt.Sprint(err), auth.CodeInvalidToken) {
			t.Errorf("jkt %v: %v", jkt, err)
		}
	}
}
