// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package full

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/go-psi/psi/internal/validator"
)

func init() { validator.Full = compile } //nolint:gochecknoinits // the package is imported for this effect

// location is the address that the schema document gets. It exists nowhere.
const location = "psi:///schema"

func compile(document any, formats map[string]func([]byte) bool) (validator.Validate, error) {
	c := santhosh.NewCompiler()
	c.DefaultDraft(santhosh.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(lenientRegexp)
	setFormats(c, formats)
	if err := c.AddResource(location, document); err != nil {
		return nil, compileError(err)
	}
	schema, err := c.Compile(location)
	if err != nil {
		return nil, compileError(err)
	}
	return func(value any) *validator.Failure {
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

// known are the formats that the validator knows. Dialects before 2019-09 would
// check them unasked.
var known = []string{
	"date-time", "date", "email", "uri", "json-pointer", "relative-json-pointer", "uuid", "duration", "period", "ipv4", "ipv6",
	"hostname", "time", "iri", "uri-reference", "iri-reference", "uri-template", "semver",
}

func setFormats(c *santhosh.Compiler, formats map[string]func([]byte) bool) {
	for _, name := range known {
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

// compileError says what is wrong with a schema in terms that this package shares.
func compileError(err error) error {
	if load, ok := errors.AsType[*santhosh.LoadURLError](err); ok {
		return &validator.ExternalError{URL: load.URL}
	}
	if invalid, ok := errors.AsType[*santhosh.SchemaValidationError](err); ok {
		if verr, ok := errors.AsType[*santhosh.ValidationError](invalid.Err); ok {
			return &validator.InvalidError{Failure: failureOf(verr)}
		}
	}
	return errors.New(strings.ReplaceAll(err.Error(), location, ""))
}
