// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/golden"
	"github.com/go-psi/psi/mcp"
)

// What options mean that are nil, and those whose numbers are 0, negative or positive.
func TestDefaultOptions(t *testing.T) {
	var text strings.Builder
	text.WriteString(golden.Options(new(mcp.DefaultMuxOptions(nil))))
	for _, n := range []int64{0, -1, 7} {
		text.WriteString(golden.Options(new(mcp.DefaultMuxOptions(golden.SetAll(new(mcp.MuxOptions), n)))))
	}
	text.WriteString(golden.Options(new(mcp.DefaultFileServerOptions(nil))))
	for _, n := range []int64{0, -1, 7} {
		text.WriteString(golden.Options(new(mcp.DefaultFileServerOptions(golden.SetAll(new(mcp.FileServerOptions), n)))))
	}
	text.WriteString(golden.Options(new(mcp.DefaultClientOptions(nil))))
	for _, n := range []int64{0, -1, 7} {
		text.WriteString(golden.Options(new(mcp.DefaultClientOptions(golden.SetAll(new(mcp.ClientOptions), n)))))
	}
	text.WriteString(golden.Options(new(mcp.DefaultReconnectOptions(nil))))
	for _, n := range []int64{0, -1, 7} {
		text.WriteString(golden.Options(new(mcp.DefaultReconnectOptions(golden.SetAll(new(mcp.ReconnectOptions), n)))))
	}
	golden.Check(t, "defaults", text.String())
}
