// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp

import (
	"sync"

	"github.com/go-psi/psi/mcp"
)

// other stands for all values that peers may choose and that are not known.
const other = "_OTHER"

// names are the methods, tools and prompts that may be dimensions of measurements.
type names struct {
	methods map[string]bool
	max     int

	mu    sync.RWMutex
	known map[target]bool
}

// target is a tool or a prompt.
type target struct{ method, name string }

func newNames(methods []string, most int) *names {
	n := &names{methods: map[string]bool{}, max: most, known: map[target]bool{}}
	for _, method := range methods {
		n.methods[method] = true
	}
	return n
}

func (n *names) method(req *mcp.Request) string {
	if mcp.IsMethod(req.Method) || n.methods[req.Method] {
		return req.Method
	}
	return other
}

// target is the name of a tool or prompt, other if it is not known, or "" if the
// request is about neither.
func (n *names) target(req *mcp.Request) string {
	if !hasTarget(req) {
		return ""
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.known[target{req.Method, req.Name()}] {
		return req.Name()
	}
	return other
}

// span is the name of a request's span.
func (n *names) span(req *mcp.Request) string {
	if name := n.target(req); name != "" && name != other {
		return req.Method + " " + name
	}
	return n.method(req)
}

// learn makes the name of a request known if there is room, and reports whether it
// was not before.
func (n *names) learn(req *mcp.Request) bool {
	if !hasTarget(req) || len(req.Name()) > maxText || n.target(req) != other {
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) >= n.max {
		return false
	}
	n.known[target{req.Method, req.Name()}] = true
	return true
}

func hasTarget(req *mcp.Request) bool {
	return (req.Method == mcp.MethodCallTool || req.Method == mcp.MethodGetPrompt) && req.Name() != ""
}
