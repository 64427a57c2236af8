// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package jsonschema

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	santhosh "github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/go-psi/psi/internal/schematree"
)

// A validator validates trees (see readTree). It is safe for concurrent use. It is compiled
// only when a proof of validity (see node) fails, which is rare. Both stay, because the
// library adds milliseconds to a start, and the proof decides nearly every call.
type validator struct {
	root *santhosh.Schema // with gates
	bare *santhosh.Schema // without keywords, at the location of root

	// contextual reports whether schemas use unevaluatedItems, unevaluatedProperties,
	// dynamic references, or cyclic references. Outcomes then cannot be reused.
	contextual bool

	unchecked []string // see Schema.Unchecked

	rememberAfter int // work after which outcomes are cached

	runs sync.Map // *run by token
	last atomic.Uint64
}

// location is the URL of the schema document. It is not fetched.
const location = "psi:///schema"

// newValidator returns a validator for a document that was decoded by readTree, in any
// dialect. formats holds the formats to check, by name. All others are annotations.
func newValidator(document any, known *patterns, formats map[string]func([]byte) bool) (*validator, error) {
	c := newCompiler(known, formats)
	root, err := compileAt(c, document)
	switch {
	case known.left < 0:
		return nil, errPatterns
	case err != nil:
		return nil, err
	}
	s := surveyOf(append(anchored(c, document), root))
	if err := s.checkWork(); err != nil {
		return nil, err
	}
	unchecked := relax(s, document, formats)
	v := validatorOf(root, s)
	v.unchecked = unchecked
	return v, nil
}

func newCompiler(known *patterns, formats map[string]func([]byte) bool) *santhosh.Compiler {
	c := santhosh.NewCompiler()
	c.DefaultDraft(santhosh.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(known.engine)
	setFormats(c, formats)
	return c
}

// compileAt compiles a document at location.
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

// validatorOf adds gates to a graph of schemas.
func validatorOf(root *santhosh.Schema, s *survey) *validator {
	bare := *root
	clearKeywords(&bare)
	v := &validator{root: root, bare: &bare, contextual: s.contextual, rememberAfter: rememberAfter}
	for _, schema := range s.schemas {
		if schema.Bool == nil { // the cost of a boolean schema is included in that of its parent
			v.addGate(schema, s.targets[schema])
		}
	}
	return v
}

// anchored returns the schemas that may be reachable only through a dynamic reference.
func anchored(c *santhosh.Compiler, document any) (schemas []*santhosh.Schema) {
	schematree.Walk(document, "", func(pointer string, schema any) {
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

// noLoader rejects all references to other documents.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errExternal }

var errExternal = errors.New("external reference")

// knownFormats are the formats that the library implements. In dialects before 2019-09 it
// would check them by default.
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

// compileError converts an error from the library.
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

// A run is the validation of one value.
type run struct {
	validator *validator
	token     string // first token of every location, by which gates find the run
	budget    *budget
	value     any
	outcomes  map[visit]*santhosh.ValidationError
	first     int // budget at the start
	depth     int // number of gates passed
	isStarted bool
}

const (
	// rememberAfter is the work after which outcomes are cached. Most values need less.
	rememberAfter = 1 << 10

	// maxOutcomes limits the memory for outcomes to about 100 MB.
	maxOutcomes = 1 << 20
)

// A stopped is the value that a gate panics with to stop a validation.
type stopped struct {
	err    error
	schema string
	at     []string // including the token
}

// validate validates value. It returns an error if the budget is exceeded. Locations start
// with the token of the run.
func (v *validator) validate(b *budget, value any) (failed *santhosh.ValidationError, err error) {
	r := &run{validator: v, token: strconv.FormatUint(v.last.Add(1), 36), budget: b, value: value, first: b.left}
	v.runs.Store(r.token, r)
	defer v.runs.Delete(r.token)
	defer func() {
		if p := recover(); p != nil {
			stop, ok := p.(stopped)
			if !ok {
				panic(p)
			}
			err = v.explainStop(stop)
		}
	}()
	start := *v.bare
	start.Extensions = []santhosh.SchemaExt{r}
	failed, _ = start.Validate(true).(*santhosh.ValidationError) //nolint:errorlint // the library returns it as it is
	return failed, nil
}

// Validate implements [santhosh.SchemaExt] for the schema that starts a run. The library
// resolves $recursiveRef to the outermost schema, which is this one. It then stands for the
// root.
func (r *run) Validate(ctx *santhosh.ValidatorContext, value any) {
	var at []string
	if !r.isStarted {
		r.isStarted = true
		value, at = r.value, []string{r.token}
	}
	if failed := ctx.Validate(r.validator.root, value, at); failed != nil {
		ctx.AddErr(failed)
	}
}

func (v *validator) runOf(ctx *santhosh.ValidatorContext) *run {
	r, _ := v.runs.Load(ctx.ValueLocation()[0])
	return r.(*run)
}

// remember caches the outcome of a visit that may be repeated.
func (r *run) remember(at visit, failed *santhosh.ValidationError) {
	switch {
	case r.validator.contextual || at.at == 0 || !at.gate.isTarget:
	case r.first-r.budget.left < r.validator.rememberAfter || len(r.outcomes) >= maxOutcomes:
	case r.outcomes == nil:
		r.outcomes = map[visit]*santhosh.ValidationError{at: failed}
	default:
		r.outcomes[at] = failed
	}
}

// explainStop returns an error that says where a validation was stopped, and why it took so long.
func (v *validator) explainStop(stop stopped) error {
	if !errors.Is(stop.err, ErrTooMuchWork) {
		return stop.err
	}
	why := "too many schemas apply to too many values"
	if v.contextual {
		why = "alternatives multiply with the depth of the value, because the schema uses unevaluatedProperties, " +
			"unevaluatedItems, dynamic references, or references in a circle"
	}
	tokens := schemaTokens(stop.schema)
	return fmt.Errorf("%w: %s; given up at %q, where the schema is %q", stop.err, why,
		clip(schematree.Join(stop.at[1:]), 4*maxValue), clip(schematree.Join(tokens), 4*maxValue))
}
