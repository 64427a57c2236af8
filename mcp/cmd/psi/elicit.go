// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
)

// elicit asks the user to fill in a form, one field at a time, required fields first.
func (t *terminal) elicit(ctx context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	t.asking.Lock()
	defer t.asking.Unlock()
	t.printf("The server asks: %s\n", quoted(p.Message))
	fields := fieldsOf(p.RequestedSchema)
	if len(fields) == 0 { // an empty form still needs consent
		return t.consent(ctx)
	}
	t.printf("(An empty line leaves a field out, or to its default. ! declines.)\n")
	content := map[string]json.RawMessage{}
	for _, f := range fields {
		value, action, err := t.fill(ctx, f)
		if err != nil || action != mcp.ActionAccept {
			return &mcp.ElicitResult{Action: action}, err
		}
		if value != nil {
			content[f.name] = value
		}
	}
	raw, err := json.Marshal(content)
	return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: raw}, err
}

// fill asks for a field until its value conforms to its schema. A nil value means that the
// field is left out, or that the client fills in its default.
func (t *terminal) fill(ctx context.Context, f field) (value json.RawMessage, action string, err error) {
	schema, err := jsonschema.Compile(f.schema, nil)
	if err != nil {
		return nil, "", fmt.Errorf("the field %q of the form: %w", f.name, err)
	}
	k := f.keywords()
	t.printf("%s: %s\n", printable.Line(f.name), printable.Line(f.describe()))
	choices := k.choices()
	for i, c := range choices {
		t.printf("  %d  %s\n", i+1, printable.Line(cmp.Or(c.Title, plain(c.Const))))
	}
	for {
		line, action, err := t.ask(ctx)
		isConsent := k.kind() == "boolean" && string(k.Default) == "true" // it is an act: an empty line is none
		if err != nil || action != mcp.ActionAccept || line == "" && !isConsent && (!f.required || k.Default != nil) {
			return nil, action, err
		}
		if line == "" {
			t.printf("(a value is needed)\n")
			continue
		}
		value := k.parse(line, choices)
		if err = schema.Validate(ctx, value); err == nil {
			return value, action, nil
		}
		t.printf("%s\n", printable.Text(strings.ReplaceAll(err.Error(), "(root): ", "")))
	}
}

// parse returns the value of a line. The elements of a list are separated by commas. If the
// line is not a value of the type, parse returns it as a string.
func (k *keywords) parse(line string, choices []choice) json.RawMessage {
	if k.kind() == "array" && !strings.HasPrefix(line, "[") {
		values := []json.RawMessage{}
		for part := range strings.SplitSeq(line, ",") {
			if part = strings.TrimSpace(part); part != "" {
				values = append(values, chosen(part, choices))
			}
		}
		return strictjson.MustMarshal(values)
	}
	return k.parseOne(line, choices)
}

func (k *keywords) parseOne(line string, choices []choice) json.RawMessage {
	switch k.kind() {
	case "string":
		return chosen(line, choices)
	case "boolean":
		switch strings.ToLower(line) {
		case "y", "yes", "true":
			return json.RawMessage("true")
		case "n", "no", "false":
			return json.RawMessage("false")
		}
	}
	if jsonscan.Valid([]byte(line), 0) == nil {
		return json.RawMessage(line)
	}
	return jsonscan.AppendString(nil, line)
}

// chosen returns the choice with the given value, title or number. If there is none, it
// returns the text as a string.
func chosen(text string, choices []choice) json.RawMessage {
	for _, name := range []func(choice) string{
		func(c choice) string { return plain(c.Const) },
		func(c choice) string { return c.Title },
	} {
		if i := slices.IndexFunc(choices, func(c choice) bool { return name(c) != "" && strings.EqualFold(name(c), text) }); i >= 0 {
			return choices[i].Const
		}
	}
	if n, err := strconv.Atoi(text); err == nil && 1 <= n && n <= len(choices) {
		return choices[n-1].Const
	}
	return jsonscan.AppendString(nil, text)
}

// elicitURL asks for consent to open a page. It does not open the page itself, because a
// server must not be able to open pages.
func (t *terminal) elicitURL(ctx context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	t.asking.Lock()
	defer t.asking.Unlock()
	u, err := url.Parse(p.URL) // the client has validated it
	if err != nil {
		return nil, err
	}
	// Use ASCII, so that letters of other alphabets cannot imitate a name that the user
	// knows.
	if ascii, err := idna.ToASCII(u.Hostname()); err == nil && ascii != u.Hostname() {
		u.Host = strings.Replace(u.Host, u.Hostname(), ascii, 1)
	}
	t.printf("The server asks: %s\nIt wants you to open a page of %s:\n  %s\n", quoted(p.Message), printable.Line(u.Host), printable.Line(u.String()))
	return t.consent(ctx)
}

// quoted returns the message of a server. Lines after the first are marked, so that they do
// not look like output of psi.
func quoted(message string) string {
	return strings.ReplaceAll(printable.Text(strings.TrimSpace(message)), "\n", "\n  | ")
}

func (t *terminal) consent(ctx context.Context) (*mcp.ElicitResult, error) {
	action, err := t.confirm(ctx, "Do you agree?")
	return &mcp.ElicitResult{Action: action, Content: json.RawMessage("{}")}, err
}

// confirm asks a question. The action is accept if the answer is yes. The caller holds asking
// if others may ask, too.
func (t *terminal) confirm(ctx context.Context, question string) (action string, err error) {
	t.printf("%s (y, or anything else to decline)\n", question)
	line, action, err := t.ask(ctx)
	if answer := strings.ToLower(line); action == mcp.ActionAccept && answer != "y" && answer != "yes" {
		action = mcp.ActionDecline
	}
	return action, err
}
