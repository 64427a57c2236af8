// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package schemas_test

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-psi/psi/jsonschema"
)

// refusals are the texts of errors of Compile, with the number of schemas that it refuses for
// this reason.
var refusals = map[string]int{
	"leaves the schema":  58,
	"unknown dialect":    5,
	"duplicate id":       2,
	"duplicate anchor":   1,
	"not found":          1, // a reference to nothing
	"not a valid schema": 3,
}

// TestStore compiles the schemas of SchemaStore, as they were in 2022, and does everything
// else that is done with the schema of a tool. It fails if a schema is refused for a new reason, and if
// the number of schemas with a known reason has changed.
func TestStore(t *testing.T) {
	counts := maps.Clone(refusals)
	var compiled, unchecked, large int
	eachSchema(t, func(path string, raw []byte) {
		schema, err := jsonschema.Compile(raw, nil)
		if err != nil {
			if isTooLarge(err) {
				large++
				return
			}
			for text := range counts {
				if strings.Contains(err.Error(), text) {
					counts[text]--
					return
				}
			}
			t.Errorf("%s: %v", path, err)
			return
		}
		compiled++
		if schema.Unchecked() != nil {
			unchecked++
		}
		for _, value := range []string{`{}`, `[]`, `"x"`, `7`, `null`} {
			if err := schema.Validate(t.Context(), []byte(value)); errors.Is(err, jsonschema.ErrTooMuchWork) {
				t.Errorf("%s: %s: %v", path, value, err)
			}
			schema.WithDefaults([]byte(value))
		}
		_ = schema.CheckDefaults() // real schemas have wrong ones
		jsonschema.Lint(raw)
	})
	for text, left := range counts {
		if left != 0 {
			t.Errorf("%d schemas are refused for %q, not %d", refusals[text]-left, text, refusals[text])
		}
	}
	t.Logf("%d schemas are compiled, %d of them with keywords that are not checked; %d are too large, and %v are refused", compiled, unchecked, large, refusals)
}

// isTooLarge reports whether Compile refuses a schema for its size. A few describe the files
// of whole programs and are larger than any schema of a tool may be.
func isTooLarge(err error) bool {
	return strings.Contains(err.Error(), "exceeds the limit") || strings.Contains(err.Error(), "more values") ||
		strings.Contains(err.Error(), "the JSON pointers")
}

// eachSchema calls fn for each schema of the store. It skips the test without the store.
func eachSchema(t *testing.T, fn func(path string, raw []byte)) {
	t.Helper()
	dir := os.Getenv("PSI_SCHEMAS")
	if dir == "" {
		t.Skip("run.sh sets PSI_SCHEMAS")
	}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fn(path[len(dir):], bytes.ReplaceAll(raw, []byte("http://json-schema-org/"), []byte("http://json-schema.org/"))) // the package has it wrong
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
