// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command stores measures the latency that a shared store adds to what a client does, and
// writes a table in Markdown:
//
//	go -C internal/compare run ./stores [-n 200]
//
// Client, server and NATS are one process; Redis, or Valkey, is run if it is installed. A
// figure is the median of all times, one after the other. The last column counts the steps
// of the store in one of them: a call of the newest revision that asks nothing has none.
package main
