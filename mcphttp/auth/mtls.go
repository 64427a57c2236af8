// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"crypto/x509"
	"net/http"
	"time"

	"github.com/go-psi/psi/mcp"
)

type mutualTLS struct {
	identify func(cert *x509.Certificate) (*mcp.Principal, error)
}

// MutualTLS returns a [Verifier] of client certificates. The TLS server must request and
// verify them (tls.Config.ClientCAs with tls.VerifyClientCertIfGiven or
// tls.RequireAndVerifyClientCert): unverified certificates are rejected. Clients must
// connect directly, not through a proxy that terminates TLS.
//
// identify returns the principal for a verified certificate, following the rules of
// [Verifier] for principals and errors. If identify is nil, the issuer is the distinguished
// name of the certificate's issuer, the subject is the certificate's first URI (as in
// SPIFFE) or, without one, its distinguished name, and the expiry is the certificate's.
func MutualTLS(identify func(cert *x509.Certificate) (*mcp.Principal, error)) Verifier {
	if identify == nil {
		identify = identity
	}
	return mutualTLS{identify}
}

func identity(cert *x509.Certificate) (*mcp.Principal, error) {
	p := &mcp.Principal{Issuer: cert.Issuer.String(), Subject: cert.Subject.String(), Expiry: cert.NotAfter}
	if len(cert.URIs) > 0 {
		p.Subject = cert.URIs[0].String()
	}
	if p.Subject == "" {
		return nil, NewInvalidTokenError("the client certificate has no subject")
	}
	return p, nil
}

func (m mutualTLS) Verify(r *http.Request) (*mcp.Principal, error) {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return nil, ErrNoCredentials
	}
	if len(r.TLS.VerifiedChains) == 0 || len(r.TLS.VerifiedChains[0]) == 0 {
		return nil, NewInvalidTokenError("the client certificate was not verified")
	}
	cert := r.TLS.VerifiedChains[0][0]
	if time.Now().After(cert.NotAfter) { // it may have expired since the connection was established
		return nil, NewInvalidTokenError("the client certificate has expired")
	}
	return m.identify(cert)
}

func (mutualTLS) Challenges() []string { return nil }
