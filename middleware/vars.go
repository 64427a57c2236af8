// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"sync"
)

// VarsOptions configure [Vars]. Nil means the zero VarsOptions.
type VarsOptions struct {
	// Buckets are the upper bounds of histograms, growing. Nil means from a
	// millisecond to a minute, in seconds.
	Buckets []float64
	// MaxSeries is how many combinations of names and labels are kept; what would be
	// more is counted under "dropped". 0 means 10000.
	MaxSeries int
}

// Vars is a [Meter] that keeps everything in memory. It is an [expvar.Var]: a
// program that publishes its variables has
//
//	vars := middleware.NewVars(nil)
//	expvar.Publish("mcp", vars)
//	mux.Use(middleware.Metrics(vars, nil))
//
// It registers nothing by itself, and does not import expvar, which would. It is safe
// for concurrent use.
type Vars struct {
	buckets []float64
	max     int

	mu         sync.Mutex
	counters   map[string]*int64
	histograms map[string]*histogram
	dropped    int64
}

type histogram struct {
	count   int64
	sum     float64
	buckets []int64 // not cumulative
}

// NewVars makes an empty Vars; opts may be nil.
func NewVars(opts *VarsOptions) *Vars {
	v := &Vars{
		buckets:  []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
		max:      10_000,
		counters: map[string]*int64{}, histograms: map[string]*histogram{},
	}
	if opts != nil && opts.Buckets != nil {
		v.buckets = slices.Sorted(slices.Values(opts.Buckets))
	}
	if opts != nil && opts.MaxSeries > 0 {
		v.max = opts.MaxSeries
	}
	return v
}

// Count implements [Meter].
func (v *Vars) Count(_ context.Context, name string, labels []Label, delta int64) {
	var space [256]byte
	key := appendSeries(space[:0], name, labels)
	v.mu.Lock()
	defer v.mu.Unlock()
	n := v.counters[string(key)]
	if n == nil {
		if v.full() {
			return
		}
		n = new(int64)
		v.counters[string(key)] = n
	}
	*n += delta
}

// Observe implements [Meter]. Values that are no numbers are not counted.
func (v *Vars) Observe(_ context.Context, name string, labels []Label, value float64) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	var space [256]byte
	key := appendSeries(space[:0], name, labels)
	v.mu.Lock()
	defer v.mu.Unlock()
	h := v.histograms[string(key)]
	if h == nil {
		if v.full() {
			return
		}
		h = &histogram{buckets: make([]int64, len(v.buckets))}
		v.histograms[string(key)] = h
	}
	h.count++
	h.sum += value
	if i, _ := slices.BinarySearch(v.buckets, value); i < len(v.buckets) {
		h.buckets[i]++
	}
}

// full reports whether there is no room for another series, and counts what has
// none.
func (v *Vars) full() bool {
	if len(v.counters)+len(v.histograms) < v.max {
		return false
	}
	v.dropped++
	return true
}

// appendSeries appends a name with its labels, as Prometheus writes them.
func appendSeries(dst []byte, name string, labels []Label) []byte {
	dst = append(dst, name...)
	for i, l := range labels {
		dst = append(dst, "{,"[min(i, 1)])
		dst = append(dst, l.Name...)
		dst = append(dst, '=')
		dst = strconv.AppendQuote(dst, l.Value)
	}
	if len(labels) > 0 {
		dst = append(dst, '}')
	}
	return dst
}

// String is everything as a JSON object, by name and labels: a counter is a number, a
// histogram has count, sum, and for each bound how many values were not above it.
func (v *Vars) String() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := map[string]any{}
	for key, n := range v.counters {
		all[key] = *n
	}
	for key, h := range v.histograms {
		all[key] = map[string]any{"count": h.count, "sum": h.sum, "buckets": v.cumulative(h)}
	}
	if v.dropped > 0 {
		all["dropped"] = v.dropped
	}
	text, err := json.Marshal(all)
	if err != nil { // a sum grew beyond all numbers
		return "{}"
	}
	return string(text)
}

func (v *Vars) cumulative(h *histogram) map[string]int64 {
	bounds := make(map[string]int64, len(v.buckets))
	var n int64
	for i, bound := range v.buckets {
		n += h.buckets[i]
		bounds[strconv.FormatFloat(bound, 'g', -1, 64)] = n
	}
	return bounds
}
