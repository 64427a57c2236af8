// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package legacyclient connects to servers of the older revisions, from 2024-11-05 to
// 2025-11-25, and makes them look like servers of the newest one. A [Conn] sits between a
// client and a transport. It determines which revision the server speaks. If it is the
// newest, the Conn passes all messages through. For an older server, it maintains the
// session, answers the server's questions by calling the client, and translates messages.
package legacyclient
