// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package browser tests mcp/apps/host, mcphttp/debug and the pages of mcphttp/authserver in a
// real browser, and has the MCP Inspector log in there. The official libraries for pages and
// for hosts serve as peers. It is a separate module because its browser dependencies are large.
// The tests need a browser and npm packages; run.sh installs them and runs the tests, except
// for the Inspector, which internal/test/interop/run.sh installs and runs.
package browser
