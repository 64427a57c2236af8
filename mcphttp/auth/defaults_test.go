// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth_test

import (
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/test/golden"
	"github.com/go-psi/psi/mcphttp/auth"
)

// The values of nil options, and of options whose numbers are 0, negative or positive.
func TestDefaultOptions(t *testing.T) {
	var text strings.Builder
	text.WriteString(golden.Options(new(auth.DefaultJWTOptions(nil))))
	for _, n := range []int64{0, -1, 7} {
		text.WriteString(golden.Options(new(auth.DefaultJWTOptions(golden.SetAll(new(auth.JWTOptions), n)))))
	}
	text.WriteString(golden.Options(new(auth.DefaultIntrospectionOptions(nil))))
	for _, n := range []int64{0, -1, 7} {
		text.WriteString(golden.Options(new(auth.DefaultIntrospectionOptions(golden.SetAll(new(auth.IntrospectionOptions), n)))))
	}
	golden.Check(t, "defaults", text.String())
}
