// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// A list from which the part of a mount is missing is not to be kept: the part may be back the
// next time. That there is no such list, or none for the caller, is no reason.
func TestHintsOfIncompleteList(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want int64
	}{
		"not available": {errors.New("connection refused"), 0},
		"not allowed":   {mcp.NewInsufficientScopeError("read"), time.Hour.Milliseconds()},
		"no list":       {mcp.NewMethodNotFoundError(mcp.MethodListTools), time.Hour.Milliseconds()},
	} {
		t.Run(name, func(t *testing.T) {
			opts := quiet()
			opts.ListCache = mcp.CacheFor(time.Hour, mcp.CachePublic)
			mux := mcp.NewMux("m", "v1", opts)
			mux.Tool("own", says("hello"))
			mux.Mount("d_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return nil, test.err }))
			res, err := mcptest.Connect(t, mux).ListTools(t.Context(), nil)
			if err != nil || len(res.Tools) != 1 || res.TTLMs == nil || *res.TTLMs != test.want {
				t.Errorf("listed %+v, %v; want a TTL of %d", res, err, test.want)
			}
		})
	}
}
