// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"crypto"
	"crypto/rsa"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/auth"
)

// A token is valid from nbf until the second before exp, both extended by the leeway. A time
// that is out of range is rejected.
func TestTokenTimesBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().Unix()
		for name, c := range map[string]struct {
			claims claims
			good   bool
		}{
			"the last second of the leeway": {claims{"exp": now - 59}, true},
			"the end of the leeway":         {claims{"exp": now - 60}, false},
			"just before the end":           {claims{"exp": float64(now) - 59.999}, true},
			"valid when the leeway ends":    {claims{"nbf": now + 60}, true},
			"valid a second later":          {claims{"nbf": now + 61}, false},
			"issued when the leeway ends":   {claims{"iat": now + 60}, true},
			"issued a second later":         {claims{"iat": now + 61}, false},
			"valid from the very beginning": {claims{"nbf": 0, "iat": 0}, true},
			"valid from before 1970":        {claims{"nbf": -1}, false},
			"the last time that there is":   {claims{"exp": int64(1<<40 - 1)}, true},
			"later than that":               {claims{"exp": int64(1 << 40)}, false},
		} {
			if _, err := verify(t, newJWT(auth.JWTOptions{}), token(c.claims)); (err == nil) != c.good {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// A credential may be at most 16 KiB long.
func TestTokenLengthBounds(t *testing.T) {
	lookup := func(context.Context, auth.KeyHash) (*mcp.Principal, error) {
		return &mcp.Principal{Subject: "alice"}, nil
	}
	for size, status := range map[int]int{1: 200, 16 << 10: 200, 16<<10 + 1: 400} {
		text := strings.Repeat("k", size)
		for name, a := range map[string]answer{
			"a token":         ask(auth.Bearer(anyToken{}), nil, bearing(text)),
			"a key":           ask(auth.LookupAPIKeys(lookup, nil), nil, bearing(text)),
			"a header of own": ask(auth.LookupAPIKeys(lookup, &auth.KeyOptions{Header: "X-Key"}), nil, request("X-Key", text)),
		} {
			if a.Code != status {
				t.Errorf("%s of %d bytes: got %d", name, size, a.Code)
			}
		}
		// Called directly, the verifiers have the same limit.
		i := newInspector(map[string]claims{text: usual(claims{"active": true})})
		if _, err := verify(t, i.verifier(auth.IntrospectionOptions{}), text); (err == nil) != (status == 200) {
			t.Errorf("introspection of %d bytes: %v", size, err)
		}
	}
	for pad, good := range map[int]bool{16 << 10: true, 16<<10 + 1: false} {
		tok := tokenOfLength(t, pad)
		if _, err := verify(t, newJWT(auth.JWTOptions{}), tok); (err == nil) != good {
			t.Errorf("a JWT of %d bytes: %v", len(tok), err)
		}
	}
}

// anyToken accepts every token.
type anyToken struct{}

func (anyToken) VerifyToken(context.Context, string) (*mcp.Principal, error) {
	return &mcp.Principal{Subject: "alice"}, nil
}

// tokenOfLength returns a valid JWT of a given size in bytes.
func tokenOfLength(t *testing.T, size int) string {
	t.Helper()
	return padded(t, size, func(header, payload string) string {
		return sign(jose.ES256, "ec", ecKey(), claims{"pad": header}, usual(claims{"pad": payload}))
	})
}

// padded pads two parts of a text in Base64 to a number of bytes. One part alone cannot have
// every length.
func padded(t *testing.T, size int, text func(a, b string) string) string {
	t.Helper()
	base := len(text("", ""))
	for a := range 4 {
		for b := max(0, (size-base)*3/4-12); b < size; b++ {
			s := text(strings.Repeat("x", a), strings.Repeat("x", b))
			if len(s) == size {
				return s
			}
			if len(s) > size {
				break
			}
		}
	}
	t.Fatalf("no text has %d bytes", size)
	return ""
}

// Only characters allowed in a single-line header are accepted in a credential.
func TestTokenCharacterBounds(t *testing.T) {
	lookup := func(context.Context, auth.KeyHash) (*mcp.Principal, error) {
		return &mcp.Principal{Subject: "alice"}, nil
	}
	v := auth.LookupAPIKeys(lookup, &auth.KeyOptions{Header: "X-Key"})
	for key, status := range map[string]int{"!": 200, "~": 200, " ": 400, "\x7f": 400, "a b": 400, "ä": 400} {
		if a := ask(v, nil, request("X-Key", key)); a.Code != status {
			t.Errorf("%q: got %d", key, a.Code)
		}
	}
}

// An API key has at least 16 bytes and is rejected once it has expired.
func TestKeyBounds(t *testing.T) {
	key := strings.Repeat("k", 16)
	synctest.Test(t, func(t *testing.T) {
		v := auth.APIKeys(map[string]*mcp.Principal{key: {Subject: "alice", Expiry: time.Now().Add(time.Minute)}}, nil)
		pass(time.Minute - 1)
		if a := ask(v, nil, bearing(key)); a.Code != http.StatusOK {
			t.Errorf("just before it expires: got %d", a.Code)
		}
		pass(1)
		if a := ask(v, nil, bearing(key)); a.Code != http.StatusUnauthorized {
			t.Errorf("when it expires: got %d", a.Code)
		}
	})
	defer func() {
		if v := fmt.Sprint(recover()); !strings.Contains(v, "15 bytes") {
			t.Errorf("a key of 15 bytes: %s", v)
		}
	}()
	auth.APIKeys(map[string]*mcp.Principal{key[1:]: {Subject: "alice"}}, nil)
}

// A client certificate is valid up to and including its last instant.
func TestCertificateBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cert := certificate("alice", "", time.Now().Add(time.Minute))
		for _, c := range []struct {
			after  time.Duration
			status int
		}{{time.Minute, 200}, {1, 401}} {
			pass(c.after)
			if a := ask(auth.MutualTLS(nil), nil, over(request(), cert, true)); a.Code != c.status {
				t.Errorf("after %v more: got %d", c.after, a.Code)
			}
		}
	})
}

// rsaOfLength returns a public key with a number of bits and no matching private key.
func rsaOfLength(bits uint) *rsa.PublicKey {
	n := new(big.Int).Lsh(big.NewInt(1), bits-1)
	return &rsa.PublicKey{N: n.SetBit(n, 0, 1), E: 65537}
}

// RSA keys of an issuer may have 2048 to 4096 bits. Others are ignored, and a set with no
// other keys is an error.
func TestJWKSKeyBounds(t *testing.T) {
	for bits, good := range map[uint]bool{2047: false, 2048: true, 4096: true, 4097: false} {
		n := newNetwork()
		publish(n, map[string]crypto.PublicKey{"ec": rsaOfLength(bits)})
		if _, err := verify(t, remote(n, auth.JWTOptions{}), token(nil)); isRefusal(err) != good {
			t.Errorf("a set with a key of %d bits: %v", bits, err)
		}
	}
}

// An issuer may publish at most 64 keys, in a document of at most 1 MiB.
func TestJWKSSizeBounds(t *testing.T) {
	const other = `{"kty":"XYZ"},`
	good := string(must(jose.JSONWebKey{Key: ecKey().Public(), KeyID: "ec"}.MarshalJSON()))
	set := func(others int) string { return `{"keys":[` + strings.Repeat(other, others) + good + `]}` }
	for text, fits := range map[string]bool{
		set(63): true,
		set(64): false,
		set(0) + strings.Repeat(" ", 1<<20-len(set(0))):   true,
		set(0) + strings.Repeat(" ", 1<<20-len(set(0))+1): false,
	} {
		n := newNetwork()
		n.put(keysURL, text)
		if _, err := verify(t, remote(n, auth.JWTOptions{}), token(nil)); (err == nil) != fits {
			t.Errorf("%d bytes, %d keys: %v", len(text), strings.Count(text, "kty"), err)
		}
	}
}
