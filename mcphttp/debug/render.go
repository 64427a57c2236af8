// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-psi/psi/mcp"
)

//go:embed static
var static embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"short": short,
	"clock": func(t time.Time) string { return t.Format("15:04:05") },
	"query": func(pairs ...string) string {
		q := url.Values{}
		for i := 0; i+1 < len(pairs); i += 2 {
			q.Set(pairs[i], pairs[i+1])
		}
		return "?" + q.Encode()
	},
	"line": func(s string) string { return clip(strings.Join(strings.Fields(s), " "), 200) },
}).ParseFS(static, "static/*.html"))

// A layout is the model of the parts common to all views.
type layout struct {
	View     string
	Title    string
	Events   string // names of the events that change the page
	ReadOnly bool
	JSON     string // query of the same view as JSON
	Refresh  bool   // reload the page without a script, because it shows a call in flight
	Model    any
}

// serveView serves one of the views.
func (p *page) serveView(w http.ResponseWriter, r *http.Request, caller *mcp.Principal) {
	name := r.URL.Query().Get("view")
	i := slices.IndexFunc(views, func(v view) bool { return v.name == name })
	if name == "" {
		i = p.firstView(r)
	}
	if i < 0 {
		p.fail(w, r, failure{http.StatusNotFound, "there is no such page"})
		return
	}
	title, model, err := views[i].model(p, r, caller)
	if err != nil && name == "" {
		i = 0 // which shows what is wrong with the server
		title, model, err = views[i].model(p, r, caller)
	}
	if err != nil {
		p.fail(w, r, err)
		return
	}
	if isJSON(r) {
		p.writeJSON(w, http.StatusOK, model)
		return
	}
	run, _ := model.(*runModel)
	p.writePage(w, r, http.StatusOK, views[i].name, &layout{
		View: views[i].name, Title: title, Events: strings.Join(views[i].events, " "), Model: model,
		Refresh: run != nil && !run.IsDone && len(run.Questions) == 0,
	})
}

// firstView returns the index of the view without a name: the overview or, for a connection, which
// has no traffic but that of the page, what the server offers.
func (p *page) firstView(r *http.Request) int {
	if _, isServer := p.handler.(*mcp.Mux); !isServer && len(p.opts.Endpoints) == 0 && !isJSON(r) {
		return slices.IndexFunc(views, func(v view) bool { return v.name == "registered" })
	}
	return 0
}

// isJSON reports whether the client requested JSON.
func isJSON(r *http.Request) bool { return r.URL.Query().Get("format") == "json" }

// fail writes an error response.
func (p *page) fail(w http.ResponseWriter, r *http.Request, err error) {
	status, text := statusOf(err), withCauses(err)
	if f, ok := errors.AsType[failure](err); ok {
		text = f.message
	}
	switch {
	case r.URL.Query().Has("events"), r.URL.Query().Has("static"):
		http.Error(w, text, status)
	case isJSON(r):
		p.writeJSON(w, status, map[string]string{"error": text})
	default:
		p.writePage(w, r, status, "error", &layout{View: "error", Title: http.StatusText(status), Events: "", Model: text})
	}
}

func (p *page) writeJSON(w http.ResponseWriter, status int, v any) {
	raw, err := json.Marshal(v)
	if err == nil && isPlain(raw) {
		raw, err = json.MarshalIndent(v, "", "  ")
	}
	if err != nil {
		p.opts.Logger.Warn("debug: a page could not be encoded", "error", err)
		status, raw = http.StatusInternalServerError, []byte(`{"error":"the page could not be encoded"}`)
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // the client may be gone
}

func (p *page) writePage(w http.ResponseWriter, r *http.Request, status int, name string, l *layout) {
	l.ReadOnly = p.opts.ReadOnly
	q := r.URL.Query()
	q.Set("format", "json")
	l.JSON = "?" + q.Encode()
	var whole bytes.Buffer
	err := templates.ExecuteTemplate(&whole, name+".html", l)
	if err != nil {
		p.opts.Logger.Warn("debug: a page could not be made", "page", name, "error", err)
		http.Error(w, "debug: the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = whole.WriteTo(w) // the client may be gone
}

// files are the script and the style of the page, with their types.
var files = map[string]string{"page.js": "text/javascript; charset=utf-8", "page.css": "text/css; charset=utf-8"}

// serveStatic serves one of the files.
func serveStatic(w http.ResponseWriter, r *http.Request, name string) {
	kind, ok := files[name]
	content, err := static.ReadFile("static/" + name)
	if !ok || err != nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(content) //nolint:gosec // it is embedded; a client that has gone needs none
}
