// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"maps"
)

// Implementation is the name and version of a client or server. It is unverified: do not
// make decisions by it.
type Implementation struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	WebsiteURL  string `json:"websiteUrl,omitempty"`
	Icons       []Icon `json:"icons,omitempty"`
	Extra       Extra  `json:",embed"`
}

// An Icon is an image for user interfaces. Src is an https or data URI.
type Icon struct {
	Src      string   `json:"src"`
	MIMEType string   `json:"mimeType,omitempty"`
	Sizes    []string `json:"sizes,omitempty"` // "48x48" or "any"
	Theme    string   `json:"theme,omitempty"` // "light" or "dark"
}

// Extensions maps the identifiers of supported extensions to their settings; an empty
// object means no settings.
type Extensions map[string]json.RawMessage

// ClientCapabilities are the capabilities that a client declares. A nil field is not
// declared.
type ClientCapabilities struct {
	Experimental map[string]json.RawMessage `json:"experimental,omitempty"`
	Roots        *RootsCapability           `json:"roots,omitzero"`
	Sampling     *SamplingCapability        `json:"sampling,omitzero"`
	Elicitation  *ElicitationCapability     `json:"elicitation,omitzero"`
	Extensions   Extensions                 `json:"extensions,omitempty"`
	Extra        Extra                      `json:",embed"`
}

// names returns the names of the capabilities for questions, such as "elicitation.form".
func (c *ClientCapabilities) names() []string {
	var names []string
	add := func(declared bool, name string) {
		if declared {
			names = append(names, name)
		}
	}
	add(c.Roots != nil, "roots")
	if s := c.Sampling; s != nil {
		add(s.Tools == nil && s.Context == nil, "sampling")
		add(s.Tools != nil, "sampling.tools")
		add(s.Context != nil, "sampling.context")
	}
	add(c.Elicitation != nil && c.Elicitation.AllowsForm(), "elicitation.form")
	add(c.Elicitation.AllowsURL(), "elicitation.url")
	return names
}

// RootsCapability declares roots/list.
type RootsCapability struct {
	ListChanged bool `json:"listChanged,omitzero"` // legacy era only
}

// SamplingCapability declares sampling/createMessage.
type SamplingCapability struct {
	Context *struct{} `json:"context,omitzero"` // other values of includeContext than none
	Tools   *struct{} `json:"tools,omitzero"`   // tools and toolChoice
}

// ElicitationCapability declares elicitation/create and its modes. Without a mode it means
// form mode.
type ElicitationCapability struct {
	Form *struct{} `json:"form,omitzero"`
	URL  *struct{} `json:"url,omitzero"`
}

// AllowsForm reports whether form mode is declared.
func (c *ElicitationCapability) AllowsForm() bool {
	return c != nil && (c.Form != nil || c.URL == nil)
}

// AllowsURL reports whether URL mode is declared.
func (c *ElicitationCapability) AllowsURL() bool { return c != nil && c.URL != nil }

// HasExtension reports whether the client declared an extension.
func (c *ClientCapabilities) HasExtension(id string) bool {
	if c == nil {
		return false
	}
	_, ok := c.Extensions[id]
	return ok
}

// declare adds an extension, unless it is declared already. Extensions are copied.
func (c *ClientCapabilities) declare(x ClientExtension) {
	settings := x.Settings()
	if settings == nil {
		settings = json.RawMessage("{}")
	}
	c.Extensions = maps.Clone(c.Extensions)
	c.Extensions.declare(x.ID(), settings)
}

// ServerCapabilities are the capabilities that a server declares. A nil field is not declared.
type ServerCapabilities struct {
	Experimental map[string]json.RawMessage `json:"experimental,omitempty"`
	Tools        *ListCapability            `json:"tools,omitzero"`
	Prompts      *ListCapability            `json:"prompts,omitzero"`
	Resources    *ResourcesCapability       `json:"resources,omitzero"`
	Completions  *struct{}                  `json:"completions,omitzero"`
	Logging      *struct{}                  `json:"logging,omitzero"`
	Extensions   Extensions                 `json:"extensions,omitempty"`
	Extra        Extra                      `json:",embed"`
}

// declare adds an extension without settings, unless it is declared already.
func (c *ServerCapabilities) declare(id string) {
	if _, ok := c.Extensions[id]; ok {
		return
	}
	extensions := Extensions{id: json.RawMessage("{}")}
	maps.Copy(extensions, c.Extensions)
	c.Extensions = extensions
}

// ListCapability declares a list, and whether its changes are announced.
type ListCapability struct {
	ListChanged bool `json:"listChanged,omitzero"`
}

// ResourcesCapability declares resources, and which changes are announced.
type ResourcesCapability struct {
	Subscribe   bool `json:"subscribe,omitzero"`
	ListChanged bool `json:"listChanged,omitzero"`
}

// DiscoverResult is the result of server/discover.
type DiscoverResult struct {
	ResultBase
	Cacheable
	SupportedVersions []string            `json:"supportedVersions"`
	Capabilities      *ServerCapabilities `json:"capabilities"`
	Instructions      string              `json:"instructions,omitempty"`
}
