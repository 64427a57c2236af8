// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/printable"
)

// A Severity describes how bad a finding is.
type Severity string

const (
	// Error means that the specification is violated, or that the API of a provider rejects
	// a request that offers the tool.
	Error Severity = "error"
	// Warning means that some hosts and providers reject, truncate, hide or ignore
	// something that others repair.
	Warning Severity = "warning"
	// Note means that everything works, but that models and users are told too little.
	Note Severity = "note"
)

// The kinds of items, as used in [Finding].
const (
	KindServer   = "server"
	KindTool     = "tool"
	KindPrompt   = "prompt"
	KindResource = "resource"
	KindTemplate = "resource template"
)

// A Finding is something that should be changed in one item of a list.
type Finding struct {
	Severity Severity `json:"severity"`
	Kind     string   `json:"kind"`              // KindTool, …
	Name     string   `json:"name,omitempty"`    // of the tool or prompt, or the URI; "" for the server itself
	Pointer  string   `json:"pointer"`           // JSON pointer into the item as it is listed; "" is the item
	Rule     string   `json:"rule"`              // such as "tool-name"
	Message  string   `json:"message"`           // what is wrong
	Advice   string   `json:"advice"`            // what to do
	Clients  []string `json:"clients,omitempty"` // that object; empty means all, or the specification
}

// String returns the finding as one line that is safe to print on a terminal.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", f.Severity, f.Kind)
	if f.Name != "" {
		fmt.Fprintf(&b, " %q", f.Name)
	}
	if f.Pointer != "" {
		fmt.Fprintf(&b, " at %s", f.Pointer)
	}
	fmt.Fprintf(&b, ": %s", f.Message)
	if len(f.Clients) > 0 {
		fmt.Fprintf(&b, " (%s)", strings.Join(f.Clients, ", "))
	}
	fmt.Fprintf(&b, "; %s [%s]", f.Advice, f.Rule)
	return printable.Line(b.String())
}

// An item is one item of a list. It collects the findings about the item.
type item struct {
	kind, name string
	found      *[]Finding
}

func (it item) report(s Severity, pointer, rule, message, advice string, clients ...string) {
	*it.found = append(*it.found, Finding{s, it.kind, it.name, pointer, rule, message, advice, clients})
}

// ordered sorts the findings about one item by severity. The items stay in the order of
// their list.
func ordered(found []Finding) []Finding {
	rank := []Severity{Error, Warning, Note}
	for start := 0; start < len(found); {
		end := start
		for end < len(found) && found[end].Kind == found[start].Kind && found[end].Name == found[start].Name {
			end++
		}
		slices.SortStableFunc(found[start:end], func(a, b Finding) int {
			return cmp.Compare(slices.Index(rank, a.Severity), slices.Index(rank, b.Severity))
		})
		start = end
	}
	return found
}
