// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
)

// A Meter records measurements. It is an adapter to a program's metrics system. It must be
// safe for concurrent use and must not retain or modify labels.
type Meter interface {
	// Count adds delta to a counter, which never falls.
	Count(ctx context.Context, name string, labels []Label, delta uint64)
	// Gauge adds delta to a gauge, which rises and falls.
	Gauge(ctx context.Context, name string, labels []Label, delta int64)
	// Observe adds a value to a histogram.
	Observe(ctx context.Context, name string, labels []Label, value float64)
}

// A Label is a dimension of a measurement.
type Label struct{ Name, Value string }

// The names of the measurements of [Metrics].
const (
	// MetricRequests is a counter of served requests, by method, name, outcome, code and, if
	// MetricsOptions.Cause is set, cause.
	MetricRequests = "mcp_requests_total"
	// MetricInFlight is a gauge of requests in flight, by method.
	MetricInFlight = "mcp_requests_in_flight"
	// MetricDuration is a histogram of the duration of requests in seconds, by method, name
	// and outcome. Subscriptions are excluded.
	MetricDuration = "mcp_request_duration_seconds"
	// MetricMended is a counter of tool arguments that were changed to fit the schema, by
	// method and name; see [mcp.MuxOptions].Lenient.
	MetricMended = "mcp_mended_arguments_total"
)

// otherLabel replaces values that must not become labels.
const otherLabel = "other"

// MetricsOptions configure [Metrics]. Nil means the zero MetricsOptions.
type MetricsOptions struct {
	// Cause returns the value of the label cause for the error of a failed request: the
	// error of the handler, the error of a failed tool ([mcp.CallToolResult.Err]), or the
	// cause of a cancelled context. It must return one of a few values, such as "database".
	// If the request did not fail or the error is unknown, Cause is not called and the
	// label is "". If Cause is nil, there is no such label.
	Cause func(err error) string
}

// Metrics counts and times requests and notifications with m. The labels are
//
//   - method: the method of the request, or "other" if the specification does not have it;
//   - name: the name of the tool or prompt, "other" if it is not known to exist or 1000
//     other names have become labels, or "" for everything else, including resources;
//   - outcome: as in [Logger];
//   - code: the code of an error, "other" if neither the specification nor package mcp
//     defines it, or "" if there is no error;
//   - cause: if MetricsOptions.Cause is set.
//
// Arbitrary values from clients never become labels. A name becomes a label once it is
// known to exist: when a mux has found it ([mcp.Request.IsRouted]), even if the request was
// rejected, or when the outcome is a result, an internal error or a panic. The caller is
// not a label.
//
// Use Metrics outside middleware that rejects requests, so that it counts rejected
// requests, too. It panics if m is nil.
func Metrics(m Meter, opts *MetricsOptions) mcp.Middleware {
	if m == nil {
		panic("middleware.Metrics: the meter must not be nil")
	}
	s := &metrics{meter: m, names: map[string]bool{}}
	if opts != nil {
		s.cause = opts.Cause
	}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			start := s.recordStart(ctx, req)
			return observe(ctx, next, req, func(o outcome) { s.recordEnd(ctx, req, o, start) })
		})
	}
}

// maxNames is the maximum number of names of tools and prompts that become labels. Each is a
// few time series, which metrics systems keep for weeks.
const maxNames = 1000

type metrics struct {
	meter Meter
	cause func(error) string // may be nil

	mu    sync.RWMutex
	names map[string]bool // method and name of each name used as a label
}

func (s *metrics) recordStart(ctx context.Context, req *mcp.Request) time.Time {
	labels := [...]Label{{"method", s.method(req)}}
	s.meter.Gauge(ctx, MetricInFlight, labels[:], 1)
	return time.Now()
}

func (s *metrics) recordEnd(ctx context.Context, req *mcp.Request, o outcome, start time.Time) {
	code := o.code
	if o.kind == panicked {
		code = mcp.CodeInternalError
	}
	labels := [...]Label{{"method", s.method(req)}, {"name", s.name(req, o)}, {"outcome", o.kind}, {"code", codeLabel(code)}}
	s.meter.Gauge(ctx, MetricInFlight, labels[:1], -1)
	s.meter.Count(ctx, MetricRequests, s.withCause(labels[:], o), 1)
	if o.mended > 0 {
		s.meter.Count(ctx, MetricMended, labels[:2], uint64(o.mended))
	}
	if req.Method != mcp.MethodListen {
		s.meter.Observe(ctx, MetricDuration, labels[:3], time.Since(start).Seconds())
	}
}

// withCause appends the label cause if MetricsOptions.Cause is set.
func (s *metrics) withCause(labels []Label, o outcome) []Label {
	if s.cause == nil {
		return labels
	}
	value := ""
	if o.err != nil {
		value = s.cause(o.err)
	}
	return append(labels, Label{"cause", value})
}

func (s *metrics) method(req *mcp.Request) string {
	if mcp.IsMethod(req.Method) {
		return req.Method
	}
	return otherLabel
}

func (s *metrics) name(req *mcp.Request, o outcome) string {
	if kind := req.Kind(); kind != mcp.KindTool && kind != mcp.KindPrompt || req.Name() == "" {
		return ""
	}
	key := req.Method + " " + req.Name()
	s.mu.RLock()
	known := s.names[key]
	s.mu.RUnlock()
	if known || isKnownName(req, o) && s.markKnown(key) {
		return req.Name()
	}
	return otherLabel
}

// isKnownName reports whether the name of a request is known to exist.
func isKnownName(req *mcp.Request, o outcome) bool {
	return req.IsRouted() || o.kind != "cancelled" && (o.code == 0 || o.code == mcp.CodeInternalError)
}

// markKnown makes a name a label if there is room, and reports whether it is one.
func (s *metrics) markKnown(key string) bool {
	if len(key) > maxKey {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.names[key] && len(s.names) >= maxNames {
		return false
	}
	s.names[key] = true
	return true
}

func codeLabel(code int) string {
	switch {
	case code == 0:
		return ""
	case mcp.CodeName(code) != "":
		return strconv.Itoa(code)
	}
	return otherLabel
}
