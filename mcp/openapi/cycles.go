// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi

// cycles finds the references that lead back to themselves, with Tarjan's algorithm.
type cycles struct {
	d         *document
	index     map[string]int
	low       map[string]int
	onStack   map[string]bool
	stack     []string
	recursive map[string]bool
	steps     int // values visited
}

// Beyond these, every reference counts as recursive: the schema of the tool is cut there.
const (
	maxSteps = 2 * maxValues
	maxChain = 10_000
)

func newCycles(d *document) *cycles {
	return &cycles{d: d, index: map[string]int{}, low: map[string]int{}, onStack: map[string]bool{}, recursive: map[string]bool{}}
}

// isRecursive reports whether what ref refers to contains, perhaps indirectly, ref itself.
func (c *cycles) isRecursive(ref string) bool {
	if _, seen := c.index[ref]; !seen {
		c.visit(ref)
	}
	return c.recursive[ref] || c.steps > maxSteps
}

func (c *cycles) visit(ref string) {
	c.index[ref] = len(c.index)
	c.low[ref] = c.index[ref]
	c.stack = append(c.stack, ref)
	c.onStack[ref] = true
	target, _ := c.d.lookup(ref)
	if len(c.stack) > maxChain {
		c.steps = maxSteps + 1
	}
	for _, next := range c.appendRefs(nil, target) {
		if _, seen := c.index[next]; !seen {
			c.visit(next)
			c.low[ref] = min(c.low[ref], c.low[next])
		} else if c.onStack[next] {
			c.low[ref] = min(c.low[ref], c.index[next])
			c.recursive[ref] = c.recursive[ref] || next == ref
		}
	}
	if c.low[ref] != c.index[ref] {
		return
	}
	single := c.stack[len(c.stack)-1] == ref
	for {
		member := c.stack[len(c.stack)-1]
		c.stack = c.stack[:len(c.stack)-1]
		c.onStack[member] = false
		c.recursive[member] = c.recursive[member] || !single
		if member == ref {
			return
		}
	}
}

// appendRefs appends the references in v.
func (c *cycles) appendRefs(refs []string, v any) []string {
	if c.steps++; c.steps > maxSteps {
		return refs
	}
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			refs = append(refs, ref)
		}
		for key, inner := range v {
			if key != "example" && key != "examples" && key != "default" && key != "enum" {
				refs = c.appendRefs(refs, inner)
			}
		}
	case []any:
		for _, inner := range v {
			refs = c.appendRefs(refs, inner)
		}
	}
	return refs
}
