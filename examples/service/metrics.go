// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/go-psi/psi/middleware"
)

// metrics implements middleware.Meter for Prometheus. The labels are bounded: names and
// codes invented by clients are recorded as "other".
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	inFlight *prometheus.GaugeVec
	duration *prometheus.HistogramVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: middleware.MetricRequests, Help: "Requests of MCP that were served.",
		}, []string{"method", "name", "outcome", "code"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: middleware.MetricInFlight, Help: "Requests of MCP in flight.",
		}, []string{"method"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: middleware.MetricDuration, Help: "How long requests of MCP took.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}, []string{"method", "name", "outcome"}),
	}
	m.registry.MustRegister(m.requests, m.inFlight, m.duration, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Count implements middleware.Meter.
func (m *metrics) Count(_ context.Context, name string, labels []middleware.Label, delta uint64) {
	if name == middleware.MetricRequests {
		m.requests.With(promLabels(labels)).Add(float64(delta))
	}
}

// Gauge implements middleware.Meter.
func (m *metrics) Gauge(_ context.Context, name string, labels []middleware.Label, delta int64) {
	if name == middleware.MetricInFlight {
		m.inFlight.With(promLabels(labels)).Add(float64(delta))
	}
}

// Observe implements middleware.Meter.
func (m *metrics) Observe(_ context.Context, name string, labels []middleware.Label, value float64) {
	if name == middleware.MetricDuration {
		m.duration.With(promLabels(labels)).Observe(value)
	}
}

func promLabels(labels []middleware.Label) prometheus.Labels {
	out := prometheus.Labels{}
	for _, l := range labels {
		out[l.Name] = l.Value
	}
	return out
}
