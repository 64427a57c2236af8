// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package bounds_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/go-psi/psi/jsonschema"
)

// hungrySchemas need much memory for their length, each for another reason.
var hungrySchemas = map[string]string{
	"schemas":                  `{"allOf":[` + listed(9900, `{}`) + `]}`,
	"schemas in schemas":       `{"allOf":[` + listed(4900, `{"not":{}}`) + `]}`,
	"items":                    `{"allOf":[` + listed(4900, `{"items":{}}`) + `]}`,
	"properties":               `{"allOf":[` + listed(3300, `{"properties":{"a":{}}}`) + `]}`,
	"proven properties":        `{"properties":{` + listed(9900, `"#":{}`) + `}}`,
	"defaults":                 `{"properties":{` + listed(4900, `"#":{"default":{}}`) + `}}`,
	"pattern properties":       `{"allOf":[` + listed(3300, `{"patternProperties":{"a#":{}}}`) + `]}`,
	"numbers":                  `{"allOf":[` + listed(1600, `{"minimum":1e1000,"maximum":1e-1000,"multipleOf":1e-997}`) + `]}`,
	"anchors":                  `{"allOf":[` + listed(4900, `{"$dynamicAnchor":"a#"}`) + `]}`,
	"ids":                      `{"allOf":[` + listed(4900, `{"$id":"a#"}`) + `]}`,
	"long pointers":            `{"not":{"properties":{"` + strings.Repeat("x", 1000) + `":{"allOf":[` + listed(4000, `{}`) + `]}}}}`,
	"long names":               `{"not":false,"properties":{` + listed(3900, `"#`+strings.Repeat("n", 250)+`":{}`) + `}}`,
	"a large pattern":          `{"not":false,"pattern":"` + strings.Repeat(`b{990}`, 45) + `"}`,
	"a pattern of groups":      `{"not":false,"pattern":"` + strings.Repeat(`(x)`, 30_000) + `"}`,
	"a pattern of choices":     `{"not":false,"pattern":"` + strings.Repeat(`(?:x|ya)`, 15_000) + `"}`,
	"patterns":                 `{"allOf":[` + listed(4800, `{"pattern":"^#$"}`) + `]}`,
	"patterns of choices":      `{"allOf":[` + listed(4500, `{"pattern":"^#(a|b|c)*$"}`) + `]}`,
	"patterns with repetition": `{"allOf":[` + listed(180, `{"pattern":"^#b{230}$"}`) + `]}`,
	"patterns with classes":    `{"allOf":[` + listed(900, `{"pattern":"^#\\d{45}$"}`) + `]}`,
}

// listed returns n copies of part as a list, with different numbers instead of "#".
func listed(n int, part string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(part, "#", fmt.Sprint(i))
	}
	return strings.Join(parts, ",")
}

// Size is never less than what a schema uses, also after it was used.
func TestSizeOfSchemas(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector makes this slow")
	}
	for name, text := range hungrySchemas {
		t.Run(name, func(t *testing.T) {
			var schema *jsonschema.Schema
			var kept int64
			for kept <= 0 { // what an earlier test has left behind may be freed meanwhile
				before := liveMemory()
				var err error
				if schema, err = jsonschema.Compile([]byte(text), nil); err != nil {
					t.Fatal(err)
				}
				_ = schema.Validate(t.Context(), []byte(`1`)) // compiles the validator
				_ = schema.WithDefaults([]byte(`{}`))
				kept = liveMemory() - before
			}
			size := int64(schema.Size())
			t.Logf("%d bytes use %.1f MiB, of at most %.1f", len(text), float64(kept)/mib, float64(size)/mib)
			if kept > size {
				t.Errorf("it uses %d bytes, want at most %d", kept, size)
			}
			if most := 8 * kept; size > most {
				t.Errorf("Size is %d, want at most %d", size, most)
			}
			runtime.KeepAlive(schema)
		})
	}
}
