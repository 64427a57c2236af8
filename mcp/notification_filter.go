// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "encoding/json"

// notificationFilter reports whether a notification is sent. Nil sends all.
type notificationFilter func(method string, params json.RawMessage) bool

// FilterNotifications drops the notifications about r for which keep returns false;
// sending them succeeds all the same. Middleware uses it to hide something from a
// subscriber. It applies until the handler of r returns, also to copies of r; several
// filters apply together. keep may be called by several goroutines at once, and must not
// retain or change params. Progress and log messages of r are not filtered.
func (r *Request) FilterNotifications(keep func(method string, params json.RawMessage) bool) {
	c := r.call
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.keep
	c.keep = func(method string, params json.RawMessage) bool {
		return keep(method, params) && (before == nil || before(method, params))
	}
}

// keeps reports whether the filter keeps a notification. It does not hold the lock while
// it calls the filter, which may log a message about the same request.
func (c *call) keeps(method string, params json.RawMessage) bool {
	c.mu.Lock()
	keep := c.keep
	c.mu.Unlock()
	return keep == nil || keep(method, params)
}
