// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/go-psi/psi/internal/lru"
)

const (
	headerProof = "DPoP"
	headerNonce = "DPoP-Nonce"
)

// A prover proves the possession of a key (RFC 9449).
type prover struct {
	key       crypto.Signer
	algorithm string
	thumb     string // thumbprint of the public key
	saved     []byte // private key as a JWK, if it was generated here
}

// newProver returns a prover for the user's key, or for a new key if key is nil or zero.
func newProver(key *Key, accepted []string) (*prover, error) {
	if key != nil && *key != (Key{}) {
		algorithm, err := key.algorithm(accepted)
		if err != nil {
			return nil, err
		}
		return provedBy(key.Signer, string(algorithm))
	}
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	p, err := provedBy(made, string(jose.ES256))
	if err != nil {
		return nil, err
	}
	p.saved, err = (&jose.JSONWebKey{Key: made, Algorithm: p.algorithm}).MarshalJSON()
	return p, err
}

func provedBy(key crypto.Signer, algorithm string) (*prover, error) {
	thumb, err := (&jose.JSONWebKey{Key: key.Public()}).Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("oauth: %w", err)
	}
	return &prover{key: key, algorithm: algorithm, thumb: base64.RawURLEncoding.EncodeToString(thumb)}, nil
}

// proverOf returns the prover for a stored token, or nil if its key is not available.
func (t *Transport) proverOf(tok *token) *prover {
	p, err := newProver(t.opts.DPoP, nil)
	if len(tok.Key) > 0 {
		p, err = savedProver(tok.Key)
	}
	if err != nil || p.thumb != tok.Thumb {
		return nil
	}
	return p
}

// savedProver returns the prover for a generated key that was stored.
func savedProver(saved []byte) (*prover, error) {
	var jwk jose.JSONWebKey
	if err := jwk.UnmarshalJSON(saved); err != nil {
		return nil, err
	}
	key, ok := jwk.Key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errNoKey
	}
	p, err := provedBy(key, string(jose.ES256))
	if err != nil {
		return nil, err
	}
	p.saved = saved
	return p, nil
}

// proof returns a proof for one request. access is the access token, or "".
func (p *prover) proof(method string, to *url.URL, nonce, access string) (string, error) {
	bare := *to
	bare.RawQuery, bare.Fragment, bare.RawFragment, bare.ForceQuery, bare.User = "", "", "", false, nil
	if bare.Path == "" {
		bare.Path = "/"
	}
	claims := map[string]any{"jti": rand.Text(), "htm": method, "htu": bare.String(), "iat": time.Now().Unix()}
	if nonce != "" {
		claims["nonce"] = nonce
	}
	if access != "" {
		sum := sha256.Sum256([]byte(access))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	opts := (&jose.SignerOptions{EmbedJWK: true}).WithType("dpop+jwt")
	return sign(p.key, jose.SignatureAlgorithm(p.algorithm), "", opts, claims)
}

// prove adds a proof to a token request.
func (t *Transport) prove(c *call, p *prover) error {
	u, err := parseURL(c.url)
	if err != nil {
		return err
	}
	proof, err := p.proof(c.method, u, t.nonces.get(u), "")
	c.header[http.CanonicalHeaderKey(headerProof)] = []string{proof}
	return err
}

// sign adds a token to a request to the server.
func (t *Transport) sign(req *http.Request, cred *credential) error {
	if cred.proof == nil {
		req.Header["Authorization"] = []string{"Bearer " + cred.Access}
		return nil
	}
	proof, err := cred.proof.proof(req.Method, req.URL, t.nonces.get(req.URL), cred.Access)
	req.Header["Authorization"] = []string{"DPoP " + cred.Access}
	req.Header[http.CanonicalHeaderKey(headerProof)] = []string{proof}
	return err
}

// nonces are the nonces for the next proofs, by the origin of the MCP server or
// authorization server that sent them.
type nonces struct {
	mu sync.Mutex
	at *lru.Map[string, string]
}

// maxOrigins bounds the number of nonces.
const maxOrigins = 8

func newNonces() nonces { return nonces{at: lru.New[string, string](maxOrigins)} }

func (n *nonces) get(u *url.URL) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	nonce, _ := n.at.Get(origin(u))
	return nonce
}

func (n *nonces) keep(u *url.URL, h http.Header) {
	nonce := h.Get(headerNonce)
	if nonce == "" || len(nonce) > 4<<10 || strings.ContainsAny(nonce, "\"\\ ") {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.at.Put(origin(u), nonce)
}
