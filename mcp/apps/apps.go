// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package apps

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

// Extension is the identifier of the extension, which servers and clients declare.
const Extension = "io.modelcontextprotocol/ui"

// MIMEType is the MIME type of pages.
const MIMEType = "text/html;profile=mcp-app"

// Version is the revision of the protocol between a page and its host.
const Version = "2026-01-26"

// scheme is the beginning of the URIs of pages.
const scheme = "ui://"

// The members of _meta.
const (
	metaUI     = "ui"
	metaPage   = "ui/resourceUri"           // of tools; deprecated
	metaDigest = "com.github.go-psi/digest" // of pages
)

// A Visibility is a side that can use a tool.
type Visibility string

// The visibilities. A tool without a visibility is for both.
const (
	ForModel Visibility = "model"
	ForApp   Visibility = "app"
)

// ToolMeta is the metadata of a tool about its page: the member ui of its _meta.
type ToolMeta struct {
	ResourceURI string       `json:"resourceUri,omitempty"` // of the page; "" means that there is none
	Visibility  []Visibility `json:"visibility,omitempty"`  // nil means both
	Extra       mcp.Extra    `json:",inline,embed"`
}

// IsFor reports whether the tool is visible to v. A tool without ToolMeta, whose m is nil,
// is for the model and for apps.
func (m *ToolMeta) IsFor(v Visibility) bool {
	return m == nil || m.Visibility == nil || slices.Contains(m.Visibility, v)
}

// check returns an error if the metadata is invalid.
func (m *ToolMeta) check() error {
	if m.ResourceURI != "" && !isPageURI(m.ResourceURI) {
		return fmt.Errorf("the page %.200q is not a URI such as ui://airline/seats", m.ResourceURI)
	}
	for _, v := range m.Visibility {
		if v != ForModel && v != ForApp {
			return fmt.Errorf("the visibility %.80q is neither %q nor %q", v, ForModel, ForApp)
		}
	}
	return nil
}

func isPageURI(uri string) bool {
	rest, ok := strings.CutPrefix(uri, scheme)
	return ok && rest != ""
}

// Tool returns a copy of t that is shown with a page. If t is nil, the zero Tool is copied.
// page is the URI under which the page is registered, or "" for a tool that has a
// visibility but no page. If no visibility is given, the tool is for the model and for
// apps. The content of the tool's result must make sense without the page, because it is
// read by models and by clients that show no pages.
//
// Tool panics if page is not a URI that begins with ui://, if a visibility is invalid, or
// if neither a page nor a visibility is given.
func Tool(t *mcp.Tool, page string, visibility ...Visibility) *mcp.Tool {
	m := &ToolMeta{ResourceURI: page, Visibility: visibility}
	err := m.check()
	if page == "" && len(visibility) == 0 {
		err = errors.New("it names neither a page nor a visibility")
	}
	if err != nil {
		panic(fmt.Sprintf("apps.Tool: %v", err))
	}
	c := mcp.Tool{}
	if t != nil {
		c = *t
	}
	c.Meta = maps.Clone(c.Meta)
	c.Meta.Set(metaUI, m)
	return &c
}

// FlatKey returns a copy of t, which must be a result of [Tool], that also names its page
// under the deprecated key "ui/resourceUri" of _meta. Some hosts read only this key.
// FlatKey panics if t names no page.
func FlatKey(t *mcp.Tool) *mcp.Tool {
	m, err := MetaOf(t)
	if err != nil || m == nil || m.ResourceURI == "" {
		panic("apps.FlatKey: the tool names no page: use Tool first")
	}
	c := *t
	c.Meta = maps.Clone(t.Meta)
	c.Meta.Set(metaPage, m.ResourceURI)
	return &c
}

// MetaOf returns the metadata of a tool about its page and its visibility, or nil if there
// is none. It returns an error if the metadata is malformed; such a tool must not be used.
func MetaOf(t *mcp.Tool) (*ToolMeta, error) {
	if t == nil {
		return nil, nil
	}
	raw, nested := t.Meta[metaUI]
	flat, old := t.Meta[metaPage]
	if !nested && !old {
		return nil, nil
	}
	m := new(ToolMeta)
	if nested {
		if err := strictjson.Unmarshal(raw, m); err != nil {
			return nil, fmt.Errorf("apps: the tool %.200q: its _meta.ui: %w", t.Name, err)
		}
	}
	if old && m.ResourceURI == "" {
		if err := strictjson.Unmarshal(flat, &m.ResourceURI); err != nil {
			return nil, fmt.Errorf("apps: the tool %.200q: its _meta[%q]: %w", t.Name, metaPage, err)
		}
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("apps: the tool %.200q: %w", t.Name, err)
	}
	return m, nil
}

// PageMeta is what a page needs from its host: the member ui of the _meta of its resource.
type PageMeta struct {
	CSP         *CSP         `json:"csp,omitzero"` // nil means that the page loads nothing and connects to nothing
	Permissions *Permissions `json:"permissions,omitzero"`
	// Domain requests a separate origin for the page. Its format depends on the host.
	Domain string `json:"domain,omitempty"`
	// PrefersBorder requests a border, or no border. Nil leaves the choice to the host.
	PrefersBorder *bool     `json:"prefersBorder,omitzero"`
	Extra         mcp.Extra `json:",inline,embed"`
}

// A CSP lists the origins that a page uses, such as "https://cdn.example" or
// "https://*.example".
type CSP struct {
	ConnectDomains  []string  `json:"connectDomains,omitempty"`  // for requests and WebSockets
	ResourceDomains []string  `json:"resourceDomains,omitempty"` // for scripts, styles, images, fonts and media
	FrameDomains    []string  `json:"frameDomains,omitempty"`    // for frames
	BaseURIDomains  []string  `json:"baseUriDomains,omitempty"`  // for the base element
	Extra           mcp.Extra `json:",inline,embed"`
}

// Permissions are the permissions that a page requests. A host need not grant them.
type Permissions struct {
	Camera, Microphone, Geolocation, ClipboardWrite bool
}

type wirePermissions struct {
	Camera         *struct{} `json:"camera,omitzero"`
	Microphone     *struct{} `json:"microphone,omitzero"`
	Geolocation    *struct{} `json:"geolocation,omitzero"`
	ClipboardWrite *struct{} `json:"clipboardWrite,omitzero"`
}

// MarshalJSON implements json.Marshaler.
func (p Permissions) MarshalJSON() ([]byte, error) {
	asked := func(b bool) *struct{} {
		if b {
			return &struct{}{}
		}
		return nil
	}
	return strictjson.Marshal(&wirePermissions{asked(p.Camera), asked(p.Microphone), asked(p.Geolocation), asked(p.ClipboardWrite)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Permissions) UnmarshalJSON(data []byte) error {
	var w wirePermissions
	if err := strictjson.Unmarshal(data, &w); err != nil {
		return err
	}
	*p = Permissions{w.Camera != nil, w.Microphone != nil, w.Geolocation != nil, w.ClipboardWrite != nil}
	return nil
}

// clientSettings are the settings of the extension that clients declare.
var clientSettings = json.RawMessage(`{"mimeTypes":["` + MIMEType + `"]}`)

// supports reports whether a client shows pages.
func supports(caps *mcp.ClientCapabilities) bool {
	raw, ok := caps.Extensions[Extension]
	var settings struct {
		MIMETypes []string `json:"mimeTypes"`
	}
	return ok && strictjson.Unmarshal(raw, &settings) == nil && slices.Contains(settings.MIMETypes, MIMEType)
}
