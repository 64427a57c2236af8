// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package browser_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
	"github.com/go-psi/psi/mcp/apps/host"
)

// ctx is the context of a tab.
type ctx = context.Context

// officialHost serves a page that uses the official library for hosts.
func (s *server) officialHost(t *testing.T) string {
	t.Helper()
	conn := s.connect(t)
	script := bundle(t, "host.js")
	sandbox := serve(t, host.Sandbox())
	document, err := apps.Read(t.Context(), conn, uri)
	if err != nil {
		t.Fatal(err)
	}
	var tool *mcp.Tool
	for each, err := range conn.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		if each.Name == "seat_map" {
			tool = each
		}
	}
	config := jsonOf(t, map[string]any{"sandbox": sandbox, "html": document.HTML, "tool": tool, "arguments": map[string]string{"flight": "PS 12"}})
	routes := http.NewServeMux()
	write := func(text, kind string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, text)
		}
	}
	routes.HandleFunc("/{$}", write("<!doctype html><body><script type=module src=/host.js></script></body>", "text/html"))
	routes.HandleFunc("/host.js", write(script, "text/javascript"))
	routes.HandleFunc("/config", write(config, "application/json"))
	routes.HandleFunc("/log", func(_ http.ResponseWriter, r *http.Request) {
		var in report
		if json.NewDecoder(r.Body).Decode(&in) == nil {
			s.add(report{"official-" + in.Event, in.Detail})
		}
	})
	routes.HandleFunc("/rpc", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Params mcp.CallToolParams }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		from := r.Context()
		if in.Params.Name != "seat_map" {
			from = apps.AsApp(from)
		}
		res, err := conn.CallTool(from, &mcp.CallToolParams{Name: in.Params.Name, Arguments: in.Params.Arguments})
		if err != nil {
			_, _ = io.WriteString(w, jsonOf(t, map[string]string{"error": err.Error()}))
			return
		}
		_, _ = io.WriteString(w, jsonOf(t, map[string]any{"result": res}))
	})
	return serve(t, routes)
}

// psi's page, in psi's sandbox, runs in a host built with the official library.
func TestOfficialHost(t *testing.T) {
	s := newServer(t, seats(), "seats.html", nil)
	ctx := open(t)
	do(t, ctx, chromedp.Navigate(s.officialHost(t)))
	s.wait(t, "official-shown")
	s.want(t, "official-initialized", `{"name":"Seats","version":"1.0.0"}`)
	s.waitUntil(t, "official-size", func(sizes []string) bool { // the seats are shown
		var size struct{ Height int }
		return len(sizes) > 0 && json.Unmarshal([]byte(sizes[len(sizes)-1]), &size) == nil && size.Height > 165
	})
	do(t, ctx, chromedp.MouseClickXY(53, 83)) // the first seat
	s.want(t, "reserved", "1A")
	s.want(t, "official-model-context", `"Seat 1A on PS 12 is yours."`)
	screenshot(t, ctx, "official-host")
	run(t, ctx, "void window.teardown()")
	s.want(t, "official-teardown", "{}")
}
