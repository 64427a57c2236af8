// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-psi/psi/mcp"
)

// firstID is the first request ID. It is large so that all IDs have the same length.
const firstID = 1_000_000

// addend is the number added to the ID of a request.
const addend = 7

const (
	acceptJSON = "application/json"
	acceptSSE  = "text/event-stream"
	acceptBoth = acceptJSON + ", " + acceptSSE
)

// An era determines the form of messages.
type era struct {
	version string
	meta    string // member of params
}

var (
	modern = era{version: mcp.LatestVersion, meta: `,"_meta":{"` + mcp.MetaProtocolVersion + `":"` + mcp.LatestVersion +
		`","io.modelcontextprotocol/clientInfo":{"name":"compare","version":"v1"},"io.modelcontextprotocol/clientCapabilities":{}}`}
	legacy = era{version: mcp.LegacyVersions()[0]}
)

// A template is a message split where its number belongs.
type template []string

func (e era) template(method, params string) template {
	if params == "" {
		params = strings.TrimPrefix(e.meta, ",")
	} else {
		params += e.meta
	}
	return strings.Split(`{"jsonrpc":"2.0","id":#,"method":"`+method+`","params":{`+params+`}}`, "#")
}

func (e era) add() template {
	return e.template(mcp.MethodCallTool, `"name":"add","arguments":{"a":#,"b":`+strconv.Itoa(addend)+`}`)
}

func (e era) list() template { return e.template(mcp.MethodListTools, "") }

func (e era) echo(text string) template {
	return e.template(mcp.MethodCallTool, `"name":"echo","arguments":{"text":"`+text+`"}`)
}

func (t template) message(dst []byte, n int) []byte {
	for i, part := range t {
		if i > 0 {
			dst = strconv.AppendInt(dst, int64(n), 10)
		}
		dst = append(dst, part...)
	}
	return dst
}

// headers returns the headers of a request. If tool is not "", the request calls that tool.
func (e era) headers(method, tool, accept string) []string {
	headers := []string{"Content-Type: application/json", "Accept: " + accept, "MCP-Protocol-Version: " + e.version}
	if e != modern {
		return headers
	}
	headers = append(headers, "Mcp-Method: "+method)
	if tool != "" {
		headers = append(headers, "Mcp-Name: "+tool)
	}
	return headers
}

var (
	idKey  = []byte(`"id":`)
	sumKey = []byte(`"sum":`)
)

// number returns the first number after a key, or -1 if there is none.
func number(data, key []byte) int {
	_, rest, found := bytes.Cut(data, key)
	if !found {
		return -1
	}
	n, digits := 0, 0
	for _, c := range rest {
		if c < '0' || c > '9' {
			break
		}
		n, digits = n*10+int(c-'0'), digits+1
	}
	if digits == 0 {
		return -1
	}
	return n
}

// checkAdd checks the answer to a call of add without decoding it, because the client
// shares the machine with the measured process. The tests decode.
func checkAdd(answer []byte, n int) error {
	if number(answer, idKey) != n || number(answer, sumKey) != n+addend {
		return fmt.Errorf("request %d was answered %.300s", n, answer)
	}
	return nil
}

func checkList(answer []byte, n int) error {
	if number(answer, idKey) != n || !bytes.Contains(answer, []byte(`"name":"tool0000"`)) {
		return fmt.Errorf("request %d was answered %.300s", n, answer)
	}
	return nil
}

// checkEcho checks that the structured content is at least as long as the text sent.
func checkEcho(length int) func([]byte, int) error {
	return func(answer []byte, n int) error {
		if number(answer, idKey) != n || len(answer) < 2*length || !bytes.Contains(answer, []byte(`"structuredContent":{"text":"0123456789`)) {
			return fmt.Errorf("request %d was answered %.300s, %d bytes", n, answer, len(answer))
		}
		return nil
	}
}

// An answer is a decoded response.
type answer struct {
	ID     int `json:"id"`
	Result struct {
		Structured json.RawMessage   `json:"structuredContent"`
		IsError    bool              `json:"isError"`
		Tools      []json.RawMessage `json:"tools"`
	} `json:"result"`
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}
