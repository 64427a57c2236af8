// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"encoding/json"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// extended is a handler that belongs to an extension.
type extended struct {
	mcp.Handler
	id, settings string
}

func (e extended) Extension() (string, json.RawMessage) {
	if e.settings == "" {
		return e.id, nil
	}
	return e.id, json.RawMessage(e.settings)
}

// A server declares the extensions of its registered handlers, including those of mounted
// muxes. Extensions of methods do not pass a mount, because methods are not mounted.
func TestServerExtension(t *testing.T) {
	inner := mcp.NewMux("inner", "v1", nil)
	inner.Tool("tool", extended{uncalled, "example.com/tool", `{"a":1}`})
	inner.Handle("example/method", extended{uncalled, "example.com/method", ""})
	outer := mcp.NewMux("outer", "v1", &mcp.MuxOptions{Capabilities: &mcp.ServerCapabilities{
		Extensions: mcp.Extensions{"example.com/own": json.RawMessage(`{"b":2}`)},
	}})
	outer.Resource("a:b", extended{uncalled, "example.com/own", `{"c":3}`})
	outer.Mount("in_", inner)
	for h, want := range map[*mcp.Mux]string{
		inner: `{"example.com/method":{},"example.com/tool":{"a":1}}`,
		outer: `{"example.com/own":{"b":2},"example.com/tool":{"a":1}}`,
	} {
		mcptest.Run(t, h, func(t *testing.T, c *mcp.Conn) {
			if got, _ := json.Marshal(c.Server().Capabilities.Extensions); string(got) != want {
				t.Errorf("declared %s, want %s", got, want)
			}
		})
	}
	inner.RemoveTool("tool")
	if got := mcptest.Connect(t, outer).Server().Capabilities.Extensions; len(got) != 1 {
		t.Errorf("%s", got)
	}
}
