// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Terminal colors and the help line.
const (
	red, green, yellow, bold = "31", "32", "33", "1"
	keys                     = "1 2 3: replica · a b c: node · q: quit"
)

// A painter colors text, if its output is a terminal.
type painter bool

func (p painter) paint(color, text string) string {
	if !p || color == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

func (p painter) state(state string) string {
	color := map[string]string{"up": green, "starting": yellow, "killed": red}[state]
	return p.paint(color, fmt.Sprintf("%-8s", state))
}

// write writes the state of the cluster.
func (p painter) write(w io.Writer, c *cluster) {
	fmt.Fprintf(w, "%s  %s  %v\n%s\n\n", p.paint(bold, "psi cluster"), c.url, time.Since(c.begun).Round(time.Second), keys)
	fmt.Fprintln(w, p.paint(bold, "            state    killed  sessions   calls  streams"))
	for _, m := range c.replicas {
		var s replicaStatus
		state, kills := m.state(&s)
		fmt.Fprintf(w, "%-12v%s %6d %9d %7d %8d\n", m, p.state(state), kills, s.Sessions, s.Calls, s.Streams)
	}
	fmt.Fprintln(w, p.paint(bold, "\n            state    killed   clients  leads"))
	for _, m := range c.nodes {
		var s nodeStatus
		state, kills := m.state(&s)
		slices.Sort(s.Leads)
		fmt.Fprintf(w, "%-12v%s %6d %9d  %s\n", m, p.state(state), kills, s.Clients, strings.Join(s.Leads, ", "))
	}
	var rows []row
	_, _ = c.client.state(&rows)
	fmt.Fprintln(w)
	p.writeRows(w, rows)
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(w, "\n%s\n", strings.Join(c.events, "\n"))
}

// writeRows writes the client's rows.
func (p painter) writeRows(w io.Writer, rows []row) {
	fmt.Fprintln(w, p.paint(bold, "the client's    done  repeated  slowest  lost"))
	for _, r := range rows {
		lost := p.paint(green, "   0")
		if r.Lost > 0 {
			lost = p.paint(red, fmt.Sprintf("%4d", r.Lost))
		}
		fmt.Fprintf(w, "%-13s %6d %9d %8v  %s  %.60s\n", r.Name, r.Done, r.Again, r.Slowest.Round(10*time.Millisecond), lost, cmp.Or(r.Last, "–"))
	}
}
