// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/openapi"
	"github.com/go-psi/psi/mcphttp"
)

// answer returns a handler that sends one response.
func answer(status int, mediaType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	})
}

func TestResponses(t *testing.T) {
	plain := operation("/x", "get", `{"responses":{}}`)
	typed := operation("/x", "get", `{"responses":{"200":{"content":{"application/json":{"schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["m"]}}}}}}`)
	for _, test := range []struct {
		doc     string
		handler http.Handler
		want    string
		isError bool
	}{
		{plain, answer(200, "application/json", `[1]`), `[1]`, false},
		{plain, answer(200, "image/png", "\x89PNG"), `*mcp.ImageContent`, false},
		{plain, answer(200, "audio/wav", "RIFF"), `*mcp.AudioContent`, false},
		{plain, answer(200, "application/zip", "PK"), `*mcp.EmbeddedResource`, false},
		{plain, answer(200, "application/xml", "<a/>"), `<a/>`, false},
		{plain, answer(200, "application/json", "{oops"), `{oops`, false},
		{plain, answer(200, "application/x-ndjson", "{}\n{}\n"), "{}\n{}\n", false},
		{typed, answer(200, "application/json", "\ufeff{\"n\":1}"), `{"n":1}`, false},
		{plain, answer(401, "text/plain", "\x1b[31mno\u202e"), "the API refused the call: HTTP 401 Unauthorized\n\\x1b[31mno\\u202e", true},
		{plain, answer(500, "text/plain", "password=1"), "the API failed (HTTP 500); the call may have had effects", true},
		{plain, answer(304, "text/plain", ""), "the API answered with HTTP 304, which is not followed", true},
		{typed, answer(200, "application/json", `{"n":1,"more":true}`), `{"n":1,"more":true}`, false},
		{typed, answer(200, "application/json", `{"n":"x"}`), "the call succeeded (HTTP 200), but the answer is not as the API describes it:\n{\"n\":\"x\"}", true},
		{typed, answer(204, "", ""), "the call succeeded (HTTP 204), but the answer is not the JSON that the API describes:\n", true},
	} {
		res := call(t, serve(t, test.doc, &openapi.Options{Handler: test.handler}), "op", `{}`)
		if got := textOf(res); got != test.want || res.IsError != test.isError {
			t.Errorf("got %q (%v), want %q", got, res.IsError, test.want)
		}
	}
}

func TestLargeResponse(t *testing.T) {
	endless := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for block := bytes.Repeat([]byte("x"), 1<<20); ; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	server := httptest.NewServer(endless)
	t.Cleanup(server.Close)
	compressed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for range 64 {
			_, _ = z.Write(make([]byte, 1<<20))
		}
		_ = z.Close()
	}))
	t.Cleanup(compressed.Close)
	for _, opts := range []*openapi.Options{{Handler: endless}, {BaseURL: server.URL}, {BaseURL: compressed.URL}} {
		res := call(t, serve(t, operation("/x", "get", `{"responses":{}}`), opts), "op", `{}`)
		if got, want := textOf(res), "the API answered with more than 4194304 bytes; ask for less"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// A redirect to another host would send the credentials of the request there.
func TestRedirects(t *testing.T) {
	evil := httptest.NewServer(answer(200, "text/plain", "evil"))
	t.Cleanup(evil.Close)
	target := "/y"
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/y" {
			fmt.Fprint(w, "moved")
			return
		}
		http.Redirect(w, r, target, http.StatusFound)
	})
	mux := serve(t, operation("/x", "get", `{"responses":{}}`), &openapi.Options{Handler: api})
	if got := textOf(call(t, mux, "op", `{}`)); got != "moved" {
		t.Errorf("got %s", got)
	}
	target = evil.URL
	if got, want := textOf(call(t, mux, "op", `{}`)), "the API redirects to another host, which is not followed"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAuthorize(t *testing.T) {
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Authorization")) })
	mux := serve(t, operation("/x", "get", `{"responses":{}}`), &openapi.Options{Handler: api, Authorize: func(ctx context.Context, r *http.Request) error {
		p := mcp.PrincipalFromContext(ctx)
		if p == nil {
			return errors.New("sign in first")
		}
		r.Header.Set("Authorization", "Bearer of "+p.Subject)
		return nil
	}})
	if got := textOf(call(t, mux, "op", `{}`)); got != "sign in first" {
		t.Errorf("got %s", got)
	}
	conn := mcptest.Connect(t, mcptest.As(&mcp.Principal{Subject: "ann"})(mux))
	got, err := mcp.Call[string](t.Context(), conn, "op", nil)
	if err != nil || got != "Bearer of ann" {
		t.Errorf("got %q, %v", got, err)
	}
}

// An MCP request that came through a chi router does not confuse the API's router, and the
// API sees the caller and the caller's address.
func TestRouterInRouter(t *testing.T) {
	api := chi.NewRouter()
	api.Get("/items/{id}", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s for %s from %s", chi.URLParam(r, "id"), mcp.PrincipalFromContext(r.Context()).Subject, r.RemoteAddr)
	})
	mux := serve(t, operation("/items/{id}", "get", `{"responses":{}}`), &openapi.Options{Handler: api, Authorize: func(ctx context.Context, r *http.Request) error {
		r.RemoteAddr = mcphttp.RequestFromContext(ctx).RemoteAddr
		return nil
	}})
	endpoint := mcphttp.NewHandler(mux, nil)
	outer := chi.NewRouter()
	outer.Mount("/{id}/mcp", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = mcphttp.WithPrincipal(r, &mcp.Principal{Subject: "ann"})
		r.RemoteAddr = "203.0.113.9:7"
		endpoint.ServeHTTP(w, r)
	}))
	server := httptest.NewServer(outer)
	t.Cleanup(server.Close)
	conn := mcptest.Dial(t, mcphttp.NewTransport(server.URL+"/tenant/mcp", nil), nil)
	got, err := mcp.Call[string](t.Context(), conn, "op", map[string]any{"id": "7"})
	if want := "7 for ann from 203.0.113.9:7"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestAbortedHandler(t *testing.T) {
	api := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	res := call(t, serve(t, operation("/x", "get", `{"responses":{}}`), &openapi.Options{Handler: api}), "op", `{}`)
	if got := textOf(res); got != "the API did not answer; the call may have had effects" || !res.IsError {
		t.Errorf("got %s", got)
	}
}

// A model may repeat a call that did not reach the API, but not one that may have had effects.
func TestNoAnswer(t *testing.T) {
	cut := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write([]byte("part"))
	}))
	t.Cleanup(cut.Close)
	none := httptest.NewServer(http.NotFoundHandler())
	none.Close()
	for url, want := range map[string]string{cut.URL: "the API did not answer; the call may have had effects", none.URL: "the API cannot be reached"} {
		res := call(t, serve(t, operation("/x", "post", `{"responses":{}}`), &openapi.Options{BaseURL: url}), "op", `{}`)
		if got := textOf(res); got != want || !res.IsError {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// The output schema allows more than the document does, and is not there if the document
// names several answers.
func TestOutputSchemas(t *testing.T) {
	doc := operation("/x", "get", `{"responses":{"200":{"content":{"application/json":{"schema":{"type":"object","required":["a"],"additionalProperties":false,
		"properties":{"a":{"type":["string","null"],"enum":["x"],"pattern":"^x"}}}}}}}}`)
	for tool, err := range mcptest.Connect(t, serve(t, doc, &openapi.Options{Handler: echo})).Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		want := `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},"type":"object"}`
		if got := string(tool.OutputSchema); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	two := strings.Replace(doc, `"responses":{`, `"responses":{"204":{},`, 1)
	for tool := range mcptest.Connect(t, serve(t, two, &openapi.Options{Handler: echo})).Tools(t.Context(), nil) {
		if tool.OutputSchema != nil {
			t.Errorf("got %s", tool.OutputSchema)
		}
	}
}
