// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// Without authentication, the ID of a task is all that a client needs to read its result and to
// cancel it. Logs have a digest of it, by which requests about one task are found.
func TestIDsOfTasksAreNotLogged(t *testing.T) {
	const id = "abcdefghijklmnopqrstuvwxyz"
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		var log bytes.Buffer
		l := slog.New(slog.NewTextHandler(&log, nil))
		h := mcp.Chain(&server{res: &mcp.EmptyResult{}}, middleware.Logger(l), middleware.Audit(middleware.AuditLog(l), nil))
		do(t, h, mcptest.NewRequest(method, map[string]string{"taskId": id}))
		if text := log.String(); strings.Contains(text, id) || strings.Count(text, "name=71c480df93d6ae2f") != 2 {
			t.Errorf("%s: logged %s", method, text)
		}
	}
}
