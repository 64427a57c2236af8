// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi_test

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/openapi"
)

// reasons are the texts of omissions, with the number of operations that are left out for
// this reason.
var reasons = map[string]int{
	"the path is not one of a URL": 10, // names with a fragment, some in several forms of a document
}

var isDocument = regexp.MustCompile(`(?m)^\s*"?(openapi|swagger)"?:\s*"?[23]\.`)

// TestPublicDocuments calls the operations of public documents, but for those with a pattern or
// a multiple that the sample does not match, which it logs. It fails if an operation is
// left out for a new reason, if a schema has findings, and if a request does not have the
// method and the path of its operation.
func TestPublicDocuments(t *testing.T) {
	dir := os.Getenv("PSI_OPENAPI")
	if dir == "" {
		t.Skip("PSI_OPENAPI is not set; see run.sh")
	}
	var documents, operations int
	omitted := map[string]int{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		ext := filepath.Ext(path)
		if err != nil || d.IsDir() || ext != ".json" && ext != ".yaml" && ext != ".yml" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil || !isDocument.Match(raw) {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		n, left := callAll(t, name, raw)
		documents++
		operations += n
		for _, o := range left {
			omitted[o.Reason]++
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d documents, %d operations, omitted: %v", documents, operations, omitted)
	for reason, n := range omitted {
		if reasons[reason] != n {
			t.Errorf("%d operations are omitted because %s", n, reason)
		}
	}
}

// callAll calls every operation of a document. It returns their number.
func callAll(t *testing.T, name string, raw []byte) (int, []openapi.Omission) {
	t.Helper()
	var last *http.Request
	recorder := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		last = r
		w.WriteHeader(http.StatusNotFound)
	})
	found := map[string]*openapi.Operation{}
	api, err := openapi.New(raw, &openapi.Options{Handler: recorder, Select: func(op *openapi.Operation) bool {
		found[op.Tool.Name] = op
		return true
	}})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return 0, nil
	}
	var log bytes.Buffer
	mux := mcp.NewMux("api", "v1.0.0", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := api.Register(mux); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if log.Len() > 0 {
		t.Errorf("%s: %s", name, &log)
	}
	conn := mcptest.Connect(t, mux)
	for tool, err := range conn.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		last = nil
		args, _ := json.Marshal(sample(t, tool.InputSchema)) //nolint:errchkjson // decoded JSON
		res, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: tool.Name, Arguments: args})
		if err != nil {
			t.Errorf("%s: %s: %v", name, tool.Name, err)
			continue
		}
		op := found[tool.Name]
		if last == nil && isParticular.Match(tool.InputSchema) {
			t.Logf("%s: %s is not called: %s does not match", name, tool.Name, args)
			continue
		}
		if last == nil {
			said, _ := json.Marshal(res.Content) //nolint:errchkjson // decoded JSON
			t.Errorf("%s: %s %s: %s", name, tool.Name, args, said)
		} else if !matches(op, last) {
			t.Errorf("%s: %s %s: sent %s %s for %v", name, tool.Name, args, last.Method, last.RequestURI, op)
		}
	}
	return len(found), api.Omitted()
}

var isParticular = regexp.MustCompile(`"(pattern|multipleOf)"`)

var variables = regexp.MustCompile(`\\\{[^{}]*\\\}`)

func matches(op *openapi.Operation, r *http.Request) bool {
	path := variables.ReplaceAllString(regexp.QuoteMeta(op.Path), `[^/?]+`)
	path = strings.TrimRight(path, "?")
	return r.Method == op.Method && regexp.MustCompile(path+`(\?|$)`).MatchString(r.RequestURI)
}

// sample returns arguments with a value for each required property of a schema.
func sample(t *testing.T, raw []byte) any {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(raw, &root); err != nil {
		t.Fatal(err)
	}
	return valueOf(root, root, 0)
}

func valueOf(root, s map[string]any, depth int) any {
	if ref, ok := s["$ref"].(string); ok && depth < 20 {
		defs, _ := root["$defs"].(map[string]any)
		target, _ := defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		return valueOf(root, target, depth+1)
	}
	if some, ok := s["anyOf"].([]any); ok && len(some) > 0 {
		first, _ := some[0].(map[string]any)
		return valueOf(root, first, depth+1)
	}
	if enum, ok := s["enum"].([]any); ok && len(enum) > 0 {
		return enum[0]
	}
	switch s["type"] {
	case "object":
		obj := map[string]any{}
		props, _ := s["properties"].(map[string]any)
		required, _ := s["required"].([]any)
		for _, name := range required {
			property, _ := props[name.(string)].(map[string]any)
			obj[name.(string)] = valueOf(root, property, depth+1)
		}
		for _, name := range slices.Sorted(maps.Keys(props)) { // an object without members is not sent
			if inner, _ := props[name].(map[string]any); depth > 0 && len(obj) == 0 && name != "base64" {
				obj[name] = valueOf(root, inner, depth+1)
			}
		}
		return obj
	case "array":
		items, _ := s["items"].(map[string]any)
		n, _ := s["minItems"].(float64)
		list := []any{}
		for range max(int(n), 1) {
			list = append(list, valueOf(root, items, depth+1))
		}
		return list
	case "integer", "number":
		if least, ok := s["minimum"].(float64); ok {
			return least
		}
		if below, ok := s["exclusiveMinimum"].(float64); ok {
			return below + 1
		}
		return 1
	case "boolean":
		return true
	}
	return text(s)
}

// text returns a string of the format and length of a schema.
func text(s map[string]any) string {
	switch s["format"] {
	case "date-time":
		return "2026-01-02T03:04:05Z"
	case "date":
		return "2026-01-02"
	case "email":
		return "ann@example.com"
	case "uri":
		return "https://example.com"
	case "uuid":
		return "123e4567-e89b-12d3-a456-426614174000"
	}
	length, _ := s["minLength"].(float64)
	return strings.Repeat("a", max(int(length), 1))
}
