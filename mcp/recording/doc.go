// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package recording records conversations between clients and servers in files, and replays
// them. A recording is a file of lines. Each line holds one message as JSON, with its time,
// direction, era and session. Secrets are redacted before they are written. Attach a
// recording to a bug report.
//
// A [Recorder] records the messages of a client's transport or of a server's handler.
// [Read] reads a recording. [Compare] finds the first difference between two recordings. A
// [Replay] takes the place of one side: it answers a client as the server did, or drives a
// server as the client did, and reports the line at which they diverge.
//
// Package mcptest provides the same for tests.
//
// This package is a tool, as docs/stability.md defines it: its API may change.
package recording
