// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
)

const wellKnown = "/.well-known/oauth-protected-resource"

// Metadata is what a protected resource says about itself (RFC 9728, section 2): above
// all, which authorization servers issue tokens for it.
type Metadata struct {
	// Resource is the URL that clients use for the server. They compare it with the
	// one they have.
	Resource string `json:"resource"`
	// AuthorizationServers are the issuers; at least one.
	AuthorizationServers []string `json:"authorization_servers"`
	// ScopesSupported should be the small set that is asked for first.
	ScopesSupported []string `json:"scopes_supported,omitzero"`
	// BearerMethodsSupported says where tokens may stand. Nil means the only place
	// that this package looks at, "header".
	BearerMethodsSupported []string `json:"bearer_methods_supported"`

	ResourceName          string `json:"resource_name,omitzero"` // for people
	ResourceDocumentation string `json:"resource_documentation,omitzero"`
	ResourcePolicyURI     string `json:"resource_policy_uri,omitzero"`
	ResourceTOSURI        string `json:"resource_tos_uri,omitzero"`

	// TLSClientCertificateBoundAccessTokens, DPoPSigningAlgValuesSupported and
	// DPoPBoundAccessTokensRequired tell what tokens are bound to.
	TLSClientCertificateBoundAccessTokens bool     `json:"tls_client_certificate_bound_access_tokens,omitzero"`
	DPoPSigningAlgValuesSupported         []string `json:"dpop_signing_alg_values_supported,omitzero"`
	DPoPBoundAccessTokensRequired         bool     `json:"dpop_bound_access_tokens_required,omitzero"`
}

// MetadataURL is where clients look for the metadata of a resource: the well-known
// path stands before the resource's own (RFC 9728, section 3.1). It panics if the
// resource is not as in [Options].
func MetadataURL(resource string) string {
	u := mustResource(resource)
	text := u.Scheme + "://" + u.Host + metadataPath(u)
	if u.RawQuery != "" {
		text += "?" + u.RawQuery
	}
	return text
}

// MetadataPath is the path of [MetadataURL], for a router. It panics as MetadataURL
// does.
func MetadataPath(resource string) string { return metadataPath(mustResource(resource)) }

func metadataPath(u *url.URL) string { return wellKnown + strings.TrimSuffix(u.EscapedPath(), "/") }

// MetadataHandler serves metadata, to everyone and to pages of any origin: it goes
// outside of [Require], at [MetadataPath]. It panics if the metadata has no
// authorization server, or its resource is not as in [Options].
func MetadataHandler(m *Metadata) http.Handler {
	mustResource(m.Resource)
	if len(m.AuthorizationServers) == 0 {
		panic(fmt.Sprintf("auth: the metadata of %q must name an authorization server", m.Resource))
	}
	doc := *m
	if doc.BearerMethodsSupported == nil {
		doc.BearerMethodsSupported = []string{"header"}
	}
	body, err := json.Marshal(&doc)
	if err != nil {
		panic(fmt.Sprintf("auth: the metadata of %q: %v", m.Resource, err))
	}
	return metadataHandler(body)
}

// metadataHandler is a document.
type metadataHandler []byte

func (body metadataHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", "*")
	h.Set("X-Content-Type-Options", "nosniff")
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(body)))
		h.Set("Cache-Control", "public, max-age=3600")
		_, _ = w.Write(body) // a client that is gone needs no answer
	case http.MethodOptions:
		h.Set("Access-Control-Allow-Methods", "GET, HEAD")
		h.Set("Access-Control-Allow-Headers", "*")
		h.Set("Access-Control-Max-Age", "86400")
		w.WriteHeader(http.StatusNoContent)
	default:
		h.Set("Allow", "GET, HEAD, OPTIONS")
		http.Error(w, "metadata can only be read", http.StatusMethodNotAllowed)
	}
}

// mustResource parses the URL of a resource.
func mustResource(resource string) *url.URL {
	u, err := url.Parse(resource)
	if err == nil {
		err = checkURL(u)
	}
	if err == nil && (strings.Contains(resource, "#") || u.User != nil) {
		err = errors.New("it must have no fragment and no user")
	}
	if err != nil {
		panic(fmt.Sprintf("auth: the resource %q: %v", resource, err))
	}
	return u
}
