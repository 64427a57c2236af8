// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"slices"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// Versions returns the newest revision of each era that the path supports, newest first.
func (p Path) Versions() []string {
	legacy := mcp.LegacyVersions()[0]
	if p.Legacy {
		return []string{legacy}
	}
	return []string{mcp.LatestVersion, legacy}
}

// eraOf returns the name of the era of version, and the version to test in that era. In the
// legacy era, it is Options.Version if that is a legacy revision.
func (cl *Client) eraOf(version string) (era, tested string) {
	if version == mcp.LatestVersion {
		return "modern", version
	}
	if slices.Contains(mcp.LegacyVersions(), cl.Options.Version) {
		version = cl.Options.Version
	}
	return "legacy", version
}

// serveSSE serves HTTP+SSE.
func serveSSE(tb testing.TB, cl *Client, h mcp.Handler) transport.Transport {
	url, opts := onLoopback(tb, cl, mcphttp.NewSSEHandler(h, &mcphttp.Options{Logger: logger(tb)}), "")
	return mcphttp.NewSSETransport(url, opts)
}
