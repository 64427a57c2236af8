// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package resultcache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/go-psi/psi/mcp"
)

// Key of the metadata that marks a result from the cache.
const Key = "example.com/cached"

// A Store keeps bytes, for example in a server that all replicas share. Get returns nil for a
// key that is absent.
type Store interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Set(ctx context.Context, key string, value []byte) error
}

// New returns middleware that answers repeated calls of the tools for which isPure reports
// true, and repeated reads, from the store. What one caller was told is not told to others.
// Failed tools and questions are not kept. If the store fails, the call is served without it.
func New(s Store, isPure func(tool string) bool) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if kind := req.Kind(); req.Method == mcp.MethodSubscribe || kind != mcp.KindResource && (kind != mcp.KindTool || !isPure(req.Name())) {
				return next.ServeMCP(ctx, req)
			}
			key := keyOf(req)
			if raw, err := s.Get(ctx, key); err == nil && raw != nil {
				if res, err := mcp.UnmarshalResult(req.Method, raw); err == nil {
					return mcp.WithResultMeta(res, Key, true), nil
				}
			}
			res, err := next.ServeMCP(ctx, req)
			if err != nil || !mayKeep(res) {
				return res, err
			}
			if raw, err := mcp.MarshalResult(res); err == nil {
				_ = s.Set(ctx, key, raw) // the next call is served without it
			}
			return res, nil
		})
	}
}

func mayKeep(res mcp.Result) bool {
	switch r := res.(type) {
	case *mcp.CallToolResult:
		return !r.IsError
	case *mcp.ReadResourceResult:
		return true
	}
	return false // a question, or a result of an extension
}

// keyOf returns the key of a request: its caller, method, name and arguments, but not its
// metadata.
func keyOf(req *mcp.Request) string {
	var key bytes.Buffer
	fmt.Fprintf(&key, "%q %q %q %s", req.Principal.Key(), req.Method, req.Name(), req.Arguments())
	sum := sha256.Sum256(key.Bytes())
	return hex.EncodeToString(sum[:])
}
