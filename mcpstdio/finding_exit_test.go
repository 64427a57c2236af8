// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio_test

import (
	"errors"
	"testing"

	"github.com/go-psi/psi/mcpstdio"
)

// The standard error in an ExitError neither controls a terminal nor starts a line of a log.
func TestFindingS32ExitError(t *testing.T) {
	stderr := "fatal\r\x1b[2J\x1b]0;title\a \u009b31m \u202egnp.exe\nERROR all is lost\n\tat main"
	err := &mcpstdio.ExitError{Err: errors.New("exit status 1"), Stderr: stderr}
	want := "mcpstdio: the server ended: exit status 1; its last words:\n" +
		"\tfatal\\r\\x1b[2J\\x1b]0;title\\a \\u009b31m \\u202egnp.exe\n\tERROR all is lost\n\t\tat main"
	if got := err.Error(); got != want {
		t.Errorf("got:\n%q\nwant:\n%q", got, want)
	}
	if err.Stderr != stderr {
		t.Error("the field is changed")
	}
}
