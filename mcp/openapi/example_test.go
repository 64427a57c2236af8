// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/openapi"
)

// A service that has an OpenAPI document becomes a server of tools. Its handlers are called
// in this process.
func Example() {
	routes := http.NewServeMux()
	routes.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":%q,"total":12.5}`, r.PathValue("id"))
	})
	document := []byte(`
openapi: 3.1.0
info: {title: Shop, version: "1"}
paths:
  /orders/{id}:
    get:
      operationId: getOrder
      summary: Get an order
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
`)

	api, err := openapi.New(document, &openapi.Options{Handler: routes})
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range api.Omitted() {
		log.Printf("%s is left out: %s", o.Operation, o.Reason)
	}
	mux := mcp.NewMux("shop", "v1.0.0", nil)
	if err := api.Register(mux); err != nil {
		log.Fatal(err)
	}

	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		log.Fatal(err)
	}
	order, err := mcp.Call[struct {
		ID    string  `json:"id"`
		Total float64 `json:"total"`
	}](ctx, conn, "getOrder", map[string]any{"id": "A7"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(order.ID, order.Total)
	_ = conn.Close()
	// Output: A7 12.5
}

// A remote API is called with the credentials of the service. Operations are selected by tag,
// and what the model reads about them can be changed.
func ExampleNew() {
	document, err := os.ReadFile("testdata/petstore.yaml")
	if err != nil {
		log.Fatal(err)
	}
	api, err := openapi.New(document, &openapi.Options{
		BaseURL: "https://api.example.com/v1",
		Client:  &http.Client{Timeout: 20 * time.Second},
		Authorize: func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+os.Getenv("PETS_TOKEN"))
			return nil
		},
		Select: func(op *openapi.Operation) bool {
			if op.ID == "showPetById" {
				op.Tool.Name, op.Tool.Description = "show_pet", "Show one pet. Call list_pets for the ids."
			}
			return op.HasTag("pets") && !op.Deprecated
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	mux := mcp.NewMux("pets", "v1.0.0", nil)
	if err := api.Register(mux); err != nil {
		log.Fatal(err)
	}
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(context.Background(), mcp.InProcess(mux))
	if err != nil {
		log.Fatal(err)
	}
	for tool, err := range conn.Tools(context.Background(), nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(tool.Name)
	}
	_ = conn.Close()
	// Output:
	// list_pets
	// show_pet
}

// A route of a service without a document becomes a tool with the types of its arguments and
// of its response.
func ExampleRoute() {
	routes := http.NewServeMux()
	routes.HandleFunc("PUT /items/{id}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"stored":%q}`, r.PathValue("id"))
	})
	type putItem struct {
		ID    string `json:"id"` // a variable of the path
		Count int    `json:"count"`
	}
	type stored struct {
		Stored string `json:"stored"`
	}
	mux := mcp.NewMux("shop", "v1.0.0", nil)
	mux.Tool("put_item", openapi.Route[putItem, stored](&openapi.Options{Handler: routes}, "PUT /items/{id}", nil))

	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		log.Fatal(err)
	}
	got, err := mcp.Call[stored](ctx, conn, "put_item", putItem{"A7", 3})
	fmt.Println(got.Stored, err)
	_ = conn.Close()
	// Output: A7 <nil>
}
