// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package callclock limits how long a server may take to answer a request. Transports and
// authorization can pause the clock of a request while they wait for something else.
package callclock
