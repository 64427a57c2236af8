// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/jsonschema"
)

// ToolFunc returns a tool handler that calls fn. It panics if fn is nil, if In or Out is not
// a supported type, or if a schema of t is invalid or does not fit that type.
//
// In is the type of the arguments: a struct, or a map with string keys. Its schema is
// inferred (see package jsonschema) unless t has one. Invalid arguments are not passed to
// fn; the model receives a result with an explanation it can act on. Absent members get
// their default from the schema.
//
// Out is the type of the output:
//   - string: a block of text;
//   - a [Content], a slice of Content, or a slice of one Content type: those blocks;
//   - [*CallToolResult]: the result itself, which must have structured content if t has an
//     OutputSchema, unless IsError is set;
//   - struct{}: no content;
//   - [Output] of a type: structured content of that type, and content of your own;
//   - any other type: structured content, and its JSON as a block of text. The schema is
//     inferred unless t has one, and the output is validated against it.
//
// An error that is or wraps an [*Error] is the error of the request. Any other error becomes
// the result of a failed tool: the model reads its text, unless the error is or wraps a
// [*PrivateError] or [MuxOptions.PublicError] changes it. Middleware and logs get the
// original error from [CallToolResult.Err].
//
// A nil t means the zero Tool.
func ToolFunc[In, Out any](fn func(ctx context.Context, in In) (Out, error), t *Tool) Handler {
	mustBeFunc("ToolFunc", fn == nil)
	f := &toolFunc[In, Out]{fn: fn}
	if t != nil {
		f.tool = *t
	}
	if err := f.prepareInput(); err != nil {
		panic(registrationErrorf("ToolFunc at %s: arguments: %w", callSite(), err))
	}
	if err := f.prepareOutput(); err != nil {
		panic(registrationErrorf("ToolFunc at %s: output: %w", callSite(), err))
	}
	return f
}

type toolFunc[In, Out any] struct {
	fn   func(context.Context, In) (Out, error)
	tool Tool
	in   *jsonschema.Schema
	out  *jsonschema.Schema // nil if the output is not structured
	kind outputKind

	hasContent bool     // Out is an Output
	foreign    []string // tags of other libraries in In; see foreignTags
}

// An outputKind classifies the output type of a tool function; see [ToolFunc].
type outputKind int

const (
	structuredOutput outputKind = iota
	textOutput
	contentOutput
	contentsOutput
	resultOutput
	noOutput
)

func outputKindOf(t reflect.Type) outputKind {
	switch content := reflect.TypeFor[Content](); {
	case t == reflect.TypeFor[*CallToolResult]():
		return resultOutput
	case t == reflect.TypeFor[struct{}]():
		return noOutput
	case t == reflect.TypeFor[string]():
		return textOutput
	case t.Implements(content):
		return contentOutput
	case t.Kind() == reflect.Slice && t.Elem().Implements(content):
		return contentsOutput
	}
	return structuredOutput
}

func (f *toolFunc[In, Out]) Describe() Description { return &f.tool }

// compiled marks a handler whose schemas have been compiled.
func (*toolFunc[In, Out]) compiled() {}

// inputOptions are the options of schemas that arguments are validated against.
var inputOptions = &jsonschema.Options{OptionalNull: true, AssertFormats: true, MaxInputBytes: -1}

// outputOptions are the options of schemas that the results of our own tools are validated against.
var outputOptions = &jsonschema.Options{MaxInputBytes: -1}

func (f *toolFunc[In, Out]) prepareInput() (err error) {
	if err := checkDecodable(reflect.TypeFor[In](), reflect.TypeFor[In]().String(), map[reflect.Type]bool{}); err != nil {
		return err
	}
	given := f.tool.InputSchema != nil
	if !given {
		f.foreign = foreignTags(reflect.TypeFor[In](), "", map[reflect.Type]bool{})
		if f.tool.InputSchema, err = jsonschema.ForInput[In](); err != nil {
			return err
		}
	}
	switch {
	case rootType(f.tool.InputSchema) == "object":
	case given:
		return errRootType
	default:
		return fmt.Errorf("they must be a struct or a map with string keys, not %v", reflect.TypeFor[In]())
	}
	f.in, err = jsonschema.Compile(f.tool.InputSchema, inputOptions)
	if err != nil || !given {
		return err
	}
	if err := f.in.CheckDefaults(); err != nil {
		return fmt.Errorf("InputSchema: %w", err)
	}
	if err := jsonschema.CheckType(f.tool.InputSchema, reflect.TypeFor[In]()); err != nil {
		return fmt.Errorf("InputSchema: %w", err)
	}
	return nil
}

func (f *toolFunc[In, Out]) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	v := new(struct { // one allocation, because decoder and encoder take pointers
		in  In
		out Out
	})
	if problem := f.decode(ctx, req.Arguments(), &v.in); problem != nil {
		return fixedErrorResult(problem, problem.text), nil
	}
	var err error
	if v.out, err = f.fn(ctx, v.in); err != nil {
		return failedTool(err)
	}
	return f.result(ctx, &v.out)
}

// checkArguments returns the result of a call with invalid arguments, or nil.
func (f *toolFunc[In, Out]) checkArguments(ctx context.Context, args json.RawMessage) *CallToolResult {
	if problem := f.decode(ctx, args, new(In)); problem != nil {
		return fixedErrorResult(problem, problem.text)
	}
	return nil
}

// decode decodes the arguments, or returns what is wrong with them.
func (f *toolFunc[In, Out]) decode(ctx context.Context, args json.RawMessage, in *In) *ArgumentsError {
	if args == nil {
		args = json.RawMessage("{}")
	}
	if err := f.in.Validate(ctx, args); err != nil {
		if _, invalid := errors.AsType[*jsonschema.ValidationError](err); !invalid {
			return &ArgumentsError{err, "the arguments could not be validated: " + err.Error()}
		}
		return &ArgumentsError{err, "invalid arguments:\n" + err.Error()}
	}
	if err := decode(f.in.WithDefaults(args), in); err != nil {
		return &ArgumentsError{err, decodeProblem("invalid arguments", err)}
	}
	return nil
}

func (f *toolFunc[In, Out]) mend(ctx context.Context, args json.RawMessage) (json.RawMessage, []string) {
	return mendWith(ctx, f.in, args)
}

// mendWith mends arguments to match a schema, if it can.
func mendWith(ctx context.Context, schema *jsonschema.Schema, args json.RawMessage) (json.RawMessage, []string) {
	if args == nil || schema.Validate(ctx, args) == nil {
		return args, nil
	}
	changed, mended, err := schema.Mend(ctx, args)
	if err != nil {
		return args, nil // the tool reports what is wrong
	}
	return changed, mended
}

// A mender is a tool that can mend arguments; see MuxOptions.Lenient. mend returns JSON
// pointers to the arguments that it has changed.
type mender interface {
	mend(ctx context.Context, args json.RawMessage) (_ json.RawMessage, mended []string)
}

// lenient is the outermost handler of a tool of a mux with MuxOptions.Lenient, so that the
// middleware of the tool and the check of its headers see the arguments that the tool gets.
type lenient struct {
	Handler
	tool mender
}

func (l lenient) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	args, mended := l.tool.mend(ctx, req.Arguments())
	if mended == nil {
		return l.Handler.ServeMCP(ctx, req)
	}
	params := append(jsonscan.AppendKey([]byte{'{'}, "arguments"), args...)
	inner := req.Clone()
	if err := inner.setParams(jsonscan.AppendMembers(params, req.Params(), "arguments")); err != nil {
		return nil, err
	}
	res, err := l.Handler.ServeMCP(contextWithRequest(ctx, inner), inner)
	if tool, ok := res.(*CallToolResult); ok && tool != nil {
		noted := *tool // the handler may have kept the result
		noted.mended = mended
		return &noted, err
	}
	return res, err
}

// prepareOutput determines the output kind and compiles the output schema. It infers the
// schema only for structured output.
func (f *toolFunc[In, Out]) prepareOutput() (err error) {
	out := reflect.TypeFor[Out]()
	if _, ok := any(*new(Out)).(output); ok {
		return errors.New("return an Output, not a pointer to one")
	}
	if with, ok := any(new(Out)).(output); ok {
		f.hasContent = true
		if out = with.valueType(); outputKindOf(out) != structuredOutput {
			return fmt.Errorf("%v is not structured, so an Output of it has no schema; return %v itself, or Contents", out, out)
		}
	}
	f.kind = outputKindOf(out)
	if result := reflect.TypeFor[Result](); f.kind == structuredOutput && (out.Implements(result) || reflect.PointerTo(out).Implements(result)) {
		return fmt.Errorf("a tool cannot return %v; return a *CallToolResult, or serve it with a HandlerFunc", out)
	}
	if f.tool.OutputSchema == nil && f.kind == structuredOutput {
		if f.tool.OutputSchema, err = jsonschema.ForType(out); err != nil {
			return err
		}
	}
	if structured := f.kind == structuredOutput || f.kind == resultOutput; f.tool.OutputSchema != nil && !structured {
		return fmt.Errorf("OutputSchema describes structured content, which a function that returns %v does not produce; return a struct or a *CallToolResult", out)
	}
	if f.tool.OutputSchema != nil {
		f.out, err = jsonschema.Compile(f.tool.OutputSchema, outputOptions)
	}
	return err
}

// result returns the result of a call whose function returned *out.
func (f *toolFunc[In, Out]) result(ctx context.Context, out *Out) (Result, error) {
	switch f.kind {
	case resultOutput:
		return f.givenResult(ctx, any(*out).(*CallToolResult))
	case noOutput:
		return &CallToolResult{}, nil
	case textOutput:
		return TextResult(any(*out).(string)), nil
	case contentOutput:
		block, _ := any(*out).(Content) // nil is rejected by the encoder
		return &CallToolResult{Content: Contents{block}}, nil
	case contentsOutput:
		return &CallToolResult{Content: contentsOf(reflect.ValueOf(*out))}, nil
	case structuredOutput:
	}
	return f.structuredResult(ctx, out)
}

func (f *toolFunc[In, Out]) givenResult(ctx context.Context, res *CallToolResult) (Result, error) {
	if res == nil {
		return nil, Errorf(CodeInternalError, "the tool returned neither a result nor an error")
	}
	return res, checkStructured(ctx, f.out, res)
}

// checkStructured checks the result of a tool against its output schema, which may be nil.
func checkStructured(ctx context.Context, schema *jsonschema.Schema, res *CallToolResult) error {
	switch {
	case schema == nil || res.IsError:
		return nil
	case res.StructuredContent == nil: // clients reject such a result (server/tools)
		return Errorf(CodeInternalError, "the tool returned no structured content, which its OutputSchema promises")
	}
	return checkOutput(ctx, schema, res.StructuredContent)
}

// contentsOf returns the elements of list, a slice of Content or of a type that implements
// it.
func contentsOf(list reflect.Value) Contents {
	contents := make(Contents, list.Len())
	for i := range contents {
		contents[i], _ = reflect.TypeAssert[Content](list.Index(i)) // nil is rejected by the encoder
	}
	return contents
}

func (f *toolFunc[In, Out]) structuredResult(ctx context.Context, out *Out) (Result, error) {
	var value any = out
	var content Contents
	var meta Meta
	if f.hasContent {
		value, content, meta = value.(output).parts()
	}
	raw, err := marshalOutput(value)
	if err != nil {
		return nil, Errorf(CodeInternalError, "the tool's output could not be encoded: %w", err)
	}
	if err := checkOutput(ctx, f.out, raw); err != nil {
		return nil, err
	}
	if content != nil {
		return &CallToolResult{ResultBase: ResultBase{Meta: meta}, Content: content, StructuredContent: raw}, nil
	}
	res := TextResult(string(raw))
	res.Meta, res.StructuredContent = meta, raw
	return res, nil
}

func checkOutput(ctx context.Context, schema *jsonschema.Schema, raw json.RawMessage) error {
	if err := schema.Validate(ctx, raw); err != nil {
		return Errorf(CodeInternalError, "the tool's output does not fit its schema: %w", err)
	}
	return nil
}

// checkDecodable returns an error for a type that has a schema but cannot be decoded, so that
// every call would fail. path leads from the root type to t, for the error.
func checkDecodable(t reflect.Type, path string, seen map[reflect.Type]bool) error {
	if seen[t] || decodesItself(t) {
		return nil
	}
	seen[t] = true
	switch t.Kind() {
	case reflect.Map:
		if key := t.Key(); key.Kind() != reflect.String && !decodesItself(key) {
			return fmt.Errorf("%s is a map whose keys are numbers, but any text can be a key in JSON; use map[string]%v", path, t.Elem())
		}
		return checkDecodable(t.Elem(), path, seen)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return checkDecodable(t.Elem(), path, seen)
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return fmt.Errorf("%s is an interface with methods, which does not say which type to decode; use a type, or any", path)
		}
	case reflect.Struct:
		for f := range t.Fields() {
			if err := checkDecodableField(f, path, seen); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkDecodableField(f reflect.StructField, path string, seen map[reflect.Type]bool) error {
	path += "." + f.Name
	embeds := f.Anonymous && f.Type.Kind() == reflect.Pointer
	switch {
	case f.Tag.Get("json") == "-":
		return nil
	case embeds && !token.IsExported(f.Type.Elem().Name()):
		return fmt.Errorf("%s is an embedded pointer to a type that is not exported, which no decoder can set; embed the type itself", path)
	case !f.IsExported() && !f.Anonymous:
		return nil
	}
	return checkDecodable(f.Type, path, seen)
}

// decodesItself reports whether t or *t implements an unmarshaler.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	for _, decoder := range []reflect.Type{
		reflect.TypeFor[jsonv2.UnmarshalerFrom](), reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	} {
		if t.Implements(decoder) || p.Implements(decoder) {
			return true
		}
	}
	return false
}
