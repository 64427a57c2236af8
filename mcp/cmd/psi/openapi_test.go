// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// ordersDocument describes a small API. One of its operations cannot be served, and the
// server that it names is not the one to call.
const ordersDocument = `openapi: 3.1.0
info: {title: Orders, version: "1"}
servers: [{url: "https://evil.example.com"}]
paths:
  /orders/{id}:
    get:
      operationId: getOrder
      tags: [orders]
      summary: Get an order.
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      responses: {"200": {description: ok}}
    delete:
      operationId: deleteOrder
      tags: [orders, admin]
      parameters: [{name: id, in: path, required: true, schema: {type: string}}]
      responses: {"204": {description: gone}}
  /users:
    get:
      operationId: listUsers
      tags: [users]
      responses: {"200": {description: ok}}
  /odd:
    get:
      tags: [orders]
      parameters: [{$ref: "#/components/parameters/none\u001b[2J"}]
      responses: {"200": {description: ok}}
`

// startAPI serves the API, and writes its document into the working directory.
func startAPI(t *testing.T) (url string) {
	t.Helper()
	t.Chdir(t.TempDir())
	writeFile(t, "orders.yaml", ordersDocument)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s, %s", r.Method, r.URL.Path, r.Header.Get("Authorization"))
	}))
	t.Cleanup(api.Close)
	return api.URL + "/v1"
}

// The operations of the document are tools that call the API, with credentials of the
// environment.
func TestServe(t *testing.T) {
	isolate(t)
	api := startAPI(t)
	t.Setenv("ORDERS_TOKEN", "secret-1")
	url, logged := startServingLogged(t, "serve", "orders.yaml", "-base-url", api, "-header", "Authorization: Bearer $ORDERS_TOKEN")
	for _, want := range []string{"warn: an operation is left out operation=GET /odd", "3 operations of orders.yaml\n"} {
		if !strings.Contains(logged, want) {
			t.Errorf("it wrote %q, want %q", logged, want)
		}
	}
	if strings.Contains(logged, "\x1b") || strings.Contains(logged, "secret") {
		t.Errorf("it wrote %q", logged)
	}
	if got := psi(t, "", "call", url, "getOrder", "id=a/b"); got.out != "GET /v1/orders/a/b, Bearer secret-1\n" {
		t.Errorf("wrote %q and %q", got.out, got.errOut)
	}
}

// Few tools are better than many: tags and patterns select operations.
func TestServeSelection(t *testing.T) {
	isolate(t)
	api := startAPI(t)
	for flags, want := range map[string]string{
		"-tag orders":               "deleteOrder getOrder",
		"-tag users -tag admin":     "deleteOrder listUsers",
		"-only get*":                "getOrder",
		"-only GET_*":               "getOrder listUsers",
		"-only *_/orders/*":         "deleteOrder getOrder",
		"-tag orders -only DELETE*": "deleteOrder",
	} {
		words := strings.Fields(flags)
		for i, word := range words {
			words[i] = strings.ReplaceAll(word, "_", " ")
		}
		url := startServing(t, "serve", append([]string{"orders.yaml", "-base-url", api}, words...)...)
		got := psi(t, "", "list", url)
		var names []string
		for line := range strings.Lines(got.out) {
			names = append(names, strings.Fields(line)[1])
		}
		if list := strings.Join(names, " "); list != want {
			t.Errorf("%s: the tools are %q, want %q", flags, list, want)
		}
	}
}

// Without an address, it serves the host that has started it.
func TestServeStdio(t *testing.T) {
	isolate(t)
	api := startAPI(t)
	fromServer, out := io.Pipe()
	in, toServer := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), []string{"serve", "orders.yaml", "-base-url", api}, in, out, io.Discard)
	}()
	conn := mcptest.Dial(t, streamTransport{fromServer, toServer}, nil)
	got, err := mcp.Call[string](t.Context(), conn, "listUsers", nil)
	if err != nil || got != "GET /v1/users, " {
		t.Errorf("got %q, %v", got, err)
	}
	_ = conn.Close()
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// The server is named by the file, which may have no name but an extension.
func TestServeFileWithoutName(t *testing.T) {
	isolate(t)
	api := startAPI(t)
	writeFile(t, ".yaml", "openapi: 3.0.0\npaths: {/a: {get: {operationId: a}}}")
	url, _ := startServingLogged(t, "serve", ".yaml", "-base-url", api)
	if got := psi(t, "", "list", url); got.code != exitOK || !strings.Contains(got.out, "a") {
		t.Errorf("exit code %d, wrote %q and %q", got.code, got.out, got.errOut)
	}
}

func TestServeMistakes(t *testing.T) {
	isolate(t)
	api := startAPI(t)
	writeFile(t, "no.yaml", "hello: world")
	writeFile(t, "empty.yaml", "openapi: 3.1.0\ninfo: {title: Empty, version: \"1\"}\npaths: {}")
	writeFile(t, "untagged.yaml", "openapi: 3.1.0\ninfo: {title: One, version: \"1\"}\npaths: {/a: {get: {responses: {\"200\": {description: ok}}}}}")
	if err := os.Unsetenv("NONE_SUCH"); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"":            "want the file of an OpenAPI document",
		"orders.yaml": "which API? give its -base-url",
		"https://x.example/openapi.yaml -base-url " + api:              "want a file: download https://x.example/openapi.yaml",
		"orders.yaml -header A:b\x00 -base-url " + api:                 `a -header is not of the form "Name: value"`,
		"none.yaml -base-url " + api:                                   "none.yaml",
		"no.yaml -base-url " + api:                                     "serve: no.yaml: openapi: ",
		"orders.yaml -base-url ftp://x":                                "BaseURL must be an http or https URL",
		"orders.yaml -tag none -base-url " + api:                       "no operation is selected; the tags of the document: admin, orders, users",
		"orders.yaml -only get_none -base-url " + api:                  "no operation is selected; the operations of the document: DELETE /orders/{id}, GET /orders/{id}, GET /users",
		"untagged.yaml -tag none -base-url " + api:                     "no operation is selected; the tags of the document: none",
		"empty.yaml -base-url " + api:                                  "the operations of the document: none",
		"orders.yaml -only [ -base-url " + api:                         `-only "[" is not a pattern`,
		"orders.yaml -http :8080 -base-url " + api:                     "other machines can reach",
		"orders.yaml -header A:$NONE_SUCH -base-url " + api:            "the environment does not have $NONE_SUCH",
		"orders.yaml -header secret-2 -base-url " + api:                `a -header is not of the form "Name: value"`,
		"orders.yaml -tag none -header A:b -base-url http://x.example": "headers are sent without encryption",
	} {
		got := psi(t, "", append([]string{"serve"}, strings.Fields(args)...)...)
		if got.code != exitUsage || !strings.Contains(got.errOut, want) || strings.Contains(got.errOut, "secret") {
			t.Errorf("%s: exit code %d, wrote %q, want %s", args, got.code, got.errOut, want)
		}
	}
}
