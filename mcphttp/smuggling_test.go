// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// Neither the server, which names headers, nor the author of an argument can make the client
// send any header but the argument's own.
func TestHeaderSmuggling(t *testing.T) {
	mux := mcp.NewMux("test", "v1", &mcp.MuxOptions{Logger: quiet})
	echo := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return mcp.TextResult(string(req.Arguments())), nil
	})
	names := map[string]string{ // header names by tool name
		"plain": "Region", "credentials": "Authorization", "session": "Mcp-Session-Id",
	}
	for tool, key := range names {
		mux.Tool(tool, mcp.WithDescription(echo, &mcp.Tool{InputSchema: []byte(`{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"` + key + `"}}}`)}))
	}
	var last http.Header
	h := newHandler(t, mux, nil)
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == mcp.MethodCallTool {
			last = r.Header.Clone()
		}
		h.ServeHTTP(w, r)
	}))
	conn, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Logger: quiet}).
		Connect(t.Context(), mcphttp.NewTransport("http://localhost/mcp", &mcphttp.TransportOptions{Client: s.client, Logger: quiet}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	const value = "eu\r\nAuthorization: Bearer stolen\r\nMcp-Session-Id: stolen\r\n\r\n{}"
	for tool, key := range names {
		last = nil
		args, err := mcp.NewRequest(mcp.MethodCallTool, map[string]any{"name": tool, "arguments": map[string]string{"a": value}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args.Arguments()})
		if err != nil || res.IsError {
			t.Errorf("%s: %+v, %v", tool, res, err)
		}
		if last.Get("Authorization") != "" || last.Get("Mcp-Session-Id") != "" {
			t.Errorf("%s: the server was sent %v", tool, last)
		}
		got, err := transport.DecodeHeaderValue(last.Get("Mcp-Param-" + key))
		if err != nil || got != value {
			t.Errorf("%s: the argument arrived as %q, %v", tool, last.Get("Mcp-Param-"+key), err)
		}
		for name, values := range last {
			if strings.Contains(strings.Join(values, ""), "stolen") {
				t.Errorf("%s: the header %s is %q", tool, name, values)
			}
		}
	}
}
