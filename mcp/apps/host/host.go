// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package host

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"

	"github.com/go-chi/chi/v5"

	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/internal/sparse"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
)

// Options configure [New]. Nil means the zero Options.
type Options struct {
	// Name and Version identify the host to pages. An empty Name means "psi".
	Name, Version string
	// Message is called when a page adds a user message to the conversation. Returning an
	// error declines the message. Nil declines all messages.
	Message func(ctx context.Context, tool string, content mcp.Contents) error
	// ModelContext is called with the context that a page provides for the model. It
	// replaces the previous context of the same view. Nil ignores it.
	ModelContext func(ctx context.Context, view string, c *ModelContext) error
	// Log is called with log messages of pages. If it is nil, the beginning of each is logged
	// to Logger, less and less often if there are many.
	Log func(ctx context.Context, tool string, p *mcp.LoggingMessageParams)
	// AllowedHosts lists the host names, without ports, under which the handler can be
	// reached, in addition to localhost and loopback addresses.
	AllowedHosts []string
	// Logger receives diagnostic messages. Nil means slog.Default.
	Logger *slog.Logger
}

// ModelContext is the context that a page provides for the model.
type ModelContext struct {
	Content           mcp.Contents    `json:"content,omitempty"`
	StructuredContent json.RawMessage `json:"structuredContent,omitzero"`
}

// A Host shows the apps of a connection. It is an [http.Handler] for the root of an origin.
// It must be created by [New] and is safe for concurrent use.
type Host struct {
	http.Handler

	conn    *mcp.Conn
	send    mcp.Handler // sends requests as the model or as the app
	sandbox string
	opts    Options
	views   views
	logged  sparse.Counter // log messages of pages
}

// ServeHTTP implements [http.Handler].
func (h *Host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	made.Check(h != nil && h.Handler != nil, "host: a Host", "New")
	h.Handler.ServeHTTP(w, r)
}

//go:embed static
var static embed.FS

var pages = template.Must(template.ParseFS(static, "static/*.html"))

// New returns a host for the server of a connection. sandbox is the origin at which [Sandbox]
// is served, as the browser sees it, such as "http://127.0.0.1:8081". It must differ from the
// origin of the host; New returns an error if it is not an origin. The client of the connection
// should have the extension [apps.Client]; otherwise servers may hide their apps.
func New(conn *mcp.Conn, sandbox string, opts *Options) (*Host, error) {
	u, err := url.Parse(sandbox)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		return nil, fmt.Errorf("host: the sandbox %q is not an origin such as http://127.0.0.1:8081", sandbox)
	}
	h := &Host{conn: conn, sandbox: u.Scheme + "://" + u.Host}
	if opts != nil {
		h.opts = *opts
	}
	h.opts.Name = cmp.Or(h.opts.Name, "psi")
	h.opts.Version = cmp.Or(h.opts.Version, "v0.0.0")
	if h.opts.Logger == nil {
		h.opts.Logger = slog.Default()
	}
	h.send = apps.Client().Middleware(conn)(conn)
	h.Handler = h.routes()
	return h, nil
}

func (h *Host) routes() http.Handler {
	r := chi.NewRouter()
	r.Use(h.guard)
	r.Get("/", h.index)
	r.Post("/show", h.show)
	r.Post("/views/{view}/call", h.call)
	r.Post("/views/{view}/request", h.request)
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, name := range []string{"host.js", "host.css"} {
		r.Get("/"+name, func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, files, name) })
	}
	return r
}

// guard rejects requests that other sites make a browser send. Such requests carry the
// origin of the site, or are sent to one of the site's host names that resolves to this
// machine.
func (h *Host) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			name = r.Host
		}
		switch {
		case !network.IsLoopback(trimBrackets(name)) && !slices.Contains(h.opts.AllowedHosts, name):
			http.Error(w, fmt.Sprintf("host: requests to %q are refused; see Options.AllowedHosts", name), http.StatusForbidden)
		case !isAdmitted(r), !sameOrigin(r):
			http.Error(w, "host: requests from other sites are refused", http.StatusForbidden)
		default:
			w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src "+h.sandbox+
				"; frame-ancestors 'none'; base-uri 'none'; form-action 'self'")
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("Referrer-Policy", "same-origin") // with no-referrer, the origin of forms would be null
			w.Header().Set("Cache-Control", "no-store")
			next.ServeHTTP(w, r)
		}
	})
}

// isAdmitted reports whether a browser sent r for a page of the host, for the user, or
// because of a link to the list of apps. The link may be on a page on another port of the
// same machine, such as a page of package mcphttp/debug. The list calls no tool until the
// user requests it.
func isAdmitted(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	case "same-site":
		return r.Method == http.MethodGet && r.URL.Path == "/" &&
			r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	}
	return false
}

func trimBrackets(host string) string {
	if len(host) > 2 && host[0] == '[' && host[len(host)-1] == ']' {
		return host[1 : len(host)-1]
	}
	return host
}

// sameOrigin reports whether the Origin header, if present, names the host of the request.
func sameOrigin(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	u, err := url.Parse(origin)
	return origin == "" || err == nil && u.Host == r.Host
}

// An item is a tool with a page.
type item struct {
	*mcp.Tool

	Meta      *apps.ToolMeta
	Arguments string
}

// index lists the tools for the model that have pages. The parameter tool selects a single
// tool, and the parameter arguments fills in its form. Both may come from a hostile link,
// so nothing is called before the user has seen them.
func (h *Host) index(w http.ResponseWriter, r *http.Request) {
	if name := r.FormValue("tool"); name != "" {
		tool, meta, err := h.find(r.Context(), name)
		if err != nil {
			h.fail(w, http.StatusNotFound, err)
			return
		}
		h.page(w, "index.html", []item{{tool, meta, cmp.Or(r.FormValue("arguments"), "{}")}})
		return
	}
	var items []item
	for tool, err := range h.tools(r.Context()) {
		if err != nil {
			h.fail(w, http.StatusBadGateway, err)
			return
		}
		if m, err := apps.MetaOf(tool); err == nil && m != nil && m.ResourceURI != "" {
			items = append(items, item{tool, m, "{}"})
		}
	}
	h.page(w, "index.html", items)
}

// tools yields the tools for the model.
func (h *Host) tools(ctx context.Context) func(func(*mcp.Tool, error) bool) {
	return func(yield func(*mcp.Tool, error) bool) {
		for tool, err := range h.conn.Tools(ctx, nil) {
			if err == nil {
				if m, err := apps.MetaOf(tool); err != nil || !m.IsFor(apps.ForModel) {
					continue
				}
			}
			if !yield(tool, err) {
				return
			}
		}
	}
}

// A config is passed to the script of a view.
type config struct {
	View         string             `json:"view"`
	Sandbox      string             `json:"sandbox"`
	Tool         *mcp.Tool          `json:"tool"`
	Arguments    json.RawMessage    `json:"arguments"`
	HTML         string             `json:"html"`
	CSP          *apps.CSP          `json:"csp"`
	Permissions  apps.Permissions   `json:"permissions"`
	Allow        string             `json:"allow"`
	Border       bool               `json:"border"`
	Host         mcp.Implementation `json:"host"`
	Capabilities map[string]any     `json:"capabilities"`
}

// show shows a tool and its page. The script of the page calls the tool. Therefore a link
// must not lead here: over plain HTTP, browsers do not report which site it is from.
func (h *Host) show(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
	if err := r.ParseForm(); err != nil {
		h.fail(w, http.StatusBadRequest, fmt.Errorf("the form cannot be read: %w", err))
		return
	}
	name, arguments := r.PostForm.Get("tool"), json.RawMessage(cmp.Or(r.PostForm.Get("arguments"), "{}"))
	var object map[string]json.RawMessage
	if err := json.Unmarshal(arguments, &object); err != nil || object == nil {
		h.fail(w, http.StatusBadRequest, errors.New("the arguments are not a JSON object"))
		return
	}
	tool, meta, err := h.find(r.Context(), name)
	if err != nil {
		h.fail(w, http.StatusNotFound, err)
		return
	}
	page, err := apps.Read(r.Context(), h.conn, meta.ResourceURI)
	if err != nil {
		h.fail(w, http.StatusBadGateway, err)
		return
	}
	if len(page.Warnings) > 0 {
		h.opts.Logger.WarnContext(r.Context(), "apps/host: parts of the metadata of a page are left out", "page", page.URI, "problems", page.Warnings)
	}
	v := h.views.open(name, arguments)
	c := &config{
		View: v.id, Sandbox: h.sandbox, Tool: tool, Arguments: arguments, HTML: page.HTML, CSP: page.Meta.CSP,
		Allow: page.Meta.Permissions.Allow(), Border: page.Meta.PrefersBorder == nil || *page.Meta.PrefersBorder,
		Host: mcp.Implementation{Name: h.opts.Name, Version: h.opts.Version}, Capabilities: h.capabilities(),
	}
	if page.Meta.Permissions != nil {
		c.Permissions = *page.Meta.Permissions
	}
	raw, err := json.Marshal(c)
	if err != nil {
		h.fail(w, http.StatusInternalServerError, err)
		return
	}
	h.page(w, "view.html", map[string]any{"Title": cmp.Or(tool.Title, tool.Name), "Config": json.RawMessage(raw)})
}

// capabilities returns the capabilities of the host that are declared to pages.
func (h *Host) capabilities() map[string]any {
	none := struct{}{}
	caps := map[string]any{
		"openLinks": none, "serverTools": none, "serverResources": none, "logging": none,
		"updateModelContext": map[string]any{"text": none, "structuredContent": none},
	}
	if h.opts.Message != nil {
		caps["message"] = map[string]any{"text": none}
	}
	return caps
}

// find returns a tool for the model that has a page.
func (h *Host) find(ctx context.Context, name string) (*mcp.Tool, *apps.ToolMeta, error) {
	for tool, err := range h.tools(ctx) {
		if err != nil {
			return nil, nil, err
		}
		if tool.Name != name {
			continue
		}
		if m, err := apps.MetaOf(tool); err == nil && m != nil && m.ResourceURI != "" {
			return tool, m, nil
		}
		return nil, nil, fmt.Errorf("the tool %q has no page", name)
	}
	return nil, nil, fmt.Errorf("there is no tool %q for the model", name)
}

func (h *Host) page(w http.ResponseWriter, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err := pages.ExecuteTemplate(w, name, data); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		h.opts.Logger.Warn("host: a page could not be written", "page", name, "error", err)
	}
}

func (h *Host) fail(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	h.page(w, "error.html", err.Error())
}
