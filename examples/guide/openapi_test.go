// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/openapi"
)

const orders = `
openapi: 3.1.0
info: {title: Orders, version: "1"}
paths:
  /orders/{id}:
    get:
      operationId: getOrder
      summary: Get an order
      tags: [public]
      parameters:
        - {name: id, in: path, required: true, schema: {type: string}}
        - {name: region, in: query, schema: {type: string}}
      responses:
        "200": {description: ok, content: {application/json: {schema: {$ref: "#/components/schemas/Order"}}}}
    delete:
      operationId: deleteOrder
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
components:
  schemas:
    Order: {type: object, properties: {id: {type: string}, owner: {type: string}}}
`

// newRoutes is a service that knows nothing of MCP.
func newRoutes() http.Handler {
	r := chi.NewRouter()
	r.Get("/orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":%q,"owner":%q}`, chi.URLParam(r, "id"), r.Header.Get("X-User")+r.FormValue("region"))
	})
	r.Patch("/orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		var change renameOrder
		if err := json.NewDecoder(r.Body).Decode(&change); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":%q,"owner":%q}`, chi.URLParam(r, "id"), change.Name+r.FormValue("notify"))
	})
	return r
}

type renameOrder struct {
	ID     string `json:"id"`
	Notify bool   `json:"notify,omitempty" in:"query"`
	Name   string `json:"name"`
}

type order struct {
	ID    string `json:"id"`
	Owner string `json:"owner"`
}

// asUser tells the service who the caller is, as the service's own front does.
func asUser(ctx context.Context, r *http.Request) error {
	caller := mcp.PrincipalFromContext(ctx)
	if caller == nil {
		return errors.New("sign in first")
	}
	r.Header.Set("X-User", caller.Subject)
	return nil
}

// regionOf is the region of the caller.
func regionOf(ctx context.Context) (any, error) {
	if caller := mcp.PrincipalFromContext(ctx); caller != nil {
		return caller.Claims["region"], nil
	}
	return nil, errors.New("sign in first")
}

func newOrders(document []byte, routes http.Handler) (*mcp.Mux, error) {
	api, err := openapi.New(document, &openapi.Options{Handler: routes, Authorize: asUser})
	if err != nil {
		return nil, err
	}
	mux := mcp.NewMux("orders", "v1.0.0", nil)
	return mux, api.Register(mux)
}

func newRemoteOrders(document []byte, url string) (*openapi.API, error) {
	return openapi.New(document, &openapi.Options{
		BaseURL:   url,
		Authorize: asUser,
		Select: func(op *openapi.Operation) bool {
			if op.ID == "getOrder" {
				op.Tool.Name, op.Tool.Description = "get_order", "Get an order of the user. Ask for the id if you do not know it."
				op.Shape = &mcp.Shape{Args: map[string]mcp.Arg{
					"id":     {Name: "order"},
					"region": {Preset: regionOf}, // which the model neither sees nor sets
				}}
			}
			return op.HasTag("public")
		},
	})
}

// TestOrders checks that the service gives the same answers in process and behind a socket.
func TestOrders(t *testing.T) {
	mux, err := newOrders([]byte(orders), newRoutes())
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(newRoutes())
	t.Cleanup(server.Close)
	remote := mcp.NewMux("orders", "v1.0.0", nil)
	api, err := newRemoteOrders([]byte(orders), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := api.Register(remote); err != nil {
		t.Fatal(err)
	}
	client := &mcptest.Client{Principal: &mcp.Principal{Subject: "ada", Claims: map[string]any{"region": "-eu"}}}
	got, err := mcp.Call[order](t.Context(), client.Connect(t, mux), "getOrder", map[string]any{"id": "A 7/1"})
	if want := (order{"A%207%2F1", "ada"}); err != nil || got != want {
		t.Errorf("in process: got %v, %v, want %v", got, err, want)
	}
	got, err = mcp.Call[order](t.Context(), client.Connect(t, remote), "get_order", map[string]any{"order": "A 7/1"})
	if want := (order{"A%207%2F1", "ada-eu"}); err != nil || got != want {
		t.Errorf("remote: got %v, %v, want %v", got, err, want)
	}
}

// TestRoute calls a route that no document describes.
func TestRoute(t *testing.T) {
	mux, routes := mcp.NewMux("orders", "v1.0.0", nil), newRoutes()
	mux.Tool("rename_order", openapi.Route[renameOrder, order](&openapi.Options{Handler: routes, Authorize: asUser}, "PATCH /orders/{id}", nil))
	client := &mcptest.Client{Principal: &mcp.Principal{Subject: "ada"}}
	got, err := mcp.Call[order](t.Context(), client.Connect(t, mux), "rename_order", renameOrder{"A7", true, "lamp"})
	if want := (order{"A7", "lamptrue"}); err != nil || got != want {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}
