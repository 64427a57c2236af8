// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"crypto"
	"encoding/base64"
	"net/http"

	"github.com/go-jose/go-jose/v4"
)

// VerifyProof verifies the proof of a request that has no access token yet, at the token
// endpoint of an authorization server (RFC 9449, section 5). It returns the thumbprint of
// the key, which is the claim cnf.jkt of the token to issue, or "" if the request has no
// proof. Its errors have the same meaning as the errors of a [Verifier].
func (d *DPoP) VerifyProof(r *http.Request) (jkt string, err error) {
	d.mustBeMade()
	values := r.Header[headerDPoP]
	if len(values) == 0 {
		return "", nil
	}
	if len(values[0]) > maxProof {
		return "", unproven("the proof is longer than %d bytes", maxProof)
	}
	signed, err := jose.ParseSignedCompact(values[0], d.algorithms)
	if err != nil || signed.Signatures[0].Protected.JSONWebKey == nil {
		return "", unproven("the proof is not a JWT with a public key (jwk), signed with an allowed algorithm")
	}
	sum, err := signed.Signatures[0].Protected.JSONWebKey.Thumbprint(crypto.SHA256)
	if err != nil {
		return "", unproven("the key of the proof is wrong")
	}
	jkt = base64.RawURLEncoding.EncodeToString(sum)
	if err := d.prove(r, "", jkt); err != nil {
		return "", err
	}
	return jkt, nil
}
