// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/internal/uritemplate"
	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
)

var core = mcp.Internal(seam.Key{})

// Options configure [New]. One of Handler and BaseURL is required.
type Options struct {
	// Handler serves the API in this process. It is called with the context of the MCP request,
	// so [mcp.PrincipalFromContext] returns the caller. It must not depend on the caller's
	// HTTP headers and address: it gets the headers of the operation, and what Authorize sets.
	Handler http.Handler

	// BaseURL is the URL of the API, to which the paths of the document are appended. Servers
	// that the document names are not called. With a Handler, BaseURL may be empty: it is then
	// the path of the document's first server, at the host "localhost".
	BaseURL string

	// Client calls a remote API. Nil means a client with a timeout of a minute. Redirects to
	// another scheme, host or port are not followed with any client.
	Client *http.Client

	// Select is called for each operation, and returns whether to serve it. It may change Tool,
	// Shape and Resource. Nil selects every operation.
	Select func(op *Operation) bool

	// Authorize is called before each request is sent, to add the credentials of the service or
	// of the caller. The document's security schemes are not arguments of the tools, so a model
	// neither sees nor sets credentials. With a Handler, it may also set r.RemoteAddr, which is
	// an address of no network otherwise. An error fails the call; the model reads its text
	// unless it is a [*mcp.PrivateError].
	Authorize func(ctx context.Context, r *http.Request) error
}

// An API is a set of operations. It is safe for concurrent use.
type API struct {
	doc       *document
	base      string
	client    *http.Client
	authorize func(ctx context.Context, r *http.Request) error
	tools     []registration
	resources []registration
	omitted   []Omission
}

type registration struct {
	name    string
	handler mcp.Handler
}

// An Omission is an operation that is not served although it was selected.
type Omission struct {
	Operation string // method and path
	Reason    string
}

// New reads a document of OpenAPI 2.0, 3.0, 3.1 or 3.2, in JSON or YAML. Operations that cannot
// be served are left out; see [API.Omitted]. References to other files and URLs are not
// followed. New returns an error if the document cannot be read, or an option or a Shape is
// invalid.
func New(doc []byte, opts *Options) (*API, error) {
	if opts == nil || (opts.Handler == nil && opts.BaseURL == "") {
		return nil, errors.New("openapi: Options need a Handler or a BaseURL")
	}
	d, err := newDocument(doc)
	if err != nil {
		return nil, err
	}
	a := &API{doc: d, authorize: opts.Authorize}
	if a.base, err = baseURL(opts, d); err != nil {
		return nil, err
	}
	a.client = newClient(opts)
	omit := func(op *Operation, err error) { a.omitted = append(a.omitted, Omission{op.String(), err.Error()}) }
	names := map[string]bool{}
	for _, op := range d.operations(omit) {
		if opts.Select != nil && !opts.Select(op) {
			continue
		}
		if op.Tool == nil || names[op.name()] {
			omit(op, errors.New("another operation has the same name"))
		} else if err := a.add(op); err != nil {
			if mistake, ok := errors.AsType[*shapeError](err); ok {
				return nil, mistake
			}
			omit(op, err)
		} else {
			names[op.name()] = true
		}
	}
	return a, nil
}

func baseURL(opts *Options, d *document) (string, error) {
	if opts.BaseURL == "" {
		return "http://localhost" + d.basePath(), nil
	}
	u, err := url.Parse(opts.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("openapi: BaseURL must be an http or https URL without a query")
	}
	return strings.TrimRight(u.String(), "/"), nil
}

const callTimeout = time.Minute // of a remote API without a Client

var errRedirect = errors.New("openapi: the API redirects to another host")

func newClient(opts *Options) *http.Client {
	client := http.Client{Timeout: callTimeout}
	if opts.Client != nil {
		client = *opts.Client
	}
	if opts.Handler != nil {
		client = http.Client{Transport: inProcess{opts.Handler}}
	}
	check := client.CheckRedirect
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if first := via[0].URL; r.URL.Scheme != first.Scheme || r.URL.Host != first.Host {
			return errRedirect
		}
		if check != nil {
			return check(r, via)
		}
		if len(via) >= 5 {
			return errors.New("openapi: too many redirects")
		}
		return nil
	}
	return &client
}

// Omitted returns the operations that are not served, with the reasons.
func (a *API) Omitted() []Omission {
	a.mustBeMade()
	return a.omitted
}

// mustBeMade panics unless the API was created by New.
func (a *API) mustBeMade() { made.Check(a != nil && a.doc != nil, "openapi: an API", "New") }

// Register registers all operations, or none if it returns an error.
func (a *API) Register(mux *mcp.Mux) error {
	a.mustBeMade()
	return mux.Update(func(m *mcp.Mux) {
		for _, t := range a.tools {
			m.Tool(t.name, t.handler)
		}
		for _, r := range a.resources {
			m.Resource(r.name, r.handler)
		}
	})
}

// add makes a handler of an operation.
func (a *API) add(op *Operation) (err error) {
	if op.Resource {
		return a.addResource(op)
	}
	tool := *op.Tool
	tool.Name = "" // it is registered under its name
	if tool.InputSchema, err = a.doc.fit(false, op.inputSchema); err != nil {
		return err
	}
	out := a.doc.output(op)
	tool.OutputSchema = out.raw
	h := core.LateTool(func(ctx context.Context, args map[string]json.RawMessage) (*mcp.CallToolResult, error) {
		decoded, err := decode(args)
		if err != nil {
			return nil, err
		}
		r, err := a.do(ctx, op, decoded)
		if err != nil {
			return nil, err
		}
		defer r.Body.Close()
		return op.result(r, out.compiled())
	}, &tool)
	if err := a.try(func(m *mcp.Mux) { m.Tool(op.name(), h) }); err != nil {
		return err
	}
	if op.Shape != nil {
		if err := a.try(func(m *mcp.Mux) {
			h = mcp.Reshape(h, *op.Shape)
			m.Tool(op.name(), h)
		}); err != nil {
			return &shapeError{op, err}
		}
	}
	a.tools = append(a.tools, registration{op.name(), h})
	return nil
}

// A shapeError is about what Select has set, not about the document.
type shapeError struct {
	op  *Operation
	err error
}

func (e *shapeError) Error() string { return fmt.Sprintf("openapi: the Shape of %v: %v", e.op, e.err) }
func (e *shapeError) Unwrap() error { return e.err }

// try reports what a mux says about a registration.
func (a *API) try(register func(m *mcp.Mux)) error {
	mux := mcp.NewMux("openapi", "v0.0.0", &mcp.MuxOptions{Logger: slog.New(slog.DiscardHandler), NoLint: true})
	return mux.Update(register)
}

// An output is the schema of the results of operations.
type output struct {
	raw      json.RawMessage           // nil if there is none
	compiled func() *jsonschema.Schema // compiles raw on its first call; returns nil without raw
}

// output returns the schema of the results of an operation. Operations share it if they refer
// to the same one. An answer without a schema, or with one that cannot be converted, is still
// an answer.
func (d *document) output(op *Operation) *output {
	out := &output{compiled: func() *jsonschema.Schema { return nil }}
	if !op.answers {
		return out
	}
	ref := ""
	if obj := asObject(op.schema); len(obj) == 1 {
		ref = text(obj, "$ref")
	}
	if known := d.outputs[ref]; known != nil {
		return known
	}
	raw, err := d.fit(true, func(c *converter, depth int) map[string]any { return c.schema(op.schema, depth) })
	if err == nil && isObjectSchema(raw) {
		out.raw = raw
		out.compiled = sync.OnceValue(func() *jsonschema.Schema {
			s, _ := jsonschema.Compile(raw, nil) // it is valid
			return s
		})
	}
	if ref != "" {
		d.outputs[ref] = out
	}
	return out
}

// isObjectSchema reports whether every revision of MCP accepts an output schema.
func isObjectSchema(raw []byte) bool {
	var root struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(raw, &root) == nil && root.Type == "object"
}

func decode(args map[string]json.RawMessage) (arguments, error) {
	out := make(arguments, len(args))
	for name, raw := range args {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var v any
		if err := d.Decode(&v); err != nil {
			return nil, err
		}
		out[name] = v
	}
	return out, nil
}

// do sends the request of a call.
func (a *API) do(ctx context.Context, op *Operation, args arguments) (*http.Response, error) {
	r, err := op.newRequest(ctx, a.base, a.doc, args)
	if err != nil {
		return nil, err
	}
	if a.authorize != nil {
		if err := a.authorize(ctx, r); err != nil {
			return nil, err
		}
	}
	res, err := a.client.Do(r)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, errRedirect):
		return nil, errors.New("the API redirects to another host, which is not followed")
	case err != nil:
		return nil, unreachable(err)
	}
	return res, nil
}

const scheme = "api://"

// addResource makes a resource or a template of an operation.
func (a *API) addResource(op *Operation) error {
	if op.Method != http.MethodGet {
		return errors.New("only GET can be a resource")
	}
	if op.path != op.Path {
		return errors.New("a resource cannot have a path with a query or a fragment")
	}
	uri, query := scheme+op.Path, ""
	for _, p := range op.params {
		switch {
		case p.in == "path" && p.style == "simple":
			uri = strings.ReplaceAll(uri, "{"+p.name+"}", "{"+variable(p)+"}")
		case p.in == "query":
			query += "," + variable(p)
		case p.required:
			return fmt.Errorf("a resource cannot have the parameter %s in %s", p.arg, p.in)
		}
	}
	if query != "" {
		uri += "{?" + query[1:] + "}"
	}
	if _, err := uritemplate.Parse(uri); err != nil {
		return err
	}
	return a.try(func(m *mcp.Mux) {
		h := mcp.ResourceFunc(func(ctx context.Context, vars map[string]string) (*mcp.ReadResourceResult, error) {
			args := arguments{}
			for _, p := range op.params {
				if v, ok := vars[variable(p)]; ok {
					args[p.arg] = v
				}
			}
			return a.read(ctx, op, args)
		}, &mcp.Resource{Name: op.Tool.Name, Title: op.Tool.Title, Description: op.Tool.Description})
		m.Resource(uri, h)
		a.resources = append(a.resources, registration{uri, h})
	})
}

// variable returns the name of a parameter in a template.
func variable(p *param) string { return strings.ReplaceAll(p.arg, "-", "_") }

func (a *API) read(ctx context.Context, op *Operation, args arguments) (*mcp.ReadResourceResult, error) {
	r, err := a.do(ctx, op, args)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	res, err := op.result(r, nil)
	if r.StatusCode == http.StatusNotFound {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contentsOf(res, baseType(r.Header.Get("Content-Type")))}}, nil
}

// contentsOf returns the contents of a resource from the result of a tool.
func contentsOf(res *mcp.CallToolResult, mediaType string) *mcp.ResourceContents {
	c := &mcp.ResourceContents{MIMEType: mediaType}
	switch block := res.Content[0].(type) {
	case *mcp.TextContent:
		c.Text = block.Text
	case *mcp.ImageContent:
		c.Blob = block.Data
	case *mcp.AudioContent:
		c.Blob = block.Data
	case *mcp.EmbeddedResource:
		c.Blob = block.Resource.Blob
	}
	return c
}
