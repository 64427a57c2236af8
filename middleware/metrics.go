// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
)

// A Meter takes measurements: an adapter to the system that a program has. It is safe for concurrent use, and does not keep or change labels.
type Meter interface {
	// Count adds delta, which is negative only where something has ended, to a
	// counter.
	Count(ctx context.Context, name string, labels []Label, delta int64)
	// Observe adds a value to a histogram.
	Observe(ctx context.Context, name string, labels []Label, value float64)
}

// A Label is a dimension of a measurement.
type Label struct{ Name, Value string }

// The measurements of [Metrics].
const (
	// MetricRequests counts what has ended, by method, name, outcome and code.
	MetricRequests = "mcp_requests_total"
	// MetricInFlight counts what is being served, by method; it goes up and down.
	MetricInFlight = "mcp_requests_in_flight"
	// MetricDuration is how long it took, in seconds, by method, name and outcome.
	// Subscriptions, which last as long as somebody listens, are left out.
	MetricDuration = "mcp_request_duration_seconds"
)

// otherLabel stands for all values that are not labels of their own.
const otherLabel = "other"

// MetricsOptions configure [Metrics]. Nil means the zero MetricsOptions.
type MetricsOptions struct {
	// Methods are labels of their own besides the methods of the specification:
	// those of [mcp.Mux.Handle].
	Methods []string
	// MaxNames is how many names of tools and prompts are labels at most. 0 means
	// 1000, negative none.
	MaxNames int
}

// Metrics counts and times requests and notifications with m. The labels are
//
//   - method: of the request, "other" if the specification does not have it;
//   - name: of the tool or prompt, "other" if there may be none of that name, ""
//     for everything else, resources included;
//   - outcome: as [Logger] has it;
//   - code: of an error, "other" if neither the specification nor package mcp has
//     it, "" if there is none.
//
// What clients make up is never a label. A name becomes one when a handler was
// reached under it: when the outcome was a result, an internal error or a panic. Who
// called is no label, either.
//
// Metrics is meant to stand outside of what refuses requests, which it then counts.
// It panics if m is nil.
func Metrics(m Meter, opts *MetricsOptions) mcp.Middleware {
	if m == nil {
		panic("middleware.Metrics: the meter must not be nil")
	}
	s := &metrics{meter: m, max: 1000, names: map[string]bool{}}
	if opts != nil {
		s.methods = slices.Clone(opts.Methods)
		if opts.MaxNames != 0 {
			s.max = opts.MaxNames
		}
	}
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			begun := s.begin(ctx, req)
			return watched(ctx, next, req, func(o outcome) { s.end(ctx, req, o, begun) })
		})
	}
}

type metrics struct {
	meter   Meter
	methods []string
	max     int

	mu    sync.RWMutex
	names map[string]bool // method and name of those that are labels
}

func (s *metrics) begin(ctx context.Context, req *mcp.Request) time.Time {
	labels := [...]Label{{"method", s.method(req)}}
	s.meter.Count(ctx, MetricInFlight, labels[:], 1)
	return time.Now()
}

func (s *metrics) end(ctx context.Context, req *mcp.Request, o outcome, begun time.Time) {
	code := o.code
	if o.kind == panicked {
		code = mcp.CodeInternalError
	}
	labels := [...]Label{{"method", s.method(req)}, {"name", s.name(req, o)}, {"outcome", o.kind}, {"code", codeLabel(code)}}
	s.meter.Count(ctx, MetricInFlight, labels[:1], -1)
	s.meter.Count(ctx, MetricRequests, labels[:], 1)
	if req.Method != mcp.MethodListen {
		s.meter.Observe(ctx, MetricDuration, labels[:3], time.Since(begun).Seconds())
	}
}

func (s *metrics) method(req *mcp.Request) string {
	if mcp.IsMethod(req.Method) || slices.Contains(s.methods, req.Method) {
		return req.Method
	}
	return otherLabel
}

func (s *metrics) name(req *mcp.Request, o outcome) string {
	if req.Method != mcp.MethodCallTool && req.Method != mcp.MethodGetPrompt || req.Name() == "" {
		return ""
	}
	key := req.Method + " " + req.Name()
	s.mu.RLock()
	known := s.names[key]
	s.mu.RUnlock()
	if known || s.learn(key, o) {
		return req.Name()
	}
	return otherLabel
}

// learn makes a name a label if there is something of that name, and room.
func (s *metrics) learn(key string, o outcome) bool {
	if o.code != 0 && o.code != mcp.CodeInternalError || o.kind == "cancelled" || len(key) > maxKey {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.names[key] && len(s.names) >= s.max {
		return false
	}
	s.names[key] = true
	return true
}

func codeLabel(code int) string {
	switch code {
	case 0:
		return ""
	case mcp.CodeParseError, mcp.CodeInvalidRequest, mcp.CodeMethodNotFound, mcp.CodeInvalidParams, mcp.CodeInternalError,
		mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedVersion, mcp.CodeURLElicitationRequired,
		mcp.CodeLegacyResourceNotFound, mcp.CodeLegacyUserRejectedRequest,
		mcp.CodeInsufficientScope, mcp.CodeTimeout, mcp.CodeTooLarge, mcp.CodeRateLimited:
		return strconv.Itoa(code)
	}
	return otherLabel
}
