// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package pause_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/pause"
)

func TestFor(t *testing.T) {
	gone := errors.New("gone")
	for name, test := range map[string]struct {
		d, cancelled, want time.Duration
		err                error
	}{
		"all":      {d: time.Minute, cancelled: time.Hour, want: time.Minute},
		"some":     {d: time.Hour, cancelled: time.Minute, want: time.Minute, err: gone},
		"nothing":  {cancelled: time.Minute},
		"negative": {d: -time.Minute, cancelled: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				defer time.AfterFunc(test.cancelled, func() { cancel(gone) }).Stop()
				begun := time.Now()
				err := pause.For(ctx, test.d)
				if took := time.Since(begun); took != test.want || !errors.Is(err, test.err) {
					t.Errorf("after %v: %v; want %v after %v", took, err, test.err, test.want)
				}
			})
		})
	}
}
