// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"time"
)

// A sample is what one side needed in one round, by what was measured.
type sample map[measure]float64

// A measure is something that is measured.
type measure string

const (
	cpu         measure = "CPU, us"       // of the process under test, per call
	allocations measure = "allocations"   // per call
	allocated   measure = "allocated, KB" // per call
	memory      measure = "resident, KB"  // each
	wall        measure = "time, ms"
	size        measure = "size, MB"
	modules     measure = "modules linked"
	extraCPU    measure = "more CPU, us"
	extraAllocs measure = "more allocations"
	timesCPU    measure = "times the CPU"
	timesAllocs measure = "times the allocations"
	goroutines  measure = "goroutines" // each
)

// A row is a line of the table: a measure of a workload, and what it must not
// exceed.
type row struct {
	measure measure
	// ratio is the bar in multiples of the floor, most the bar itself; 0 is no bar.
	ratio, most float64
}

// A workload is something to do with each side.
type workload struct {
	name string
	// begin prepares to measure a side.
	begin func(ctx context.Context, sideName string) (session, error)
	rows  []row
	// only are the sides that can do it; nil means all.
	only []string
}

// A session measures one side, again and again.
type session interface {
	sample(limit limit) (sample, error)
	close() error
}

// A load makes calls.
type load interface {
	run(limit limit) (int, error)
	close() error
}

// loading measures a child under a load.
type loading struct {
	child *process
	load  load
}

func (l *loading) sample(limit limit) (sample, error) {
	before, err := l.child.use(false)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	count, err := l.load.run(limit)
	if err != nil {
		return nil, err
	}
	took := time.Since(start)
	after, err := l.child.use(false)
	if err != nil {
		return nil, err
	}
	per := 1 / float64(max(count, 1))
	return sample{
		cpu:         per * (after.CPU - before.CPU).Seconds() * 1e6,
		allocations: per * float64(after.Mallocs-before.Mallocs),
		allocated:   per * float64(after.Bytes-before.Bytes) / 1000,
		wall:        per * took.Seconds() * 1e3,
	}, nil
}

func (l *loading) close() error {
	err := l.load.close()
	return errors.Join(err, l.child.close())
}

// ordered is the load that a child makes by itself.
type ordered struct{ *process }

func (o ordered) run(limit limit) (int, error) {
	r, err := o.do(order{Do: "run", Limit: limit})
	return r.Count, err
}

func (o ordered) close() error { return nil }

// under begins a workload: a child, and what makes its load.
func under(s spec, connect func(ctx context.Context, p *process) (load, error)) func(context.Context, string) (session, error) {
	return func(ctx context.Context, sideName string) (session, error) {
		s := s
		s.Side = sideName
		p, err := launch(s)
		if err != nil {
			return nil, err
		}
		l, err := connect(ctx, p)
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		return &loading{p, l}, nil
	}
}
