// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/go-psi/psi/internal/schematree"
)

// Limits of a document. GitHub's has 13 MB and 900,000 values, that of Microsoft Graph 20 MB.
const (
	maxDocument = 32 << 20
	maxValues   = 4_000_000
	maxNesting  = 512
	maxHops     = 32 // references from one to the next

	// The operations after these are left out. Microsoft Graph has 11,400.
	maxOperations = 20_000
)

// parseDocument decodes JSON or YAML into maps, slices, strings, booleans and json.Numbers.
func parseDocument(raw []byte) (map[string]any, error) {
	if len(raw) > maxDocument {
		return nil, fmt.Errorf("openapi: the document has %d bytes, more than %d", len(raw), maxDocument)
	}
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	var value any
	if head := bytes.TrimLeft(raw, " \t\r\n"); len(head) > 0 && head[0] == '{' {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if d.Decode(&value) == nil {
			root, _ := value.(map[string]any)
			return root, checkNesting(root, maxNesting, new(int))
		}
	}
	var node yaml.Node
	if err := yaml.Load(raw, &node); err != nil {
		return nil, fmt.Errorf("openapi: the document is neither JSON nor YAML: %w", err)
	}
	if node.Kind != yaml.DocumentNode || len(node.Content) != 1 {
		return nil, errors.New("openapi: the document is empty")
	}
	value, err := new(yamlReader).value(node.Content[0], 0)
	if err != nil {
		return nil, err
	}
	root, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("openapi: the document is not an object")
	}
	return root, nil
}

func checkNesting(v any, depth int, count *int) error {
	if *count++; depth == 0 || *count > maxValues {
		return errTooLarge
	}
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			if err := checkNesting(inner, depth-1, count); err != nil {
				return err
			}
		}
	case []any:
		for _, inner := range v {
			if err := checkNesting(inner, depth-1, count); err != nil {
				return err
			}
		}
	}
	return nil
}

var errTooLarge = fmt.Errorf("openapi: the document has more than %d values, or is nested more than %d deep", maxValues, maxNesting)

// A yamlReader turns YAML into JSON values. It counts the values of an alias each time that
// the alias is used.
type yamlReader struct{ count int }

func (r *yamlReader) value(n *yaml.Node, depth int) (any, error) {
	if r.count++; r.count > maxValues || depth > maxNesting {
		return nil, errTooLarge
	}
	switch n.Kind {
	case yaml.AliasNode:
		return r.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, c := range n.Content {
			var err error
			if list[i], err = r.value(c, depth+1); err != nil {
				return nil, err
			}
		}
		return list, nil
	case yaml.MappingNode:
		return r.object(n, depth)
	case yaml.ScalarNode:
		return scalar(n), nil
	}
	return nil, fmt.Errorf("openapi: line %d: YAML that is no JSON", n.Line)
}

func (r *yamlReader) object(n *yaml.Node, depth int) (any, error) {
	obj := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		value, err := r.value(n.Content[i+1], depth+1)
		if err != nil {
			return nil, err
		}
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("openapi: line %d: a key that is no text", key.Line)
		}
		if key.Tag == "!!merge" {
			mergeYAML(obj, value)
			continue
		}
		obj[key.Value] = value
	}
	return obj, nil
}

// mergeYAML adds the members of value, an object or a list of objects, that obj does not have.
func mergeYAML(obj map[string]any, value any) {
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			mergeYAML(obj, v)
		}
	case map[string]any:
		for k, v := range value {
			if _, own := obj[k]; !own {
				obj[k] = v
			}
		}
	}
}

// scalar returns the JSON value of a scalar. Dates are strings.
func scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value)
		}
		var f float64
		if n.Decode(&f) == nil && !math.IsInf(f, 0) && !math.IsNaN(f) {
			return json.Number(fmt.Sprint(f))
		}
	}
	return n.Value
}

// resolve follows references until it finds an object, which may be v. References to other
// documents are not resolved.
func (d *document) resolve(v any) (map[string]any, error) {
	for range maxHops {
		obj, ok := v.(map[string]any)
		if !ok {
			return nil, errors.New("an object is missing in the document")
		}
		ref, ok := obj["$ref"].(string)
		if !ok {
			return obj, nil
		}
		if v, ok = d.lookup(ref); !ok {
			return nil, fmt.Errorf("the reference %q cannot be resolved", excerpt(ref))
		}
	}
	return nil, errors.New("a reference leads back to itself")
}

func (d *document) lookup(ref string) (any, bool) {
	pointer, local := schematree.LocalRef(ref)
	if !local {
		return nil, false
	}
	return schematree.Lookup(any(d.root), schematree.Split(pointer))
}

func text(obj map[string]any, key string) string { s, _ := obj[key].(string); return s }

func object(obj map[string]any, key string) map[string]any {
	inner, _ := obj[key].(map[string]any)
	return inner
}

func list(obj map[string]any, key string) []any { l, _ := obj[key].([]any); return l }

func flag(obj map[string]any, key string) bool { b, _ := obj[key].(bool); return b }

func texts(l []any) (out []string) {
	for _, v := range l {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// A document is an OpenAPI document of version 3, or one of version 2 whose operations are
// rewritten as they are read.
type document struct {
	root      map[string]any
	isSwagger bool // version 2.0
	cycles    *cycles
	work      int                // see maxWork
	reads     int                // see maxReads
	outputs   map[string]*output // by reference

	credentials map[credential]bool
}

func newDocument(raw []byte) (*document, error) {
	root, err := parseDocument(raw)
	if err != nil {
		return nil, err
	}
	d := &document{root: root, outputs: map[string]*output{}}
	d.cycles = newCycles(d)
	version := scalarText(root["openapi"]) // without quotes, YAML has a number
	swagger := scalarText(root["swagger"])
	switch {
	case strings.HasPrefix(version, "3."):
	case swagger == "2.0":
		d.isSwagger = true
	default:
		version = cmpOr(version, swagger)
		return nil, fmt.Errorf("openapi: version %q is not 2.0 or 3.x", excerpt(version))
	}
	d.credentials = d.readCredentials()
	return d, nil
}

// basePath returns the path of the first server of the document.
func (d *document) basePath() string {
	base := text(d.root, "basePath")
	if servers := list(d.root, "servers"); len(servers) > 0 {
		server, _ := servers[0].(map[string]any)
		base = pathOf(text(server, "url"))
	}
	base = strings.TrimRight(base, "/")
	if !strings.HasPrefix(base, "/") || strings.ContainsAny(base, "{}?#%\\") || strings.Contains(base, "//") || strings.Contains(base, "/..") {
		return ""
	}
	return base
}

// pathOf returns the path of a URL, which may have variables.
func pathOf(url string) string {
	if _, rest, ok := strings.Cut(url, "://"); ok {
		_, path, _ := strings.Cut(rest, "/")
		return "/" + path
	}
	return url
}
