// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "github.com/go-psi/psi/internal/jsonscan"

// cursor is where a list goes on. The own items of a mux come first, by name;
// then those of its sources, each in its own order. It names items rather than
// positions, so that a change to the list neither repeats nor skips any that
// stayed.
type cursor struct {
	After  string  `json:"k,omitempty"` // the last own item that was listed
	Source *string `json:"s,omitzero"`  // own items are done: the source to go on with
	Inner  *string `json:"c,omitzero"`  // the cursor of that source
}

// sealCursor is c as text for the sender of req. It is sealed, for the items that it
// names can be some that middleware hides.
func (s *sealer) sealCursor(req *Request, c *cursor) string {
	return s.ring.Seal(mustMarshal(c), s.listBinding(req))
}

// listBinding digests what must be the same for all pages of a list.
func (s *sealer) listBinding(req *Request) []byte {
	return digestParts(append(s.bindingOf(req), "cursor"))
}

// cursor is where the list that req asks for goes on.
func (s *sealer) cursor(req *Request) (*cursor, error) {
	c := new(cursor)
	given := memberOf(req.Params(), "cursor")
	switch {
	case given == nil || string(given) == "null":
		return c, nil
	case given[0] != '"':
		return nil, Errorf(CodeInvalidParams, "params.cursor must be a string")
	}
	raw, err := s.ring.Open(string(jsonscan.Unquote(given)), s.listBinding(req))
	if err != nil || unmarshal(raw, c) != nil {
		return nil, badCursor()
	}
	return c, nil
}

func badCursor() *Error {
	return Errorf(CodeInvalidParams, "params.cursor is not one that this server gave out; start again without it")
}
