// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package tasks runs tools in the background, using the extension
// io.modelcontextprotocol/tasks of the specification. If a client supports the extension, a
// tool behind [Manager.Background] answers with a task, which the client polls. For any
// other client it is an ordinary tool.
//
//	manager := tasks.New("render", &tasks.Options{Store: shared})
//	manager.Register(mux)
//	mux.With(manager.Background(nil)).Tool("render", mcp.ToolFunc(render, nil))
//
// A task survives its process. Its request, its answers and the values of [mcp.Once] are in
// the store. If the process that runs the handler is gone, another replica, or the same one
// after a restart, runs the handler again from the beginning. Such a handler follows the
// same rules as a handler that asks questions: what must not happen twice belongs in Once.
//
// This package follows the draft of its extension, as docs/stability.md defines it.
package tasks
