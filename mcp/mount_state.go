// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"

	"github.com/go-psi/psi/internal/jsonscan"
)

// This file binds the state of a mounted server to the caller of the mux. That server
// cannot: all that it knows of the caller is the connection that they share. A mounted
// mux binds its states itself.

// sealState wraps the state of a mounted server in the seal of the mux.
func (mt *mount) sealState(req *Request, res Result) (Result, error) {
	r, ok := res.(*InputRequired)
	if _, isMux := mt.handler.(*Mux); isMux || !ok || r.RequestState == nil {
		return res, nil
	}
	token, err := mt.parent.sealer.seal(req, &replayState{Mounted: r.RequestState})
	if err != nil {
		return nil, err
	}
	sealed := *r
	sealed.RequestState = &token
	return &sealed, nil
}

// openState returns the request with the state as the mounted server made it.
func (mt *mount) openState(ctx context.Context, req, inner *Request) (*Request, error) {
	raw := req.params.requestState()
	if _, isMux := mt.handler.(*Mux); isMux || raw == nil {
		return inner, nil
	}
	state, err := mt.parent.sealer.open(ctx, req, jsonscan.Text(raw))
	if err != nil {
		return nil, err
	}
	params := []byte{'{'}
	if state.Mounted != nil {
		params = append(jsonscan.AppendKey(params, "requestState"), mustMarshal(*state.Mounted)...)
	}
	opened := inner.Clone()
	return opened, opened.setParams(jsonscan.AppendMembers(params, inner.Params(), "requestState"))
}
