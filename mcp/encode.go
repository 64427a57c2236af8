// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/mcp/transport"
)

// appendResponse appends the response to req, as the newest revision has it, to dst: the
// result, or the error if err is not nil. A result that cannot be encoded becomes an
// internal error.
func appendResponse(dst []byte, req *Request, res Result, err error) []byte {
	if err != nil {
		return appendErrorResponse(dst, req.ID, asError(err))
	}
	whole, err := appendResult(dst, req, res)
	if err != nil {
		return appendErrorResponse(dst, req.ID, Errorf(CodeInternalError, "the result could not be encoded: %w", err))
	}
	return whole
}

// errPanicked is why a result could not be encoded whose encoding panics: it has a
// nil where there must be something, say. What the panic says is not for the peer.
var errPanicked = errors.New("encoding it panicked")

// appendResult appends a response that is no error. It keeps what handlers return
// from ending the process.
func appendResult(dst []byte, req *Request, res Result) (whole []byte, err error) {
	defer func() {
		if recover() != nil {
			err = errPanicked
		}
	}()
	if err := checkResult(res); err != nil {
		return nil, err
	}
	whole = append(transport.AppendHead(dst, req.ID), `,"result":`...)
	if whole, err = appendModern(whole, req, res); err != nil {
		return nil, err
	}
	return append(whole, '}'), nil
}

// checkResult checks the JSON that a handler made by hand.
func checkResult(res Result) error {
	if r, ok := res.(*CallToolResult); ok && r.StructuredContent != nil {
		if err := jsonscan.Valid(r.StructuredContent, 0); err != nil {
			return fmt.Errorf("structuredContent is not JSON: %w", err)
		}
	}
	return nil
}

// appendErrorResponse appends an error response to dst. A zero id is left out.
func appendErrorResponse(dst []byte, id ID, err error) []byte {
	return transport.AppendError(dst, id, toWire(err))
}

// headMembers are the members of a result that depend on the era; eras write
// them at the head of the object.
var headMembers = []string{"resultType", "_meta", "ttlMs", "cacheScope"}

// appendBody continues an object whose head is written with the members of res
// that no era touches.
func appendBody(dst []byte, res Result, form toolForm) ([]byte, error) {
	switch r := res.(type) {
	case *CallToolResult:
		if len(r.Extra) == 0 {
			return appendCallToolBody(dst, r)
		}
	case *ListToolsResult:
		if len(r.Extra) == 0 {
			return appendListToolsBody(dst, r, form)
		}
	}
	body, err := marshal(res)
	if err != nil {
		return nil, err
	}
	return appendMembersBut(dst, body, headMembers), nil
}

func appendCallToolBody(dst []byte, r *CallToolResult) ([]byte, error) {
	dst = appendKey(dst, "content")
	dst, err := appendContents(dst, r.Content)
	if err != nil {
		return nil, err
	}
	if r.StructuredContent != nil {
		dst = appendKey(dst, "structuredContent")
		dst = append(dst, r.StructuredContent...) // checked by checkResult
	}
	if r.IsError {
		dst = append(appendKey(dst, "isError"), "true"...)
	}
	return append(dst, '}'), nil
}

func appendListToolsBody(dst []byte, r *ListToolsResult, form toolForm) ([]byte, error) {
	dst = append(appendKey(dst, "tools"), '[')
	dst = slices.Grow(dst, sizeOfKept(r.Tools, form))
	for i, t := range r.Tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendTool(dst, t, form); err != nil {
			return nil, err
		}
	}
	dst = append(dst, ']')
	if r.NextCursor != nil {
		dst = appendKey(dst, "nextCursor")
		dst = jsonscan.AppendString(dst, *r.NextCursor)
	}
	return append(dst, '}'), nil
}

// appendRaw appends JSON that a handler made. What is not JSON is refused: it would
// break the message, or put members into it that are not the handler's to set.
func appendRaw(dst []byte, what string, raw json.RawMessage) ([]byte, error) {
	if err := jsonscan.Valid(raw, 0); err != nil {
		return nil, fmt.Errorf("%s is not JSON: %w", what, err)
	}
	return append(dst, raw...), nil
}

// appendKey begins a member of the object that dst ends in.
func appendKey(dst []byte, key string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, key...)
	return append(dst, `":`...)
}

// appendMembersBut continues the object that dst ends in with the members of
// the encoded object body, except some, and closes it.
func appendMembersBut(dst, body []byte, except []string) []byte {
	s := jsonscan.Get(body, 0)
	defer s.Release()
	s.Object()
	for s.Member() {
		if slices.Contains(except, string(s.Name())) {
			s.Skip()
			continue
		}
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = jsonscan.AppendString(dst, s.Name())
		dst = append(dst, ':')
		dst = append(dst, s.Value()...)
	}
	return append(dst, '}')
}
