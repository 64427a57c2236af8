// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/nearest"
	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/jsonschema"
)

// A Shape changes how callers see a tool. The zero Shape changes nothing.
type Shape struct {
	// Name and Description replace those of the tool; "" keeps them.
	Name, Description string
	// Args changes arguments, by the tool's own names. A Description also reaches arguments
	// inside others: the field "city" of the argument "to" is "to.city", and the field "city" of
	// the elements of the list "stops" is "stops[].city".
	Args map[string]Arg
	// Result replaces the results of calls that succeeded, for example to make them shorter. It
	// must not modify r, which may be shared. An error fails the call, as that of a [ToolFunc]
	// does. Result cannot replace the result of a task, so a tool with Result is called as if the
	// client did not support tasks; to use both, run the reshaped tool in the background.
	Result func(ctx context.Context, r *CallToolResult) (*CallToolResult, error)
	// OutputSchema describes the structured content that Result returns, which is validated
	// against it; nil means none. It needs a Result: without one, the tool keeps its own.
	OutputSchema json.RawMessage
}

// An Arg changes an argument of a tool. The zero Arg changes nothing.
type Arg struct {
	// Name and Description replace those of the argument; "" keeps them.
	Name, Description string
	// Default is the value of the argument if it is absent or null. It is encoded as JSON, and
	// part of the schema that callers see, in which the argument is optional. Nil keeps the
	// default that the tool has.
	Default any
	// Preset returns the value of the argument for a call. Callers neither see nor set it. It is
	// encoded as JSON; nil means that the argument is absent. It may be called again when a call
	// is repeated with the answers to a question, and must then return the same value. An error
	// fails the call, as that of a [ToolFunc] does. It can ask questions, with keys that the tool
	// does not use, but not in middleware.
	Preset func(ctx context.Context) (any, error)
}

// Reshape returns a tool that callers see and call in another shape than h has. The schema,
// the explanations of invalid arguments and the arguments that are mirrored in headers follow
// the shape. Middleware that [Chain] has added to h is called with the arguments of the new
// shape.
//
// Reshape panics if h does not describe a tool, if an argument in s does not exist or has the
// name of another one, or if the schema would be invalid, for example because a Default does
// not fit it. For tools of another server, use Reshape of package middleware.
func Reshape(h Handler, s Shape) Handler {
	mustBeHandler("Reshape", h)
	inner, around := unwrap(h)
	r, err := newReshaped(inner, &s)
	if err != nil {
		panic(registrationErrorf("Reshape at %s: %w", callSite(), err))
	}
	if tool, ok := inner.(mender); ok {
		return Chain(&mendingReshaped{r, tool}, around...)
	}
	return Chain(r, around...)
}

// reshaped is one tool in another shape.
type reshaped struct {
	*reshaping
	next Handler
	tool *Tool
	in   *jsonschema.Schema
}

func newReshaped(h Handler, s *Shape) (*reshaped, error) {
	given, ok := DescriptionOf(h).(*Tool)
	if !ok || given == nil {
		return nil, errors.New("the handler describes no tool; use WithDescription")
	}
	r := &reshaped{next: h}
	var err error
	if r.reshaping, err = newReshaping(s); err != nil {
		return nil, err
	}
	if r.tool, err = r.reshapeTool(given); err != nil {
		return nil, err
	}
	if err := checkToolSchemas(r.tool, false); err != nil {
		return nil, err
	}
	if r.in, err = jsonschema.Compile(r.tool.InputSchema, inputOptions); err != nil {
		return nil, err
	}
	return r, r.in.CheckDefaults()
}

// Describe implements [Describer].
func (r *reshaped) Describe() Description { return r.tool }

// Extension implements [ServerExtension]. Without an extension, id is "".
func (r *reshaped) Extension() (id string, settings json.RawMessage) {
	x := extensionOf(r.next)
	return x.id, x.settings
}

// compiled marks a handler whose schemas have been compiled.
func (*reshaped) compiled() {}

// ServeMCP implements [Handler].
func (r *reshaped) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	return r.serve(ctx, r.next, req, req.Name(), func() *jsonschema.Schema { return r.in })
}

// mendingReshaped is a reshaped tool that can mend arguments, because the tool itself can.
type mendingReshaped struct {
	*reshaped
	inner mender
}

func (r *mendingReshaped) mend(ctx context.Context, args json.RawMessage) (json.RawMessage, []string) {
	return mendWith(ctx, r.in, args)
}

// A reshaping is a Shape in the form that lists and calls need. It is immutable.
type reshaping struct {
	*Shape
	own      map[string]string                  // the tool's own names of arguments, by the names that callers use
	outer    map[string]string                  // the other way around; "" if callers do not see the argument
	texts    map[string]string                  // descriptions
	defaults []setArgument                      // sorted by name
	presets  []string                           // own names, sorted
	out      func() (*jsonschema.Schema, error) // of what Result returns; nil if there is none
}

type setArgument struct {
	name  string // the tool's own
	value json.RawMessage
}

// newReshaping returns an error if s contradicts itself.
func newReshaping(s *Shape) (*reshaping, error) {
	shape := *s
	shape.Args = maps.Clone(s.Args)
	r := &reshaping{Shape: &shape, own: map[string]string{}, outer: map[string]string{}, texts: map[string]string{}}
	if s.OutputSchema != nil && s.Result == nil {
		return nil, errors.New("an OutputSchema describes what Result returns, which is nil")
	}
	r.out = sync.OnceValues(func() (*jsonschema.Schema, error) { // the Shape may be for one list
		if shape.OutputSchema == nil {
			return nil, nil
		}
		schema, err := jsonschema.Compile(shape.OutputSchema, outputOptions)
		if err != nil {
			return nil, fmt.Errorf("the OutputSchema of its Shape: %w", err)
		}
		return schema, nil
	})
	for _, name := range sortedKeys(s.Args) {
		arg := s.Args[name]
		if arg.Description != "" {
			r.texts[name] = arg.Description
		}
		if arg.Preset != nil {
			if arg.Name != "" || arg.Description != "" || arg.Default != nil {
				return nil, fmt.Errorf("the argument %q has a Preset, so callers do not see it; it has no other name, description or default", name)
			}
			r.presets, r.outer[name] = append(r.presets, name), ""
			continue
		}
		if arg.Default != nil {
			value, err := marshalValue(arg.Default)
			if err != nil {
				return nil, fmt.Errorf("the default of the argument %q cannot be encoded: %w", name, err)
			}
			r.defaults = append(r.defaults, setArgument{name, value})
		}
		if arg.Name != "" && arg.Name != name {
			if other, taken := r.own[arg.Name]; taken {
				return nil, fmt.Errorf("the arguments %q and %q are both renamed to %q", other, name, arg.Name)
			}
			r.own[arg.Name], r.outer[name] = name, arg.Name
		}
	}
	return r, nil
}

// changesArguments reports whether calls must be changed.
func (r *reshaping) changesArguments() bool { return len(r.outer)+len(r.defaults) > 0 }

// serve calls next for a call of the reshaped tool, whose own name is name. schema returns the
// schema that callers see, or nil if it is unknown; it is called if arguments may be invalid.
func (r *reshaping) serve(ctx context.Context, next Handler, req *Request, name string, schema func() *jsonschema.Schema) (Result, error) {
	args, set, err := r.arguments(ctx, req.Arguments())
	if problem, ok := errors.AsType[*ArgumentsError](err); ok {
		return fixedErrorResult(problem, problem.text), nil
	}
	if err != nil {
		return failedTool(err)
	}
	inner, err := req.withCall(name, args, append(r.ownNames(req.unmirrored), set...))
	if err != nil {
		return nil, err
	}
	if r.Result != nil {
		inner = inner.withoutTasks()
	}
	res, err := next.ServeMCP(contextWithRequest(ctx, inner), inner)
	if r.changesArguments() && blamesArguments(res, err) {
		if problem := r.explain(ctx, req, schema()); problem != nil {
			return fixedErrorResult(problem, problem.text), nil
		}
	}
	if err != nil {
		return nil, outerError(err, "tool", name, req.Name())
	}
	return r.result(ctx, res)
}

// ownNames returns the tool's own names of arguments.
func (r *reshaping) ownNames(names []string) []string {
	var own []string
	for _, name := range names {
		if renamed, ok := r.own[name]; ok {
			name = renamed
		}
		own = append(own, name)
	}
	return own
}

// withCall returns a clone of a tools/call with another name and other arguments. The client
// did not send the arguments in unmirrored, so it need not mirror them in headers.
func (r *Request) withCall(name string, args json.RawMessage, unmirrored []string) (*Request, error) {
	params := append(jsonscan.AppendKey([]byte{'{'}, "name"), mustMarshal(name)...)
	if args != nil {
		params = append(jsonscan.AppendKey(params, "arguments"), args...)
	}
	c := r.Clone()
	c.unmirrored = unmirrored
	return c, c.setParams(jsonscan.AppendMembers(params, r.Params(), "name", "arguments"))
}

// withoutTasks returns a clone of r whose sender does not seem to support tasks.
func (r *Request) withoutTasks() *Request {
	if !declaresTasks(r) {
		return r
	}
	extensions := jsonscan.AppendMembers([]byte{'{'}, jsonscan.Member(r.peer.caps, "extensions"), tasking.Extension)
	caps := append(jsonscan.AppendKey([]byte{'{'}, "extensions"), extensions...)
	c := r.Clone()
	c.peer.caps = jsonscan.AppendMembers(caps, r.peer.caps, "extensions")
	return c
}

// blamesArguments reports whether invalid arguments may be the reason of an outcome. If the
// tool is in another process, they may be the reason of any failure.
func blamesArguments(res Result, err error) bool {
	if err != nil {
		return CodeOf(err) == CodeInvalidParams
	}
	r, ok := res.(*CallToolResult)
	if !ok || r == nil || !r.IsError {
		return false
	}
	_, invalid := errors.AsType[*ArgumentsError](r.Err())
	return invalid || r.Err() == nil
}

// explain returns what is wrong with the arguments of a call, in the words of the schema that
// its sender knows, or nil. Calls are not validated before they are made: what is valid is up
// to the tool, which may accept more than its schema says.
func (r *reshaping) explain(ctx context.Context, req *Request, schema *jsonschema.Schema) *ArgumentsError {
	if schema == nil {
		return nil
	}
	args := req.Arguments()
	if args == nil {
		args = json.RawMessage("{}")
	}
	err := schema.Validate(ctx, args)
	if _, invalid := errors.AsType[*jsonschema.ValidationError](err); !invalid {
		return nil
	}
	return &ArgumentsError{err, "invalid arguments:\n" + err.Error()}
}

// arguments returns the arguments for the tool, and the own names of those that were not sent.
func (r *reshaping) arguments(ctx context.Context, sent json.RawMessage) (args json.RawMessage, set []string, err error) {
	if !r.changesArguments() {
		return sent, nil, nil
	}
	args, present, err := r.ownArguments(sent)
	if err != nil {
		return nil, nil, err
	}
	add := func(name string, value []byte) {
		if len(args) > 1 {
			args = append(args, ',')
		}
		args = append(append(jsonscan.AppendString(args, name), ':'), value...)
		set = append(set, name)
	}
	for _, d := range r.defaults {
		if !present[d.name] {
			add(d.name, d.value)
		}
	}
	for _, name := range r.presets {
		v, err := r.Args[name].Preset(ctx)
		if err != nil {
			return nil, nil, err
		}
		if v == nil {
			continue
		}
		value, err := marshalValue(v)
		if err != nil {
			return nil, nil, Errorf(CodeInternalError, "the value of an argument could not be encoded: %w", err)
		}
		add(name, value)
	}
	return append(args, '}'), set, nil
}

// ownArguments begins an object with the arguments that were sent, under the tool's own names.
// It leaves out a null that a default replaces. It returns an [*ArgumentsError] for a name that
// callers do not use: the tool would take it for an argument that they do not see.
func (r *reshaping) ownArguments(sent json.RawMessage) (args []byte, present map[string]bool, err error) {
	args, present = append(make([]byte, 0, len(sent)+64), '{'), map[string]bool{}
	if sent == nil {
		return args, present, nil
	}
	scan := jsonscan.Get(sent, 0)
	defer scan.Release()
	for ok := scan.Object() && scan.Member(); ok; ok = scan.Member() {
		sentName := string(scan.Name())
		name, renamed := r.own[sentName]
		if !renamed {
			name = sentName
			if _, isOther := r.outer[name]; isOther || r.hides(name) {
				return nil, nil, r.unknownArgument(name)
			}
		}
		value := scan.Value()
		if r.Args[name].Default != nil && bytes.Equal(value, []byte("null")) {
			continue
		}
		present[name] = true
		if len(args) > 1 {
			args = append(args, ',')
		}
		args = append(append(jsonscan.AppendString(args, name), ':'), value...)
	}
	return args, present, nil
}

// hides reports whether a name is that of an argument that callers do not see, in any case: some
// servers ignore it.
func (r *reshaping) hides(name string) bool {
	return slices.ContainsFunc(r.presets, func(hidden string) bool { return strings.EqualFold(hidden, name) })
}

func (r *reshaping) unknownArgument(name string) *ArgumentsError {
	hint := nearest.Hint(name, sortedKeys(r.own))
	if outer := r.outer[name]; outer != "" {
		hint = fmt.Sprintf("; did you mean %q?", outer)
	}
	err := fmt.Errorf("there is no argument %q%s", name, hint)
	return &ArgumentsError{err, "invalid arguments: " + err.Error()}
}

// result returns the result of a call in the new shape.
func (r *reshaping) result(ctx context.Context, res Result) (Result, error) {
	called, ok := res.(*CallToolResult)
	switch _, asks := res.(*InputRequired); {
	case r.Result == nil || asks:
		return res, nil
	case !ok || called == nil:
		return nil, Errorf(CodeInternalError, "the outcome of the tool is a %T, which cannot be reshaped", res)
	case called.IsError:
		return res, nil
	}
	out, err := r.Result(ctx, called)
	if err != nil {
		return failedTool(err)
	}
	if out == nil {
		return nil, errNoOutcome(MethodCallTool)
	}
	schema, err := r.out()
	if err != nil {
		return nil, Errorf(CodeInternalError, "the tool cannot be reshaped: %w", err)
	}
	return out, checkStructured(ctx, schema, out)
}

// reshapeTool returns a copy of a tool in the new shape. It returns an error if the tool lacks
// an argument of the shape, or if the name of an argument would not be unique.
func (r *reshaping) reshapeTool(t *Tool) (*Tool, error) {
	c := *t
	if r.Name != "" {
		c.Name = r.Name
	}
	if r.Description != "" {
		c.Description = r.Description
	}
	if r.Result != nil {
		c.OutputSchema = r.OutputSchema
	}
	if len(r.Args) == 0 {
		return &c, nil
	}
	if c.InputSchema == nil {
		return nil, fmt.Errorf("the tool has no arguments, so there is no %q", strings.Join(sortedKeys(r.Args), ", "))
	}
	var err error
	c.InputSchema, err = r.reshapeSchema(c.InputSchema)
	return &c, err
}
