// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// Clients get icons and descriptions of a server once, when they connect. Other results of
// the newest revision have its name, version and title.
func TestFindingI10IconsGoWithDiscoveryOnly(t *testing.T) {
	icon := mcp.Icon{Src: "data:image/png;base64," + strings.Repeat("A", 1000)}
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: quiet().Logger, Title: "M", Description: "long", WebsiteURL: "https://m.example", Icons: []mcp.Icon{icon}})
	mux.Tool("t", says("hello"))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if info := c.ServerInfo(); info == nil || len(info.Icons) != 1 || info.Title != "M" {
			t.Errorf("connecting tells %+v", info)
		}
		res, err := c.CallTool(t.Context(), tool("t", ""))
		if err != nil {
			t.Fatal(err)
		}
		var info mcp.Implementation
		if res.Meta.Get(mcp.MetaServerInfo, &info) != (c.Version() == mcp.LatestVersion) {
			t.Errorf("in %s the metadata is %s", c.Version(), res.Meta)
		}
		if info.Icons != nil || info.Description != "" || info.WebsiteURL != "" {
			t.Errorf("a call tells %+v", info)
		}
	})
}
