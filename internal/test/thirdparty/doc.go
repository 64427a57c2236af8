// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package thirdparty holds three programs that use psi as a stranger would: their module is
// not part of psi's, so that the compiler refuses psi's internal packages. They prove that
// middleware, transports and extensions need nothing that only psi has.
//
// The package resultcache keeps results outside of the process; queue carries messages one by
// one over a message broker; counters is an extension with a method and a notification.
package thirdparty
