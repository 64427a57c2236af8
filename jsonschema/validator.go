// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"
)

// A validator validates trees (see readTree). It is safe for concurrent use.
type validator struct {
	root *santhosh.Schema // with a gate before it and before every schema in it
	bare *santhosh.Schema // without keywords, at the place of root

	// contextual says that schemas use unevaluatedItems, unevaluatedProperties,
	// dynamic references, or references in a circle. What came of a schema and a
	// value then cannot be used again.
	contextual bool

	rememberAfter int // the work after which outcomes are remembered

	runs sync.Map // the *run of each token
	last atomic.Uint64
}

// location is the address that the schema document gets. It exists nowhere.
const location = "psi:///schema"

// newValidator returns the validator of a document that readTree decoded, of any
// dialect. The formats are those to check, by name; all others are annotations.
func newValidator(document any, known patterns, formats map[string]func([]byte) bool) (*validator, error) {
	c := newCompiler(known, formats)
	root, err := compileAt(c, document)
	if err != nil {
		return nil, err
	}
	return validatorOf(root, append(anchored(c, document), root)), nil
}

func newCompiler(known patterns, formats map[string]func([]byte) bool) *santhosh.Compiler {
	c := santhosh.NewCompiler()
	c.DefaultDraft(santhosh.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(known.engine)
	setFormats(c, formats)
	return c
}

// compileAt compiles a document at the location that documents have.
func compileAt(c *santhosh.Compiler, document any) (*santhosh.Schema, error) {
	if err := c.AddResource(location, document); err != nil {
		return nil, compileError(err, document)
	}
	root, err := c.Compile(location)
	if err != nil {
		return nil, compileError(err, document)
	}
	return root, nil
}

// validatorOf puts gates into the graph of schemas that begins at roots.
func validatorOf(root *santhosh.Schema, roots []*santhosh.Schema) *validator {
	s := surveyOf(roots)
	bare := *root
	clearKeywords(&bare)
	v := &validator{root: root, bare: &bare, contextual: s.contextual, rememberAfter: rememberAfter}
	for _, schema := range s.schemas {
		if schema.Bool == nil { // the others are part of the cost of the schema around them
			v.shut(schema, s.targets[schema])
		}
	}
	return v
}

// anchored returns the schemas that only a dynamic reference may lead to.
func anchored(c *santhosh.Compiler, document any) (schemas []*santhosh.Schema) {
	walkSchemas(document, "", func(pointer string, schema any) {
		obj, _ := schema.(map[string]any)
		if _, ok := obj["$dynamicAnchor"]; !ok {
			return
		}
		fragment := (&url.URL{Fragment: pointer}).EscapedFragment()
		if s, err := c.Compile(location + "#" + fragment); err == nil {
			schemas = append(schemas, s)
		}
	})
	return schemas
}

// noLoader refuses every reference out of the document.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errExternal }

var errExternal = errors.New("external reference")

// engine never fails. Bad patterns have been removed from every schema where they
// could be found; one that only an odd reference makes a schema matches everything.
func (p patterns) engine(text string) (santhosh.Regexp, error) {
	if known := p[text]; known != nil {
		return known, nil
	}
	return &pattern{regexp.MustCompile(""), 1}, nil
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
			return errors.New("jsonschema: not a valid schema: " + explain(nil, document, shown, failureOf(verr, 0)).Error())
		}
	}
	return errors.New("jsonschema: " + strings.ReplaceAll(err.Error(), location, ""))
}
