// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
)

// A Resource describes a resource, or, registered under a URI template, all
// resources that the template matches.
type Resource struct {
	URI         string       `json:"uri"`  // left empty, the URI it is registered under
	Name        string       `json:"name"` // left empty, the URI
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	MIMEType    string       `json:"mimeType,omitempty"`
	Annotations *Annotations `json:"annotations,omitzero"`
	Size        *int64       `json:"size,omitzero"` // bytes before any encoding; nil means not known
	Icons       []Icon       `json:"icons,omitempty"`
	Meta        Meta         `json:"_meta,omitempty"`
	Extra       Extra        `json:",embed"`

	// Completers suggest values for the variables of a template, by name.
	Completers map[string]Completer `json:"-"`
	// Subscribe decides, by an error, that the caller of ctx must not be told of
	// updates of uri. It is called when the caller subscribes, and for an update of a
	// resource below a directory that the caller subscribed to. Nil means that who can
	// read a resource can subscribe to it: the mux reads it to find out, and drops
	// what it has read.
	Subscribe func(ctx context.Context, uri string) error `json:"-"`
}

// A ResourceTemplate describes the resources that an RFC 6570 template matches.
type ResourceTemplate struct {
	URITemplate string       `json:"uriTemplate"`
	Name        string       `json:"name"`
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	MIMEType    string       `json:"mimeType,omitempty"` // only if all matches have it
	Annotations *Annotations `json:"annotations,omitzero"`
	Icons       []Icon       `json:"icons,omitempty"`
	Meta        Meta         `json:"_meta,omitempty"`
	Extra       Extra        `json:",embed"`
}

func (r *Resource) template() *ResourceTemplate {
	return &ResourceTemplate{
		URITemplate: r.URI, Name: r.Name, Title: r.Title, Description: r.Description,
		MIMEType: r.MIMEType, Annotations: r.Annotations, Icons: r.Icons, Meta: r.Meta, Extra: r.Extra,
	}
}

// ResourceContents is what a resource, or a part of it, contains: Blob if it is
// not nil, otherwise Text.
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
	Extra    Extra   `json:",embed"`
}

// MarshalJSON implements json.Marshaler.
func (c *ResourceContents) MarshalJSON() ([]byte, error) {
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

// ReadResourceParams are the params of resources/read.
type ReadResourceParams struct {
	URI string `json:"uri"`
	Retry
	Meta  Meta  `json:"_meta,omitempty"`
	Extra Extra `json:",embed"`
}

// ReadResourceResult answers resources/read.
type ReadResourceResult struct {
	ResultBase
	Cacheable
	Contents []*ResourceContents `json:"contents"`
}

// ListResourcesResult answers resources/list. The resources are shared: to
// change one, make a copy of it.
type ListResourcesResult struct {
	ResultBase
	Cacheable
	Page
	Resources []*Resource `json:"resources"`
}

// ListResourceTemplatesResult answers resources/templates/list. The templates
// are shared: to change one, make a copy of it.
type ListResourceTemplatesResult struct {
	ResultBase
	Cacheable
	Page
	ResourceTemplates []*ResourceTemplate `json:"resourceTemplates"`
}

// Retry holds the members that a repeated request carries: the answers to the
// questions of an [InputRequired], by key, and its state.
type Retry struct {
	InputResponses map[string]json.RawMessage `json:"inputResponses,omitempty"`
	RequestState   *string                    `json:"requestState,omitzero"`
}
