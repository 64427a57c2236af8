// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "encoding/base64"

// cursor is where a list goes on. The own items of a mux come first, by name;
// then those of its sources, each in its own order. It names items rather than
// positions, so that a change to the list neither repeats nor skips any that
// stayed.
type cursor struct {
	After  string  `json:"k,omitempty"` // the last own item that was listed
	Source *string `json:"s,omitzero"`  // own items are done: the source to go on with
	Inner  *string `json:"c,omitzero"`  // the cursor of that source
}

func (c *cursor) String() string { return base64.RawURLEncoding.EncodeToString(mustMarshal(c)) }

func cursorOf(req *Request) (*cursor, error) {
	var p ListParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	c := new(cursor)
	if p.Cursor == nil {
		return c, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(*p.Cursor)
	if err != nil || unmarshal(raw, c) != nil {
		return nil, badCursor()
	}
	return c, nil
}

func badCursor() *Error {
	return Errorf(CodeInvalidParams, "params.cursor is not one that this server gave out; start again without it")
}
