// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/go-psi/psi/mcphttp"
)

// routes is how the README serves the same tools over HTTP.
func routes() http.Handler {
	r := http.NewServeMux()                             // or chi, or whatever routes your HTTP
	r.Handle("/mcp", mcphttp.NewHandler(newMux(), nil)) // every revision at one endpoint
	return r
}

// What goes over the wire, to and from a client of each era.
func Example() {
	server := httptest.NewServer(routes())
	defer server.Close()

	fmt.Println(post(server.URL+"/mcp", http.Header{
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"greet"},
	}, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{
		"name":"greet", "arguments":{"name":"Ada"},
		"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	fmt.Println(post(server.URL+"/mcp", nil, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{
		"protocolVersion":"2025-06-18", "capabilities":{}, "clientInfo":{"name":"example","version":"v1.0.0"}}}`))
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"hello","version":"v1.0.0"}},"content":[{"type":"text","text":"Hello, Ada!"}]}}
	// {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"hello","version":"v1.0.0"}}}
}

func post(url string, header http.Header, body string) string {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	if header != nil {
		req.Header = header
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return string(answer)
}
