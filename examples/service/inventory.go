// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
)

// An item is returned by the REST API and by the tools.
type item struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// maxItems limits the number of items, and maxName the number of characters in a name, as
// does the schema of the tool.
const (
	maxItems = 10_000
	maxName  = 100
)

var errFull = errors.New("the inventory is full")

// An inventory counts items in memory; a real one has a database. The REST API and the
// tools share it. It is safe for concurrent use.
type inventory struct {
	mu     sync.Mutex
	counts map[string]int
}

func newInventory() *inventory { return &inventory{counts: map[string]int{"chair": 4, "table": 1}} }

// find returns the items whose names contain text, sorted by name.
func (i *inventory) find(text string) []item {
	i.mu.Lock()
	defer i.mu.Unlock()
	items := []item{}
	for _, name := range slices.Sorted(maps.Keys(i.counts)) {
		if strings.Contains(name, text) {
			items = append(items, item{name, i.counts[name]})
		}
	}
	return items
}

func (i *inventory) set(name string, count int) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, known := i.counts[name]; !known && len(i.counts) >= maxItems {
		return errFull
	}
	i.counts[name] = count
	return nil
}
