// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp/auth"
)

var proofs atomic.Int64

// thumbprint returns the jkt of a key.
func thumbprint(key *ecdsa.PrivateKey) string {
	return encode(must((&jose.JSONWebKey{Key: key.Public()}).Thumbprint(crypto.SHA256)))
}

// boundToken returns a token that requires proofs made with key.
func boundToken(key *ecdsa.PrivateKey) string {
	return token(claims{"cnf": claims{"jkt": thumbprint(key)}})
}

// prove returns a proof for a call with a token, with changes to its header and claims.
func prove(key *ecdsa.PrivateKey, token string, header, changes claims) string {
	sum := sha256.Sum256([]byte(token))
	c := claims{
		"jti": fmt.Sprint("proof ", proofs.Add(1)), "htm": "POST", "htu": resource, "iat": time.Now().Unix(), "ath": encode(sum[:]),
	}
	for name, value := range changes {
		if c[name] = value; value == nil {
			delete(c, name)
		}
	}
	h := claims{"typ": "dpop+jwt", "jwk": jose.JSONWebKey{Key: key.Public()}}
	maps.Copy(h, header)
	return sign(jose.ES256, "", key, h, c)
}

func proving(token string, proof ...string) *http.Request {
	r := request("Authorization", "DPoP "+token)
	for _, p := range proof {
		r.Header.Add("DPoP", p)
	}
	return r
}

func newDPoP(opts auth.DPoPOptions) *auth.DPoP {
	return must(auth.NewDPoP(newJWT(auth.JWTOptions{}), resource, &opts))
}

func TestDPoPGood(t *testing.T) {
	tok := boundToken(otherKey())
	v := newDPoP(auth.DPoPOptions{})
	for name, r := range map[string]*http.Request{
		"proof":                    proving(tok, prove(otherKey(), tok, nil, nil)),
		"clock of the client":      proving(tok, prove(otherKey(), tok, nil, claims{"iat": time.Now().Unix() - 290})),
		"clock of the client fast": proving(tok, prove(otherKey(), tok, nil, claims{"iat": time.Now().Unix() + 50})),
		"URL written otherwise":    proving(tok, prove(otherKey(), tok, nil, claims{"htu": "HTTPS://MCP.example.com:443/mcp"})),
		"URL with a query":         proving(tok, prove(otherKey(), tok, nil, claims{"htu": resource + "?x=1#y"})),
		"a nonce nobody asked for": proving(tok, prove(otherKey(), tok, nil, claims{"nonce": "x"})),
	} {
		if a := ask(v, nil, r); a.Code != http.StatusOK || a.caller == nil || a.caller.Subject != "alice" {
			t.Errorf("%s: got %d %s", name, a.Code, a.challenge())
		}
	}
}

// Attacks: a stolen token is useless without its key.
func TestDPoPAttacks(t *testing.T) {
	now := time.Now().Unix()
	tok, other := boundToken(otherKey()), token(claims{"sub": "bob", "cnf": claims{"jkt": thumbprint(otherKey())}})
	p := func(header, changes claims) []string { return []string{prove(otherKey(), tok, header, changes)} }
	thief := newECKey()
	weak := must(rsa.GenerateKey(rand.Reader, 1024))
	jwk := jose.JSONWebKey{Key: otherKey().Public()}
	private := jose.JSONWebKey{Key: otherKey()}
	good := prove(otherKey(), tok, nil, nil)
	parts := strings.Split(good, ".")
	for name, c := range map[string]struct {
		token string
		proof []string
		code  string
	}{
		"no proof":                {tok, nil, "invalid_dpop_proof"},
		"two proofs":              {tok, []string{good, good}, "invalid_dpop_proof"},
		"empty proof":             {tok, []string{""}, "invalid_dpop_proof"},
		"no JWT":                  {tok, []string{"proof"}, "invalid_dpop_proof"},
		"longer than a proof":     {tok, []string{strings.Repeat("a", 9<<10)}, "invalid_dpop_proof"},
		"signed by a thief":       {tok, []string{prove(thief, tok, nil, nil)}, "invalid_dpop_proof"},
		"thief with her jwk":      {tok, []string{prove(thief, tok, claims{"jwk": jwk}, nil)}, "invalid_dpop_proof"},
		"claims of another proof": {tok, []string{parts[0] + "." + encode(must(json.Marshal(claims{"jti": "x"}))) + "." + parts[2]}, "invalid_dpop_proof"},
		"another method":          {tok, p(nil, claims{"htm": "GET"}), "invalid_dpop_proof"},
		"method in lower case":    {tok, p(nil, claims{"htm": "post"}), "invalid_dpop_proof"},
		"another server":          {tok, p(nil, claims{"htu": "https://evil.example.com/mcp"}), "invalid_dpop_proof"},
		"another path":            {tok, p(nil, claims{"htu": "https://mcp.example.com/sse"}), "invalid_dpop_proof"},
		"over http":               {tok, p(nil, claims{"htu": "http://mcp.example.com/mcp"}), "invalid_dpop_proof"},
		"with a user":             {tok, p(nil, claims{"htu": "https://x@mcp.example.com/mcp"}), "invalid_dpop_proof"},
		"no URL":                  {tok, p(nil, claims{"htu": nil}), "invalid_dpop_proof"},
		"too old":                 {tok, p(nil, claims{"iat": now - 310}), "invalid_dpop_proof"},
		"in the future":           {tok, p(nil, claims{"iat": now + 70}), "invalid_dpop_proof"},
		"no time":                 {tok, p(nil, claims{"iat": nil}), "invalid_dpop_proof"},
		"time as a text":          {tok, p(nil, claims{"iat": "now"}), "invalid_dpop_proof"},
		"time that is huge":       {tok, p(nil, claims{"iat": 1e300}), "invalid_dpop_proof"},
		"another token":           {other, p(nil, nil), "invalid_dpop_proof"},
		"no token":                {tok, p(nil, claims{"ath": nil}), "invalid_dpop_proof"},
		"no id":                   {tok, p(nil, claims{"jti": nil}), "invalid_dpop_proof"},
		"an id without end":       {tok, p(nil, claims{"jti": strings.Repeat("x", 1000)}), "invalid_dpop_proof"},
		"another type":            {tok, p(claims{"typ": "JWT"}, nil), "invalid_dpop_proof"},
		"an access token":         {tok, []string{tok}, "invalid_dpop_proof"},
		"private key":             {tok, p(claims{"jwk": private}, nil), "invalid_dpop_proof"},
		"no key":                  {tok, p(claims{"jwk": nil}, nil), "invalid_dpop_proof"},
		"symmetric key": {tok, []string{forge(claims{"typ": "dpop+jwt", "alg": "HS256", "jwk": claims{"kty": "oct", "k": "AAAA"}}, nil,
			func([]byte) []byte { return nil })}, "invalid_dpop_proof"},
		"alg none": {tok, []string{forge(claims{"typ": "dpop+jwt", "alg": "none", "jwk": jwk}, nil, func([]byte) []byte { return nil })}, "invalid_dpop_proof"},
		"weak key": {token(claims{"cnf": claims{"jkt": encode(must((&jose.JSONWebKey{Key: weak.Public()}).Thumbprint(crypto.SHA256)))}}),
			[]string{sign(jose.RS256, "", weak, claims{"typ": "dpop+jwt", "jwk": jose.JSONWebKey{Key: weak.Public()}}, nil)}, "invalid_dpop_proof"},
		"token that is bound to nothing": {token(nil), p(nil, nil), "invalid_token"},
		"token of another audience":      {token(claims{"aud": "x", "cnf": claims{"jkt": thumbprint(otherKey())}}), p(nil, nil), "invalid_token"},
		"malformed":                      {"", p(nil, nil), "invalid_request"},
	} {
		t.Run(name, func(t *testing.T) {
			a := ask(newDPoP(auth.DPoPOptions{}), nil, proving(c.token, c.proof...))
			want := 401
			if c.code == "invalid_request" {
				want = 400
			}
			if a.Code != want || a.caller != nil || !strings.HasPrefix(a.challenge(), `DPoP algs="RS256 `) || !strings.Contains(a.challenge(), `error="`+c.code+`"`) {
				t.Errorf("got %d %s", a.Code, a.challenge())
			}
		})
	}
}

// A bound token cannot be used as a bearer token, and the challenge names both schemes.
func TestDPoPDowngrade(t *testing.T) {
	tokens := newJWT(auth.JWTOptions{})
	both := auth.FirstOf(tokens, must(auth.NewDPoP(tokens, resource, nil)))
	tok := boundToken(otherKey())
	if a := ask(both, nil, bearing(tok)); a.Code != http.StatusUnauthorized || !strings.HasPrefix(a.challenge(), `Bearer error="invalid_token"`) {
		t.Errorf("got %d %s", a.Code, a.challenge())
	}
	const algs = `DPoP algs="RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA", `
	const where = `resource_metadata="` + metadata + `"`
	if a := ask(both, nil, request()); a.challenge() != `Bearer `+where+` | `+algs+where {
		t.Errorf("got %s", a.challenge())
	}
	// The first problem determines the error.
	if a := ask(both, nil, proving(tok)); !strings.HasPrefix(a.challenge(), algs+`error="invalid_dpop_proof", error_description="`) ||
		!strings.HasSuffix(a.challenge(), ` | Bearer `+where) {
		t.Errorf("got %s", a.challenge())
	}
	scoped := &auth.Options{Scopes: []string{"admin"}}
	if a := ask(both, scoped, proving(tok, prove(otherKey(), tok, nil, nil))); a.Code != 403 || a.challenge() != algs+`error="insufficient_scope", scope="admin"` {
		t.Errorf("got %d %s", a.Code, a.challenge())
	}
}

// A proof is accepted once across all replicas, and not after it has expired.
func TestDPoPReplay(t *testing.T) {
	shared := store.NewMemory(nil)
	for name, opts := range map[string]auth.DPoPOptions{"memory": {}, "shared": {Replay: shared}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if opts.Replay != nil {
					opts.Replay = store.NewMemory(nil)
				}
				replicas := []*auth.DPoP{newDPoP(opts), newDPoP(opts)}
				if opts.Replay == nil {
					replicas[1] = replicas[0]
				}
				tok := token(claims{"exp": time.Now().Unix() + 7200, "cnf": claims{"jkt": thumbprint(otherKey())}})
				proof := prove(otherKey(), tok, nil, claims{"iat": time.Now().Unix() + 50})
				for i := range 700 {
					a := ask(replicas[i%2], nil, proving(tok, proof))
					if want := map[bool]int{true: 200, false: 401}[i == 0]; a.Code != want {
						t.Fatalf("time %d: got %d %s", i, a.Code, a.challenge())
					}
					pass(time.Second)
				}
			})
		})
	}
}

// If a proof is used many times concurrently, one use succeeds.
func TestDPoPReplayAtOnce(t *testing.T) {
	for name, v := range map[string]*auth.DPoP{"memory": newDPoP(auth.DPoPOptions{}), "shared": newDPoP(auth.DPoPOptions{Replay: store.NewMemory(nil)})} {
		tok := boundToken(otherKey())
		proof := prove(otherKey(), tok, nil, nil)
		var good atomic.Int64
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if _, err := v.Verify(proving(tok, proof)); err == nil {
					good.Add(1)
				}
			})
		}
		if wg.Wait(); good.Load() != 1 {
			t.Errorf("%s: it was good %d times", name, good.Load())
		}
	}
}

// The number of remembered proofs is bounded, and a forgotten proof is not accepted again.
func TestDPoPReplayIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := auth.LimitProofs(newDPoP(auth.DPoPOptions{}), 10)
		tok := boundToken(otherKey())
		first := prove(otherKey(), tok, nil, nil)
		if _, err := v.Verify(proving(tok, first)); err != nil {
			t.Fatal(err)
		}
		for range 60 {
			pass(4 * time.Second)
			if _, err := v.Verify(proving(tok, prove(otherKey(), tok, nil, nil))); err != nil {
				t.Errorf("a new proof: %v", err)
			}
			if _, err := v.Verify(proving(tok, first)); err == nil {
				t.Error("the first proof is good again")
			}
		}
	})
}

// If the store is down, callers are neither accepted nor rejected.
func TestDPoPStoreDown(t *testing.T) {
	tok := boundToken(otherKey())
	a := ask(newDPoP(auth.DPoPOptions{Replay: downStore{}}), nil, proving(tok, prove(otherKey(), tok, nil, nil)))
	if a.Code != http.StatusServiceUnavailable || a.caller != nil {
		t.Errorf("got %d", a.Code)
	}
}

type downStore struct{ store.Values }

func (downStore) Put(context.Context, string, []byte, uint64, time.Duration) (uint64, error) {
	return 0, errors.New("down")
}

// The server requires its nonce, announces the next one, and changes it.
func TestDPoPNonce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := auth.DPoPOptions{RequireNonce: true, NonceKey: []byte(strings.Repeat("k", 32))}
		v, replica := newDPoP(opts), newDPoP(opts)
		call := func(v auth.Verifier, nonce any) answer {
			tok := token(claims{"exp": time.Now().Unix() + 7200, "cnf": claims{"jkt": thumbprint(otherKey())}})
			return ask(v, nil, proving(tok, prove(otherKey(), tok, nil, claims{"nonce": nonce})))
		}
		asked := call(v, nil)
		nonce := asked.Header().Get("DPoP-Nonce")
		if asked.Code != 401 || nonce == "" || !strings.Contains(asked.challenge(), `error="use_dpop_nonce"`) {
			t.Fatalf("got %d %v", asked.Code, asked.Header())
		}
		if a := call(v, nonce); a.Code != 200 || a.Header().Get("DPoP-Nonce") != nonce {
			t.Errorf("the nonce: got %d %v", a.Code, a.Header())
		}
		if a := call(replica, nonce); a.Code != 200 {
			t.Errorf("the nonce of another replica: got %d", a.Code)
		}
		if a := call(auth.FirstOf(auth.MutualTLS(nil), v), nonce); a.Code != 200 || a.Header().Get("DPoP-Nonce") != nonce {
			t.Errorf("as one of several: got %d %v", a.Code, a.Header())
		}
		for _, wrong := range []string{"", "x", nonce + "x"} {
			if a := call(v, wrong); a.Code != 401 {
				t.Errorf("the nonce %q: got %d", wrong, a.Code)
			}
		}
		pass(5 * time.Minute)
		next := call(v, nonce)
		if got := next.Header().Get("DPoP-Nonce"); next.Code != 200 || got == nonce || got == "" {
			t.Errorf("the nonce before: got %d, then %q", next.Code, got)
		}
		pass(5 * time.Minute)
		if a := call(v, nonce); a.Code != 401 {
			t.Errorf("an old nonce: got %d", a.Code)
		}
	})
}

// Behind a proxy that changes paths, the server must be told its URL.
func TestDPoPURL(t *testing.T) {
	tok := boundToken(otherKey())
	v := newDPoP(auth.DPoPOptions{URL: func(*http.Request) string { return "https://public.example.com/x" }})
	for url, want := range map[string]int{"https://public.example.com/x": 200, resource: 401} {
		if a := ask(v, nil, proving(tok, prove(otherKey(), tok, nil, claims{"htu": url}))); a.Code != want {
			t.Errorf("%s: got %d", url, a.Code)
		}
	}
	// The Host header is not trusted.
	r := proving(tok, prove(otherKey(), tok, nil, claims{"htu": "https://evil.example.com/mcp"}))
	r.Host = "evil.example.com"
	r.Header.Set("X-Forwarded-Host", "evil.example.com")
	if a := ask(newDPoP(auth.DPoPOptions{}), nil, r); a.Code != 401 {
		t.Errorf("got %d", a.Code)
	}
}

// A rejected token is rejected in the scheme in which it was sent. That challenge comes
// first, for clients that read only one.
func TestDPoPRefusesInItsScheme(t *testing.T) {
	tokens := newJWT(auth.JWTOptions{})
	both := auth.FirstOf(auth.Bearer(tokens), must(auth.NewDPoP(tokens, resource, nil)))
	for scheme, r := range map[string]*http.Request{"DPoP": proving("forged"), "Bearer": request("Authorization", "Bearer forged")} {
		a := ask(both, nil, r)
		if first := a.Header().Values("WWW-Authenticate")[0]; !strings.HasPrefix(first, scheme+" ") || !strings.Contains(first, `error="invalid_token"`) {
			t.Errorf("%s: %s", scheme, a.challenge())
		}
	}
}

// prover makes requests with proofs made with one key.
type prover struct {
	key   *ecdsa.PrivateKey
	token string
}

func newProver() *prover {
	key := newECKey()
	return &prover{key, token(claims{"exp": time.Now().Unix() + 7200, "cnf": claims{"jkt": thumbprint(key)}})}
}

// proofOf returns a proof whose iat is a number of seconds ahead of now.
func (p *prover) proofOf(ahead int64) string {
	return prove(p.key, p.token, nil, claims{"iat": time.Now().Unix() + ahead})
}

func (p *prover) use(v *auth.DPoP, proof string) error {
	_, err := v.Verify(proving(p.token, proof))
	return err
}

// Callers with any number of proofs from the near future neither lock out other callers nor
// make a used proof valid again.
func TestFindingS12ProofsOfTheFuture(t *testing.T) {
	for name, attackers := range map[string]int{"one key": 1, "as many keys as fill all": 16, "more keys than fill all": 35} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := auth.LimitProofs(newDPoP(auth.DPoPOptions{}), 320)
				victim := newProver()
				used := victim.proofOf(0)
				if err := victim.use(v, used); err != nil {
					t.Fatal(err)
				}
				all := make([]*prover, attackers)
				for i := range all {
					all[i] = newProver()
				}
				for round := range 2 {
					for range max(10, 400/attackers) {
						for _, a := range all {
							if err := a.use(v, a.proofOf(55)); err != nil && !isRefusal(err) {
								t.Fatal(err)
							}
						}
					}
					for range 3 {
						if err := victim.use(v, victim.proofOf(0)); err != nil {
							t.Fatalf("round %d: somebody else is kept out: %v", round, err)
						}
					}
					if n := newProver(); n.use(v, n.proofOf(0)) != nil {
						t.Fatalf("round %d: a new caller is kept out", round)
					}
					if err := victim.use(v, used); err == nil {
						t.Fatalf("round %d: a used proof is good again", round)
					}
					pass(30 * time.Second)
				}
			})
		})
	}
}

// A clock that is more than a minute fast must be corrected, because proofs from the future
// are valid longer than others.
func TestFindingS12FastClock(t *testing.T) {
	v, p := newDPoP(auth.DPoPOptions{}), newProver()
	for ahead, good := range map[int64]bool{-290: true, 0: true, 55: true, 70: false, 290: false} {
		if err := p.use(v, p.proofOf(ahead)); (err == nil) != good {
			t.Errorf("%d seconds ahead: %v", ahead, err)
		}
	}
	narrow := newDPoP(auth.DPoPOptions{Window: 10 * time.Second})
	if err := p.use(narrow, p.proofOf(20)); err == nil {
		t.Error("20 seconds ahead of a window of 10")
	}
}

// A busy caller's own oldest proofs are forgotten first, and the caller can continue.
func TestFindingS12BusyCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, busy := auth.LimitProofs(newDPoP(auth.DPoPOptions{}), 640), newProver() // 40 for each key
		var proofs []string
		for range 100 {
			proofs = append(proofs, busy.proofOf(0))
			if err := busy.use(v, proofs[len(proofs)-1]); err != nil {
				t.Fatalf("proof %d: %v", len(proofs), err)
			}
			pass(time.Second)
		}
		for i, proof := range proofs {
			if busy.use(v, proof) == nil {
				t.Fatalf("proof %d is good twice", i)
			}
		}
	})
}

// With more keys than fit, proofs that may have been used are rejected, and no used proof is
// accepted again.
func TestFindingS12ManyKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := auth.LimitProofs(newDPoP(auth.DPoPOptions{}), 160) // 20 keys
		type used struct {
			by    *prover
			proof string
		}
		var all []used
		for range 60 {
			p := newProver()
			all = append(all, used{p, p.proofOf(0)})
			if err := p.use(v, all[len(all)-1].proof); err != nil {
				t.Fatalf("caller %d is kept out: %v", len(all), err)
			}
			pass(20 * time.Second) // one after another
		}
		for range 60 { // concurrently
			p := newProver()
			proof := p.proofOf(0)
			if p.use(v, proof) == nil {
				all = append(all, used{p, proof})
			}
		}
		for i, u := range all {
			err := u.by.use(v, u.proof)
			if _, refused := errors.AsType[*auth.Error](err); !refused {
				t.Fatalf("proof %d: %v", i, err)
			}
		}
	})
}

// One caller cannot fill a store that replicas share; the others continue.
func TestFindingS12SharedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := store.NewMemory(&store.MemoryOptions{MaxBytes: 16 << 10})
		v := auth.LimitProofs(newDPoP(auth.DPoPOptions{Replay: shared}), 320) // 20 for each key
		attacker, victim := newProver(), newProver()
		passed := 0
		for range 200 {
			err := attacker.use(v, attacker.proofOf(55))
			if err != nil && !isRefusal(err) {
				t.Fatalf("after %d: %v", passed, err)
			}
			if err == nil {
				passed++
			}
		}
		if passed != 20 {
			t.Errorf("%d proofs of one key were stored, want 20", passed)
		}
		used := victim.proofOf(0)
		if err := victim.use(v, used); err != nil {
			t.Errorf("somebody else is kept out: %v", err)
		}
		if victim.use(v, used) == nil {
			t.Error("a proof is good twice")
		}
		pass(7 * time.Minute)
		if err := attacker.use(v, attacker.proofOf(0)); err != nil {
			t.Errorf("after the window: %v", err)
		}
	})
}
