// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"

	"github.com/go-psi/psi/internal/tools/compare/side"
)

// taskWorkloads measures the cost of tasks: nothing for a call that is not a task, and at
// most three times a call for a task that ends immediately, which is created and read once.
func taskWorkloads() []workload {
	times := func(op, tasks string) func(context.Context, string) (session, error) {
		return func(ctx context.Context, sideName string) (session, error) {
			return newQuotient(ctx, sideName, spec{Op: op, Options: side.Options{Tasks: tasks}}, spec{Op: op})
		}
	}
	own := []string{ownName}
	return []workload{
		{name: "a call beside tasks, by a call without", begin: times("in process", "beside"), rows: []row{{measure: timesCPU}, {measure: timesAllocs, most: 1}}, only: own},
		{name: "a task that ends at once, by a call", begin: times("in process", "behind"), rows: []row{{measure: timesCPU}, {measure: timesAllocs, most: 3}}, only: own},
		{name: "a task that ends at once, by a call, over HTTP", begin: times("over HTTP", "behind"), rows: []row{{measure: timesCPU, most: 3}, {measure: timesAllocs, most: 3}}, only: own},
		{name: "a task that waits, of 10,000", begin: waiting, rows: []row{{measure: memory, most: 4}, {measure: goroutines, most: 0.01}}, only: own},
	}
}

// A quotient measures the ratio between the needs of two sessions.
type quotient struct{ of, by session }

func newQuotient(ctx context.Context, sideName string, of, by spec) (session, error) {
	first, err := ops(of)(ctx, sideName)
	if err != nil {
		return nil, err
	}
	second, err := ops(by)(ctx, sideName)
	if err != nil {
		return nil, errors.Join(err, first.close())
	}
	return &quotient{first, second}, nil
}

func (q *quotient) sample(limit limit) (sample, error) {
	by, err := q.by.sample(limit)
	if err != nil {
		return nil, err
	}
	of, err := q.of.sample(limit)
	return sample{timesCPU: of[cpu] / by[cpu], timesAllocs: of[allocations] / by[allocations]}, err
}

func (q *quotient) close() error { return errors.Join(q.of.close(), q.by.close()) }

// waiting measures tasks that wait for answers, each time in a new process.
func waiting(_ context.Context, sideName string) (session, error) {
	return crowd{spec{Side: sideName, Op: "waiting task", Options: side.Options{Tasks: "beside"}}}, nil
}

// A crowd measures many waiting tasks.
type crowd struct{ spec spec }

const crowded10k = 10_000

func (c crowd) sample(l limit) (s sample, err error) {
	p, err := launch(c.spec)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	count := crowded10k
	if l.Count > 0 {
		count = l.Count
	}
	if _, err := p.do(order{Do: "run", Limit: limit{Count: count/10 + 1}}); err != nil { // one-time costs
		return nil, err
	}
	before, err := p.settled()
	if err != nil {
		return nil, err
	}
	if _, err := p.do(order{Do: "run", Limit: limit{Count: count}}); err != nil {
		return nil, err
	}
	after, err := p.settled()
	each := 1 / float64(count)
	return sample{memory: each * float64(after.Resident-before.Resident) / 1000, goroutines: each * float64(after.Goroutines-before.Goroutines)}, err
}

func (crowd) close() error { return nil }
