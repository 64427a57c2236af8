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
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/jsonschema"
)

// dialects maps the folders of the suite to the value of "$schema" that they imply.
var dialects = map[string]string{
	"draft4":       "http://json-schema.org/draft-04/schema#",
	"draft6":       "http://json-schema.org/draft-06/schema#",
	"draft7":       "http://json-schema.org/draft-07/schema#",
	"draft2019-09": "https://json-schema.org/draft/2019-09/schema",
	"draft2020-12": "https://json-schema.org/draft/2020-12/schema",
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
	`optional/ecmascript-regex.json: \a is not an ECMA 262 control escape: `: `\a is valid in Go`,
	`optional/content.json: `:                                            "contentEncoding and contentMediaType are annotations in later dialects, and here in all",
	`optional/zeroTerminatedFloats.json: `:                               "1.0 is an integer in later dialects, and here in all",
	`optional/format-assertion.json: schema that uses custom metaschema`: "no custom dialects",
	`vocabulary.json: `:                                                  "no custom dialects",
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
	dir := suite(t)
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
	for draft, uri := range dialects {
		eachFile(t, filepath.Join(dir, draft), func(path string, groups []group) {
			format, isFormat := strings.CutPrefix(path, "optional/format/")
			if format = strings.TrimSuffix(format, ".json"); isFormat && !slices.Contains([]string{"date", "date-time", "email", "uri"}, format) {
				return // never asserted
			}
			for _, g := range groups {
				counts.groups++
				name := path + ": " + g.Description
				schema, err := jsonschema.Compile(withDialect(t, g.Schema, uri), &jsonschema.Options{AssertFormats: isFormat})
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
	if counts.tests < 5000 {
		t.Errorf("the suite has only %d values", counts.tests)
	}
}

// suiteModule is a module whose archive contains the JSON Schema Test Suite, which itself is
// published neither as a Go module nor as an npm package. No code of it is built.
const (
	suiteModule = "github.com/kaptinlin/jsonschema@v0.9.3"
	suiteSum    = "h1:uDVd3w4aXwO0tbycblKYvFofhl3hVuE31vOl5JkDXI0="
)

// suite returns the folder of the tests. It skips the test if PSI_SCHEMAS is not set.
func suite(t *testing.T) string {
	t.Helper()
	if os.Getenv("PSI_SCHEMAS") == "" {
		t.Skip("run.sh sets PSI_SCHEMAS")
	}
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", suiteModule).Output()
	var module struct{ Dir, Sum string }
	if err != nil || json.Unmarshal(out, &module) != nil || module.Sum != suiteSum {
		t.Fatalf("cannot download the suite: %v, %s", err, out)
	}
	return filepath.Join(module.Dir, "testdata", "JSON-Schema-Test-Suite", "tests")
}

// eachFile calls fn for each file below dir with its path in dir.
func eachFile(t *testing.T, dir string, fn func(path string, groups []group)) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
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
