// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-psi/psi/internal/bufpool"
	"github.com/go-psi/psi/mcp"
)

// MaxResult rejects results whose response, in the encoding of the caller's revision, is
// longer than the given number of bytes. It replaces a tool result by a failed one
// (isError) that tells the model the limit, so that the model can request less. All other
// results become an error with [mcp.CodeTooLarge].
//
// Every result is encoded to measure it. MaxResult does not limit the memory that handlers
// use to produce a result. It panics if bytes is not positive.
func MaxResult(bytes int) mcp.Middleware {
	mustBePositive("MaxResult: the size", bytes)
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			res, err := next.ServeMCP(ctx, req)
			if err != nil || res == nil || encodedLen(req, res) <= bytes {
				return res, err
			}
			text := fmt.Sprintf("the result is larger than the %d bytes that are allowed; ask for less of it", bytes)
			if r, ok := res.(*mcp.CallToolResult); ok {
				return tooLarge(r, text), nil
			}
			return nil, mcp.Errorf(mcp.CodeTooLarge, "%s", text)
		})
	}
}

// tooLarge returns the result that replaces res.
func tooLarge(res *mcp.CallToolResult, text string) mcp.Result {
	err := res.Err()
	if err == nil {
		err = errors.New(text)
	}
	failed := mcp.ErrorResult(err)
	failed.Content = mcp.Contents{mcp.Text(text)} // instead of the text of err
	return failed
}

// encodedLen returns the length of the response to req.
func encodedLen(req *mcp.Request, res mcp.Result) int {
	buf := bufpool.Get()
	defer buf.Put()
	buf.B = mcp.AppendResponse(buf.B, req, res, nil)
	return len(buf.B)
}
