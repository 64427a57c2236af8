// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
)

// elicit asks for one field after the other, first for those that are needed.
func (t *terminal) elicit(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	var form struct {
		Properties map[string]json.RawMessage
		Required   []string
	}
	if err := json.Unmarshal(p.RequestedSchema, &form); err != nil {
		return nil, err
	}
	t.take()
	defer t.mu.Unlock()
	fmt.Fprintf(t.out, "The server asks: %s\n", clean(p.Message))
	if len(form.Properties) == 0 { // then nothing has been agreed to yet
		return t.consent(ctx)
	}
	fmt.Fprintln(t.out, "(Write JSON or plain text. An empty line leaves a field out, ! declines.)")
	needed := func(name string) bool { return slices.Contains(form.Required, name) }
	rest := slices.DeleteFunc(slices.Sorted(maps.Keys(form.Properties)), needed)
	content := map[string]json.RawMessage{}
	for _, name := range slices.Concat(form.Required, rest) {
		value, action, err := t.fill(ctx, name, form.Properties[name], needed(name))
		if err != nil || action != mcp.ActionAccept {
			return &mcp.ElicitResult{Action: action}, err
		}
		if value != nil {
			content[name] = value
		}
	}
	raw, err := json.Marshal(content)
	return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: raw}, err
}

// fill asks until there is a value that fits, as JSON or as plain text. A nil value
// leaves the field out, or to its default, which the client fills in.
func (t *terminal) fill(ctx context.Context, name string, field json.RawMessage, needed bool) (value json.RawMessage, action string, err error) {
	schema, err := jsonschema.Compile(field, nil)
	if err != nil {
		return nil, "", fmt.Errorf("the field %q of the form: %w", name, err)
	}
	fmt.Fprintln(t.out, oneLine(fmt.Sprintf("%s: %s", name, field)))
	for {
		line, action, err := t.ask(ctx)
		if err != nil || action != mcp.ActionAccept || line == "" && !needed {
			return nil, action, err
		}
		if value = json.RawMessage(line); json.Valid(value) && schema.Validate(ctx, value) == nil {
			return value, action, nil
		}
		if value, err = json.Marshal(line); err == nil {
			err = schema.Validate(ctx, value)
		}
		if err == nil {
			return value, action, nil
		}
		fmt.Fprintln(t.out, clean(err.Error()))
	}
}

// elicitURL asks for consent. The page is left for the user to open: a server does
// not get to open pages.
func (t *terminal) elicitURL(ctx context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	t.take()
	defer t.mu.Unlock()
	u, err := url.Parse(p.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		fmt.Fprintf(t.out, "The server asks to open %q, which is no web page: declined.\n", p.URL)
		return &mcp.ElicitResult{Action: mcp.ActionDecline}, nil
	}
	fmt.Fprintf(t.out, "The server asks: %s\nIt wants you to open a page of %s:\n  %s\n", clean(p.Message), clean(u.Hostname()), oneLine(u.String()))
	return t.consent(ctx)
}

func (t *terminal) consent(ctx context.Context) (*mcp.ElicitResult, error) {
	fmt.Fprintln(t.out, "Do you agree? (y, or anything else to decline)")
	line, action, err := t.ask(ctx)
	if action == mcp.ActionAccept && line != "y" && line != "yes" {
		action = mcp.ActionDecline
	}
	return &mcp.ElicitResult{Action: action, Content: json.RawMessage("{}")}, err
}
