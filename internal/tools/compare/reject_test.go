// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/tools/compare/side"
	"github.com/go-psi/psi/mcp"
)

// Validation is not sacrificed for speed: the measured server rejects invalid requests.
func TestRejected(t *testing.T) {
	call := func(params string) string {
		return string(modern.template(mcp.MethodCallTool, params).message(nil, firstID))
	}
	add := func(arguments string) string { return call(`"name":"add","arguments":` + arguments) }
	good := add(`{"a":1,"b":2}`)
	without := func(member string) string { return strings.Replace(good, member, "", 1) }
	for _, test := range []struct {
		name    string
		message string
		header  string // header to change, as "key: value"
		code    int    // error code, or 0 for a tool error
	}{
		{name: "wrong type", message: add(`{"a":"1","b":2}`)},
		{name: "no integer", message: add(`{"a":1.5,"b":2}`)},
		{name: "null", message: add(`{"a":null,"b":2}`)},
		{name: "missing property", message: add(`{"a":1}`)},
		{name: "missing arguments", message: call(`"name":"add"`)},
		{name: "unknown property", message: add(`{"a":1,"b":2,"c":3}`)},
		{name: "property in the wrong case", message: add(`{"A":1,"b":2}`)},
		{name: "arguments are no object", message: add(`[1,2]`), code: mcp.CodeInvalidParams},
		{name: "unknown tool", message: call(`"name":"sub","arguments":{}`), header: "Mcp-Name: sub", code: mcp.CodeInvalidParams},
		{name: "header of another tool", message: good, header: "Mcp-Name: echo", code: mcp.CodeHeaderMismatch},
		{name: "header of another method", message: good, header: "Mcp-Method: " + mcp.MethodListTools, code: mcp.CodeHeaderMismatch},
		{name: "header of another version", message: good, header: "Mcp-Protocol-Version: " + legacy.version, code: mcp.CodeHeaderMismatch},
		{name: "no header", message: good, header: "Mcp-Method: ", code: mcp.CodeHeaderMismatch},
		{
			name: "unknown version", message: strings.ReplaceAll(good, modern.version, "2030-01-01"),
			header: "Mcp-Protocol-Version: 2030-01-01", code: mcp.CodeUnsupportedVersion,
		},
		{name: "no capabilities", message: without(`,"io.modelcontextprotocol/clientCapabilities":{}`), code: mcp.CodeInvalidParams},
		{name: "malformed", message: good[:len(good)-1], code: mcp.CodeParseError},
		{name: "malformed arguments", message: add(`{"a":1,"b":02}`), code: mcp.CodeParseError},
		{name: "invalid UTF-8", message: add("{\"a\":1,\"b\":\"\xff\"}"), code: mcp.CodeParseError},
		{name: "trailing", message: good + "}", code: mcp.CodeParseError},
		{name: "two messages", message: good + good, code: mcp.CodeParseError},
		{name: "duplicate argument", message: add(`{"a":1,"a":1,"b":2}`), code: mcp.CodeParseError},
		{name: "duplicate member", message: call(`"name":"add","name":"add","arguments":{"a":1,"b":2}`), code: mcp.CodeParseError},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := sideOf(ownName).New(side.Options{Modern: true}).HTTP()
			if got := post(t, h, good, ""); got != "fine" {
				t.Fatalf("what is right was answered %s", got)
			}
			want := fmt.Sprint("error ", test.code)
			if test.code == 0 {
				want = "failed"
			}
			if got := post(t, h, test.message, test.header); got != want {
				t.Errorf("it was answered %s, want %s", got, want)
			}
		})
	}
}

// post posts a call of add and summarizes the answer.
func post(t *testing.T, h http.Handler, message, change string) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/mcp", strings.NewReader(message))
	for _, line := range append(modern.headers(mcp.MethodCallTool, "add", acceptBoth), change) {
		key, value, _ := strings.Cut(line, ": ")
		if key != "" {
			r.Header.Set(key, value)
		}
		if value == "" {
			r.Header.Del(key)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var a answer
	if err := json.Unmarshal(bytes.TrimSpace(w.Body.Bytes()), &a); err != nil {
		t.Fatalf("%v: %s", err, w.Body)
	}
	switch {
	case a.Error != nil:
		return fmt.Sprint("error ", a.Error.Code)
	case a.Result.IsError:
		return "failed"
	default:
		return "fine"
	}
}
