// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp

import (
	"slices"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// scope is the name of this instrumentation.
const scope = "github.com/go-psi/psi/middleware/otelmcp"

// defaultNames is how many names are kept unless Options say otherwise.
const defaultNames = 1000

// Options configure [Server], [Client] and [Instrument]. Nil means the zero Options.
type Options struct {
	// TracerProvider makes the spans. Nil means [otel.GetTracerProvider].
	TracerProvider trace.TracerProvider
	// MeterProvider takes the measurements. Nil means [otel.GetMeterProvider].
	MeterProvider metric.MeterProvider
	// Propagator carries traces and baggage in _meta. Nil means
	// [otel.GetTextMapPropagator], which carries nothing until a program sets it.
	Propagator propagation.TextMapPropagator
	// Attributes are added to every span and measurement, in place of those of the
	// same key. They are for what a middleware cannot know: server.address and
	// server.port of a client, or the network.transport of a server that is not
	// served over HTTP, "pipe" for standard input and output. Nil means none.
	Attributes []attribute.KeyValue
	// Methods are names of their own besides the methods of the specification:
	// those of [github.com/go-psi/psi/mcp.Mux.Handle]. Nil means none.
	Methods []string
	// MaxNames is how many names of tools and prompts are in measurements and in
	// names of spans at most; the rest is "_OTHER". 0 means 1000, negative none.
	MaxNames int
	// Public says that a server's callers are strangers. Their traces are linked to
	// and not continued, so that they do not decide what is sampled, and their baggage
	// is not taken. Clients have no use for it.
	Public bool
}

// settled is opts with its defaults, in a copy.
func settled(opts *Options) Options {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	if o.Propagator == nil {
		o.Propagator = otel.GetTextMapPropagator()
	}
	if o.MaxNames == 0 {
		o.MaxNames = defaultNames
	}
	o.Attributes = slices.Clone(o.Attributes)
	o.Methods = slices.Clone(o.Methods)
	return o
}
