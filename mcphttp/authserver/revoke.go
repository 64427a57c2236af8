// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"context"
	"net/http"
)

// revoke ends the grant of a refresh or access token (RFC 7009). A token that is not valid
// needs no revocation, and is no error.
func (s *Server) revoke(r *http.Request) (any, error) {
	form, err := formOf(r)
	if err != nil {
		return nil, err
	}
	client, err := s.authenticate(r, form)
	if err != nil {
		return nil, err
	}
	var g grant
	id := s.grantOf(r.Context(), form.Get("token"))
	if err := s.get(r.Context(), kindGrant, id, &g); gone(err) || err == nil && g.Client != client {
		return struct{}{}, nil
	} else if err != nil {
		return nil, err
	}
	if err := s.take(r.Context(), kindGrant, id, &g); err != nil && !gone(err) {
		return nil, err
	}
	return struct{}{}, nil
}

// grantOf returns the ID of the grant of a token, or "".
func (s *Server) grantOf(ctx context.Context, token string) string {
	var text refreshText
	if s.open(kindRefresh, token, &text) == nil {
		return text.Grant
	}
	p, err := s.tokens.VerifyToken(ctx, token)
	if err != nil {
		return ""
	}
	id, _ := p.Claims[claimGrant].(string)
	return id
}
