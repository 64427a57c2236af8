// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/nearest"
	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
)

// Route returns a tool that calls one route of an API, for services that have no document.
// The route is a method and a path with variables, such as "PUT /items/{id}". In is the struct
// of the arguments, as in [mcp.ToolFunc]:
//
//	type putItem struct {
//		ID     string `json:"id"`                     // a variable of the path
//		Notify bool   `json:"notify,omitempty" in:"query"`
//		Name   string `json:"name"`                   // a member of the body
//	}
//
//	mux.Tool("put_item", openapi.Route[putItem, item](&openapi.Options{Handler: routes}, "PUT /items/{id}", nil))
//
// A field with the name of a variable is a segment of the path. With GET, HEAD and DELETE, the
// other fields are parameters of the query; otherwise they are members of a JSON body. The tag
// `in:"query"`, `in:"header"`, `in:"cookie"` or `in:"body"` says otherwise. Defaults are sent. Out is the type of
// the response, from which the output schema is inferred; any means that it is not known.
//
// Requests, responses and errors are those of a tool that [New] makes, with the same options,
// but for Select. Title, Description, Icons and Meta of t describe the tool; its Annotations
// replace those that follow from the method, and its schemas must be empty. A nil t means the
// zero Tool. To change arguments, pass the result to [mcp.Reshape]. Route panics if the route, a
// type, a tag or an option is wrong.
func Route[In, Out any](opts *Options, route string, t *mcp.Tool) mcp.Handler {
	h, err := newRoute[In, Out](opts, route, t)
	if err != nil {
		panic(fmt.Sprintf("openapi: Route %q: %v", route, err))
	}
	return h
}

func newRoute[In, Out any](opts *Options, route string, t *mcp.Tool) (mcp.Handler, error) {
	arguments, err := jsonschema.ForInput[In]()
	if err != nil {
		return nil, fmt.Errorf("arguments: %w", err)
	}
	var output json.RawMessage
	if reflect.TypeFor[Out]().Kind() != reflect.Interface {
		if output, err = jsonschema.For[Out](); err != nil {
			return nil, fmt.Errorf("output: %w", err)
		}
	}
	doc, defaults, err := documentOf(reflect.TypeFor[In](), arguments, output, route)
	if err != nil {
		return nil, err
	}
	if t != nil && (t.InputSchema != nil || t.OutputSchema != nil) {
		return nil, errors.New("the tool has a schema; the types of Route define them")
	}
	o := Options{}
	if opts != nil {
		o = *opts
	}
	o.Select = func(op *Operation) bool {
		if len(defaults) > 0 {
			op.Shape = &mcp.Shape{Args: defaults}
		}
		if t == nil {
			return true
		}
		tool := *t
		tool.Name = op.Tool.Name
		if tool.Annotations == nil {
			tool.Annotations = op.Tool.Annotations
		}
		op.Tool = &tool
		return true
	}
	a, err := New(doc, &o)
	switch {
	case err != nil:
		return nil, err
	case len(a.omitted) > 0:
		return nil, errors.New(a.omitted[0].Reason)
	}
	return a.tools[0].handler, nil
}

// documentOf returns the document of an API with one operation, and the arguments that have a
// default. output may be nil.
func documentOf(in reflect.Type, arguments, output json.RawMessage, route string) (doc []byte, defaults map[string]mcp.Arg, err error) {
	method, path, ok := strings.Cut(route, " ")
	if !ok || method == "" || method != strings.ToUpper(method) || !strings.HasPrefix(path, "/") {
		return nil, nil, errors.New(`a route is a method and a path, such as "GET /items/{id}"`)
	}
	if strings.ContainsAny(path, "?#") {
		return nil, nil, errors.New("the path is not one of a URL: it has a query or a fragment")
	}
	var schema, response inferred
	if err := json.Unmarshal(arguments, &schema); err != nil {
		return nil, nil, err
	}
	op, err := schema.operation(in, method, path)
	if err != nil {
		return nil, nil, err
	}
	defaults = map[string]mcp.Arg{}
	for name, member := range object(schema, "properties") {
		if value := asObject(member)["default"]; value != nil {
			defaults[argumentName(name)] = mcp.Arg{Default: value}
		}
	}
	root := map[string]any{"openapi": "3.1.0", "$defs": schema["$defs"], "paths": map[string]any{path: map[string]any{strings.ToLower(method): op}}}
	if output != nil {
		// One type may have another schema as a result than as an argument.
		output = bytes.ReplaceAll(output, []byte(`"$ref":"#/$defs/`), []byte(`"$ref":"#/results/`))
		if err := json.Unmarshal(output, &response); err != nil {
			return nil, nil, err
		}
		root["results"] = response["$defs"]
		delete(response, "$defs")
		op["responses"] = map[string]any{"200": map[string]any{"content": map[string]any{"application/json": map[string]any{"schema": response}}}}
	}
	doc, err = json.Marshal(root)
	return doc, defaults, err
}

// An inferred schema is that of a Go type.
type inferred map[string]any

// operation returns the operation whose arguments have the schema s, that of the struct in.
func (s inferred) operation(in reflect.Type, method, path string) (map[string]any, error) {
	if in.Kind() != reflect.Struct {
		return nil, fmt.Errorf("the arguments must be a struct, not %v", in)
	}
	variables := map[string]bool{}
	for _, v := range pathVariable.FindAllStringSubmatch(path, -1) {
		if v[1] == "$" || strings.HasSuffix(v[1], "...") {
			return nil, fmt.Errorf("%s of the path is for a mux: a variable is the name of a field, such as {id}", v[0])
		}
		variables[v[1]] = true
	}
	required, members := texts(list(s, "required")), map[string]any{}
	params, needs := []any{}, []string{}
	for _, f := range reflect.VisibleFields(in) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		schema, ok := object(s, "properties")[cmpOr(name, f.Name)]
		if name = cmpOr(name, f.Name); !ok || !f.IsExported() {
			continue // it is no argument
		}
		place, isRequired := f.Tag.Get("in"), slices.Contains(required, name)
		switch {
		case variables[name] && place == "":
			place, isRequired = "path", true
			delete(variables, name)
		case place == "" && slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodDelete}, method):
			place = "query"
		case place == "" || place == "body":
			members[name] = schema
			if isRequired {
				needs = append(needs, name)
			}
			continue
		case !slices.Contains([]string{"query", "header", "cookie"}, place):
			return nil, fmt.Errorf("the field %s is in %q, which must be query, header, cookie or body", f.Name, place)
		}
		params = append(params, map[string]any{"name": name, "in": place, "required": isRequired, "schema": schema})
	}
	for name := range variables {
		names := slices.Collect(maps.Keys(object(s, "properties")))
		return nil, fmt.Errorf("the variable {%s} of the path has no field whose json tag names it%s", name, nearest.Hint(name, names))
	}
	op := map[string]any{"parameters": params}
	if len(members) > 0 {
		body := map[string]any{"type": "object", "properties": members, "required": needs}
		op["requestBody"] = map[string]any{"required": true, "content": map[string]any{"application/json": map[string]any{"schema": body}}}
	}
	return op, nil
}
