// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package recording writes conversations between clients and servers to files, and replays
// them. A recording is a file of lines, each with one message as JSON and what is known
// about it: when it was sent, in which direction, in which era and session. Secrets are
// redacted before they are written. A bug report is a recording.
//
// A [Recorder] writes what passes a transport of a client, or the handler of a server.
// [Read] reads a recording. [Compare] finds the first difference between two of them. A
// [Replay] takes the place of one of the two sides: it answers a client as the server did,
// or drives a server as the client did, and reports the line at which they part.
//
// Package mcptest has the same for tests.
package recording
