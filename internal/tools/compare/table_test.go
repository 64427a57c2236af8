// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"strings"
	"testing"
)

// The ratio is the median of the ratios of the rounds, not the ratio of the medians: a slow
// round counts no more than the others. The better peer is the one with the smaller ratio.
func TestTable(t *testing.T) {
	r := result{workload{name: "w", rows: []row{{measure: cpu, ratio: 0.5}, {measure: memory, most: 1}, {measure: size}}}, map[string][]sample{
		floorName: {{cpu: 10, memory: 4}, {cpu: 100, memory: 4}, {cpu: 12, memory: 4}},
		ownName:   {{cpu: 5, memory: 2}, {cpu: 40, memory: 2}, {cpu: 9, memory: 2}},
		"go-sdk":  {{cpu: 20, memory: 1}, {cpu: 40, memory: 1}, {cpu: 90, memory: 1}},
		"mcp-go":  {{cpu: 15, memory: 3}, {cpu: 90, memory: 3}, {cpu: 27, memory: 3}},
	}}
	var text strings.Builder
	if failed := r.write(&text); failed != 1 {
		t.Errorf("%d rows fail, want 1", failed)
	}
	const want = "| w | CPU, us | 12.0 | 9.00 | 40.0 | 27.0 | 0.50 | 3.00 | <= 0.5 x | pass |\n" +
		"| w | resident, KB | 4.00 | 2.00 | 1.00 | 3.00 | 0.50 | 0.50 | <= 1 | **FAIL** |\n" +
		"| w | size, MB | 0.00 | 0.00 | 0.00 | 0.00 | – | – |  |  |\n"
	if text.String() != want {
		t.Errorf("the table is\n%s\nwant\n%s", text.String(), want)
	}
}
