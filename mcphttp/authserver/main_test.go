// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver_test

import (
	"testing"

	"github.com/go-psi/psi/internal/test/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }
