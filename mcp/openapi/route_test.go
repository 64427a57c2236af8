// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/openapi"
)

type item struct {
	ID     string   `json:"id"`
	Name   string   `json:"name,omitempty"`
	Labels []string `json:"labels,omitempty"`
	Parent *item    `json:"parent,omitempty"`
}

type putItem struct {
	ID     string   `json:"id" jsonschema:"description=of the item"`
	DryRun bool     `json:"dry_run,omitempty" in:"query"`
	Tenant string   `json:"X-Tenant,omitempty" in:"header"`
	Name   string   `json:"name" jsonschema:"minLength=2"`
	Labels []string `json:"labels,omitempty"`
	Parent *item    `json:"parent,omitempty"`
}

type listItems struct {
	Labels []string `json:"labels,omitempty"`
	Limit  int      `json:"limit,omitempty" jsonschema:"maximum=100"`
}

// newItems is a service that echoes what it is asked.
func newItems() *http.ServeMux {
	routes := http.NewServeMux()
	routes.HandleFunc("PUT /items/{id}", func(w http.ResponseWriter, r *http.Request) {
		var in item
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		in.ID = r.PathValue("id")
		in.Name += fmt.Sprintf(" (%s, dry %s)", r.Header.Get("X-Tenant"), r.FormValue("dry_run"))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(in)
	})
	routes.HandleFunc("GET /items", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.RawQuery)
	})
	routes.HandleFunc("DELETE /items/{id}", func(w http.ResponseWriter, r *http.Request) {
		if mcp.PrincipalFromContext(r.Context()) == nil {
			http.Error(w, "sign in first", http.StatusForbidden)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return routes
}

func newItemTools() *mcp.Mux {
	api := &openapi.Options{Handler: newItems()}
	mux := mcp.NewMux("items", "v1.0.0", nil)
	mux.Tool("put_item", openapi.Route[putItem, item](api, "PUT /items/{id}", &mcp.Tool{Description: "Store an item."}))
	mux.Tool("list_items", openapi.Route[listItems, any](api, "GET /items", nil))
	mux.Tool("delete_item", openapi.Route[struct {
		ID int `json:"id"`
	}, any](api, "DELETE /items/{id}", nil))
	return mux
}

// A route is called with each argument in its place, and its response is the typed result.
func TestRoute(t *testing.T) {
	mcptest.Run(t, newItemTools(), func(t *testing.T, c *mcp.Conn) {
		got, err := mcp.Call[item](t.Context(), c, "put_item", putItem{ID: "a/b", DryRun: true, Tenant: "north", Name: "lamp", Labels: []string{"x"}, Parent: &item{ID: "p"}})
		if err != nil || got.ID != "a/b" || got.Name != "lamp (north, dry true)" || got.Parent.ID != "p" || len(got.Labels) != 1 {
			t.Errorf("got %+v, %v", got, err)
		}
		query, err := mcp.Call[string](t.Context(), c, "list_items", listItems{Labels: []string{"x", "y"}, Limit: 5})
		if err != nil || query != "labels=x&labels=y&limit=5" {
			t.Errorf("got %q, %v", query, err)
		}
		for tool, args := range map[string]string{"put_item": `{"id":"1","name":"x"}`, "list_items": `{"limit":500}`, "delete_item": `{"id":"x"}`} {
			if _, err := mcp.Call[string](t.Context(), c, tool, json.RawMessage(args)); err == nil || !strings.Contains(err.Error(), "invalid arguments") {
				t.Errorf("%s with %s: %v", tool, args, err)
			}
		}
		if _, err := mcp.Call[string](t.Context(), c, "delete_item", map[string]int{"id": 1}); err == nil || !strings.Contains(err.Error(), "sign in first") {
			t.Errorf("without a caller: %v", err)
		}
	})
}

// The tool is described by its types, its method and the given Tool.
func TestRouteDescription(t *testing.T) {
	c := mcptest.Connect(t, newItemTools())
	list, err := c.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*mcp.Tool{}
	for _, tool := range list.Tools {
		byName[tool.Name] = tool
	}
	put := byName["put_item"]
	if put.Description != "Store an item." || !*put.Annotations.IdempotentHint || !*byName["delete_item"].Annotations.DestructiveHint || !*byName["list_items"].Annotations.ReadOnlyHint {
		t.Errorf("got %+v", put)
	}
	for _, part := range []string{`"description":"of the item"`, `"minLength":2`, `"required":["id","name"]`} {
		if !strings.Contains(string(put.InputSchema), part) {
			t.Errorf("the schema %s lacks %s", put.InputSchema, part)
		}
	}
	if put.OutputSchema == nil || byName["list_items"].OutputSchema != nil {
		t.Errorf("output schemas %s, %s", put.OutputSchema, byName["list_items"].OutputSchema)
	}
}

// The caller of the tool is that of the route.
func TestRouteCaller(t *testing.T) {
	client := &mcptest.Client{Principal: &mcp.Principal{Subject: "ada"}}
	client.Run(t, newItemTools(), func(t *testing.T, c *mcp.Conn) {
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "delete_item", Arguments: json.RawMessage(`{"id":1}`)}); err != nil {
			t.Error(err)
		}
	})
}

// A default is sent, as it would be to a ToolFunc.
func TestRouteDefaults(t *testing.T) {
	type page struct {
		Limit  int    `json:"limit,omitempty" jsonschema:"default=5"`
		Labels string `json:"labels,omitempty"`
	}
	mux := mcp.NewMux("items", "v1.0.0", nil)
	mux.Tool("list_items", openapi.Route[page, any](&openapi.Options{Handler: newItems()}, "GET /items", nil))
	c := mcptest.Connect(t, mux)
	for args, want := range map[string]string{`{}`: "limit=5", `{"limit":7}`: "limit=7", `{"labels":"x"}`: "labels=x&limit=5"} {
		if got, err := mcp.Call[string](t.Context(), c, "list_items", json.RawMessage(args)); err != nil || got != want && got != "limit=5&labels=x" {
			t.Errorf("%s: got %q, %v", args, got, err)
		}
	}
}

func TestWrongRoutes(t *testing.T) {
	api := &openapi.Options{Handler: newItems()}
	type untagged struct{ Id string }
	type misplaced struct {
		ID string `json:"id" in:"pocket"`
	}
	for want, route := range map[string]func(){
		"a route is a method and a path":             func() { openapi.Route[listItems, any](api, "/items", nil) },
		"the variable {id} of the path has no field": func() { openapi.Route[listItems, any](api, "GET /items/{id}", nil) },
		`did you mean "Id"?`:                         func() { openapi.Route[untagged, any](api, "GET /items/{id}", nil) },
		"{rest...} of the path is for a mux":         func() { openapi.Route[listItems, any](api, "GET /items/{rest...}", nil) },
		`the field ID is in "pocket"`:                func() { openapi.Route[misplaced, any](api, "GET /items", nil) },
		"the arguments must be a struct":             func() { openapi.Route[map[string]string, any](api, "GET /items", nil) },
		"Options need a Handler or a BaseURL":        func() { openapi.Route[listItems, any](nil, "GET /items", nil) },
		"the tool has a schema": func() {
			openapi.Route[listItems, any](api, "GET /items", &mcp.Tool{InputSchema: json.RawMessage(`{}`)})
		},
		"the path is not one of a URL":  func() { openapi.Route[listItems, any](api, "GET /items?x=1", nil) },
		"TRACE is of no use to a model": func() { openapi.Route[listItems, any](api, "TRACE /items", nil) },
	} {
		func() {
			defer func() {
				if v := fmt.Sprint(recover()); !strings.Contains(v, want) || !strings.HasPrefix(v, "openapi: Route ") {
					t.Errorf("panic %q, want %q", v, want)
				}
			}()
			route()
		}()
	}
}

// A remote service is called in the same way, with what Authorize adds.
func TestRemoteRoute(t *testing.T) {
	url := mcptest.Serve(t, newItems())
	mux := mcp.NewMux("items", "v1.0.0", nil)
	mux.Tool("put_item", openapi.Route[putItem, item](&openapi.Options{BaseURL: url, Authorize: func(_ context.Context, r *http.Request) error {
		r.Header.Set("X-Tenant", "south")
		return nil
	}}, "PUT /items/{id}", nil))
	got, err := mcp.Call[item](t.Context(), mcptest.Connect(t, mux), "put_item", map[string]string{"id": "1", "name": "lamp"})
	if err != nil || got.Name != "lamp (south, dry )" {
		t.Errorf("got %+v, %v", got, err)
	}
}
