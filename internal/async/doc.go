// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package async contains what goroutines of all packages share: waiting with a context,
// trying again, renewing subscriptions, values that wait for a receiver, one execution for many callers,
// responses that are awaited, and counting what is in flight.
package async
