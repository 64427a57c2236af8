// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package browser tests package mcp/apps/host in a real browser, with the official library for
// pages and that for hosts on the other side, and package mcphttp/debug. It is a module of its own, because what drives a
// browser is large. Its tests need a browser and npm's packages: run.sh installs them, and runs
// the tests.
package browser
