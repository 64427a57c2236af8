// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/uritemplate"
)

// Requests name resources by URIs, and a URI has many spellings. A mux brings them into their
// normal form before its middleware runs, so that routing, policies, limits and handlers all
// see one spelling. The spellings of the caller are kept, because the caller recognizes only
// those, and so may a mounted server.

// spellings holds URIs as the sender of a request spelled them, by their normal form. It is
// nil if they were all in normal form.
type spellings map[string][]string

// maxSpellings limits the spellings of one URI in a subscription. A client has one or two.
const maxSpellings = 4

// add adds a spelling of a URI and reports whether it is the first of its normal form.
func (s spellings) add(form, uri string) (isFirst bool) {
	isFirst = s[form] == nil
	if len(s[form]) < maxSpellings && !slices.Contains(s[form], uri) {
		s[form] = append(s[form], uri)
	}
	return isFirst
}

// all returns the spellings of a URI. There is at least one.
func (s spellings) all(form string) []string {
	if uris := s[form]; len(uris) > 0 {
		return uris
	}
	return []string{form}
}

// spelling returns the URI with the given normal form as the sender of r spelled it.
func (r *Request) spelling(form string) string {
	if uris := r.spelled[form]; len(uris) > 0 {
		return uris[0]
	}
	return form
}

// withNormalURIs returns r, or a copy with its URIs in normal form. Invalid params are
// returned unchanged, for the handler to reject inside the middleware.
func (r *Request) withNormalURIs(maxSubscriptions int) *Request {
	switch {
	case r.Method == MethodListen:
		return r.withNormalFilter(maxSubscriptions)
	case r.Method == MethodComplete:
		return r.withNormalReference()
	case r.aboutURI():
		return r.withNormalName()
	}
	return r
}

func (r *Request) withNormalName() *Request {
	uri := r.Name()
	form := uritemplate.Normal(uri)
	if form == uri {
		return r
	}
	c := r.withName(form)
	c.spelled = spellings{form: {uri}}
	return c
}

// withNormalReference normalizes the URI or template that a completion refers to.
func (r *Request) withNormalReference() *Request {
	ref := jsonscan.Member(r.params.raw, "ref")
	raw := jsonscan.Member(ref, "uri")
	if len(raw) == 0 || raw[0] != '"' {
		return r
	}
	uri := jsonscan.Text(raw)
	form := uritemplate.NormalPattern(uri)
	if form == uri {
		return r
	}
	ref = jsonscan.AppendMembers(jsonscan.AppendString(jsonscan.AppendKey([]byte{'{'}, "uri"), form), ref, "uri")
	c := r.Clone()
	must(c.setParams(jsonscan.AppendMembers(append(jsonscan.AppendKey([]byte{'{'}, "ref"), ref...), r.params.raw, "ref"))) // they were valid before
	c.spelled = spellings{form: {uri}}
	return c
}

// withNormalFilter normalizes the URIs of a subscription.
func (r *Request) withNormalFilter(limit int) *Request {
	var p ListenParams
	f := &p.Notifications
	if r.Decode(&p) != nil || f.check(limit) != nil {
		return r
	}
	spelled, forms := spellings{}, make([]string, 0, len(f.ResourceSubscriptions))
	isNormal := true
	for _, uri := range f.ResourceSubscriptions {
		form := uritemplate.Normal(uri)
		isNormal = isNormal && form == uri
		if spelled.add(form, uri) {
			forms = append(forms, form)
		}
	}
	if isNormal {
		return r
	}
	f.ResourceSubscriptions = forms
	c := r.Clone()
	must(c.setParams(mustMarshal(&p))) // they were decoded from params
	c.spelled = spelled
	return c
}

// asSpelled returns the outcome of a read with the URI as the caller has spelled it.
func (r *Request) asSpelled(res Result, err error) (Result, error) {
	form := r.Name()
	uri := r.spelling(form)
	if err != nil {
		if isResourceNotFound(err) {
			return nil, fileNotFound(uri, err)
		}
		return res, err
	}
	read, ok := res.(*ReadResourceResult)
	if !ok {
		return res, nil
	}
	c := *read
	c.Contents = slices.Clone(read.Contents)
	for i, part := range c.Contents {
		if part != nil && part.URI != uri && uritemplate.Normal(part.URI) == form {
			renamed := *part
			renamed.URI = uri
			c.Contents[i] = &renamed
		}
	}
	return &c, nil
}

// keyOf returns the key of an entry in its table. Spellings of one URI have the same key.
func keyOf(kind, name string) string {
	if kind == "resource" {
		return uritemplate.NormalPattern(name)
	}
	return name
}

// resource returns the entry for a URI in normal form and the values of its template's
// variables. Values are decoded. Therefore a URI with unnecessary percent-encoding could
// match a less specific entry and be served the resource of another entry, which may have
// other permissions. Such a URI is not found.
func (s *snapshot) resource(uri string) (*entry, uritemplate.Values) {
	e, values := s.match(uri)
	if e == nil || e.template == nil || !strings.Contains(uri, "%") {
		return e, values
	}
	before := uri
	for _, same := range [...]string{uritemplate.Normal(uritemplate.Plain(uri)), e.template.Rebuild(values)} {
		if same == uri || same == before {
			continue // it has been matched
		}
		if other, _ := s.match(same); other != e {
			return nil, uritemplate.Values{}
		}
		before = same
	}
	return e, values
}

// match returns the entry for a URI in normal form.
func (s *snapshot) match(uri string) (*entry, uritemplate.Values) {
	if e := s.resources.find(uri); e != nil {
		return e, uritemplate.Values{}
	}
	if s.mountOf("resource", uri) != nil {
		return nil, uritemplate.Values{} // templates never match URIs of a mount
	}
	for _, e := range s.bySpecificity {
		if values, ok := e.template.Match(uri); ok {
			return e, values
		}
	}
	return nil, uritemplate.Values{}
}

// Limits on the params of subscriptions/listen, in bytes of JSON. They are kept for as long as
// the subscription is open.
const (
	maxFilter     = 256 << 10 // enough for a thousand URIs of 250 bytes
	maxListenMeta = 64 << 10
)

// keptParams returns the params of a request as they are kept while it is served. A
// subscription stays open for hours. Its params are copied, so that it does not keep the
// message, and without the members that subscriptions do not have. Clearing the params once a
// subscription is acknowledged was rejected, because middleware holds the same request and
// may read it concurrently.
func keptParams(method string, raw json.RawMessage) (json.RawMessage, error) {
	if method != MethodListen || !jsonscan.IsObject(raw) {
		return raw, nil
	}
	filter, meta := jsonscan.Member(raw, "notifications"), jsonscan.Member(raw, "_meta")
	switch {
	case len(filter) > maxFilter:
		return nil, Errorf(CodeInvalidParams, "params.notifications has %d bytes; the limit is %d: subscribe to fewer resources, or to their directory", len(filter), maxFilter)
	case len(meta) > maxListenMeta:
		return nil, Errorf(CodeInvalidParams, "params._meta of %s has %d bytes; the limit is %d", method, len(meta), maxListenMeta)
	}
	kept := append(make([]byte, 0, len(filter)+len(meta)+64), '{')
	if filter != nil {
		kept = append(jsonscan.AppendKey(kept, "notifications"), filter...)
	}
	if meta != nil {
		kept = append(jsonscan.AppendKey(kept, "_meta"), meta...)
	}
	return append(kept, '}'), nil
}
