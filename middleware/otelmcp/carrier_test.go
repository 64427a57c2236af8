// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp_test

import (
	"context"
	"slices"
	"testing"

	"go.opentelemetry.io/otel/propagation"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/middleware/otelmcp"
)

// nosy is a propagator that calls all methods of carriers.
type nosy struct {
	propagation.TraceContext

	keys []string
}

func (n *nosy) Extract(ctx context.Context, c propagation.TextMapCarrier) context.Context {
	n.keys = c.Keys()
	c.Set(n.keys[0], "changed")
	return n.TraceContext.Extract(ctx, c)
}

// Propagators see all of _meta but cannot change it.
func TestCarrier(t *testing.T) {
	o, n, k := observe(t), new(nosy), new(keeping)
	opts := o.options()
	opts.Propagator = n
	req := outgoing(t, mcp.MethodCallTool, map[string]any{"name": "t", "_meta": map[string]any{"traceparent": parentA, "a": 1, "b": nil}})
	_, _ = otelmcp.Server(opts)(k).ServeMCP(t.Context(), req)
	if !slices.Equal(n.keys, []string{"a", "b", "traceparent"}) {
		t.Errorf("the keys are %q", n.keys)
	}
	if got := o.only(t).Parent.SpanID().String(); got != spanA || string(k.req.Params()) != string(req.Params()) {
		t.Errorf("the parent is %s, and the handler got %s", got, k.req.Params())
	}
}
