// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"
)

// A report holds the results of a run.
type report struct {
	config config
	took   time.Duration
	kills  map[string]int // by kind of process
	log    io.Writer      // receives details of slow and wrong attempts
	engine []string       // addresses of the engine
	diary  diary          // events of processes

	explained atomic.Int64 // slow or wrong attempts explained in the log

	mu      sync.Mutex
	counts  map[string]*count
	errors  map[string]int // number of repeated attempts by kind and error text
	wrong   []string
	wrongs  int
	publish []publication
}

// A count holds the statistics of one kind of operation.
type count struct {
	done, again int
	took        []time.Duration
}

func newReport(c config, engine []string, log io.Writer) *report {
	return &report{config: c, engine: engine, log: log, kills: map[string]int{}, counts: map[string]*count{}, errors: map[string]int{}}
}

func (r *report) countLocked(kind string) *count {
	c := r.counts[kind]
	if c == nil {
		c = &count{}
		r.counts[kind] = c
	}
	return c
}

// done records a completed operation and its duration over all attempts.
func (r *report) done(kind string, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.countLocked(kind)
	c.done++
	c.took = append(c.took, took)
}

var numbers = regexp.MustCompile(`[0-9]+`)

// again records a failed attempt that will be repeated.
func (r *report) again(kind string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.countLocked(kind).again++
	r.errors[fmt.Sprintf("%s: %.220s", kind, numbers.ReplaceAllString(err.Error(), "N"))]++
}

// maxWrong is the maximum number of errors described in detail.
const maxWrong = 20

// wrongf records a violation.
func (r *report) wrongf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.wrongs++; len(r.wrong) < maxWrong {
		r.wrong = append(r.wrong, time.Now().Format("15:04:05 ")+fmt.Sprintf(format, args...))
	}
}

func (r *report) print(out io.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(out, "%d clients and %d guests for %v, store: %s\n\n", r.config.clients, r.config.guests, r.took.Round(time.Second), r.config.store)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "what\tdone\trepeated\tmedian\t99%\tlongest\t")
	for _, kind := range slices.Sorted(maps.Keys(r.counts)) {
		c := r.counts[kind]
		slices.Sort(c.took)
		fmt.Fprintf(w, "%s\t%d\t%d\t%v\t%v\t%v\t\n", kind, c.done, c.again, c.quantile(50), c.quantile(99), c.quantile(100))
	}
	_ = w.Flush() // like the other writes to out
	fmt.Fprintf(out, "\nkilled: %v\nwhy attempts were repeated:\n", r.kills)
	for _, text := range slices.SortedFunc(maps.Keys(r.errors), func(a, b string) int { return cmp.Compare(r.errors[b], r.errors[a]) }) {
		fmt.Fprintf(out, "  %4d %s\n", r.errors[text], text)
	}
	fmt.Fprintf(out, "explained in the log, because they took %v: %d\nwrong: %d\n", slow, r.explained.Load(), r.wrongs)
	for _, text := range r.wrong {
		fmt.Fprintln(out, "  "+text)
	}
}

func (c *count) quantile(percent int) time.Duration {
	if len(c.took) == 0 {
		return 0
	}
	return c.took[(len(c.took)-1)*percent/100].Round(time.Millisecond)
}
