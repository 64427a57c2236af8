// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package decimal_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/go-psi/psi/internal/decimal"
)

// The negative of the least int is no positive number, but its exponent is out of
// range like any other of that size.
func TestFindingCL7LeastExponent(t *testing.T) {
	for _, text := range []string{fmt.Sprintf("1e%d", math.MinInt), fmt.Sprintf("0.5e%d", math.MinInt), fmt.Sprintf("1e%d", math.MaxInt), "1e-1000000", "1e1000000"} {
		if n, ok := decimal.Parse(text); ok {
			t.Errorf("%s is read as %v", text, n)
		}
	}
}
