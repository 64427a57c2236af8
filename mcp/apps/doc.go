// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package apps implements MCP Apps, the extension io.modelcontextprotocol/ui of the
// specification: tools that are shown with a page. The page runs in a sandbox of the host
// and can itself call tools.
//
// A server registers a page and names it in the description of a tool:
//
//	mux.Resource("ui://airline/seats", apps.Page(files, "seats.html", nil))
//	mux.Tool("seat_map", mcp.ToolFunc(seatMap, apps.Tool(&mcp.Tool{Description: "Shows free seats."}, "ui://airline/seats")))
//	mux.Tool("reserve_seat", mcp.ToolFunc(reserve, apps.Tool(nil, "ui://airline/seats", apps.ForApp)))
//
// The page talks to its host by a script of this package, <script src="psi:app.js">; see
// [Page] and docs/guide/pages.md.
//
// Clients that do not know the extension call the tool like any other and use its text.
// Tools that are only for apps are in every list; [HideAppTools] hides them from clients
// that would show them to a model. Call [Check] in a test to find mistakes.
//
// A host declares the extension with [Client], which hides such tools from the model, and
// reads pages with [Read]. The resulting [Document] determines what the host has to enforce
// in the browser: a content security policy and the attributes of the frame. Package
// [github.com/go-psi/psi/mcp/apps/host] is a small host for browsers.
//
// This package follows the draft of its extension, as docs/stability.md defines it.
package apps
