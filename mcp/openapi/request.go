// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/strictjson"
)

// arguments are the arguments of a call, by name.
type arguments = map[string]any

// newRequest returns the request of a call. Its errors are for the model.
func (op *Operation) newRequest(ctx context.Context, base string, d *document, args arguments) (*http.Request, error) {
	target, header, query, cookies := op.path, http.Header{}, []string{}, []string{}
	if op.query != "" {
		query = append(query, op.query)
	}
	for _, p := range op.params {
		v, err := p.value(d, args)
		if err != nil {
			return nil, err
		}
		if v == nil {
			if p.in == "path" {
				return nil, fmt.Errorf("the argument %s is missing", p.arg)
			}
			continue
		}
		switch p.in {
		case "path":
			s, err := p.segment(v)
			if err != nil {
				return nil, err
			}
			target = strings.ReplaceAll(target, "{"+p.name+"}", s)
			if part := dots(target); part != "" {
				return nil, fmt.Errorf("the argument %s must not have a part %q", p.arg, part)
			}
		case "query":
			pairs, err := op.pairs(d, p, v)
			if err != nil {
				return nil, err
			}
			query = append(query, pairs...)
		case "header":
			s := simple(v, p.explode, func(s string) string { return s })
			if strings.ContainsFunc(s, isControl) {
				return nil, fmt.Errorf("the argument %s has a character that a header cannot have", p.arg)
			}
			header.Set(p.name, s)
		case "cookie":
			cookies = append(cookies, p.name+"="+simple(v, false, url.QueryEscape))
		}
	}
	if len(cookies) > 0 {
		header.Set("Cookie", strings.Join(cookies, "; "))
	}
	if len(query) > 0 {
		target += "?" + strings.Join(query, "&")
	}
	payload, contentType, err := op.encodeBody(d, args)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, op.Method, base+target, nil)
	if err != nil {
		return nil, errors.New("the arguments make no valid URL")
	}
	if contentType != "" {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(payload)), int64(len(payload))
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(payload)), nil }
		header.Set("Content-Type", contentType)
	}
	header.Set("Accept", op.accept())
	r.Header = header
	return r, nil
}

// value returns what is sent for a parameter. It returns nil for a parameter without an argument.
func (p *param) value(d *document, args arguments) (any, error) {
	v, given := args[p.arg]
	if !p.isNumber(d) {
		v = whole(v)
	}
	if !p.isJSON || !given {
		return v, nil
	}
	encoded, err := json.Marshal(v)
	return string(encoded), err
}

// isNumber reports whether a parameter is a number that need not be an integer, or a list of them.
func (p *param) isNumber(d *document) bool {
	obj, _ := d.resolve(p.schema)
	if obj["items"] != nil {
		obj, _ = d.resolve(obj["items"])
	}
	return text(obj, "type") == "number"
}

// whole returns a value whose integers are written as such: some models write 5.0, which is an
// integer in JSON Schema, but not for most APIs.
func whole(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, ok := strictjson.ParseDecimal(v.String()); ok && n.IsInteger() && !strings.Contains(n.String(), "e") {
			return json.Number(n.String())
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = whole(v[name])
		}
	}
	return v
}

// withoutCredentials returns the pairs of a query that are no API key: an object can have a
// member of any name.
func (d *document) withoutCredentials(pairs []string) []string {
	return slices.DeleteFunc(pairs, func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		return err != nil || d.credentials[credential{"query", strings.ToLower(name)}]
	})
}

// pairs returns the parameters of the query for the value of p.
func (op *Operation) pairs(d *document, p *param, v any) ([]string, error) {
	pairs := d.withoutCredentials(p.pairs(v))
	return pairs, checkNames(p.arg, pairs, func(name string) bool { return op.isOther(p, name) })
}

// checkNames returns an error if one of the pairs for the argument arg has a name for which
// isOther returns true. A name may have an index, as in a[0], which some servers take for a.
func checkNames(arg string, pairs []string, isOther func(name string) bool) error {
	for _, pair := range pairs {
		name, _, _ := strings.Cut(pair, "=")
		name, _ = url.QueryUnescape(name) // it was escaped
		if base, _, _ := strings.Cut(name, "["); isOther(name) || isOther(base) {
			return fmt.Errorf("the argument %s must not have a member %q", arg, name)
		}
	}
	return nil
}

// isOther reports whether a name in the query is that of another parameter than p: an object
// can have a member of any name, and the other one may be hidden, or always be sent.
func (op *Operation) isOther(p *param, name string) bool {
	fixed, _ := url.ParseQuery(op.query) // which has been checked
	for key := range fixed {
		if strings.EqualFold(key, name) {
			return true
		}
	}
	return slices.ContainsFunc(op.params, func(other *param) bool {
		return other != p && other.in == "query" && strings.EqualFold(other.name, name)
	})
}

// accept prefers JSON.
func (op *Operation) accept() string {
	types := []string{"application/json"}
	for _, t := range op.produces {
		if !strings.ContainsFunc(t, isControl) && !slices.Contains(types, t) && len(types) < 8 && t != "*/*" {
			types = append(types, t)
		}
	}
	return strings.Join(append(types, "*/*;q=0.1"), ", ")
}
