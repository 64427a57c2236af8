// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/jsonschema"
)

// arguments are the command-line arguments of a tool or a prompt.
type arguments struct {
	whole   json.RawMessage            // given as one object; nil if not
	members map[string]json.RawMessage // given one by one
	text    map[string]string          // members that were given as text
}

// parseArguments parses name=text and name:=json, or one JSON object.
func parseArguments(words []string) (*arguments, error) {
	a := &arguments{members: map[string]json.RawMessage{}, text: map[string]string{}}
	if len(words) == 1 && strings.HasPrefix(strings.TrimSpace(words[0]), "{") {
		a.whole = json.RawMessage(words[0])
		if err := jsonscan.Valid(a.whole, 0); err != nil {
			return nil, usagef("the arguments are not a JSON object: %v", err)
		}
		return a, nil
	}
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		name, isJSON := strings.CutSuffix(name, ":")
		_, repeated := a.members[name]
		switch {
		case !ok || name == "":
			return nil, usagef("the argument %q is neither name=text nor name:=json, and not the only one, which could be a JSON object", word)
		case repeated:
			return nil, usagef("the argument %q is given twice", name)
		case isJSON:
			if err := jsonscan.Valid([]byte(value), 0); err != nil {
				return nil, usagef("the argument %q is not JSON: %v; write %s=text for a string", name, err, name)
			}
			a.members[name] = json.RawMessage(value)
		default:
			a.text[name] = value
			a.members[name] = jsonscan.AppendString(nil, value)
		}
	}
	return a, nil
}

// object returns the arguments as a JSON object.
func (a *arguments) object() json.RawMessage {
	if a.whole != nil {
		return a.whole
	}
	return strictjson.MustMarshal(a.members) // valid JSON
}

// check validates the arguments against the schema of a tool and returns them. If the
// schema rejects a text argument that is valid JSON, its JSON value is used instead. The
// error explains all problems. The server validates them as well, but then exit code 2 means
// that nothing was called, and the explanation does not depend on the server. Schema.Mend is
// not used: it would change what was written as JSON.
func (a *arguments) check(ctx context.Context, schema json.RawMessage) (json.RawMessage, error) {
	compiled, err := jsonschema.Compile(schema, nil)
	if err != nil {
		return a.object(), nil //nolint:nilerr // only the server can check them
	}
	converted := map[string]string{} // keywords that the text violated
	for {
		err = compiled.Validate(ctx, a.object())
		before := len(converted)
		for name, p := range a.textProblems(err) {
			if _, done := converted[name]; !done && jsonscan.Valid([]byte(a.text[name]), 0) == nil {
				a.members[name], converted[name] = json.RawMessage(a.text[name]), p.Keyword
			}
		}
		if len(converted) == before {
			break
		}
	}
	if err == nil {
		return a.object(), nil
	}
	for name := range a.textProblems(err) { // restore text whose type was not the problem
		if keyword, ok := converted[name]; ok && keyword != "type" {
			a.members[name] = jsonscan.AppendString(nil, a.text[name])
		}
	}
	err = compiled.Validate(ctx, a.object())
	if hint := a.hint(err); hint != "" {
		return nil, fmt.Errorf("%w\n%s", explain(err), hint)
	}
	return nil, explain(err)
}

// hint says how to write the first list or object that was given as text.
func (a *arguments) hint(err error) string {
	problems := a.textProblems(err)
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		switch p := problems[name]; {
		case p.Keyword != "type":
		case strings.Contains(p.Expected, "array"):
			return "write " + name + ":='[…]': name:= is followed by JSON"
		case strings.Contains(p.Expected, "object"):
			return "write " + name + ":='{…}': name:= is followed by JSON"
		}
	}
	return ""
}

// textProblems returns what is wrong with the text arguments, by name.
func (a *arguments) textProblems(err error) map[string]jsonschema.Problem {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return nil
	}
	problems := map[string]jsonschema.Problem{}
	for _, p := range invalid.Problems {
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(strings.TrimPrefix(p.Pointer, "/"))
		if _, ok := a.text[name]; ok {
			problems[name] = p
		}
	}
	return problems
}

// explain returns the explanation of invalid arguments that a model would get.
func explain(err error) error {
	if _, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		return errors.New("invalid arguments:\n  " + strings.ReplaceAll(err.Error(), "\n", "\n  "))
	}
	return err
}

// strings returns the arguments of a prompt, which must all be strings.
func (a *arguments) strings() (map[string]string, error) {
	var values map[string]string
	if err := json.Unmarshal(a.object(), &values); err != nil {
		return nil, usagef("the arguments of a prompt are strings: %v", err)
	}
	return values, nil
}
