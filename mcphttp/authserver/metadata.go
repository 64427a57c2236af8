// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"net/http"

	"github.com/go-json-experiment/json"
)

// metadata is the metadata of the authorization server (RFC 8414).
type metadata struct {
	Issuer        string   `json:"issuer"`
	Authorize     string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Register      string   `json:"registration_endpoint"`
	Revoke        string   `json:"revocation_endpoint"`
	JWKS          string   `json:"jwks_uri"`
	Scopes        []string `json:"scopes_supported,omitzero"`
	ResponseTypes []string `json:"response_types_supported"`
	ResponseModes []string `json:"response_modes_supported"`
	GrantTypes    []string `json:"grant_types_supported"`
	Challenges    []string `json:"code_challenge_methods_supported"`
	AuthMethods   []string `json:"token_endpoint_auth_methods_supported"`
	RevokeMethods []string `json:"revocation_endpoint_auth_methods_supported"`
	IssuerParam   bool     `json:"authorization_response_iss_parameter_supported"`
	Documents     bool     `json:"client_id_metadata_document_supported"`
	ProofAlgs     []string `json:"dpop_signing_alg_values_supported"`
}

// The ways in which a client authenticates.
const (
	methodNone  = "none"
	methodBasic = "client_secret_basic"
	methodPost  = "client_secret_post"
)

// documents returns what is the same for everyone, by path. Some clients look only for the
// OpenID document.
func (s *Server) documents() map[string]http.Handler {
	methods := []string{methodNone, methodBasic, methodPost}
	doc, err := json.Marshal(&metadata{
		Issuer: s.issuer, Authorize: s.issuer + "/authorize", Token: s.issuer + "/token", Register: s.issuer + "/register",
		Revoke: s.issuer + "/revoke", JWKS: s.issuer + "/jwks", Scopes: s.opts.Scopes,
		ResponseTypes: []string{"code"}, ResponseModes: []string{"query"}, GrantTypes: []string{"authorization_code", "refresh_token"},
		Challenges: []string{"S256"}, AuthMethods: methods, RevokeMethods: methods, IssuerParam: true, Documents: true,
		ProofAlgs: []string{"ES256", "ES384", "ES512", "EdDSA", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512"},
	})
	if err != nil { // cannot happen
		panic(err)
	}
	return map[string]http.Handler{
		"/.well-known/oauth-authorization-server": document(doc),
		"/.well-known/openid-configuration":       document(doc),
		"/jwks":                                   document(s.signer.public),
	}
}

// A document is JSON that pages of any origin may read.
type document []byte

func (d document) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("Access-Control-Allow-Headers", "*")
	h.Set("X-Content-Type-Options", "nosniff")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		h.Set("Content-Type", "application/json")
		h.Set("Cache-Control", "public, max-age=300")
		_, _ = w.Write(d) // the client may be gone
	case http.MethodOptions:
		w.WriteHeader(http.StatusNoContent)
	default:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		http.Error(w, "metadata can only be read", http.StatusMethodNotAllowed)
	}
}
