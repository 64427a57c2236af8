// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"go.yaml.in/yaml/v4"

	"github.com/go-psi/psi/mcp/openapi"
)

const base = "/base" // the path of the API, which is not in the document

// A mock is an API that accepts the requests that its document describes. It reads the document
// with kin-openapi, which reads 2.0, 3.0 and 3.1, and has the styles and types of bodies that
// mcp/openapi has.
type mock struct {
	doc  *openapi3.T
	op   *openapi.Operation
	args map[string]any
	// called reports that there was a request; err is what is wrong in it.
	called bool
	err    error
}

func newMock(raw []byte) (*mock, error) {
	loader := openapi3.NewLoader()
	if !isSwagger.Match(raw) {
		doc, err := loader.LoadFromData(raw)
		if err != nil {
			return nil, err
		}
		adapt(doc)
		return &mock{doc: doc}, nil
	}
	var value any
	if err := yaml.Unmarshal(raw, &value); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var old openapi2.T
	if err := json.Unmarshal(encoded, &old); err != nil {
		return nil, err
	}
	doc, err := openapi2conv.ToV3(&old)
	if err != nil {
		return nil, err
	}
	adapt(doc)
	return &mock{doc: doc}, nil
}

// adapt changes what the validator reads otherwise than the specification says, and removes the
// credentials, which a model does not set.
func adapt(doc *openapi3.T) {
	credentials := map[string]bool{"header accept": true, "header content-type": true, "header authorization": true, "header content-length": true}
	if doc.Components != nil {
		for _, ref := range doc.Components.SecuritySchemes {
			if ref.Value != nil && ref.Value.Type == "apiKey" {
				credentials[strings.ToLower(ref.Value.In+" "+ref.Value.Name)] = true
			}
		}
	}
	doc.Security = nil
	without := func(params openapi3.Parameters) openapi3.Parameters {
		return slices.DeleteFunc(params, func(ref *openapi3.ParameterRef) bool {
			return credentials[strings.ToLower(ref.Value.In+" "+ref.Value.Name)]
		})
	}
	for _, item := range doc.Paths.Map() {
		item.Parameters = without(item.Parameters)
		for _, op := range item.Operations() {
			op.Parameters, op.Security = without(op.Parameters), nil
			if op.RequestBody == nil || op.RequestBody.Value == nil {
				continue
			}
			for mediaType, media := range op.RequestBody.Value.Content {
				// A form is an object, whether its schema says so or not.
				if strings.Contains(mediaType, "form") && media.Schema != nil && media.Schema.Value != nil && media.Schema.Value.Type == nil {
					form := *media.Schema.Value
					form.Type = &openapi3.Types{"object"}
					media.Schema = openapi3.NewSchemaRef("", &form)
				}
			}
		}
	}
}

var isSwagger = regexp.MustCompile(`(?m)^\s*[{]?\s*["']?swagger["']?:`)

func (m *mock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.called, m.err = true, m.check(r)
	w.WriteHeader(http.StatusNotFound)
}

func (m *mock) check(r *http.Request) error {
	params, err := m.pathParams(r)
	if err != nil || m.doc == nil {
		return err
	}
	item := m.doc.Paths.Value(m.op.Path)
	if item == nil {
		return errors.New("the validator does not know the path")
	}
	spec := item.GetOperation(m.op.Method)
	if spec == nil {
		return errors.New("the validator does not know the method")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	r.ContentLength = int64(len(body))
	declared := slices.Concat(spec.Parameters, item.Parameters)
	return errors.Join(
		m.arrived(declared, params, r), undeclared(declared, r),
		openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{
			Request: r, PathParams: params,
			Route: &routers.Route{Spec: m.doc, Path: m.op.Path, PathItem: item, Method: m.op.Method, Operation: spec},
			Options: &openapi3filter.Options{
				AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true, MultiError: true,
				RejectWhenRequestBodyNotSpecified: true,
			},
		}))
}

// pathParams returns the values of the variables in a path.
func (m *mock) pathParams(r *http.Request) (map[string]string, error) {
	template, _, _ := strings.Cut(m.op.Path, "#")
	template, fixed, _ := strings.Cut(template, "?")
	if !strings.HasPrefix(r.URL.RawQuery, fixed) {
		return nil, fmt.Errorf("the query %q does not start with %q", r.URL.RawQuery, fixed)
	}
	r.URL.RawQuery = strings.TrimPrefix(strings.TrimPrefix(r.URL.RawQuery, fixed), "&")
	path, params := base+template, map[string]string{}
	for _, v := range variable.FindAllStringSubmatch(template, -1) {
		if value := m.args[v[1]]; isText(value) {
			path = strings.ReplaceAll(path, v[0], url.PathEscape(plain(value)))
			params[v[1]] = plain(value)
		}
	}
	if unescaped, err := url.PathUnescape(path); err == nil && r.Method == m.op.Method && unescaped == r.URL.Path {
		return params, nil
	}
	pattern := quotedVariable.ReplaceAllString(regexp.QuoteMeta(base+template), `([^/]+)`)
	values := regexp.MustCompile("^" + pattern + "$").FindStringSubmatch(r.URL.EscapedPath())
	if values == nil || r.Method != m.op.Method {
		return nil, fmt.Errorf("%s %s is another operation", r.Method, r.URL.EscapedPath())
	}
	for i, v := range variable.FindAllStringSubmatch(template, -1) {
		value, err := url.PathUnescape(values[i+1])
		if err != nil {
			return nil, err
		}
		params[v[1]] = value
	}
	return params, nil
}

var variable, quotedVariable = regexp.MustCompile(`\{([^{}]*)\}`), regexp.MustCompile(`\\\{[^{}]*\\\}`)

// plain returns a scalar as it is sent.
func plain(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	encoded, _ := json.Marshal(v) //nolint:errchkjson // decoded JSON
	return string(encoded)
}

func isText(v any) bool {
	switch v.(type) {
	case map[string]any, []any, nil:
		return false
	}
	return true
}

// arrived compares the scalar arguments that are parameters with what was sent.
func (m *mock) arrived(declared openapi3.Parameters, path map[string]string, r *http.Request) (err error) {
	for _, ref := range declared {
		p := ref.Value
		value, given := m.args[p.Name]
		if p.Style != "" && p.Style != "simple" && p.Style != "form" || p.Content != nil || !given || !isText(value) {
			continue
		}
		want, got := plain(value), ""
		switch p.In {
		case "path":
			got = path[p.Name]
		case "query":
			got = strings.Join(r.URL.Query()[p.Name], " and ")
		case "header":
			got = r.Header.Get(p.Name)
		case "cookie":
			if c, cookieErr := r.Cookie(p.Name); cookieErr == nil {
				got, _ = url.QueryUnescape(c.Value)
			}
		}
		if got != want && !hasNamesake(declared, p) {
			err = errors.Join(err, fmt.Errorf("the %s parameter %s arrived as %q instead of %q", p.In, p.Name, got, want))
		}
	}
	return err
}

// hasNamesake reports whether another parameter has the same name.
func hasNamesake(declared openapi3.Parameters, p *openapi3.Parameter) bool {
	return slices.ContainsFunc(declared, func(ref *openapi3.ParameterRef) bool {
		return ref.Value.Name == p.Name && ref.Value.In != p.In
	})
}

// undeclared finds parts of a request that the document does not have.
func undeclared(declared openapi3.Parameters, r *http.Request) (err error) {
	has := func(in, name string) bool {
		return slices.ContainsFunc(declared, func(ref *openapi3.ParameterRef) bool {
			p := ref.Value
			return p.In == in && (p.Name == name || in == "header" && strings.EqualFold(p.Name, name) ||
				in == "query" && (strings.HasPrefix(name, p.Name+"[") || p.Style != "deepObject" && p.Schema != nil && mayHave(p.Schema.Value, name)))
		})
	}
	for name := range r.URL.Query() {
		if !has("query", name) {
			err = errors.Join(err, fmt.Errorf("the query has %q, which is not declared", name))
		}
	}
	for name := range r.Header {
		if !slices.Contains([]string{"Accept", "Content-Type", "Cookie"}, name) && !has("header", name) {
			err = errors.Join(err, fmt.Errorf("the header has %q, which is not declared", name))
		}
	}
	for _, c := range r.Cookies() {
		if !has("cookie", c.Name) {
			err = errors.Join(err, fmt.Errorf("there is a cookie %q, which is not declared", c.Name))
		}
	}
	return err
}

// mayHave reports whether an object, whose members are parameters, can have a member.
func mayHave(s *openapi3.Schema, name string) bool {
	if s == nil || s.Type != nil && !s.Type.Is("object") {
		return false
	}
	return s.Properties[name] != nil || len(s.Properties) == 0 || s.AdditionalProperties.Schema != nil
}

// limits are the reasons why the mock refuses a request that is right, or that no request can be
// right.
var limits = []struct {
	pattern *regexp.Regexp
	reason  string
}{
	{regexp.MustCompile(`unsupported (content type|schema of request body)|has non primitive type|must be set with indexes|invalid serialization method|error parsing regexp|without a known|unexpected value|could not convert value map|a value must be a list of`), "the validator cannot read it"},
	{regexp.MustCompile(`^request body has an error: value is required but missing`), "a required body is a form without members"},
	{regexp.MustCompile(`value is required but missing`), "a required parameter is an object without members"},
	{regexp.MustCompile(`empty value is not allowed`), "the validator reads no value of a parameter without a type"},
	{regexp.MustCompile(`more than one oneOf`), "the sample is allowed by several members of oneOf"},
	{regexp.MustCompile(`discriminator`), "the discriminator is not one of references"},
	{regexp.MustCompile(`is unsupported|false schema`), "the document forbids a member that it describes"},
	{regexp.MustCompile(`allowed values|value must be one of`), "the document lists values that it forbids"},
	{regexp.MustCompile(`is missing|missing propert`), "a required member has a name that providers reject, or is a list in deepObject"},
	{regexp.MustCompile(`at least \d+ propert`), "an object without members"},
	{regexp.MustCompile(`must be an? |match any schema|not nullable|got \w+, want`), "a part of the schema is cut off or contradicts itself"},
	{regexp.MustCompile(`arrived as "[^"]* and `), "two parameters have one name in the query"},
	{regexp.MustCompile(`regular expression|minimum string|format`), "a pattern or a format that is not given to models"},
}

// reason is why a request is refused. It is particular if none of the limits is.
func reason(err error) string {
	for _, limit := range limits {
		if limit.pattern.MatchString(err.Error()) {
			return limit.reason
		}
	}
	return strings.ReplaceAll(err.Error()[:min(len(err.Error()), 500)], "\n", " ")
}
