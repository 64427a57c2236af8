// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// legacyOnly returns a server that handles modern requests with a given function.
func legacyOnly(h http.Handler, modern http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !slices.Contains(mcp.ModernVersions(), r.Header.Get("Mcp-Protocol-Version")) {
			h.ServeHTTP(w, r)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		modern(w, r)
	})
}

func answers(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// T61: however a server indicates that it does not support the modern era, the client falls
// back to the legacy era within three seconds.
func TestConnFindsEra(t *testing.T) {
	problem := func(code string) string {
		return `{"jsonrpc":"2.0","id":1,"error":{"code":` + code + `,"message":"no"}}`
	}
	for name, modern := range map[string]http.HandlerFunc{
		"200 -32601": answers(200, problem("-32601")),
		"200 -32600": answers(200, problem("-32600")),
		"200 -32602": answers(200, problem("-32602")),
		"200 HTML":   answers(200, "<html>"),
		"200 stream": func(w http.ResponseWriter, _ *http.Request) { stream(w, "") },
		"200 empty":  answers(200, ""),
		"202":        answers(202, ""),
		"400":        answers(400, ""),
		"400 -32000": answers(400, problem("-32000")),
		"404":        answers(404, "404 page not found"),
		"405":        answers(405, ""),
		"406":        answers(406, problem("-32000")),
		"500":        answers(500, ""),
		"500 -32603": answers(500, problem("-32603")),
		"400 -32022": answers(400, `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":["2025-11-25"]}}}`),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, legacyOnly(newHandler(t, tools(), nil), modern))
				start := time.Now()
				conn, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Logger: quiet}).
					Connect(t.Context(), mcphttp.NewTransport("http://localhost/mcp", s.options(nil)))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if took := time.Since(start); took >= 3*time.Second || conn.Version() != "2025-11-25" {
					t.Errorf("after %v it speaks %s", took, conn.Version())
				}
				res, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "hello"})
				if err != nil || res.IsError {
					t.Errorf("hello: %+v, %v", res, err)
				}
			})
		})
	}
}

// T61: a server that requires authentication has not shown which revisions it supports.
func TestConnUnauthorized(t *testing.T) {
	for _, body := range []string{"", `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no"}}`} {
		v := &visits{Handler: answers(http.StatusUnauthorized, body)}
		_, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Logger: quiet}).
			Connect(t.Context(), mcphttp.NewTransport("http://localhost/mcp", serve(t, v).options(nil)))
		if !errors.Is(err, mcp.ErrUnauthorized) || len(v.all) != 1 {
			t.Errorf("after %d requests: %v", len(v.all), err)
		}
	}
}

// Servers of every revision are detected from their URL alone, and their questions are
// answered in the same way.
func TestConnEveryServer(t *testing.T) {
	servers := map[string]func(*testing.T) http.Handler{
		"2026-07-28": func(t *testing.T) http.Handler { return newHandler(t, tools(), nil) },
		"2025-11-25": func(t *testing.T) http.Handler { return legacyOnly(newHandler(t, tools(), nil), answers(400, "")) },
		"2024-11-05": func(t *testing.T) http.Handler {
			return newSSEHandler(t, tools())
		},
	}
	for version, server := range servers {
		t.Run(version, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, server(t))
				names := []string{"Ada", "Lovelace"}
				conn, err := mcp.NewClient("test", "v1", &mcp.ClientOptions{Logger: quiet, Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
					name := names[0]
					names = names[1:]
					return &mcp.ElicitResult{Action: "accept", Content: []byte(`{"name":"` + name + `"}`)}, nil
				}}).Connect(t.Context(), mcphttp.NewTransport("http://localhost/mcp", s.options(nil)))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				res, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"})
				if err != nil || !strings.Contains(res.Content[0].(*mcp.TextContent).Text, "Ada Lovelace") {
					t.Errorf("%s: %+v, %v", conn.Version(), res, err)
				}
				if version != "2024-11-05" && conn.Version() != version {
					t.Errorf("it speaks %s", conn.Version())
				}
			})
		})
	}
}
