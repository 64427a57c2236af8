// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"errors"
	"time"

	"github.com/go-psi/psi/internal/pause"
)

// listenAgain calls listen, which serves one subscription, until ctx is done or the
// server has no changes to announce. A subscription that ends otherwise, for example when
// a server is replaced by another, is made again. What changed in between is not known:
// if again is true, anything may have changed before the acknowledgement.
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

// The pause before a subscription is made again: the first and the longest.
const (
	firstPause = time.Second
	maxPause   = time.Minute
)
