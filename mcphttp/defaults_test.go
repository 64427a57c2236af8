// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/test/golden"
	"github.com/go-psi/psi/mcphttp"
)

// The values of nil options, and of options whose numbers are 0, negative or positive.
func TestDefaultOptions(t *testing.T) {
	var text strings.Builder
	text.WriteString(golden.Options(new(mcphttp.DefaultOptions(nil))))
	for _, n := range []int64{0, -1, 7} {
		text.WriteString(golden.Options(new(mcphttp.DefaultOptions(golden.SetAll(new(mcphttp.Options), n)))))
	}
	text.WriteString(golden.Options(new(mcphttp.DefaultTransportOptions(nil))))
	for _, n := range []int64{0, -1, 7} {
		text.WriteString(golden.Options(new(mcphttp.DefaultTransportOptions(golden.SetAll(new(mcphttp.TransportOptions), n)))))
	}
	golden.Check(t, "defaults", text.String())
}
