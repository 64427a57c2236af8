// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp

import (
	"maps"
	"slices"

	"go.opentelemetry.io/otel/propagation"

	"github.com/go-psi/psi/mcp"
)

// metaCarrier reads what a propagator wrote to the _meta of a request, which is not
// decoded for a propagator that does not ask.
type metaCarrier struct {
	req  *mcp.Request
	meta mcp.Meta
	read bool
}

var _ propagation.TextMapCarrier = (*metaCarrier)(nil)

// Get implements [propagation.TextMapCarrier].
func (c *metaCarrier) Get(key string) string {
	var value string
	if !c.decoded().Get(key, &value) {
		return ""
	}
	return value
}

// Keys implements [propagation.TextMapCarrier].
func (c *metaCarrier) Keys() []string { return slices.Sorted(maps.Keys(c.decoded())) }

// Set implements [propagation.TextMapCarrier]. It does nothing: what was received
// stays as it is.
func (c *metaCarrier) Set(string, string) {}

func (c *metaCarrier) decoded() mcp.Meta {
	if !c.read {
		c.meta, c.read = c.req.Meta(), true
	}
	return c.meta
}
