// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// What a server writes into its errors neither controls the terminal of whoever prints
// them nor begins another line of a log. The message itself stays as it was sent.
func TestFindingS32ErrorTextIsPrintable(t *testing.T) {
	const message = "gone\x1b]0;pwned\x07\r\nlevel=INFO msg=\"all is well\" \u202efdp.exe\u2069 \u009b2J"
	server := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, &mcp.Error{Code: 7, Message: message}
	})
	for _, version := range bothEras {
		c := connect(t, failsTools(server), &mcp.ClientOptions{Version: version})
		_, err := c.CallTool(t.Context(), tool("x", ""))
		coded, ok := errors.AsType[*mcp.Error](err)
		if !ok || coded.Message != message {
			t.Fatalf("%s: got %v", version, err)
		}
		if text := err.Error(); strings.ContainsAny(text, "\x1b\x07\r\n\u202e\u2069\u009b") {
			t.Errorf("%s: the text is %q", version, text)
		}
	}
}

// failsTools is a server whose tools/call is served by h.
func failsTools(h mcp.Handler) mcp.Handler {
	mux := hello()
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodCallTool {
				return h.ServeMCP(ctx, req)
			}
			return next.ServeMCP(ctx, req)
		})
	})
	return mux
}

// An Error that wraps several causes is all of them.
func TestFindingCL5ErrorfWithSeveralCauses(t *testing.T) {
	err := mcp.Errorf(1, "%w after %w", io.ErrUnexpectedEOF, fs.ErrNotExist)
	if !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the causes are lost: %#v", err)
	}
	if got, want := err.Error(), "unexpected EOF after file does not exist (code 1)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if one := mcp.Errorf(1, "one: %w", io.EOF); !errors.Is(one.Cause, io.EOF) {
		t.Errorf("the cause is %v", one.Cause)
	}
}
