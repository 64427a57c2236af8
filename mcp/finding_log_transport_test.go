// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// loggedCall calls a tool that returns its arguments, and returns what is logged of it.
func loggedCall(t *testing.T, arguments string) string {
	t.Helper()
	mux := mcp.NewMux("echo", "v1", nil)
	mux.Tool("echo", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Arguments())}}, StructuredContent: req.Arguments()}, nil
	}))
	var log lockedBuffer
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	c := connectTo(t, transport.WithLogging(memory(t, mux), logger), nil)
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: json.RawMessage(arguments)}); err != nil {
		t.Fatal(err)
	}
	return log.String()
}

// Secrets are left out however they are written, and of whatever type they are, in what
// goes out, in what comes back, and in texts that are JSON.
func TestFindingS31SecretsInLogs(t *testing.T) {
	for _, member := range []string{
		`"apiKey":"hunter2"`, `"api_key":"hunter2"`, `"X-API-Key":"hunter2"`, `"accessToken":"hunter2"`, `"access-token":"hunter2"`,
		`"ACCESS_TOKEN":"hunter2"`, `"Password":"hunter2"`, `"dbPassword":"hunter2"`, `"token":{"value":"hunter2"}`, `"tokens":["hunter2"]`,
		`"token":["hunter2"]`, `"clientSecret":"hunter2"`, `"aws_secret_access_key":"hunter2"`, `"Set-Cookie":"hunter2"`, `"Proxy-Authorization":"hunter2"`,
		`"private key":"hunter2"`, `"credentials":{"user":"hunter2"}`, `"sessionToken":"hunter2"`, `"jwt":"hunter2"`, `"request_state":"hunter2"`,
		`"pin":"hunter2"`, `"a":[{"b":{"Passwd":"hunter2"}}]`, `"text":"{\"token\":\"hunter2\"}"`, `"text":" [{\"apiKey\":{\"x\":\"hunter2\"}}]\n"`,
		`"text":"{\"text\":\"{\\\"secret\\\":\\\"hunter2\\\"}\"}"`, `"text":"\u007b\"token\":\"hunter2\"}"`,
	} {
		log := loggedCall(t, `{"before":"visible",`+member+`,"after":1}`)
		if strings.Contains(log, "hunter2") || !strings.Contains(log, "(redacted)") || !strings.Contains(log, "visible") || !strings.Contains(log, "after") {
			t.Errorf("%s is logged as\n%s", member, log)
		}
	}
	for _, number := range []string{`"pin":424242`, `"password":424242`, `"token":424242`} {
		if log := loggedCall(t, `{`+number+`}`); strings.Contains(log, "424242") {
			t.Errorf("%s is logged as\n%s", number, log)
		}
	}
}

// What only looks like a secret, or like JSON, is logged as it is.
func TestFindingS31NoSecrets(t *testing.T) {
	for _, member := range []string{
		`"maxTokens":424242`, `"progressToken":"424242"`, `"tokenizer":"424242"`, `"secretary":"424242"`, `"text":"{424242"`, `"text":"[info] 424242"`,
		`"text":"{\"a\":424242}"`, `"keyboard":"424242"`, `"token":null,"x":424242`, `"text":"the password is 424242"`,
	} {
		if log := loggedCall(t, `{`+member+`}`); strings.Contains(log, "(redacted)") || !strings.Contains(log, "424242") {
			t.Errorf("%s is logged as\n%s", member, log)
		}
	}
}
