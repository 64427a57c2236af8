// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package server is the server side of all transports and revisions. A transport passes each
// message to Server.Accept, which determines the revision and validates the message. The
// resulting Call serves the message and encodes the response.
//
// Older revisions have a Session, which the files legacy_*.go implement.
package server
