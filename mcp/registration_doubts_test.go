// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-psi/psi/mcp"
)

// TestFindingV12OddRegistrations registers what is allowed but rarely intended: each is a
// warning, with the place.
func TestFindingV12OddRegistrations(t *testing.T) {
	type city struct {
		Name string `json:"name" validate:"min=1"`
		Zip  string `json:"zip" jsonschema:"maxLength=5" validate:"max=5"`
	}
	type trip struct {
		From  string `json:"from" description:"the city to start from"`
		Stops []city `json:"stops"`
	}
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	tool := func(annotations *mcp.ToolAnnotations) func(*mcp.Mux) {
		return func(m *mcp.Mux) {
			m.Tool("t", mcp.ToolFunc(func(context.Context, none) (string, error) { return "", nil }, &mcp.Tool{Annotations: annotations}))
		}
	}
	files := func(h mcp.Handler) func(*mcp.Mux) {
		return func(m *mcp.Mux) { m.Resource("file:///docs/{+path}", h) }
	}
	travel := func(context.Context, trip) (string, error) { return "", nil }
	schema := []byte(`{"type":"object","properties":{"from":{"type":"string"},"stops":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"zip":{"type":"string"}}}}}}`)
	for _, test := range []struct {
		name     string
		register func(m *mcp.Mux)
		want     string // "" means no warning
	}{
		{"contradictory hints", tool(&mcp.ToolAnnotations{ReadOnlyHint: new(true), DestructiveHint: new(true)}), "ReadOnlyHint and its DestructiveHint are both true"},
		{"a read-only tool", tool(&mcp.ToolAnnotations{ReadOnlyHint: new(true), DestructiveHint: new(false)}), ""},
		{"a destructive tool", tool(&mcp.ToolAnnotations{DestructiveHint: new(true)}), ""},
		{"no hints", tool(nil), ""},
		{"tags of other libraries", func(m *mcp.Mux) { m.Tool("t", mcp.ToolFunc(travel, nil)) }, "(From has description, Stops.Name has validate); write jsonschema tags"},
		{"a schema of one's own", func(m *mcp.Mux) { m.Tool("t", mcp.ToolFunc(travel, &mcp.Tool{InputSchema: schema})) }, ""},
		{"files of a directory that is missing", files(mcp.FileServerFS(os.DirFS("tpyo"), nil)), "the directory of its files does not exist"},
		{"files of an empty file system", files(mcp.FileServerFS(fstest.MapFS{}, nil)), "the directory of its files has none that is served"},
		{"files of an empty directory", files(mcp.FileServerRoot(root, nil)), "the directory of its files has none that is served"},
		{"hidden files", files(mcp.FileServerFS(fstest.MapFS{".env": {}}, nil)), "the directory of its files has none that is served"},
		{"files", files(mcp.FileServerFS(fstest.MapFS{"a": {}}, nil)), ""},
	} {
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		test.register(mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: logger}))
		got := strings.ReplaceAll(log.String(), `\"`, `"`)
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: logged %q, want %q", test.name, got, test.want)
		}
		if test.want != "" && (strings.Count(got, "\n") != 1 || !strings.Contains(got, "registered=registration_doubts_test.go:")) {
			t.Errorf("%s: logged %q", test.name, got)
		}
		log.Reset()
		if test.register(mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: logger, NoLint: true})); log.Len() > 0 {
			t.Errorf("%s: with NoLint, logged %q", test.name, &log)
		}
	}
}
