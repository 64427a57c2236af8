// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/internal/uritemplate"
)

// A mount is a handler that is mounted under a prefix of a mux.
type mount struct {
	prefix     string
	uriPrefix  string       // prefix of its URIs; see [Mux.Mount]
	pagePrefix string       // prefix of the URIs of its pages
	handler    Handler      // as passed to Mount, without its middleware
	serve      Handler      // handler wrapped in the middleware of the view
	around     []Middleware // see stacked
	site       string
	parent     *registry
	hadTasks   atomic.Bool // see passesTasks

	mu        sync.Mutex
	warned    map[[sha256.Size]byte]struct{} // hashes of the problems in its lists that have been logged
	late      map[Change]latePart            // by list
	unmounted bool
}

func newMount(prefix string, h Handler, site string, m *Mux) *mount {
	h, around := unwrap(h)
	mt := &mount{
		prefix: prefix, uriPrefix: "mount:" + prefix + ":", pagePrefix: pagePrefixOf(prefix),
		handler: h, site: site, parent: m.registry, late: map[Change]latePart{},
	}
	s := stack(mountSealer{mt}, slices.Concat(m.around(), around))
	mt.serve, mt.around = s.Handler, s.around
	return mt
}

// isMountPrefix reports whether all model providers accept the prefix in tool names.
func isMountPrefix(prefix string) bool {
	return prefix != "" && len(prefix) <= 64 && strings.Trim(prefix, alphanumeric+"_-") == ""
}

// Mount serves another Mux, or any Handler that acts as a server, such as a [Conn] or an
// [Upstream], under a prefix. The prefix includes the separator: with "github_", the tool
// "search" becomes "github_search". Prompts are renamed in the same way. The URI "notes://a"
// becomes "mount:github_:notes://a", also in the results of tools and prompts, except for
// URIs that clients fetch from the web directly. The page "ui://seats" of MCP Apps becomes
// "ui://mount/github_/seats", also in the metadata of the tools that use the page. Custom
// methods are not mounted.
//
// Mounts are disjoint: Mount panics if one prefix begins with another. All URIs that begin
// with "mount:github_:" belong to the mount. The mux itself may have tools and prompts whose
// names begin with the prefix; they take precedence over those of the mount.
//
// Every listed item can be called. An item of a mounted server is omitted from the list if a
// call would not reach it, or if clients could not read it, for example a tool whose input
// schema does not describe an object. A schema that only lacks its type is completed. Each
// such item is logged once.
//
// For lists and subscriptions, all mounted handlers are called concurrently. Handlers that do
// not respond within [MuxOptions].MountTimeout are omitted.
//
// The middleware of the mux wraps the middleware of the mounted handler. The mux announces
// list changes and resource updates of the mounted handler.
func (m *Mux) Mount(prefix string, h Handler) { must(m.mount(prefix, h)) }

func (m *Mux) mount(prefix string, h Handler) error {
	m.mustBeMade()
	site := callSite()
	if isNilHandler(h) {
		return registrationErrorf("mount %q at %s: the handler is nil", prefix, site)
	}
	if !isMountPrefix(prefix) {
		return registrationErrorf("mount %q at %s: a prefix must have 1 to 64 letters, digits, _ and -, as the names of tools must", prefix, site)
	}
	mt := newMount(prefix, h, site, m)
	return m.edit(mt.attach)
}

// attach adds the mount to its parent; see [Mux.edit].
func (mt *mount) attach(a *announcement) (undo func(), err error) {
	if err := mt.checkDisjoint(); err != nil {
		return nil, err
	}
	if child, ok := mt.handler.(*Mux); ok {
		if err := mt.adopt(child.registry); err != nil {
			return nil, err
		}
	}
	mt.parent.mounts[mt.prefix] = mt
	a.remount()
	return func() { mt.remove() }, nil
}

// Unmount removes the handler mounted under prefix, if any.
func (m *Mux) Unmount(prefix string) {
	m.mustBeMade()
	must(m.edit(func(a *announcement) (undo func(), err error) {
		mt := m.mounts[prefix]
		if mt == nil {
			return func() {}, nil
		}
		mt.remove()
		a.remount()
		a.finally = append(a.finally, mt.stopWaiting)
		return mt.restore, nil
	}))
}

// remove detaches the mount from its parent. restore attaches it again.
func (mt *mount) remove() {
	delete(mt.parent.mounts, mt.prefix)
	if child, ok := mt.handler.(*Mux); ok {
		child.disown(mt)
	}
}

func (mt *mount) restore() {
	mt.parent.mounts[mt.prefix] = mt
	if child, ok := mt.handler.(*Mux); ok {
		child.parents = append(child.parents, mt)
	}
}

// checkDisjoint returns an error if a name could belong to the mount and to another mount or
// a resource.
func (mt *mount) checkDisjoint() error {
	for _, other := range mt.parent.mounts {
		switch {
		case other.prefix == mt.prefix:
			return registrationErrorf("mount %q at %s: something is mounted there at %s already", mt.prefix, mt.site, other.site)
		case strings.HasPrefix(other.prefix, mt.prefix), strings.HasPrefix(mt.prefix, other.prefix):
			return registrationErrorf("mount %q at %s: %q is mounted at %s, and names could belong to both; choose prefixes of which none begins with another",
				mt.prefix, mt.site, other.prefix, other.site)
		}
	}
	for _, entries := range mt.parent.tables("resource") {
		for _, e := range entries {
			if err := mt.checkNotIn(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkNotIn returns an error if e is a resource of the mux itself whose URI belongs to the
// mount.
func (mt *mount) checkNotIn(e *entry) error {
	for _, prefix := range []string{mt.uriPrefix, mt.pagePrefix} {
		if e.kind == "resource" && strings.HasPrefix(e.key, prefix) {
			return registrationErrorf("resource %q registered at %s: URIs that begin with %q belong to the mount at %s", e.name, e.site, prefix, mt.site)
		}
	}
	return nil
}

// adopt checks every name in the child against the names in the muxes above it. It links the
// child to its parent, so that later registrations are checked as well.
func (mt *mount) adopt(child *registry) (err error) {
	if child.contains(mt.parent) {
		return registrationErrorf("mount %q at %s: the mux would contain itself", mt.prefix, mt.site)
	}
	child.eachEntry(func(kind, name string, e *entry) {
		if full, ok := mt.outerName(kind, name); ok && err == nil {
			err = mt.parent.checkFreeFor(full, e, mt)
		}
	})
	if err == nil {
		child.parents = append(child.parents, mt)
	}
	return err
}

func (g *registry) disown(mt *mount) {
	for i, p := range g.parents {
		if p == mt {
			g.parents = append(g.parents[:i:i], g.parents[i+1:]...)
			return
		}
	}
}

func (g *registry) contains(other *registry) bool {
	if g == other {
		return true
	}
	for _, m := range g.mounts {
		if child, ok := m.handler.(*Mux); ok && child.contains(other) {
			return true
		}
	}
	return false
}

// eachEntry calls fn for all names in the mux and in the muxes mounted in it.
func (g *registry) eachEntry(fn func(kind, name string, e *entry)) {
	for _, entries := range []map[string]*entry{g.tools, g.prompts, g.resources, g.templates} {
		for name, e := range entries {
			fn(e.kind, name, e)
		}
	}
	for _, m := range g.mounts {
		if child, ok := m.handler.(*Mux); ok {
			child.eachEntry(func(kind, name string, e *entry) {
				if full, ok := m.outerName(kind, name); ok {
					fn(kind, full, e)
				}
			})
		}
	}
}

// outerName returns the name or key outside the mount. Methods have none.
func (mt *mount) outerName(kind, name string) (string, bool) {
	if kind == "method" {
		return "", false
	}
	if kind == "resource" {
		return mt.outerURI(name), true
	}
	return mt.prefix + name, true
}

// innerName returns the name inside the mount, if name belongs to the mount. A URI must be in
// normal form.
func (mt *mount) innerName(kind, name string) (string, bool) {
	if kind == "method" {
		return "", false
	}
	if kind == "resource" {
		return mt.innerURI(name)
	}
	return strings.CutPrefix(name, mt.prefix)
}

// outer returns the name outside the mount of a tool, prompt or resource, depending on the
// method.
func (mt *mount) outer(method, name string) string {
	switch method {
	case MethodCallTool, MethodGetPrompt:
		return mt.prefix + name
	case MethodReadResource:
		return mt.outerURI(name)
	}
	return name
}

// mountOf returns the mount that a name belongs to, or nil. There is at most one.
func (s *snapshot) mountOf(kind, name string) *mount {
	for _, m := range s.mounts {
		if _, ok := m.innerName(kind, name); ok {
			return m
		}
	}
	return nil
}

// serveNamed serves a request under its inner name.
func (mt *mount) serveNamed(ctx context.Context, req *Request, kind string) (Result, error) {
	name, _ := mt.innerName(kind, req.Name())
	if kind == "resource" {
		if name = mt.innerSpelling(req.spelling(req.Name())); name == "" {
			return nil, NewResourceNotFoundError(req.Name())
		}
	}
	inner := req.withName(name)
	inner.mounts += mt.prefix + "/"
	inner.outer = req
	res, err := mt.serve.ServeMCP(contextWithRequest(ctx, inner), inner)
	if err != nil {
		return nil, outerError(err, kind, name, req.Name())
	}
	if res != nil && res.base().ResultType == tasking.ResultTask {
		return res, nil // sealed already, or a task of the mux itself
	}
	return mt.renameResult(res), nil
}

// outerError returns the error of a mounted handler, with the outer name if the error is
// about an unknown name.
func outerError(err error, kind, inner, outer string) error {
	if kind == "resource" && isResourceNotFound(err) {
		return NewResourceNotFoundError(outer)
	}
	e, ok := errors.AsType[*Error](err)
	if unknown := NewUnknownNameError(kind, inner); ok && e.Code == unknown.Code && e.Message == unknown.Message {
		return NewUnknownNameError(kind, outer)
	}
	return err
}

// The methods below rename the results of a mounted server. Results are shared with that
// server, so they are copied and never modified. The lists are in mount_items.go.

// renameResult returns a copy of a result with outer URIs and without the identity of the
// mounted server: the caller's server is the outermost mux, in every era.
func (mt *mount) renameResult(res Result) Result {
	switch r := res.(type) {
	case *CallToolResult:
		c := *r
		c.Meta = withoutKey(r.Meta, MetaServerInfo)
		c.Content = mt.renameContents(r.Content)
		return &c
	case *GetPromptResult:
		c := *r
		c.Meta = withoutKey(r.Meta, MetaServerInfo)
		c.Messages = mt.renameMessages(r.Messages)
		return &c
	case *ReadResourceResult:
		c := *r
		c.Meta = withoutKey(r.Meta, MetaServerInfo)
		c.Contents = make([]*ResourceContents, len(r.Contents))
		for i, part := range r.Contents {
			c.Contents[i] = mt.renamePart(part)
		}
		return &c
	case *CompleteResult:
		c := *r
		c.Meta = withoutKey(r.Meta, MetaServerInfo)
		return &c
	case *InputRequired:
		c := *r
		c.Meta = withoutKey(r.Meta, MetaServerInfo)
		return &c
	case *EmptyResult: // result of an extension
		c := *r
		c.Meta = withoutKey(r.Meta, MetaServerInfo)
		return &c
	}
	return res
}

func (mt *mount) renameMessages(messages []*PromptMessage) []*PromptMessage {
	renamed := make([]*PromptMessage, len(messages))
	for i, m := range messages {
		if m != nil {
			c := *m
			c.Content = mt.renameContent(m.Content)
			renamed[i] = &c
		}
	}
	return renamed
}

func (mt *mount) renameContents(list Contents) Contents {
	renamed := make(Contents, len(list))
	for i, c := range list {
		renamed[i] = mt.renameContent(c)
	}
	return renamed
}

func (mt *mount) renameContent(c Content) Content {
	switch c := c.(type) {
	case *ResourceLink:
		if fromTheWeb(c.URI) {
			return c
		}
		link := *c
		link.URI = mt.outerURI(c.URI)
		return &link
	case *EmbeddedResource:
		embedded := *c
		embedded.Resource = mt.renamePart(c.Resource)
		return &embedded
	}
	return c
}

func (mt *mount) renamePart(part *ResourceContents) *ResourceContents {
	if part == nil {
		return nil
	}
	c := *part
	c.URI = mt.outerURI(part.URI)
	return &c
}

// fromTheWeb reports whether clients fetch the URI directly (server/resources).
func fromTheWeb(uri string) bool {
	return strings.HasPrefix(uri, "https://") || strings.HasPrefix(uri, "http://")
}

// An outer URI contains the inner URI byte for byte, so that removing the prefix is exact. The
// URI of a page of MCP Apps must begin with ui://, or hosts reject it, so the prefix follows
// the scheme.
//
// Whether a URI belongs to a mount is decided by its normal form, as seen by middleware. The
// mounted server receives the spelling of the caller, because it may compare URIs byte for
// byte with those that it has listed.

// pageScheme is the prefix of the URIs of MCP Apps pages.
const pageScheme = "ui://"

// pagePrefixOf returns the prefix of the URIs of a mount's pages.
func pagePrefixOf(prefix string) string { return pageScheme + "mount/" + prefix + "/" }

// outerURI returns the URI outside the mount.
func (mt *mount) outerURI(uri string) string {
	if page, ok := strings.CutPrefix(uri, pageScheme); ok {
		return mt.pagePrefix + page
	}
	return mt.uriPrefix + uri
}

// innerURI returns the URI inside the mount, if uri belongs to the mount. It returns "" if uri
// belongs to the mount but is not the outer URI of anything, such as a page with uriPrefix.
func (mt *mount) innerURI(uri string) (string, bool) {
	if page, ok := strings.CutPrefix(uri, mt.pagePrefix); ok {
		return pageScheme + page, true
	}
	inner, ok := strings.CutPrefix(uri, mt.uriPrefix)
	if strings.HasPrefix(inner, pageScheme) {
		inner = ""
	}
	return inner, ok
}

// innerSpelling returns the URI inside the mount for an outer URI that is not necessarily in
// normal form, or "" if there is none. The inner URI is spelled as in uri.
func (mt *mount) innerSpelling(uri string) string {
	form := uritemplate.Normal(uri)
	inner, ok := mt.innerURI(form)
	switch {
	case !ok, inner == "", form == uri:
		return inner
	case strings.HasPrefix(form, mt.pagePrefix):
		return pageScheme + uri[len(mt.pagePrefix):] // the prefix is as long in any spelling
	}
	return uri[len(mt.uriPrefix):]
}

// The keys in the _meta of tools that contain the URI of a page (MCP Apps). metaPage is
// deprecated.
const (
	metaUI   = "ui"
	metaPage = "ui/resourceUri"
)

// outerToolMeta returns the _meta of a tool with the outer URI of its page. Malformed values
// are left unchanged for clients to reject.
func (mt *mount) outerToolMeta(meta Meta) Meta {
	ui, flat := mt.outerUI(meta[metaUI]), mt.outerPage(meta[metaPage])
	if ui == nil && flat == nil {
		return meta
	}
	meta = maps.Clone(meta)
	if ui != nil {
		meta[metaUI] = ui
	}
	if flat != nil {
		meta[metaPage] = flat
	}
	return meta
}

// outerUI returns the member ui of a tool's _meta with the outer URI of its page, or nil if it
// has no page.
func (mt *mount) outerUI(raw json.RawMessage) json.RawMessage {
	var ui map[string]json.RawMessage
	if raw == nil || unmarshal(raw, &ui) != nil {
		return nil
	}
	page := mt.outerPage(ui["resourceUri"])
	if page == nil {
		return nil
	}
	ui["resourceUri"] = page
	return mustMarshal(ui)
}

// outerPage returns the outer URI of a page, as JSON, or nil if raw is not a string.
func (mt *mount) outerPage(raw json.RawMessage) json.RawMessage {
	var uri string
	if raw == nil || unmarshal(raw, &uri) != nil {
		return nil
	}
	return mustMarshal(mt.outerURI(uri))
}
