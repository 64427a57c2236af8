// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package host is a small host of MCP Apps: an [http.Handler] that shows the apps of a
// connection in a browser. It is for trying apps, and for programs that have a browser beside
// them.
//
// It needs two origins, such as two ports: one for itself, and one for the sandbox in which
// the pages of servers run.
//
//	h, err := host.New(conn, "http://127.0.0.1:8081", nil)
//	…
//	go http.ListenAndServe("127.0.0.1:8081", host.Sandbox())
//	http.ListenAndServe("127.0.0.1:8080", h)
//
// The page of an app runs in a frame with an opaque origin, within a frame of the origin of
// the sandbox, under the policy that [apps.PageMeta.Policy] returns. Its requests come to the
// host as messages, and from there to the handler, which decides what they may do: a page can
// only call the tools that are for apps, on its own server.
//
// Who can reach the handler can call the tools of the server: it has no authentication. It
// answers requests of this machine's names only, unless [Options.AllowedHosts] has others, and
// none of other sites. Pages of other ports of this machine can link to the list of apps, also with a
// tool and its arguments, /?tool=NAME&arguments=JSON; the tool is called when the user says so there.
package host
