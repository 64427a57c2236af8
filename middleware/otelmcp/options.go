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

// maxNames is the maximum number of names of tools and prompts in measurements and span
// names; all others are "_OTHER". Each name is a few time series.
const maxNames = 1000

// Options configure [Server], [Client] and [Instrument]. Nil means the zero Options.
type Options struct {
	// TracerProvider creates spans. Nil means [otel.GetTracerProvider].
	TracerProvider trace.TracerProvider
	// MeterProvider records measurements. Nil means [otel.GetMeterProvider].
	MeterProvider metric.MeterProvider
	// Propagator carries traces and baggage in _meta. Nil means
	// [otel.GetTextMapPropagator], which does nothing until a program sets it.
	Propagator propagation.TextMapPropagator
	// Attributes are added to every span and measurement, and replace attributes with the
	// same key. Use them for what the middleware cannot know: server.address and
	// server.port on a client, or network.transport on a server that does not use HTTP,
	// such as "pipe" for standard input and output. Nil means none.
	Attributes []attribute.KeyValue
	// Public means that a server's callers are not trusted. Their traces are linked but not
	// continued, so that callers cannot decide what is sampled, and their baggage is
	// ignored. It has no effect on clients.
	Public bool
}

// withDefaults returns a copy of opts with defaults.
func withDefaults(opts *Options) Options {
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
	o.Attributes = slices.Clone(o.Attributes)
	return o
}
