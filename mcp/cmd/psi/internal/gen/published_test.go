// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gen_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/cmd/psi/internal/gen"
)

// TestPublishedSchemas generates a client for each schema below the folder PSI_SCHEMAS, as
// input and as output of a tool. internal/test/schemas/run.sh runs it with those of SchemaStore.
func TestPublishedSchemas(t *testing.T) {
	dir := os.Getenv("PSI_SCHEMAS")
	if dir == "" {
		t.Skip("internal/test/schemas/run.sh sets PSI_SCHEMAS")
	}
	count, largest := 0, 0
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		tool := &mcp.Tool{Name: "tool", InputSchema: json.RawMessage(raw), OutputSchema: json.RawMessage(raw)}
		source, err := gen.Generate(&gen.Server{Name: "published", Tools: []*mcp.Tool{tool}}, "")
		if err != nil {
			t.Errorf("%s: %v", path, err)
			return nil
		}
		typeCheck(t, source)
		count, largest = count+1, max(largest, len(source))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d clients, the largest of %d KiB", count, largest>>10)
}
