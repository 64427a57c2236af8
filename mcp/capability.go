// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"maps"

	"github.com/go-psi/psi/internal/jsonscan"
)

// Implementation is the name and version of a client or server. It is unverified: do not
// base decisions on it.
type Implementation struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	WebsiteURL  string `json:"websiteUrl,omitempty"`
	Icons       []Icon `json:"icons,omitempty"`
	Extra       Extra  `json:",inline,embed"`
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

// ClientCapabilities are the capabilities that a client declares. A nil field means that
// the capability is not declared.
type ClientCapabilities struct {
	Experimental map[string]json.RawMessage `json:"experimental,omitempty"`
	Roots        *RootsCapability           `json:"roots,omitzero"`
	Sampling     *SamplingCapability        `json:"sampling,omitzero"`
	Elicitation  *ElicitationCapability     `json:"elicitation,omitzero"`
	Extensions   Extensions                 `json:"extensions,omitempty"`
	Extra        Extra                      `json:",inline,embed"`
}

// names returns the names of the declared capabilities for questions, such as
// "elicitation.form".
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

// RootsCapability declares support for roots/list.
type RootsCapability struct {
	ListChanged bool `json:"listChanged,omitzero"` // legacy era only
}

// SamplingCapability declares support for sampling/createMessage.
type SamplingCapability struct {
	Context *struct{} `json:"context,omitzero"` // values of includeContext other than none
	Tools   *struct{} `json:"tools,omitzero"`   // tools and toolChoice
}

// ElicitationCapability declares support for elicitation/create and its modes. If no mode
// is set, form mode is declared.
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

// declare adds the extension x, unless it is already declared. It copies c.Extensions
// first.
func (c *ClientCapabilities) declare(x *ClientExtension) {
	settings := x.Settings
	if settings == nil {
		settings = json.RawMessage("{}")
	}
	c.Extensions = maps.Clone(c.Extensions)
	c.Extensions.declare(x.ID, settings)
}

// ServerCapabilities are the capabilities that a server declares. A nil field means that
// the capability is not declared.
type ServerCapabilities struct {
	Experimental map[string]json.RawMessage `json:"experimental,omitempty"`
	Tools        *ListCapability            `json:"tools,omitzero"`
	Prompts      *ListCapability            `json:"prompts,omitzero"`
	Resources    *ResourcesCapability       `json:"resources,omitzero"`
	Completions  *struct{}                  `json:"completions,omitzero"`
	Logging      *struct{}                  `json:"logging,omitzero"`
	Extensions   Extensions                 `json:"extensions,omitempty"`
	Extra        Extra                      `json:",inline,embed"`
}

// declare adds an extension without settings, unless it is already declared.
func (c *ServerCapabilities) declare(id string) {
	if _, ok := c.Extensions[id]; ok {
		return
	}
	extensions := Extensions{id: json.RawMessage("{}")}
	maps.Copy(extensions, c.Extensions)
	c.Extensions = extensions
}

// ListCapability declares support for a list and, optionally, for notifications of its
// changes.
type ListCapability struct {
	ListChanged bool `json:"listChanged,omitzero"`
}

// ResourcesCapability declares support for resources and, optionally, for notifications of
// changes to a resource or the list.
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

// checkInputRequired validates an [InputRequired] that a handler returned itself: it must
// have a question or a state, and the client must support all questions.
func checkInputRequired(req *Request, r *InputRequired) (Result, error) {
	if len(r.InputRequests) == 0 && r.RequestState == nil {
		return nil, Errorf(CodeInternalError, "a handler asked for input without a question or a state")
	}
	if err := checkQuestions(req, r.InputRequests); err != nil {
		return nil, err
	}
	asked := *r
	asked.ResultType = ResultInputRequired
	return &asked, nil
}

func checkQuestions(req *Request, questions map[string]InputRequest) error {
	for _, key := range sortedKeys(questions) {
		q := questions[key]
		if err := checkCapability(req, q); err != nil {
			return err
		}
		if q.Params != nil && (!jsonscan.IsObject(q.Params) || jsonscan.Valid(q.Params, 0) != nil) {
			return Errorf(CodeInternalError, "the params of the question %q are not a JSON object", key)
		}
	}
	return nil
}

// checkCapability returns an error if the client did not declare the capability that r
// needs. The error names the capability.
func checkCapability(req *Request, r InputRequest) error {
	caps := req.ClientCapabilities()
	var missing *ClientCapabilities
	switch r.Method {
	case MethodElicit:
		missing = missingForElicit(caps, r.Params)
	case MethodCreateMessage:
		missing = missingForSampling(caps, r.Params)
	case MethodListRoots:
		if caps.Roots == nil {
			missing = &ClientCapabilities{Roots: &RootsCapability{}}
		}
	default:
		return Errorf(CodeInternalError, "a client cannot be asked %q", r.Method)
	}
	if missing != nil {
		return newMissingCapabilityError(missing)
	}
	return nil
}

func missingForElicit(caps *ClientCapabilities, params json.RawMessage) *ClientCapabilities {
	var p struct {
		Mode string `json:"mode"`
	}
	_ = unmarshal(params, &p)
	switch {
	case p.Mode == "url" && !caps.Elicitation.AllowsURL():
		return &ClientCapabilities{Elicitation: &ElicitationCapability{URL: &struct{}{}}}
	case p.Mode != "url" && !caps.Elicitation.AllowsForm():
		return &ClientCapabilities{Elicitation: &ElicitationCapability{Form: &struct{}{}}}
	}
	return nil
}

func missingForSampling(caps *ClientCapabilities, params json.RawMessage) *ClientCapabilities {
	var p struct {
		Tools          json.RawMessage `json:"tools"`
		ToolChoice     json.RawMessage `json:"toolChoice"`
		IncludeContext string          `json:"includeContext"`
	}
	_ = unmarshal(params, &p)
	needTools := p.Tools != nil || p.ToolChoice != nil
	needContext := p.IncludeContext != "" && p.IncludeContext != "none"
	if s := caps.Sampling; s != nil && (!needTools || s.Tools != nil) && (!needContext || s.Context != nil) {
		return nil
	}
	need := &SamplingCapability{}
	if needTools {
		need.Tools = &struct{}{}
	}
	if needContext {
		need.Context = &struct{}{}
	}
	return &ClientCapabilities{Sampling: need}
}

// isRetry reports whether the request carries answers or state.
func (r *Request) isRetry() bool {
	return r.params.inputResponses() != nil || r.params.requestState() != nil
}

// A ServerExtension is a Handler that belongs to an extension of the protocol. A [Mux]
// declares the extensions of the handlers registered on it and on muxes mounted in it,
// except for the method handlers of mounted muxes, which are not reachable through a mount.
type ServerExtension interface {
	Handler
	// Extension returns the identifier of the extension, such as
	// "io.modelcontextprotocol/ui", and its settings, a JSON object; nil means no settings.
	// It is called once, at registration. Settings in [MuxOptions].Capabilities take
	// precedence.
	Extension() (id string, settings json.RawMessage)
}

// An extension is the extension that a handler declares. Its id is "" if the handler
// declares none.
type extension struct {
	id       string
	settings json.RawMessage
}

func extensionOf(h Handler) (x extension) {
	if s, ok := h.(ServerExtension); ok {
		x.id, x.settings = s.Extension()
	}
	if x.settings == nil {
		x.settings = json.RawMessage("{}")
	}
	return x
}

// extensionsOf returns the extensions of the entries of tables.
func extensionsOf(tables ...table) (x Extensions) {
	for _, t := range tables {
		for _, e := range t {
			x.declare(e.extension.id, e.extension.settings)
		}
	}
	return x
}

// declare adds an extension, unless it is already declared or id is "".
func (x *Extensions) declare(id string, settings json.RawMessage) {
	if _, declared := (*x)[id]; declared || id == "" {
		return
	}
	if *x == nil {
		*x = Extensions{}
	}
	(*x)[id] = settings
}

// extensions returns the extensions that can be used through a mount of the mux.
func (g *registry) extensions() Extensions {
	s := g.load()
	x := Extensions{}
	for id, settings := range s.extensions() {
		x.declare(id, settings)
	}
	for _, m := range s.mounts {
		if m.child != nil {
			for id, settings := range m.child.extensions() {
				x.declare(id, settings)
			}
		}
	}
	return x
}
