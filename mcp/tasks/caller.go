// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

// withStoredCaller returns req with its caller as the store returns it, so that the first run
// of a handler sees the same claims as later ones. It returns an error that names the claim
// that cannot be stored.
func withStoredCaller(req *mcp.Request) (*mcp.Request, error) {
	if req.Principal == nil {
		return req, nil
	}
	raw, err := strictjson.Marshal(req.Principal)
	if err != nil {
		return nil, callerError(req.Principal, err)
	}
	stored := req.Clone()
	stored.Principal = new(mcp.Principal)
	return stored, strictjson.UnmarshalWith(exactNumbers, raw, stored.Principal)
}

// callerError returns the error for a caller that cannot be encoded as JSON.
func callerError(p *mcp.Principal, err error) error {
	for _, name := range slices.Sorted(maps.Keys(p.Claims)) {
		if _, err := strictjson.Marshal(p.Claims[name]); err != nil {
			return mcp.Errorf(mcp.CodeInternalError, "the claim %q of the caller cannot be stored with a task, because it cannot be encoded as JSON: %w", name, err)
		}
	}
	return mcp.Errorf(mcp.CodeInternalError, "the caller cannot be stored with a task: %w", err)
}

// exactNumbers decodes the numbers in claims: as a float64, or as a json.Number if that is an
// integer that a float64 cannot represent.
var exactNumbers = jsonv2.WithUnmarshalers(jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, v *any) error {
	if d.PeekKind() != '0' {
		return strictjson.ErrSkip
	}
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	if f, err := strconv.ParseFloat(string(raw), 64); err == nil && (!isInteger(raw) || string(raw) == decimal(f)) {
		*v = f
	} else {
		*v = json.Number(raw)
	}
	return nil
}))

// isInteger reports whether a JSON number has neither a fraction nor an exponent.
func isInteger(raw []byte) bool { return !bytes.ContainsAny(raw, ".eE") }
