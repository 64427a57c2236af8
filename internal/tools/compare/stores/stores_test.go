// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"strings"
	"testing"
)

// Calls that need no store perform no store operation with any engine. Everything else
// works with all engines.
func TestCallsThatNeedNoStore(t *testing.T) {
	results, err := measureAll(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		for i, row := range rows {
			if isFree := r.steps[i] == 0; isFree != row.isFree && r.engine != "no store" {
				t.Errorf("%s: %s takes %d steps of the store", r.engine, row.name, r.steps[i])
			}
		}
	}
	var table strings.Builder
	write(&table, results)
	t.Log("\n" + table.String())
}
