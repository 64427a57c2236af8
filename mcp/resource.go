// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"

	"github.com/go-psi/psi/internal/nearest"
	"github.com/go-psi/psi/internal/uritemplate"
)

// A Resource describes a resource or, if it is registered under a URI template, all
// resources that the template matches.
type Resource struct {
	URI         string       `json:"uri"`  // set by [Mux.Resource]
	Name        string       `json:"name"` // defaults to the URI
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	MIMEType    string       `json:"mimeType,omitempty"`
	Annotations *Annotations `json:"annotations,omitzero"`
	Size        *int64       `json:"size,omitzero"` // in bytes, before any encoding; nil means unknown
	Icons       []Icon       `json:"icons,omitempty"`
	Meta        Meta         `json:"_meta,omitempty"`
	Extra       Extra        `json:",inline,embed"`

	// Completers suggest values for the variables of a template, by name. Middleware of
	// [Mux.With] applies to completers as it does to the resource, but checks made by the
	// resource's function do not.
	Completers map[string]Completer `json:"-"`
	// List returns a page of the resources that match a template, for resources/list. p is not
	// nil. Its cursor is nil for the first page, and otherwise the NextCursor of an earlier
	// page, which may be outdated; the mux encrypts cursors, so clients cannot forge them. List
	// is called for every resources/list and must return within a bounded time. If it is nil,
	// the resources are not listed.
	List func(ctx context.Context, p *ListParams) (*ListResourcesResult, error) `json:"-"`
	// Subscribe returns an error if the caller in ctx must not be notified of updates of uri.
	// It is called when the caller subscribes, and for updates of resources below a directory
	// that the caller has subscribed to. If it is nil, callers can subscribe to the resources
	// they can read: the mux reads the resource to find out, and discards the result.
	// Middleware of [Mux.Use] does not see these reads. For one subscription, the mux reads at
	// most 100 resources; it leaves out the others and logs a warning. In either case it waits
	// a few seconds in total, and calls a handler for a few subscriptions at a time.
	Subscribe func(ctx context.Context, uri string) error `json:"-"`
}

// A ResourceTemplate describes the resources that match an RFC 6570 template.
type ResourceTemplate struct {
	URITemplate string       `json:"uriTemplate"`
	Name        string       `json:"name"`
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	MIMEType    string       `json:"mimeType,omitempty"` // only if all matching resources have it
	Annotations *Annotations `json:"annotations,omitzero"`
	Icons       []Icon       `json:"icons,omitempty"`
	Meta        Meta         `json:"_meta,omitempty"`
	Extra       Extra        `json:",inline,embed"`
}

func (r *Resource) template() *ResourceTemplate {
	return &ResourceTemplate{
		URITemplate: r.URI, Name: r.Name, Title: r.Title, Description: r.Description,
		MIMEType: r.MIMEType, Annotations: r.Annotations, Icons: r.Icons, Meta: r.Meta, Extra: r.Extra,
	}
}

// ResourceContents hold the contents of a resource or of a part of it. If Blob is not nil, it
// is sent; otherwise Text is sent. Use Blob for data that is not valid UTF-8, so that it
// arrives unchanged.
type ResourceContents struct {
	URI      string
	MIMEType string
	Text     string
	Blob     []byte // sent as base64
	Meta     Meta
	Extra    Extra
}

type wireContents struct {
	URI      string  `json:"uri"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitzero"`
	Blob     []byte  `json:"blob,omitzero"`
	Meta     Meta    `json:"_meta,omitempty"`
	Extra    Extra   `json:",inline,embed"`
}

// MarshalJSON implements json.Marshaler.
func (c ResourceContents) MarshalJSON() ([]byte, error) {
	w := wireContents{URI: c.URI, MIMEType: c.MIMEType, Blob: c.Blob, Meta: c.Meta, Extra: c.Extra}
	if c.Blob == nil {
		w.Text = &c.Text
	}
	return marshal(&w)
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *ResourceContents) UnmarshalJSON(data []byte) error {
	var w wireContents
	if err := unmarshal(data, &w); err != nil {
		return err
	}
	*c = ResourceContents{URI: w.URI, MIMEType: w.MIMEType, Blob: w.Blob, Meta: w.Meta, Extra: w.Extra}
	if w.Text != nil {
		c.Text = *w.Text
	}
	return nil
}

func (*ResourceContents) wire() any { return new(wireContents) }

// ReadResourceParams are the params of resources/read.
type ReadResourceParams struct {
	URI string `json:"uri"`
	Resume
	Meta  Meta  `json:"_meta,omitempty"`
	Extra Extra `json:",inline,embed"`
}

// ReadResourceResult is the result of resources/read.
type ReadResourceResult struct {
	ResultBase
	Cacheable
	Contents []*ResourceContents `json:"contents"`
}

// ListResourcesResult is the result of resources/list. The resources are shared; copy a
// resource before modifying it.
type ListResourcesResult struct {
	ResultBase
	Cacheable
	Page
	Resources []*Resource `json:"resources"`
}

// ListResourceTemplatesResult is the result of resources/templates/list. The templates are
// shared; copy a template before modifying it.
type ListResourceTemplatesResult struct {
	ResultBase
	Cacheable
	Page
	ResourceTemplates []*ResourceTemplate `json:"resourceTemplates"`
}

// Resume holds the members that a client adds to a request when it repeats the request: the
// answers to the questions of an [InputRequired], by key, and its state.
type Resume struct {
	InputResponses map[string]json.RawMessage `json:"inputResponses,omitempty"`
	RequestState   *string                    `json:"requestState,omitzero"`
}

// ResourceFunc returns a handler for a resource or a template that calls fn. It panics if fn
// is nil or the variables of a template cannot be decoded into In.
//
// For a resource, In is struct{}. For a template, In is a struct of strings, numbers and
// booleans with a field for each variable, or a map of strings, which receives the values of
// the variables. It may also be struct{}, which receives none. [Mux.Resource] panics if a
// variable has no field, or if a required field has no variable.
//
// Out is the contents of the resource. A string is sent as text, []byte as binary data;
// [*ResourceContents], a slice of them and [*ReadResourceResult] are sent unchanged; any
// other type is encoded as JSON. Contents without a URI get the URI of the request.
//
// An error that is or wraps [fs.ErrNotExist] is sent as a resource-not-found error. Any other
// error is the error of the request.
//
// A nil r means the zero Resource.
func ResourceFunc[In, Out any](fn func(ctx context.Context, in In) (Out, error), r *Resource) Handler {
	mustBeFunc("ResourceFunc", fn == nil)
	f := &resourceFunc[In, Out]{fn: fn}
	if r != nil {
		f.resource = *r
	}
	var err error
	if f.in, err = newTextInput(reflect.TypeFor[In]()); err != nil {
		panic(registrationErrorf("ResourceFunc at %s: variables: %w", callSite(), err))
	}
	return f
}

type resourceFunc[In, Out any] struct {
	fn       func(context.Context, In) (Out, error)
	resource Resource
	in       *textInput
}

func (f *resourceFunc[In, Out]) Describe() Description { return &f.resource }

// checkTemplate returns an error if a variable of the template has no field, unless In is
// struct{} or a map, or if a required field has no variable.
func (f *resourceFunc[In, Out]) checkTemplate(t *uritemplate.Template) error {
	var variables []string
	if t != nil {
		variables = t.Names()
	}
	for _, name := range variables {
		if _, ok := f.in.fields[name]; !ok && !f.in.open && len(f.in.names) > 0 {
			return fmt.Errorf("the template has the variable %q, but %v has no such field%s", name, reflect.TypeFor[In](), fieldHint(name, f.in.names))
		}
	}
	for _, name := range f.in.required {
		if !slices.Contains(variables, name) {
			return fmt.Errorf("%v has the field %q, but the template has no such variable%s", reflect.TypeFor[In](), name, knownNames(name, variables))
		}
	}
	return nil
}

// fieldHint returns the end of an error text that suggests how to add a field for a variable.
func fieldHint(variable string, fields []string) string {
	if field := nearest.Of(variable, fields); field != "" {
		return fmt.Sprintf("; tag the field %s with `json:%q`", field, variable)
	}
	return fmt.Sprintf("; add one that is tagged `json:%q`", variable)
}

func (f *resourceFunc[In, Out]) enumValues() map[string][]string { return f.in.enumValues() }

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
		return nil, NewResourceNotFoundError(req.Name())
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
		raw, err := marshalOutput(out)
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

// withURI returns a copy of res in which uri replaces empty URIs.
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
