// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauthtest_test

import (
	"testing"

	"github.com/go-psi/psi/mcphttp/oauth"
	"github.com/go-psi/psi/mcphttp/oauth/oauthtest"
)

// A complete test of a store, such as one that encrypts its values.
func ExampleRun() { //nolint:testableexamples // it shows a test, which examples cannot run
	_ = func(t *testing.T) { // func TestStore(t *testing.T)
		oauthtest.Run(t, func(t *testing.T) oauth.Store { return oauth.NewFileStore(t.TempDir()) })
	}
}
