// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// writeTo writes the verdict and reports whether everything passed.
func (v *verdict) writeTo(w io.Writer) bool {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "leg\tscenarios\tchecks\tfailures\twarnings\texcepted\t")
	var all line
	for _, n := range v.lines {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t\n", n.leg, n.scenarios, n.checks, n.failures, n.warnings, n.excepted)
		all.scenarios += n.scenarios
		all.checks += n.checks
		all.failures += n.failures
		all.warnings += n.warnings
		all.excepted += n.excepted
	}
	_ = table.Flush() // a failed write cannot be reported
	for _, text := range v.bad {
		fmt.Fprintf(w, "BAD: %s\n", text)
	}
	fmt.Fprintf(w, "conformance: %d scenarios, %d checks, %d failures, %d warnings", all.scenarios, all.checks, all.failures, all.warnings)
	if all.excepted > 0 {
		fmt.Fprintf(w, "; %d more scenarios are excepted", all.excepted)
	}
	fmt.Fprintln(w)
	return len(v.bad) == 0
}
