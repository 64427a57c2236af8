// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package legacyhttp serves the older revisions over HTTP: sessions, with streams that clients
// can resume and replicas can take over, and HTTP+SSE, the transport of 2024-11-05. The
// messages themselves are translated by package legacyserver.
package legacyhttp
