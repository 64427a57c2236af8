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

// scheme begins the URIs of pages.
const scheme = "ui://"

// The members of _meta.
const (
	metaUI     = "ui"
	metaPage   = "ui/resourceUri"           // of tools; deprecated
	metaDigest = "com.github.go-psi/digest" // of pages
)

// Visibility says who can use a tool.
type Visibility string

// The visibilities. A tool without any is for both.
const (
	ForModel Visibility = "model"
	ForApp   Visibility = "app"
)

// ToolMeta is what the description of a tool says about its page: the member ui of _meta.
type ToolMeta struct {
	ResourceURI string       `json:"resourceUri,omitempty"` // of the page; "" means that there is none
	Visibility  []Visibility `json:"visibility,omitempty"`  // nil means both
	Extra       mcp.Extra    `json:",embed"`
}

// IsFor reports whether the tool is visible to v. Every tool without ToolMeta is for the model
// and for apps.
func (m *ToolMeta) IsFor(v Visibility) bool {
	return m == nil || m.Visibility == nil || slices.Contains(m.Visibility, v)
}

// check returns what is wrong with the metadata.
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

// Tool returns a copy of t, with nil for the zero Tool, that is shown with a page. Page is the
// URI under which the page is registered, or "" for a tool without a page of its own that has
// a visibility. Without a visibility the tool is for the model and for apps. The content of
// the tool's result must make sense without the page: models read it, and so do clients that
// show no pages.
//
// Tool panics if the page is not a URI that begins with ui://.
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

// FlatKey returns a copy of t, which [Tool] has made, that names its page also under the key
// "ui/resourceUri" of _meta. The key is deprecated; some hosts read no other.
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

// MetaOf returns what the description of a tool says about its page and its visibility, nil if
// it says nothing. It returns an error if that is malformed; such a tool must not be used.
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

// PageMeta is what a page needs of its host: the member ui of the _meta of its resource.
type PageMeta struct {
	CSP         *CSP         `json:"csp,omitzero"` // nil means that the page loads nothing and connects to nothing
	Permissions *Permissions `json:"permissions,omitzero"`
	// Domain asks for an origin of its own. What it is depends on the host.
	Domain string `json:"domain,omitempty"`
	// PrefersBorder asks for a border, or for none. Nil leaves it to the host.
	PrefersBorder *bool     `json:"prefersBorder,omitzero"`
	Extra         mcp.Extra `json:",embed"`
}

// A CSP lists the origins that a page uses, such as "https://cdn.example" or
// "https://*.example".
type CSP struct {
	ConnectDomains  []string  `json:"connectDomains,omitempty"`  // of requests and web sockets
	ResourceDomains []string  `json:"resourceDomains,omitempty"` // of scripts, styles, images, fonts and media
	FrameDomains    []string  `json:"frameDomains,omitempty"`    // of frames
	BaseURIDomains  []string  `json:"baseUriDomains,omitempty"`  // of a base element
	Extra           mcp.Extra `json:",embed"`
}

// Permissions are what a page asks for. A host need not grant them.
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

// clientSettings are what clients declare.
var clientSettings = json.RawMessage(`{"mimeTypes":["` + MIMEType + `"]}`)

// supports reports whether a client shows pages.
func supports(caps *mcp.ClientCapabilities) bool {
	raw, ok := caps.Extensions[Extension]
	var settings struct {
		MIMETypes []string `json:"mimeTypes"`
	}
	return ok && strictjson.Unmarshal(raw, &settings) == nil && slices.Contains(settings.MIMETypes, MIMEType)
}
