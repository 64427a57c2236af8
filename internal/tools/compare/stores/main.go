// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command stores measures the latency that a shared store adds to client operations, and
// writes a Markdown table:
//
//	go -C internal/tools/compare run ./stores [-n 200]
//
// Client, server and NATS share one process; Redis or Valkey is started if it is installed.
// Each figure is the median of operations run one after another. The last column counts the
// store operations of one client operation: a call of the latest revision that elicits
// nothing has none.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	n := flag.Int("n", 200, "how often each thing is done")
	flag.Parse()
	results, err := measureAll(context.Background(), *n)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stores:", err)
		os.Exit(1)
	}
	write(os.Stdout, results)
}

// A result holds the measurements of one engine, in the order of the rows.
type result struct {
	engine string
	times  []time.Duration // medians
	steps  []int           // store operations of each row
}

func measureAll(ctx context.Context, n int) ([]result, error) {
	all, closeAll, err := openEngines(ctx)
	if err != nil {
		return nil, err
	}
	defer closeAll()
	results := make([]result, len(all))
	for i, e := range all {
		if results[i], err = measure(ctx, e, n); err != nil {
			return nil, fmt.Errorf("%s: %w", e.name, err)
		}
	}
	return results, nil
}

func measure(ctx context.Context, e engine, n int) (result, error) {
	r := result{engine: e.name}
	s := newServer(e.store)
	defer s.close()
	for _, row := range rows {
		do, err := row.begin(ctx, s)
		if err != nil {
			return r, fmt.Errorf("%s: %w", row.name, err)
		}
		times := make([]time.Duration, n)
		before := s.steps()
		for i := range times {
			begun := time.Now()
			if err := do(); err != nil {
				return r, fmt.Errorf("%s: %w", row.name, err)
			}
			times[i] = time.Since(begun)
		}
		slices.Sort(times)
		r.times, r.steps = append(r.times, times[n/2]), append(r.steps, (s.steps()-before+n/2)/n)
	}
	return r, nil
}

func write(out io.Writer, results []result) {
	head, line := "| us |", "|---|"
	for _, r := range results {
		head, line = head+" "+r.engine+" |", line+"--:|"
	}
	fmt.Fprintf(out, "%s steps |\n%s--:|\n", head, line)
	for i, row := range rows {
		var cells strings.Builder
		steps := 0
		for _, r := range results {
			fmt.Fprintf(&cells, " %d |", r.times[i].Microseconds())
			steps = max(steps, r.steps[i])
		}
		fmt.Fprintf(out, "| %s |%s %d |\n", row.name, &cells, steps)
	}
}
