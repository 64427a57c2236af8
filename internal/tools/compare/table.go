// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// value returns the median of a measure of a side.
func (r result) value(sideName string, m measure) float64 {
	var values []float64
	for _, s := range r.samples[sideName] {
		values = append(values, s[m])
	}
	return median(values)
}

// ratio returns the median over all rounds of the ratio between two sides.
func (r result) ratio(sideName, by string, m measure) float64 {
	var ratios []float64
	divisors := r.samples[by]
	for i, s := range r.samples[sideName] {
		if i < len(divisors) && divisors[i][m] > 0 {
			ratios = append(ratios, s[m]/divisors[i][m])
		}
	}
	return median(ratios)
}

// better returns the smaller of the peers' ratios to psi, or NaN if none was measured.
func (r result) better(m measure) float64 {
	best := math.NaN()
	for _, s := range sides {
		if v := r.ratio(s.Name, ownName, m); s.Name != floorName && s.Name != ownName && (math.IsNaN(best) || v < best) {
			best = v
		}
	}
	return best
}

// passes reports whether psi meets the bar of a row, and returns the bar.
func (r result) passes(w row) (bar string, passed bool) {
	passed = true
	if w.ratio > 0 {
		bar = "<= " + plain(w.ratio) + " x"
		passed = round(r.ratio(ownName, floorName, w.measure)) <= w.ratio
	}
	if w.most > 0 {
		bar = strings.TrimSpace(bar + " <= " + plain(w.most))
		passed = passed && round(r.value(ownName, w.measure)) <= w.most
	}
	return bar, passed
}

// round rounds to hundredths; smaller differences are noise.
func round(v float64) float64 { return math.Round(v*100) / 100 }

func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// figure formats a number with three significant digits, but at most two decimals.
func figure(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

func writeHead(out io.Writer) {
	var names []string
	for _, s := range sides {
		names = append(names, s.Name)
	}
	columns := slices.Concat([]string{"work", "measure"}, names, []string{ownName + " x " + floorName, "better peer x " + ownName, "bar for " + ownName, ""})
	fmt.Fprintln(out, "| "+strings.Join(columns, " | ")+" |")
	fmt.Fprintln(out, "|---|---|"+strings.Repeat("--:|", len(columns)-4)+"---|---|")
}

// write writes the rows of a result and returns the number of failed rows.
func (r result) write(out io.Writer) (failed int) {
	for _, w := range r.workload.rows {
		var values []string
		for _, s := range sides {
			values = append(values, figure(r.value(s.Name, w.measure)))
		}
		values = append(values, figure(r.ratio(ownName, floorName, w.measure)), figure(r.better(w.measure)))
		bar, passed := r.passes(w)
		verdict := ""
		if bar != "" {
			verdict = "pass"
		}
		if !passed {
			verdict = "**FAIL**"
			failed++
		}
		columns := slices.Concat([]string{r.workload.name, string(w.measure)}, values, []string{bar, verdict})
		fmt.Fprintln(out, "| "+strings.Join(columns, " | ")+" |")
	}
	return failed
}
