// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-psi/psi/mcp"
)

// elicit asks for one field after the other.
func (t *terminal) elicit(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	fields, err := fieldsOf(p.RequestedSchema)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clearBar()
	fmt.Fprintf(t.out, "The server asks: %s\n(An empty line takes the default or leaves a field out; ! declines.)\n", clean(p.Message))
	content := map[string]json.RawMessage{}
	for _, f := range fields {
		value, action, err := t.askField(ctx, f)
		if err != nil {
			return nil, err
		}
		if action != mcp.ActionAccept {
			return &mcp.ElicitResult{Action: action}, nil
		}
		if value != nil {
			content[f.name] = value
		}
	}
	if len(fields) == 0 { // then nothing has been agreed to yet
		return t.confirm(ctx)
	}
	raw, err := json.Marshal(content)
	return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: raw}, err
}

// confirm asks whether a form without fields is accepted.
func (t *terminal) confirm(ctx context.Context) (*mcp.ElicitResult, error) {
	_, action, err := t.askField(ctx, &field{name: "Press return to agree"})
	if err != nil || action != mcp.ActionAccept {
		return &mcp.ElicitResult{Action: action}, err
	}
	return &mcp.ElicitResult{Action: action, Content: json.RawMessage("{}")}, nil
}

// askField asks until there is a value that fits. A nil value leaves the field out,
// or to its default, which the client fills in.
func (t *terminal) askField(ctx context.Context, f *field) (value json.RawMessage, action string, err error) {
	t.showField(f)
	for {
		fmt.Fprint(t.out, "> ")
		line, ok, err := t.readLine(ctx)
		switch {
		case err != nil:
			return nil, "", err
		case !ok:
			return nil, mcp.ActionCancel, nil
		case line == "!":
			return nil, mcp.ActionDecline, nil
		case line == "" && f.required && f.Default == nil:
			fmt.Fprintln(t.out, "This field is needed.")
			continue
		case line == "":
			return nil, mcp.ActionAccept, nil
		}
		value, err := f.parse(line)
		if err == nil {
			return value, mcp.ActionAccept, nil
		}
		fmt.Fprintln(t.out, clean(err.Error()))
	}
}

func (t *terminal) showField(f *field) {
	line := oneLine(cmp.Or(f.Title, f.name))
	if f.Description != "" {
		line += ": " + oneLine(f.Description)
	}
	var notes []string
	switch f.Type {
	case "boolean":
		notes = append(notes, "yes or no")
	case "array":
		notes = append(notes, "several, with commas")
	case "integer", "number":
		notes = append(notes, f.Type)
	}
	if f.Default != nil {
		notes = append(notes, "default "+oneLine(string(f.Default)))
	}
	if len(notes) > 0 {
		line += " (" + strings.Join(notes, "; ") + ")"
	}
	fmt.Fprintln(t.out, line)
	for i, c := range f.options() {
		fmt.Fprintf(t.out, "  %d) %s\n", i+1, oneLine(cmp.Or(c.Title, c.Value)))
	}
}
