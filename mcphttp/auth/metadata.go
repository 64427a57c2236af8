// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/go-psi/psi/internal/redact"
)

const wellKnown = "/.well-known/oauth-protected-resource"

// Metadata is the metadata of a protected resource (RFC 9728, section 2). Most importantly,
// it lists the authorization servers that issue tokens for the resource.
type Metadata struct {
	// Resource is the URL that clients use for the server, such as
	// "https://mcp.example.com/mcp": https, or http on a loopback address. Clients compare it
	// with the URL that they connect to.
	Resource string `json:"resource"`
	// AuthorizationServers are the issuer URLs of the authorization servers. There must be
	// at least one.
	AuthorizationServers []string `json:"authorization_servers"`
	// ScopesSupported should be the small set of scopes that clients request first.
	ScopesSupported []string `json:"scopes_supported,omitzero"`
	// BearerMethodsSupported lists where tokens may be sent. Nil means "header", the only
	// place that this package reads.
	BearerMethodsSupported []string `json:"bearer_methods_supported"`

	ResourceName          string `json:"resource_name,omitzero"` // human-readable
	ResourceDocumentation string `json:"resource_documentation,omitzero"`
	ResourcePolicyURI     string `json:"resource_policy_uri,omitzero"`
	ResourceTOSURI        string `json:"resource_tos_uri,omitzero"`

	// TLSClientCertificateBoundAccessTokens, DPoPSigningAlgValuesSupported and
	// DPoPBoundAccessTokensRequired describe how tokens are bound.
	TLSClientCertificateBoundAccessTokens bool     `json:"tls_client_certificate_bound_access_tokens,omitzero"`
	DPoPSigningAlgValuesSupported         []string `json:"dpop_signing_alg_values_supported,omitzero"`
	DPoPBoundAccessTokensRequired         bool     `json:"dpop_bound_access_tokens_required,omitzero"`
}

// MetadataURL returns the URL at which clients look for the metadata of a resource. It
// inserts the well-known path before the resource's own path (RFC 9728, section 3.1).
// resource is as in [Metadata].
func MetadataURL(resource string) (string, error) {
	u, err := parseResource(resource)
	if err != nil {
		return "", err
	}
	text := u.Scheme + "://" + u.Host + metadataPath(u)
	if u.RawQuery != "" {
		text += "?" + u.RawQuery
	}
	return text, nil
}

// MetadataPath returns the path of [MetadataURL], for use with a router.
func MetadataPath(resource string) (string, error) {
	u, err := parseResource(resource)
	if err != nil {
		return "", err
	}
	return metadataPath(u), nil
}

func metadataPath(u *url.URL) string { return wellKnown + strings.TrimSuffix(u.EscapedPath(), "/") }

// MetadataHandler returns a handler that serves m without authentication, including to web
// pages of any origin. Register it at [MetadataPath], outside of [Require]. MetadataHandler
// panics if m is nil or lists no authorization server, or if MetadataPath rejects its
// Resource.
func MetadataHandler(m *Metadata) http.Handler {
	if m == nil {
		panic("auth: MetadataHandler wants metadata")
	}
	if _, err := parseResource(m.Resource); err != nil {
		panic(err.Error())
	}
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

// A metadataHandler serves a JSON document.
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
		_, _ = w.Write(body) // the client may be gone
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

// parseResource parses the URL of a resource.
func parseResource(resource string) (*url.URL, error) {
	u, err := parseEndpoint("the resource", resource)
	if err == nil && (strings.Contains(resource, "#") || u.User != nil) {
		err = fmt.Errorf("auth: the resource %q: it must have no fragment and no user", redact.URL(resource))
	}
	return u, err
}
