// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/go-psi/psi/internal/printable"
)

// A DifferenceError is the first difference between two recordings, or between a recording
// and the messages that a replay receives.
type DifferenceError struct {
	// Line is the line in the first recording, and Other the line in the second. 0 means
	// that a recording has no such line.
	Line, Other int
	// Path is the path of the differing member, such as message.result.content[0].text.
	Path string
	// Want and Got are the two values, normalized, as JSON. If a member or a line is
	// missing on one side, both are "" and Missing says which side lacks it.
	Want, Got string
	Missing   string
}

// Error implements the error interface.
func (d *DifferenceError) Error() string {
	where := "recording: line " + strconv.Itoa(d.Line)
	switch {
	case d.Line == 0:
		where = "recording: after the last line"
	case d.Other != 0:
		where += " and " + strconv.Itoa(d.Other)
	}
	if d.Path != "" {
		where += ": " + d.Path
	}
	if d.Missing != "" {
		return where + ": " + d.Missing
	}
	return fmt.Sprintf("%s: got %s, want %s", where, shorten(d.Got), shorten(d.Want))
}

// shorten returns a value on one line, shortened for an error message.
func shorten(value string) string {
	const most = 300
	value = printable.Line(value)
	if len(value) <= most {
		return value
	}
	return value[:most] + fmt.Sprintf("… (%d bytes)", len(value))
}

// CompareOptions configure [Compare]. Nil means the zero CompareOptions.
type CompareOptions struct {
	// Ignore reports whether the member at path may differ. Examples of paths are
	// message.params._meta and message.result.content[0].text. Nil means that no member may
	// differ.
	Ignore func(path string) bool
}

// Compare returns the first difference between two recordings as a [*DifferenceError], or nil
// if there is none. Times and the order of members are ignored. IDs, cursors, progress tokens,
// states, session names and task IDs may differ if they appear at the same places. A nil
// recording is empty. opts may be nil.
func Compare(want, got *Recording, opts *CompareOptions) error {
	var ignore func(string) bool
	if opts != nil {
		ignore = opts.Ignore
	}
	a, b := normalized(want), normalized(got)
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(b):
			return &DifferenceError{Line: a[i].line, Missing: "the other recording ends before " + a[i].summary}
		case i >= len(a):
			return &DifferenceError{Other: b[i].line, Missing: "the other recording continues with line " + strconv.Itoa(b[i].line) + ", " + b[i].summary}
		}
		if d := differ("", a[i].flat, b[i].flat, ignore); d != nil {
			d.Line, d.Other = a[i].line, b[i].line
			return d
		}
	}
	return nil
}

// A normalEntry is an entry in the form in which it is compared.
type normalEntry struct {
	line    int
	summary string
	flat    map[string]any
}

func normalized(r *Recording) []normalEntry {
	if r == nil {
		return nil
	}
	var all []normalEntry
	sessions := map[string]*normalizer{}
	order := newNormalizer()
	for i := range r.entries {
		e := &r.entries[i]
		n := sessions[e.Session]
		if n == nil {
			n = newNormalizer()
			sessions[e.Session] = n
		}
		flat := n.entry(e)
		if e.Session != "" {
			flat["session"] = order.number("session", e.Session)
		}
		all = append(all, normalEntry{e.Line, e.summary(), flat})
	}
	return all
}

// summary describes an entry.
func (e *Entry) summary() string {
	m := &e.parsed
	switch {
	case e.Failure != nil && e.Failure.Kind == Cancelled:
		return "the cancellation of request " + e.Failure.ID.String()
	case e.Failure != nil:
		return fmt.Sprintf("the failure %q", e.Failure.Kind)
	case m.IsResponse():
		return "the response to request " + m.ID.String()
	case m.IsNotification():
		return "the notification " + strconv.Quote(m.Method)
	}
	return "the request " + strconv.Quote(m.Method)
}

// differ returns the first difference between two values, or nil if there is none.
func differ(path string, want, got any, ignore func(string) bool) *DifferenceError {
	if path != "" && ignore != nil && ignore(path) {
		return nil
	}
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			return differObjects(path, want, got, ignore)
		}
	case []any:
		if got, ok := got.([]any); ok && len(got) == len(want) {
			for i := range want {
				if d := differ(path+"["+strconv.Itoa(i)+"]", want[i], got[i], ignore); d != nil {
					return d
				}
			}
			return nil
		}
	default:
		if isScalar(got) && want == got {
			return nil
		}
	}
	return &DifferenceError{Path: path, Want: asText(want), Got: asText(got)}
}

// asText returns a normalized value as JSON.
func asText(v any) string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return string(bytes.TrimSpace(text.Bytes()))
}

func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

func differObjects(path string, want, got map[string]any, ignore func(string) bool) *DifferenceError {
	names := maps.Clone(want)
	maps.Copy(names, got)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		member := name
		if path != "" {
			member = path + "." + name
		}
		a, inWant := want[name]
		b, inGot := got[name]
		switch {
		case inWant && inGot:
			if d := differ(member, a, b, ignore); d != nil {
				return d
			}
		case ignore != nil && ignore(member):
		case inWant:
			return &DifferenceError{Path: member, Missing: "it is missing, want " + shorten(asText(a))}
		default:
			return &DifferenceError{Path: member, Missing: "it is not expected, got " + shorten(asText(b))}
		}
	}
	return nil
}
