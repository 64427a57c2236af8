// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
)

// A validator validates a value, decoded as its schema was, and returns nil if the
// value conforms.
type validator func(value any) *failure

// location is the address that the schema document gets. It exists nowhere.
const location = "psi:///schema"

// newValidator compiles a document, decoded by readTree, of any dialect. The
// formats are those to check, by name; all others are annotations.
func newValidator(document any, formats map[string]func([]byte) bool) (validator, error) {
	c := santhosh.NewCompiler()
	c.DefaultDraft(santhosh.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(lenientRegexp)
	setFormats(c, formats)
	if err := c.AddResource(location, document); err != nil {
		return nil, compileError(err, document)
	}
	schema, err := c.Compile(location)
	if err != nil {
		return nil, compileError(err, document)
	}
	return func(value any) *failure {
		err := schema.Validate(value)
		if err == nil {
			return nil
		}
		verr, ok := errors.AsType[*santhosh.ValidationError](err)
		if !ok {
			panic(fmt.Sprintf("jsonschema: validator returned a %T", err))
		}
		return failureOf(verr)
	}, nil
}

// noLoader refuses every reference out of the document.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errExternal }

var errExternal = errors.New("external reference")

// lenientRegexp never fails. Bad patterns have been removed from every schema
// where they could be found; one that only an odd reference makes a schema matches
// everything.
func lenientRegexp(pattern string) (santhosh.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return regexp.MustCompile(""), nil //nolint:nilerr // a pattern that cannot be read matches everything
	}
	return re, nil
}

// knownFormats are those that the validator knows. Dialects before 2019-09 would
// check them unasked.
var knownFormats = []string{
	"date-time", "date", "email", "uri", "json-pointer", "relative-json-pointer", "uuid", "duration", "period", "ipv4", "ipv6",
	"hostname", "time", "iri", "uri-reference", "iri-reference", "uri-template", "semver",
}

func setFormats(c *santhosh.Compiler, formats map[string]func([]byte) bool) {
	for _, name := range knownFormats {
		holds := formats[name]
		c.RegisterFormat(&santhosh.Format{Name: name, Validate: func(v any) error {
			if s, ok := v.(string); ok && holds != nil && !holds([]byte(s)) {
				return errFormat
			}
			return nil
		}})
	}
	if len(formats) > 0 {
		c.AssertFormat()
	}
}

var errFormat = errors.New("not of the format")

// compileError says what is wrong with a schema in the terms of this package.
func compileError(err error, document any) error {
	if load, ok := errors.AsType[*santhosh.LoadURLError](err); ok {
		return fmt.Errorf("jsonschema: reference to %q leaves the schema; only references within it are followed", load.URL)
	}
	if invalid, ok := errors.AsType[*santhosh.SchemaValidationError](err); ok {
		if verr, ok := errors.AsType[*santhosh.ValidationError](invalid.Err); ok {
			const shown = 3
			return fmt.Errorf("jsonschema: not a valid schema: %w", explain(nil, document, shown, failureOf(verr)))
		}
	}
	return errors.New("jsonschema: " + strings.ReplaceAll(err.Error(), location, ""))
}
