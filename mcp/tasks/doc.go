// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package tasks runs tools in the background, by the extension
// io.modelcontextprotocol/tasks of the specification. A tool behind
// [Manager.Background] answers a client that supports the extension with a task, which the
// client polls; for any other client it is an ordinary tool.
//
//	manager := tasks.New("render", &tasks.Options{Store: shared})
//	manager.Register(mux)
//	mux.With(manager.Background(nil)).Tool("render", mcp.ToolFunc(render, nil))
//
// A task survives its process. Its request, its answers and the values of [mcp.Once] are in
// the store, so another replica, or the same one after a restart, runs the handler again
// from its top if the one that ran it is gone. The rules for such a handler are those for a
// handler that asks: what must not happen twice belongs into Once.
package tasks
