// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// plotted is the number of seconds that are plotted.
const plotted = 120

// A second is the traffic of one second.
type second struct {
	at            int64 // Unix time
	count, failed int
	total         time.Duration
	longest       time.Duration
}

// mean returns the mean duration.
func (s second) mean() time.Duration { return s.total / time.Duration(max(s.count, 1)) }

// A series is the traffic of the last seconds, indexed by Unix time modulo plotted.
type series [plotted]second

// add counts a request that ended at a time.
func (s *series) add(end time.Time, d time.Duration, failed bool) {
	at := end.Unix()
	b := &s[at%plotted]
	if b.at != at {
		*b = second{at: at}
	}
	b.count++
	b.total += d
	b.longest = max(b.longest, d)
	if failed {
		b.failed++
	}
}

// last returns the seconds up to now, oldest first.
func (s *series) last(now time.Time) []second {
	all := make([]second, 0, plotted)
	for at := now.Unix() - plotted + 1; at <= now.Unix(); at++ {
		b := s[at%plotted]
		if b.at != at {
			b = second{at: at}
		}
		all = append(all, b)
	}
	return all
}

// The size of a plot in units of its view box. A horizontal unit is half a second.
const (
	plotWidth  = 240
	plotHeight = 48
)

// A plot is a small diagram of the last two minutes.
type plot struct {
	Title  string `json:"title"`
	Now    string `json:"now"` // value for the last minute
	Max    string `json:"max"`
	Line   string `json:"-"` // points of a line
	Area   string `json:"-"` // points of an area; "" if there is none
	Width  int    `json:"-"`
	Height int    `json:"-"`
}

// plots returns the diagrams of rates and durations.
func plots(seconds []second) []plot {
	var count, failed int
	var total, longest time.Duration
	most := 0
	for i, s := range seconds {
		most, longest = max(most, s.count), max(longest, s.longest)
		if i >= plotted-60 {
			count, failed, total = count+s.count, failed+s.failed, total+s.total
		}
	}
	rate := plot{
		Title: "Requests per second", Now: fmt.Sprintf("%.1f, %d failed in the last minute", float64(count)/60, failed), Max: strconv.Itoa(most),
		Line: points(seconds, func(s second) float64 { return share(float64(s.count), float64(most)) }),
		Area: area(points(seconds, func(s second) float64 { return share(float64(s.failed), float64(most)) })),
	}
	mean := total / time.Duration(max(count, 1))
	latency := plot{
		Title: "Duration", Now: "mean " + short(mean) + " in the last minute", Max: short(longest),
		Line: points(seconds, func(s second) float64 { return share(float64(s.longest), float64(longest)) }),
		Area: area(points(seconds, func(s second) float64 { return share(float64(s.mean()), float64(longest)) })),
	}
	rate.Width, rate.Height, latency.Width, latency.Height = plotWidth, plotHeight, plotWidth, plotHeight
	return []plot{rate, latency}
}

func share(v, most float64) float64 {
	if most == 0 {
		return 0
	}
	return v / most
}

// points returns the points of a line through values between 0 and 1.
func points(seconds []second, value func(second) float64) string {
	var b strings.Builder
	for i, s := range seconds {
		fmt.Fprintf(&b, "%d,%.1f ", i*plotWidth/(plotted-1), 1+(plotHeight-2)*(1-value(s)))
	}
	return strings.TrimSpace(b.String())
}

// area returns the points of the area below a line.
func area(line string) string {
	return fmt.Sprintf("0,%d %s %d,%d", plotHeight, line, plotWidth, plotHeight)
}

// short returns a duration with about three digits.
func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		d = d.Round(time.Second)
	case d >= time.Second:
		d = d.Round(10 * time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(10 * time.Microsecond)
	default:
		d = d.Round(100 * time.Nanosecond)
	}
	return d.String()
}
