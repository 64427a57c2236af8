// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/base64"

	"github.com/go-psi/psi/internal/jsonscan"
)

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
	c := new(cursor)
	given := memberOf(req.Params(), "cursor")
	switch {
	case given == nil || string(given) == "null":
		return c, nil
	case given[0] != '"':
		return nil, Errorf(CodeInvalidParams, "params.cursor must be a string")
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(string(jsonscan.Unquote(given)))
	if err != nil || unmarshal(raw, c) != nil {
		return nil, badCursor()
	}
	return c, nil
}

func badCursor() *Error {
	return Errorf(CodeInvalidParams, "params.cursor is not one that this server gave out; start again without it")
}
