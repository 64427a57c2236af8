// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package browser tests packages mcp/apps/host and mcphttp/debug in a real browser. The
// official libraries for pages and for hosts serve as peers. It is a separate module
// because its browser dependencies are large. The tests need a browser and npm packages;
// run.sh installs them and runs the tests.
package browser
