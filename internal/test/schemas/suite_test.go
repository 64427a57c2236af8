// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package schemas_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/google/jsonschema-go/jsonschema" // its test data, see suite

	"github.com/go-psi/psi/jsonschema"
)

// A draft is a folder of the suite.
type draft struct {
	dir string
	uri string // the value of "$schema" that the folder implies
}

// A group is a schema with the values that are tested against it.
type group struct {
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Tests       []struct {
		Description string          `json:"description"`
		Data        json.RawMessage `json:"data"`
		Valid       bool            `json:"valid"`
	} `json:"tests"`
}

// exceptions are the known differences from the suite: files, groups of a file or single
// values, with the reason. They hold for every dialect.
var exceptions = map[string]string{
	`optional/format.json: `:               "formats are annotations unless they are asserted",
	`optional/zeroTerminatedFloats.json: `: "1.0 is an integer in later dialects, and here in all",
}

// exceptionFor returns the key of the exception for a result, or "".
func exceptionFor(name string) string {
	for key := range exceptions {
		if strings.HasPrefix(name, key) {
			return key
		}
	}
	return ""
}

// TestSuite runs the JSON Schema Test Suite. It fails if a result is not in the list of
// exceptions, and if an exception is not needed any more.
func TestSuite(t *testing.T) {
	drafts := suite(t)
	left := maps.Clone(exceptions)
	var counts struct{ groups, refused, tests, exceptions, unchecked int }
	report := func(draft, name, problem string) {
		key := exceptionFor(name)
		if key == "" {
			t.Errorf("%s/%s: %s", draft, name, problem)
		}
		counts.exceptions++
		delete(left, key)
	}
	for _, d := range drafts {
		draft, uri := filepath.Base(d.dir), d.uri
		eachFile(t, d.dir, func(path string, groups []group) {
			for _, g := range groups {
				counts.groups++
				name := path + ": " + g.Description
				schema, err := jsonschema.Compile(withDialect(t, g.Schema, uri), nil)
				if leaves := strings.Contains(string(g.Schema), "localhost:1234"); err != nil && leaves && strings.Contains(err.Error(), "leaves the schema") {
					counts.refused++
					continue
				}
				if err != nil {
					report(draft, name, err.Error())
					continue
				}
				unchecked := schema.Unchecked() != nil
				for _, test := range g.Tests {
					counts.tests++
					err := schema.Validate(t.Context(), test.Data)
					switch {
					case (err == nil) == test.Valid:
					case unchecked && !test.Valid:
						counts.unchecked++
					case test.Valid:
						report(draft, name+": "+test.Description, "a valid value is rejected: "+err.Error())
					default:
						report(draft, name+": "+test.Description, "an invalid value is accepted")
					}
				}
			}
		})
	}
	for key, reason := range left {
		t.Errorf("the exception for %q (%s) is not needed any more", key, reason)
	}
	t.Logf("%d schemas, of which %d are refused for a reference to another document; %d values, of which %d are exceptions and %d are not checked",
		counts.groups, counts.refused, counts.tests, counts.exceptions, counts.unchecked)
	if counts.tests < 2000 {
		t.Errorf("the suite has only %d values", counts.tests)
	}
}

// suite returns the drafts of the JSON Schema Test Suite. The newer ones are test data of
// another validator, and the oldest is an npm package. It skips the test if PSI_SCHEMAS is
// not set.
func suite(t *testing.T) []draft {
	t.Helper()
	if os.Getenv("PSI_SCHEMAS") == "" {
		t.Skip("run.sh sets PSI_SCHEMAS")
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/jsonschema-go").Output()
	if err != nil {
		t.Fatalf("cannot find the suite: %v", err)
	}
	newer := filepath.Join(strings.TrimSpace(string(out)), "jsonschema", "testdata")
	return []draft{
		{filepath.Join("node_modules", "json-schema-test-suite", "tests", "draft4"), "http://json-schema.org/draft-04/schema#"},
		{filepath.Join(newer, "draft7"), "http://json-schema.org/draft-07/schema#"},
		{filepath.Join(newer, "draft2020-12"), "https://json-schema.org/draft/2020-12/schema"},
	}
}

// eachFile calls fn for each file below dir with its path in dir.
func eachFile(t *testing.T, dir string, fn func(path string, groups []group)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var groups []group
		if err := json.Unmarshal(raw, &groups); err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		fn(filepath.ToSlash(relative), groups)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// withDialect returns a schema that says its dialect.
func withDialect(t *testing.T, schema json.RawMessage, uri string) []byte {
	t.Helper()
	if rest, isObject := strings.CutPrefix(strings.TrimSpace(string(schema)), "{"); isObject && !strings.Contains(rest, `"$schema"`) {
		separator := ","
		if strings.TrimSpace(rest) == "}" {
			separator = ""
		}
		return []byte(`{"$schema":"` + uri + `"` + separator + rest)
	}
	return schema
}
