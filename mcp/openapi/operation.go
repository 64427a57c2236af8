// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/mcp"
)

// An Operation is a method of a path of the document. [Options.Select] may change Tool, Shape
// and Resource.
type Operation struct {
	ID     string // operationId, or ""
	Method string // in upper case
	Path   string // as in the document, such as /pets/{id}
	Tags   []string

	// Deprecated reports that the document says so.
	Deprecated bool

	// Tool is what the operation becomes: its name, title, description and annotations. The
	// schemas are set after Select has returned.
	Tool *mcp.Tool

	// Shape hides, presets, renames or describes arguments of the tool, and changes its results.
	// Nil changes nothing. Arguments have the names that the tool has without it.
	Shape *mcp.Shape

	// Resource makes a GET operation a resource, or a template if it has parameters, instead of
	// a tool. Its URI is "api://" and the path, with the parameters of the query.
	Resource bool

	path     string // without query and fragment
	query    string // that the path has, or ""
	params   []*param
	body     *body
	produces []string
	schema   any  // of the response, or nil
	answers  bool // every documented response of success has that schema
}

// HasTag reports whether the operation has a tag.
func (op *Operation) HasTag(tag string) bool { return slices.Contains(op.Tags, tag) }

// name returns the name of the tool.
func (op *Operation) name() string {
	if op.Shape != nil && op.Shape.Name != "" {
		return op.Shape.Name
	}
	return op.Tool.Name
}

func (op *Operation) String() string {
	return printable.Line(excerpt(op.Method + " " + op.Path))
}

// A param is a parameter of an operation.
type param struct {
	name, in  string
	arg       string // the name of the argument
	about     string
	schema    any
	style     string
	explode   bool
	delimiter string // between the values of a list that is not exploded
	required  bool
	reserved  bool // allowReserved
	isJSON    bool // the value is JSON
}

// A body is the body of a request, in one of the types that the document allows.
type body struct {
	mediaType string
	schema    any
	encoding  map[string]any
	required  bool
	about     string

	arg    string          // the argument that is the body; "" if members are arguments
	fields []field         // otherwise
	needs  map[string]bool // fields that are required
}

// A field is a member of a body that is an argument.
type field struct{ name, arg string }

var methods = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace", "query"}

// operations returns the operations in the order of their paths. reject is called for those
// that cannot be called.
func (d *document) operations(reject func(op *Operation, err error)) (ops []*Operation) {
	paths, names, count := object(d.root, "paths"), map[string]bool{}, 0
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item, err := d.resolve(paths[path])
		if err != nil {
			reject(&Operation{Path: path}, err)
			continue
		}
		for _, method := range methods {
			raw, ok := item[method]
			if !ok {
				continue
			}
			op := &Operation{Method: strings.ToUpper(method), Path: path}
			if count++; count > maxOperations {
				reject(op, fmt.Errorf("the document has more than %d operations", maxOperations))
				return ops
			}
			spec, ok := raw.(map[string]any)
			if !ok {
				reject(op, errors.New("it is not an object"))
				continue
			}
			if err := d.read(op, item, spec); err != nil {
				reject(op, err)
				continue
			}
			if names[op.Tool.Name] {
				op.Tool.Name = pathName(op)
			}
			for n, name := 2, op.Tool.Name; names[op.Tool.Name]; n++ {
				op.Tool.Name = shorten(fmt.Sprintf("%s_%d", name, n))
			}
			names[op.Tool.Name] = true
			ops = append(ops, op)
		}
	}
	return ops
}

var pathVariable = regexp.MustCompile(`\{([^{}]*)\}`)

func (d *document) read(op *Operation, item, spec map[string]any) error {
	op.ID, op.Tags, op.Deprecated = text(spec, "operationId"), texts(list(spec, "tags")), flag(spec, "deprecated")
	if op.Method == http.MethodTrace || op.Method == http.MethodOptions {
		return fmt.Errorf("%s is of no use to a model", op.Method)
	}
	d.reads += len(list(spec, "parameters")) + len(list(item, "parameters")) + len(object(spec, "responses"))
	if d.reads > maxReads {
		return errors.New("the operations of the document are too large")
	}
	path, _, _ := strings.Cut(op.Path, "#")
	op.path, op.query, _ = strings.Cut(path, "?")
	if !strings.HasPrefix(path, "/") || strings.Contains(path, "\\") || strings.ContainsFunc(op.Path, isControl) || len(op.Path) > maxPath || !d.isQuery(op.query) {
		return errors.New("the path is not one of a URL")
	}
	if _, err := url.PathUnescape(op.path); err != nil {
		return errors.New("the path is not one of a URL")
	}
	if dots(op.path) != "" {
		return errors.New("the path leaves the API")
	}
	var shared []any
	if d.isSwagger {
		spec = d.upgrade(spec, item)
	} else {
		shared = list(item, "parameters")
	}
	if err := d.readParams(op, slices.Concat(list(spec, "parameters"), shared)); err != nil {
		return err
	}
	for _, variable := range pathVariable.FindAllStringSubmatch(op.path, -1) {
		if !slices.ContainsFunc(op.params, func(p *param) bool { return p.in == "path" && p.name == variable[1] }) {
			op.params = append(op.params, &param{name: variable[1], in: "path", style: "simple", required: true, schema: map[string]any{"type": "string"}})
		}
	}
	if err := d.readBody(op, spec); err != nil {
		return err
	}
	if err := d.readResponses(op, spec); err != nil {
		return err
	}
	op.nameArguments(d)
	op.Tool = &mcp.Tool{
		Name: toolName(op), Title: printable.Line(excerpt(text(spec, "summary"))), Description: op.describe(spec),
		Annotations: annotations(op.Method),
	}
	return nil
}

// isQuery reports whether a query can be sent as it is.
func (d *document) isQuery(query string) bool {
	pairs := strings.Split(query, "&")
	_, err := url.ParseQuery(query)
	return err == nil && !strings.ContainsFunc(query, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`{}<>"\^|`, r) }) &&
		len(d.withoutCredentials(slices.Clone(pairs))) == len(pairs)
}

// maxReads bounds the parameters and responses that are read: paths can share an operation by
// references.
const maxReads = 1 << 20

const maxPath = 2000 // bytes

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func (op *Operation) describe(spec map[string]any) string {
	summary, about := longText(spec, "summary"), description(spec)
	switch {
	case summary == "" && about == "":
		about = op.String()
	case about == "" || about == summary:
		about = summary
	case summary != "" && !strings.HasPrefix(about, strings.TrimRight(summary, ".")):
		about = cut(strings.TrimRight(summary, ".")+".\n"+about, maxText)
	}
	if op.Deprecated {
		about = "Deprecated. " + about
	}
	return about
}

func annotations(method string) *mcp.ToolAnnotations {
	a := &mcp.ToolAnnotations{}
	switch method {
	case "GET", "HEAD", "QUERY":
		a.ReadOnlyHint = new(true)
	case "PUT":
		a.IdempotentHint = new(true)
	case "DELETE":
		a.IdempotentHint, a.DestructiveHint = new(true), new(true)
	}
	return a
}

const maxName = 64 // characters of the name of a tool that every provider accepts

var notName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

func toolName(op *Operation) string {
	name := strings.Trim(notName.ReplaceAllString(op.ID, "_"), "_")
	if name == "" {
		return pathName(op)
	}
	return shorten(name)
}

func pathName(op *Operation) string {
	path := pathVariable.ReplaceAllString(op.Path, "by_$1")
	return shorten(strings.TrimRight(strings.ToLower(op.Method)+"_"+strings.Trim(notName.ReplaceAllString(path, "_"), "_"), "_"))
}

// shorten returns the name, or its start and a hash, so that different names remain different.
func shorten(name string) string {
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return name[:maxName-9] + "_" + hex.EncodeToString(sum[:4])
}
