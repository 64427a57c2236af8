// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/openapi"
)

// serve returns a mux with the operations of a document.
func serve(t *testing.T, doc string, opts *openapi.Options) *mcp.Mux {
	t.Helper()
	api, err := openapi.New([]byte(doc), opts)
	if err != nil {
		t.Fatal(err)
	}
	if omitted := api.Omitted(); omitted != nil {
		t.Fatalf("omitted: %v", omitted)
	}
	var log bytes.Buffer
	mux := mcp.NewMux("api", "v1.0.0", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := api.Register(mux); err != nil {
		t.Fatal(err)
	}
	for tool, err := range mcptest.Connect(t, mux).Tools(t.Context(), nil) {
		if mcp.CodeOf(err) == mcp.CodeMethodNotFound {
			break // there are only resources
		}
		if err != nil {
			t.Fatal(err)
		}
		found := jsonschema.Lint(tool.InputSchema)
		if tool.OutputSchema != nil {
			found = append(found, jsonschema.Lint(tool.OutputSchema, jsonschema.Inspector)...)
		}
		if found != nil || log.Len() > 0 {
			t.Errorf("%s: findings of the linter: %v, log: %s", tool.Name, found, &log)
		}
	}
	return mux
}

func call(t *testing.T, mux *mcp.Mux, tool, args string) *mcp.CallToolResult {
	t.Helper()
	conn := mcptest.Connect(t, mux)
	res, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func textOf(res *mcp.CallToolResult) string {
	if len(res.Content) == 0 {
		return ""
	}
	block, _ := res.Content[0].(*mcp.TextContent)
	if block == nil {
		return fmt.Sprintf("%T", res.Content[0])
	}
	return block.Text
}

const pets = `
openapi: 3.0.3
info: {title: Pets, version: "1"}
servers: [{url: "https://pets.example.com/v1"}]
paths:
  /pets:
    get:
      operationId: listPets
      summary: List the pets
      tags: [public]
      parameters:
        - {name: limit, in: query, schema: {type: integer, maximum: 100}}
      responses:
        "200": {description: ok, content: {application/json: {schema: {type: object, properties: {pets: {type: array, items: {$ref: "#/components/schemas/Pet"}}}}}}}
    post:
      operationId: addPet
      requestBody: {required: true, content: {application/json: {schema: {$ref: "#/components/schemas/Pet"}}}}
      responses:
        "201": {description: ok, content: {application/json: {schema: {$ref: "#/components/schemas/Pet"}}}}
  /pets/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: string}}
    get:
      responses:
        "200": {description: ok, content: {application/json: {schema: {$ref: "#/components/schemas/Pet"}}}}
    delete:
      operationId: deletePet
      responses: {"204": {description: gone}}
components:
  schemas:
    Pet:
      type: object
      required: [name]
      properties:
        id: {type: string, readOnly: true}
        name: {type: string}
        tag: {type: string, nullable: true}
        children: {type: array, items: {$ref: "#/components/schemas/Pet"}}
`

// petAPI is the API that the document describes.
func petAPI() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/pets", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"pets":[{"name":"Rex","tag":%q}]}`, r.FormValue("limit"))
	})
	mux.HandleFunc("POST /v1/pets", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.Copy(w, r.Body)
	})
	mux.HandleFunc("GET /v1/pets/{id}", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"title":"No such pet","detail":"There is no pet %s."}`, r.PathValue("id"))
	})
	mux.HandleFunc("DELETE /v1/pets/{id}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	return mux
}

func TestInProcessAndRemote(t *testing.T) {
	server := httptest.NewServer(petAPI())
	t.Cleanup(server.Close)
	for name, opts := range map[string]*openapi.Options{
		"in process": {Handler: petAPI()},
		"remote":     {BaseURL: server.URL + "/v1", Client: server.Client()},
	} {
		t.Run(name, func(t *testing.T) {
			mux := serve(t, pets, opts)
			for _, test := range []struct{ tool, args, want string }{
				{"listPets", `{"limit":7}`, `{"pets":[{"name":"Rex","tag":"7"}]}`},
				{"addPet", `{"name":"Rex","children":[{"name":"Max"}]}`, `{"children":[{"name":"Max"}],"name":"Rex"}`},
				{"deletePet", `{"id":"a/b"}`, "HTTP 204 No Content"},
				{"get_pets_by_id", `{"id":"7"}`, "the API refused the call: HTTP 404 Not Found\n" +
					`{"title":"No such pet","detail":"There is no pet 7."}`},
				{"get_pets_by_id", `{"id":".."}`, `the argument id must not have a part ".."`},
			} {
				if got := textOf(call(t, mux, test.tool, test.args)); got != test.want {
					t.Errorf("%s %s: got %s, want %s", test.tool, test.args, got, test.want)
				}
			}
		})
	}
}

func TestEveryEraAndTransport(t *testing.T) {
	mux := serve(t, pets, &openapi.Options{Handler: petAPI()})
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "listPets", Arguments: json.RawMessage(`{"limit":3}`)})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(res.StructuredContent), `{"pets":[{"name":"Rex","tag":"3"}]}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestTools(t *testing.T) {
	mux := serve(t, pets, &openapi.Options{Handler: petAPI(), Select: func(op *openapi.Operation) bool {
		if op.ID == "addPet" {
			op.Tool.Name, op.Tool.Description = "add_pet", "Add a pet."
		}
		return op.Method != http.MethodDelete
	}})
	tools := map[string]*mcp.Tool{}
	for tool, err := range mcptest.Connect(t, mux).Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		tools[tool.Name] = tool
	}
	if len(tools) != 3 {
		t.Errorf("got %d tools, want 3", len(tools))
	}
	if got, want := string(tools["listPets"].InputSchema),
		`{"additionalProperties":false,"properties":{"limit":{"maximum":100,"type":"integer"}},"type":"object"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	add := tools["add_pet"]
	if add == nil || add.Description != "Add a pet." || !strings.Contains(string(add.InputSchema), `"required":["name"]`) || strings.Contains(string(add.InputSchema), `"id"`) {
		t.Errorf("got %+v", add)
	}
	if list := tools["listPets"]; list.Annotations.ReadOnlyHint == nil || !*list.Annotations.ReadOnlyHint || list.Description != "List the pets" {
		t.Errorf("got %+v", list)
	}
}

func TestSelectResource(t *testing.T) {
	mux := serve(t, pets, &openapi.Options{Handler: petAPI(), Select: func(op *openapi.Operation) bool {
		op.Resource = true
		return op.HasTag("public")
	}})
	res, err := mcptest.Connect(t, mux).ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "api:///pets?limit=4"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := res.Contents[0].Text, `{"pets":[{"name":"Rex","tag":"4"}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The arguments of an operation are those of a tool, so a shape can change them.
func TestSelectShape(t *testing.T) {
	mux := serve(t, pets, &openapi.Options{Handler: petAPI(), Select: func(op *openapi.Operation) bool {
		op.Shape = &mcp.Shape{Name: "pets", Args: map[string]mcp.Arg{"limit": {Name: "most", Default: 5}}}
		return op.ID == "listPets"
	}})
	if got := textOf(call(t, mux, "pets", `{}`)); got != `{"pets":[{"name":"Rex","tag":"5"}]}` {
		t.Errorf("got %s", got)
	}
	if got := textOf(call(t, mux, "pets", `{"most":101}`)); !strings.Contains(got, "/most: expected number of at most 100") {
		t.Errorf("got %s", got)
	}
	api, err := openapi.New([]byte(pets), &openapi.Options{Handler: petAPI(), Select: func(op *openapi.Operation) bool {
		op.Shape = &mcp.Shape{Args: map[string]mcp.Arg{"limits": {Name: "most"}}}
		return op.ID == "listPets"
	}})
	if err == nil || api != nil || !strings.Contains(err.Error(), `GET /pets: `) || !strings.Contains(err.Error(), `no argument "limits"; did you mean "limit"?`) {
		t.Errorf("got %v", err)
	}
}

// YAML is as people write it: a version without quotes, and merge keys.
func TestYAML(t *testing.T) {
	for _, version := range []string{"openapi: 3.0", "openapi: 3.1", "openapi: 3.0.3", "swagger: 2.0", `swagger: "2.0"`} {
		mux := serve(t, version+`
x-get: &get {operationId: op}
x-tags: &tags {tags: [a], deprecated: true}
paths: {/x: {get: {<<: [*get, *tags], summary: Own, tags: [b]}}}
`, &openapi.Options{Handler: echo, Select: func(op *openapi.Operation) bool { return op.HasTag("b") && op.Deprecated && op.Tool.Title == "Own" }})
		if got := textOf(call(t, mux, "op", `{}`)); got != "GET /x|||" {
			t.Errorf("%s: got %s", version, got)
		}
	}
}

func TestMistakes(t *testing.T) {
	for _, test := range []struct {
		doc  string
		opts *openapi.Options
		want string
	}{
		{pets, nil, "openapi: Options need a Handler or a BaseURL"},
		{pets, &openapi.Options{BaseURL: "pets.example.com"}, "openapi: BaseURL must be an http or https URL without a query"},
		{`openapi: "4.0"`, &openapi.Options{Handler: petAPI()}, `openapi: version "4.0" is not 2.0 or 3.x`},
		{`swagger: "1.2"`, &openapi.Options{Handler: petAPI()}, `openapi: version "1.2" is not 2.0 or 3.x`},
		{`a: &a [*a]`, &openapi.Options{Handler: petAPI()}, `openapi: the document has more than 4000000 values, or is nested more than 512 deep`},
		{`[]`, &openapi.Options{Handler: petAPI()}, "openapi: the document is not an object"},
	} {
		if _, err := openapi.New([]byte(test.doc), test.opts); err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}
