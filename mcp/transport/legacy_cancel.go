// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package transport

import "github.com/go-psi/psi/internal/revision"

// mayBeCancelled reports whether a client may cancel a request. It must not cancel
// initialize (basic/utilities/cancellation).
func mayBeCancelled(method string) bool { return method != revision.Initialize }
