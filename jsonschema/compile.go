// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
)

// location is the address that the schema document gets. It exists nowhere.
const location = "psi:///schema"

// A Schema is a compiled schema. It is immutable and may be used concurrently.
// Get one from [Compile].
type Schema struct {
	options   Options
	document  any // the schema as it was compiled, to explain with
	full      func() (*santhosh.Schema, error)
	proof     *node // nil if the schema goes beyond what can be proved
	unchecked []string
}

// Compile prepares raw, a JSON Schema, for validation. The dialect is 2020-12
// unless "$schema" names one of 2019-09, draft-07, draft-06 and draft-04.
//
// Compile never opens a file or a connection: a reference that leaves the
// document is an error, unless it is to a metaschema of JSON Schema itself.
// Other errors are JSON that is not well-formed or names a member twice, a schema
// beyond the bounds of opts, an unknown dialect, and what the dialect's
// metaschema does not allow. A regular expression that Go cannot compile is no
// error; see [Schema.Unchecked].
func Compile(raw []byte, opts *Options) (*Schema, error) {
	s := &Schema{options: opts.withDefaults()}
	if len(raw) > s.options.MaxBytes {
		return nil, fmt.Errorf("jsonschema: schema of %d bytes exceeds the limit of %d", len(raw), s.options.MaxBytes)
	}
	doc, terr := readTree(raw, s.options.MaxDepth, s.options.MaxNodes)
	if terr != nil {
		return nil, fmt.Errorf("jsonschema: schema %w", terr)
	}
	dialect, err := dialectOf(doc)
	if err != nil {
		return nil, err
	}
	s.document = doc
	s.unchecked = dropBadPatterns(doc)
	if err := checkWork(doc); err != nil {
		return nil, err
	}
	s.full = sync.OnceValues(func() (*santhosh.Schema, error) { return compileFull(doc, s.options.AssertFormats) })
	s.proof = buildProof(doc, dialect, s.options)
	if s.proof != nil {
		return s, nil // it is valid, and the full validator is made when there is something to explain
	}
	if _, err := s.full(); err != nil {
		return nil, err
	}
	return s, nil
}

// Unchecked returns JSON pointers to the keywords of the schema that
// [Schema.Validate] does not check, sorted; nil if it checks all. These are
// "pattern" and "patternProperties" whose regular expression is legal in
// ECMAScript but not in Go, such as one that looks ahead. Next to such a
// patternProperties, additionalProperties cannot be checked either.
func (s *Schema) Unchecked() []string { return slices.Clone(s.unchecked) }

// dropBadPatterns removes from the schema what has a regular expression that
// does not compile, and returns where that was.
func dropBadPatterns(doc any) (dropped []string) {
	walkSchemas(doc, "", func(pointer string, schema any) {
		obj, _ := schema.(map[string]any)
		if p, ok := obj["pattern"].(string); ok && !compiles(p) {
			delete(obj, "pattern")
			dropped = append(dropped, pointer+"/pattern")
		}
		byPattern, _ := obj["patternProperties"].(map[string]any)
		for p := range byPattern {
			if compiles(p) {
				continue
			}
			delete(byPattern, p)
			obj["additionalProperties"] = true // any name may have been meant by p
			dropped = append(dropped, pointer+"/patternProperties/"+escapeToken(p))
		}
	})
	slices.Sort(dropped)
	return dropped
}

func compiles(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil
}

func compileFull(doc any, assertFormats bool) (*santhosh.Schema, error) {
	c := santhosh.NewCompiler()
	c.DefaultDraft(santhosh.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(lenientRegexp)
	setFormats(c, assertFormats)
	if err := c.AddResource(location, doc); err != nil {
		return nil, compileError(err, doc)
	}
	full, err := c.Compile(location)
	if err != nil {
		return nil, compileError(err, doc)
	}
	return full, nil
}

// noLoader refuses every reference out of the document.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errExternal }

var errExternal = errors.New("external reference")

// lenientRegexp never fails. dropBadPatterns has removed the bad patterns from
// every schema it could find; one that only an odd reference makes a schema
// matches everything.
func lenientRegexp(pattern string) (santhosh.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return regexp.MustCompile(""), nil //nolint:nilerr // a pattern that cannot be read matches everything
	}
	return re, nil
}

// assertable are the formats that AssertFormats checks; quiet all others the
// validator knows, which dialects before 2019-09 would check unasked.
var (
	assertable = []string{"date-time", "date", "email", "uri"}
	quiet      = []string{
		"json-pointer", "relative-json-pointer", "uuid", "duration", "period", "ipv4", "ipv6", "hostname",
		"time", "iri", "uri-reference", "iri-reference", "uri-template", "semver",
	}
)

func setFormats(c *santhosh.Compiler, assert bool) {
	silence := func(name string) {
		c.RegisterFormat(&santhosh.Format{Name: name, Validate: func(any) error { return nil }})
	}
	for _, name := range quiet {
		silence(name)
	}
	if assert {
		c.AssertFormat()
		return
	}
	for _, name := range assertable {
		silence(name)
	}
}

// compileError rewords an error of the validator's compiler.
func compileError(err error, doc any) error {
	if load, ok := errors.AsType[*santhosh.LoadURLError](err); ok {
		return fmt.Errorf("jsonschema: reference to %q leaves the schema; only references within it are followed", load.URL)
	}
	if invalid, ok := errors.AsType[*santhosh.SchemaValidationError](err); ok {
		if verr, ok := errors.AsType[*santhosh.ValidationError](invalid.Err); ok {
			e := explainer{tree: doc, limit: 3}
			e.collect(verr)
			return fmt.Errorf("jsonschema: not a valid schema: %w", e.err())
		}
	}
	text := strings.ReplaceAll(err.Error(), location, "")
	return fmt.Errorf("jsonschema: %s", text)
}
