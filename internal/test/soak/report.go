// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// report holds the results of a load.
type report struct {
	config        config
	before, after figures
	took, settled time.Duration
	leftAlone     int // sessions left open by clients at the end
	moves, cuts   int // made by the balancer
	logged        map[string]int

	mu           sync.Mutex
	peak         peak
	problems     []string
	problemCount int
	counts       map[string]*count
}

// count holds the statistics of one kind of operation.
type count struct {
	done    int
	refused int // as expected
	broken  int // because the client cut the connection
	failed  int // because of the balancer or a removed replica
	longest time.Duration
	total   time.Duration
}

func newReport(c config) *report { return &report{config: c, counts: map[string]*count{}} }

// outcome is how an operation ended, other than wrongly.
type outcome int

const (
	done outcome = iota
	refused
	broken
	failed
)

func (r *report) note(kind string, o outcome, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.counts[kind]
	if c == nil {
		c = &count{}
		r.counts[kind] = c
	}
	switch o {
	case done:
		c.done++
	case refused:
		c.refused++
	case broken:
		c.broken++
	case failed:
		c.failed++
	}
	c.total += took
	c.longest = max(c.longest, took)
}

// watch updates the peaks.
func (r *report) watch(ctx context.Context, s *server) {
	for ctx.Err() == nil {
		r.mu.Lock()
		r.peak.see(s)
		r.mu.Unlock()
		pause(ctx, 500*time.Millisecond)
	}
}

func (r *report) print(out io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(out, "%d clients for %v, replicas: %d\n\n", r.config.sessions, r.took.Round(time.Millisecond), max(r.config.replicas, 1))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "what\tdone\trefused\tcut\tfailed\tmean\tlongest\t")
	all := 0
	for _, kind := range slices.Sorted(maps.Keys(r.counts)) {
		c := r.counts[kind]
		n := c.done + c.refused + c.broken + c.failed
		all += n
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%v\t%v\t\n", kind, c.done, c.refused, c.broken, c.failed,
			(c.total / time.Duration(n)).Round(10*time.Microsecond), c.longest.Round(time.Millisecond))
	}
	fmt.Fprintf(w, "all\t%d\t\t\t\t\t\t\n\n", all)
	fmt.Fprintln(w, "\tbefore\tpeak\tafter\t")
	fmt.Fprintf(w, "goroutines\t%d\t%d\t%d\t\n", r.before.goroutines, r.peak.goroutines, r.after.goroutines)
	fmt.Fprintf(w, "descriptors\t%d\t%d\t%d\t\n", r.before.descriptors, r.peak.descriptors, r.after.descriptors)
	fmt.Fprintf(w, "heap, KiB\t%d\t%d\t%d\t\n", r.before.heap>>10, r.peak.heap>>10, r.after.heap>>10)
	fmt.Fprintf(w, "of the system, KiB\t\t%d\t\t\n", r.peak.system>>10)
	fmt.Fprintf(w, "sessions\t%d\t%d\t%d\t\n", r.before.sessions, r.peak.sessions, r.after.sessions)
	fmt.Fprintf(w, "handlers\t%d\t\t%d\t\n", r.before.handlers, r.after.handlers)
	_ = w.Flush() // like the other writes to out
	fmt.Fprintf(out, "\nsessions left behind by their clients: %d; all as before after %v\n", r.leftAlone, r.settled.Round(time.Millisecond))
	if r.config.replicas > 1 {
		fmt.Fprintf(out, "sessions went on at another replica: %d times; connections cut by the balancer: %d\n", r.moves, r.cuts)
	}
	for _, message := range slices.Sorted(maps.Keys(r.logged)) {
		fmt.Fprintf(out, "logged %d times: %s\n", r.logged[message], message)
	}
	fmt.Fprintf(out, "wrong: %d\n", r.problemCount)
	for _, p := range r.problems {
		fmt.Fprintln(out, "  "+p)
	}
}
