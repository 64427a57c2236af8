// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
)

// ResourceFunc makes the handler of a resource, or of a template, from a
// function. It panics if In is a type that a template's variables cannot fill.
//
// In is struct{} for a resource, and for a template a struct of strings, numbers
// and booleans, or a map of strings, that gets the values of the variables.
//
// Out is what the resource contains: a string is text, []byte is binary,
// [*ResourceContents], a list of them and [*ReadResourceResult] are themselves,
// anything else is its JSON. Contents without a URI get that of the request.
//
// An error that is or wraps [fs.ErrNotExist] means that there is no such
// resource; any other is the error of the request.
//
// A nil r means the zero Resource.
func ResourceFunc[In, Out any](fn func(ctx context.Context, in In) (Out, error), r *Resource) Handler {
	f := &resourceFunc[In, Out]{fn: fn}
	if r != nil {
		f.resource = *r
	}
	var err error
	if f.in, err = newTextInput(reflect.TypeFor[In]()); err != nil {
		panic(fmt.Sprintf("mcp: ResourceFunc at %s: variables: %v", callSite(), err))
	}
	return f
}

type resourceFunc[In, Out any] struct {
	fn       func(context.Context, In) (Out, error)
	resource Resource
	in       *textInput
}

func (f *resourceFunc[In, Out]) Describe() Description { return &f.resource }

func (f *resourceFunc[In, Out]) enums() map[string][]string { return f.in.enums() }

func (f *resourceFunc[In, Out]) ServeMCP(ctx context.Context, req *Request) (Result, error) {
	values := map[string]string{}
	for name, value := range req.path.All() {
		if _, known := f.in.fields[name]; known || f.in.open {
			values[name] = value
		}
	}
	var in In
	if err := f.in.decode(ctx, "params.uri", values, &in); err != nil {
		return nil, err
	}
	out, err := f.fn(ctx, in)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ResourceNotFound(req.Name())
	}
	if err != nil {
		return nil, err
	}
	return f.result(req.Name(), out)
}

func (f *resourceFunc[In, Out]) result(uri string, out Out) (Result, error) {
	part := &ResourceContents{URI: uri, MIMEType: f.resource.MIMEType}
	res := &ReadResourceResult{Contents: []*ResourceContents{part}}
	switch out := any(out).(type) {
	case string:
		part.Text, part.MIMEType = out, cmp.Or(part.MIMEType, "text/plain")
	case []byte:
		part.Blob, part.MIMEType = append([]byte{}, out...), cmp.Or(part.MIMEType, "application/octet-stream")
	case *ResourceContents:
		res.Contents[0] = out
	case []*ResourceContents:
		res.Contents = out
	case *ReadResourceResult:
		res = out
	default:
		raw, err := marshal(out)
		if err != nil {
			return nil, Errorf(CodeInternalError, "the resource could not be encoded: %w", err)
		}
		part.Text, part.MIMEType = string(raw), cmp.Or(part.MIMEType, "application/json")
	}
	if res == nil || slices.Contains(res.Contents, nil) {
		return nil, Errorf(CodeInternalError, "the resource returned neither contents nor an error")
	}
	return withURI(res, uri), nil
}

// withURI fills in the URI where it was left out, in a copy.
func withURI(res *ReadResourceResult, uri string) *ReadResourceResult {
	c := *res
	c.Contents = make([]*ResourceContents, len(res.Contents))
	for i, part := range res.Contents {
		filled := *part
		filled.URI = cmp.Or(filled.URI, uri)
		c.Contents[i] = &filled
	}
	return &c
}
