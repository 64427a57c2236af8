// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/jsonschema"
)

// Limits of the schema of one tool. A schema beyond them is cut at a lower depth, until it
// fits; what is cut off allows any value.
const (
	maxSchemaNodes = 4000 // of arguments; of a result, outputShare of it, as of the bytes
	maxSchemaBytes = 128 << 10
	maxCopied      = 1 << 20 // bytes, see copies: parts of allOf are merged again wherever they are
	outputShare    = 4
	maxDefs        = 16      // recursive definitions
	maxText        = 2048    // bytes of a description
	maxTypes       = 16      // of one value
	maxParts       = 8       // of an allOf that are looked at to find out whether a property is read-only
	maxWork        = 6 << 20 // parts of schemas of a document, in all attempts
)

// cuts are the depths of the attempts, with the recursive definitions that each may have.
var cuts = []struct{ depth, defs int }{{24, maxDefs}, {8, maxDefs}, {5, maxDefs}, {3, maxDefs}, {3, 0}, {2, 0}, {1, 0}, {0, 0}}

// A converter rewrites schemas of OpenAPI as JSON Schema that the clients of all model
// providers accept (see [jsonschema.Lint]): references are replaced by what they refer to,
// unless they are recursive.
type converter struct {
	d        *document
	output   bool // allow more than the document does, because answers often do not conform to it
	nodes    int
	copied   int               // see copies
	patterns int               // instructions of the regular expressions
	most     int               // nodes
	limit    int               // of definitions
	names    map[string]string // definitions, by reference
	defs     map[string]any
	queue    []string
	err      error
}

// fit returns the JSON of the schema that build makes with a converter, cut at the largest
// depth at which it is small and without findings.
func (d *document) fit(output bool, build func(c *converter, depth int) map[string]any) (json.RawMessage, error) {
	var reason error
	mostNodes, mostBytes := maxSchemaNodes, maxSchemaBytes
	if output {
		mostNodes, mostBytes = mostNodes/outputShare, mostBytes/outputShare
	}
	for _, cut := range cuts {
		if d.work > maxWork {
			return nil, errors.New("the schemas of the document are too large")
		}
		c := &converter{d: d, output: output, most: mostNodes, limit: cut.defs, names: map[string]string{}, defs: map[string]any{}}
		schema := build(c, cut.depth)
		c.define(cut.depth)
		d.work += c.work()
		if c.err != nil {
			return nil, c.err
		}
		if c.isFull() {
			if reason = fmt.Errorf("the schema has more than %d parts", mostNodes); c.copied > maxCopied {
				reason = fmt.Errorf("the schema has more than %d bytes", mostBytes)
			}
			continue
		}
		if len(c.defs) > 0 {
			schema["$defs"] = c.defs
		}
		raw, err := json.Marshal(schema)
		if err != nil {
			return nil, err
		}
		if len(raw) > mostBytes {
			reason = fmt.Errorf("the schema has more than %d bytes", mostBytes)
			continue
		}
		if reason = findings(raw, output); reason == nil {
			return raw, nil
		}
	}
	return nil, reason
}

func findings(raw []byte, output bool) error {
	if output {
		_, err := jsonschema.Compile(raw, nil)
		return err
	}
	if found := jsonschema.Lint(raw); found != nil {
		return fmt.Errorf("schema: %v", found[0])
	}
	return nil
}

// isFull reports that an attempt has failed.
func (c *converter) isFull() bool { return c.nodes > c.most || c.copied > maxCopied }

// copies counts bytes of names and values before they are copied, because references can repeat
// a long list often. It reports whether to go on.
func (c *converter) copies(bytes int) bool {
	c.copied += bytes
	return !c.isFull()
}

const (
	perName      = 2   // bytes of a name, at least
	bytesPerNode = 512 // that cost as much as a part of a schema
)

// work returns how much of [maxWork] an attempt has used.
func (c *converter) work() int {
	return c.nodes + c.copied/bytesPerNode + c.patterns/instructionsPerNode
}

func (c *converter) define(depth int) {
	for len(c.queue) > 0 && !c.isFull() {
		ref := c.queue[0]
		c.queue = c.queue[1:]
		target, _ := c.d.lookup(ref)
		c.defs[c.names[ref]] = c.schema(target, depth)
	}
}

// everyType lists the types that allow any value.
var everyType = []string{"array", "boolean", "null", "number", "object", "string"}

// free returns a schema that allows any value, as package jsonschema writes it.
func free() map[string]any {
	return map[string]any{"type": everyType, "properties": map[string]any{}, "items": map[string]any{}}
}

// cut returns a schema that allows any value of the type of a schema.
func (c *converter) cut(v any) map[string]any {
	obj, err := c.d.resolve(v)
	if err != nil {
		return free()
	}
	switch types, nullable := typesOf(obj); {
	case nullable || len(types) != 1:
		return free()
	case types[0] == "object":
		return map[string]any{"type": "object", "properties": map[string]any{}}
	case types[0] == "array":
		return map[string]any{"type": "array", "items": free()}
	default:
		return map[string]any{"type": types[0]}
	}
}

// schema converts a schema. Below depth, every value of the type is allowed.
func (c *converter) schema(v any, depth int) map[string]any {
	if c.nodes++; c.isFull() {
		return free()
	}
	if depth <= 0 {
		return c.cut(v)
	}
	obj, ok := v.(map[string]any)
	if !ok {
		return free()
	}
	if ref, ok := obj["$ref"].(string); ok {
		return c.reference(ref, obj, depth)
	}
	if all := list(obj, "allOf"); len(all) > 0 {
		obj = c.merged(obj, depth)
		if ref, ok := obj["$ref"].(string); ok {
			return c.reference(ref, obj, depth)
		}
	}
	out := map[string]any{}
	c.about(obj, out)
	types, nullable := typesOf(obj)
	if some := c.alternatives(obj, depth); some != nil {
		if nullable && flag(obj, "nullable") {
			some = append(some, map[string]any{"type": "null"})
		}
		out["anyOf"] = some
		return out
	}
	types, nullable = c.values(obj, out, types, nullable)
	if len(types) == 0 && nullable && !c.output && !flag(obj, "nullable") && !flag(obj, "x-nullable") {
		out["type"] = "null"
		return out
	}
	if len(types) == 0 {
		types = everyType
	}
	if len(types) == 1 {
		out["type"] = types[0]
	} else {
		out["type"] = types
	}
	c.assertions(obj, out, types)
	if slices.Contains(types, "object") {
		c.members(obj, out, depth)
	}
	if slices.Contains(types, "array") {
		c.items(obj, out, types, depth)
	}
	if nullable && !slices.Contains(types, "null") {
		return orNull(out)
	}
	return out
}

// orNull returns a schema that allows null, too. A list of two types is what some clients
// reject.
func orNull(s map[string]any) map[string]any {
	out := map[string]any{"anyOf": []any{s, map[string]any{"type": "null"}}}
	for _, key := range []string{"title", "description"} {
		if v, ok := s[key]; ok {
			out[key] = v
			delete(s, key)
		}
	}
	return out
}

func (c *converter) items(obj, out map[string]any, types []string, depth int) {
	switch items := obj["items"].(type) {
	case map[string]any:
		if enum := list(obj, "enum"); len(enum) > 0 && isScalar(enum[0]) && items["enum"] == nil && items["$ref"] == nil {
			items = maps.Clone(items) // the values are meant for the items
			items["enum"] = enum
		}
		out["items"] = c.schema(items, depth-1)
	default:
		out["items"] = free()
		if len(types) >= 6 {
			out["items"] = map[string]any{}
		}
	}
}

func (c *converter) reference(ref string, obj map[string]any, depth int) map[string]any {
	target, ok := c.d.lookup(ref)
	if !ok {
		if c.err == nil {
			c.err = fmt.Errorf("the reference %q cannot be resolved", excerpt(ref))
		}
		return free()
	}
	if c.d.cycles.isRecursive(ref) {
		name, known := c.names[ref]
		if !known && len(c.names) >= c.limit {
			return c.cut(target)
		}
		if !known {
			name = c.defName(ref)
			c.names[ref] = name
			c.queue = append(c.queue, ref)
		}
		return map[string]any{"$ref": "#/$defs/" + name}
	}
	out := c.schema(target, depth)
	if about := description(obj); about != "" { // 3.1 allows it beside a reference
		out["description"] = about
	}
	return out
}

var notPlain = regexp.MustCompile(`[^A-Za-z0-9_]+`)

func (c *converter) defName(ref string) string {
	base := strings.Trim(notPlain.ReplaceAllString(ref[strings.LastIndexByte(ref, '/')+1:], "_"), "_")
	base = cmpOr(base[:min(len(base), 48)], "Schema")
	name := base
	for n := 2; slices.Contains(slices.Collect(maps.Values(c.names)), name); n++ {
		name = fmt.Sprint(base, n)
	}
	return name
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (c *converter) about(obj, out map[string]any) {
	if title := printable.Line(excerpt(text(obj, "title"))); title != "" {
		out["title"] = title
	}
	if about := description(obj); about != "" {
		out["description"] = about
	}
}

func description(obj map[string]any) string {
	return longText(obj, "description")
}

// longText returns a text of several lines. Most of a text that is far too long is not looked
// at, because references can repeat it often.
func longText(obj map[string]any, key string) string {
	s := text(obj, key)
	if len(s) > 4*maxText {
		s = cut(s, 4*maxText)
	}
	return cut(printable.Text(strings.TrimSpace(s)), maxText)
}

// cut returns the first n bytes of s, at the boundary of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

func excerpt(s string) string { return cut(s, 200) }

// typesOf returns the types of a schema, without null, and whether it allows null.
func typesOf(obj map[string]any) (types []string, nullable bool) {
	nullable = flag(obj, "nullable") || flag(obj, "x-nullable")
	some := list(obj, "type")
	for _, t := range append(texts(some[:min(len(some), maxTypes)]), text(obj, "type")) {
		switch t {
		case "null":
			nullable = true
		case "file":
			types = append(types, "string")
		case "string", "number", "integer", "boolean", "object", "array":
			if !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
	}
	if len(types) > 0 {
		return types, nullable
	}
	switch {
	case obj["properties"] != nil || obj["additionalProperties"] != nil:
		types = []string{"object"}
	case obj["items"] != nil:
		types = []string{"array"}
	}
	return types, nullable
}

func isScalar(v any) bool { k := kindOf(v); return k != "object" && k != "array" }

// members converts the properties of an object. Properties with names that some providers
// reject are named in the description: further members are allowed for them.
func (c *converter) members(obj, out map[string]any, depth int) {
	props := map[string]any{}
	if !c.copies(perName * len(object(obj, "properties"))) {
		return
	}
	var odd []string
	for _, name := range slices.Sorted(maps.Keys(object(obj, "properties"))) {
		if c.isFull() {
			break
		}
		property := object(obj, "properties")[name]
		if !c.output && c.d.isReadOnly(property) {
			continue
		}
		if !isPortable(name) {
			odd = append(odd, printable.Line(excerpt(name)))
			continue
		}
		props[name] = c.schema(property, depth-1)
	}
	out["properties"] = props
	if required := c.required(obj, props); required != nil {
		out["required"] = required
	}
	if len(odd) > 0 {
		about, _ := out["description"].(string)
		out["description"] = strings.TrimSpace(about + cut(fmt.Sprintf(" (further members: %q)", odd), maxText))
		return
	}
	switch additional := obj["additionalProperties"].(type) {
	case bool:
		if !additional && !c.output {
			out["additionalProperties"] = false
		}
	case map[string]any:
		if len(additional) > 0 {
			out["additionalProperties"] = c.schema(additional, depth-1)
		}
	}
}

// required returns the members that a request needs. Those that the schema does not describe
// become properties with any value.
func (c *converter) required(obj, props map[string]any) (required []string) {
	names := list(obj, "required")
	if c.output || !c.copies(perName*len(names)) {
		return nil
	}
	seen := map[string]bool{}
	for _, name := range texts(names) {
		if _, described := object(obj, "properties")[name]; !described && isPortable(name) && props[name] == nil {
			c.nodes++
			props[name] = free()
		}
		if _, ok := props[name]; ok && !seen[name] {
			seen[name], required = true, append(required, name)
		}
	}
	return required
}

// isReadOnly reports whether a property belongs to responses only. The property may be a
// reference, or a list allOf, often of a reference and this flag.
func (d *document) isReadOnly(property any) bool {
	obj, _ := property.(map[string]any)
	target, err := d.resolve(obj)
	if err != nil || flag(obj, "readOnly") || flag(target, "readOnly") {
		return flag(obj, "readOnly") || flag(target, "readOnly")
	}
	parts := list(target, "allOf")
	return slices.ContainsFunc(parts[:min(len(parts), maxParts)], func(part any) bool {
		inner, err := d.resolve(part)
		return err == nil && flag(inner, "readOnly")
	})
}

var portable = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

func isPortable(name string) bool { return portable.MatchString(name) }
