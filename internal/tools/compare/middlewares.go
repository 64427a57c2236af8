// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"

	"github.com/go-psi/psi/internal/tools/compare/side"
)

// middlewares measures the cost of three middlewares on top of a dispatch.
func middlewares() workload {
	return workload{
		name:  "recovery, logging and a rate limit",
		begin: besides, rows: []row{{measure: extraCPU, most: 1.5}, {measure: extraAllocs, most: 6}},
		only: []string{ownName},
	}
}

func besides(ctx context.Context, sideName string) (session, error) {
	without, err := ops(spec{Op: "dispatch"})(ctx, sideName)
	if err != nil {
		return nil, err
	}
	with, err := ops(spec{Op: "dispatch", Options: side.Options{Middleware: true}})(ctx, sideName)
	if err != nil {
		return nil, errors.Join(err, without.close())
	}
	return &difference{with, without}, nil
}

// difference measures how much more one session needs than another.
type difference struct{ more, less session }

func (d *difference) sample(limit limit) (sample, error) {
	less, err := d.less.sample(limit)
	if err != nil {
		return nil, err
	}
	more, err := d.more.sample(limit)
	return sample{extraCPU: more[cpu] - less[cpu], extraAllocs: more[allocations] - less[allocations]}, err
}

func (d *difference) close() error { return errors.Join(d.more.close(), d.less.close()) }
