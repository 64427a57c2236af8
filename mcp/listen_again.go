// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"time"

	"github.com/go-psi/psi/internal/pause"
)

// listenAgain calls listen, which subscribes to changes, until ctx is done or there
// is nobody who could tell of changes. A subscription that ends otherwise, as one at a
// server that is replaced by another, needs a successor, and what changed between the
// two nobody has told of.
func listenAgain(ctx context.Context, listen func(again bool) error) {
	delay := firstPause
	for again := false; ; again = true {
		began := time.Now()
		err := listen(again)
		if CodeOf(err) == CodeMethodNotFound || errors.Is(err, ErrClosed) {
			return
		}
		if time.Since(began) > maxPause {
			delay = firstPause
		}
		if pause.For(ctx, delay) != nil {
			return
		}
		delay = min(2*delay, maxPause)
	}
}

// How long who has ended a subscription is left alone: the first time, and at most.
const (
	firstPause = time.Second
	maxPause   = time.Minute
)
