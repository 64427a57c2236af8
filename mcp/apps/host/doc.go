// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package host is a small host for MCP Apps: an [http.Handler] that shows the apps of a
// connection in a browser. It is for trying out apps, and for programs that are used
// together with a browser.
//
// It needs two origins, such as two ports: one for the host itself, and one for the sandbox
// in which the pages of servers run.
//
//	h, err := host.New(conn, "http://127.0.0.1:8081", nil)
//	…
//	go http.ListenAndServe("127.0.0.1:8081", host.Sandbox())
//	http.ListenAndServe("127.0.0.1:8080", h)
//
// The page of an app runs in a frame with an opaque origin, inside a frame with the origin
// of the sandbox, under the policy that [apps.PageMeta.Policy] returns. Its requests reach
// the host as messages, and from there the handler, which decides what they may do: a page
// can only call the tools that are for apps, on its own server.
//
// Anyone who can reach the handler can call the tools of the server, because the handler
// has no authentication. It only serves requests for localhost, a loopback address, or one
// of [Options.AllowedHosts], and rejects requests from other sites. Pages on other ports of
// this machine can link to the list of apps, optionally with a tool and its arguments,
// /?tool=NAME&arguments=JSON; the tool is called only when the user requests it there.
//
// This package is a tool, as docs/stability.md defines it: its API may change.
package host
