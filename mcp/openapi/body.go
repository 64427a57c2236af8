// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"path"
	"slices"
	"strings"
)

// file reports whether a member of a multipart body is a file, or a list of files, and of which
// media type, if that is known.
func (b *body) file(schema any, d *document) (mediaType string, ok bool) {
	if baseType(b.mediaType) != "multipart/form-data" {
		return "", false
	}
	obj, err := d.resolve(schema)
	if err != nil {
		return "", false
	}
	if items := obj["items"]; items != nil {
		if obj, err = d.resolve(items); err != nil {
			return "", false
		}
	}
	if mediaType = text(obj, "contentMediaType"); text(obj, "contentEncoding") == "" && !isText(mediaType) {
		return mediaType, true // OpenAPI 3.1; in an encoding, it would be a text
	}
	return "", text(obj, "format") == "binary"
}

// fileSchema returns the schema of the argument for a file, or for a list of files.
func fileSchema(member any) map[string]any {
	s := map[string]any{
		"type": "object", "description": "A file: its text, or its data in base64.",
		"properties": map[string]any{
			"name": map[string]any{"type": "string", "description": "file name"},
			"text": map[string]any{"type": "string"}, "base64": map[string]any{"type": "string"},
		},
		"additionalProperties": false,
	}
	obj, _ := member.(map[string]any)
	if about := description(obj); about != "" {
		s["description"] = about + " (a file: its text, or its data in base64)"
	}
	if obj["items"] != nil {
		return map[string]any{"type": "array", "items": s}
	}
	return s
}

// argument returns the schema of a body that is one argument.
func (b *body) argument(c *converter, depth int) map[string]any {
	var s map[string]any
	switch base := baseType(b.mediaType); {
	case isJSON(base) || base == "application/x-www-form-urlencoded" || base == "multipart/form-data":
		s = c.schema(b.schema, depth)
	case strings.HasPrefix(base, "text/") || strings.HasSuffix(base, "xml") || strings.HasSuffix(base, "yaml"):
		if s = c.schema(b.schema, depth); s["type"] != "string" {
			s = map[string]any{"type": "string"}
		}
		if s["description"] == nil {
			s["description"] = "The body, of the type " + base + "."
		}
	default:
		s = fileSchema(nil)
	}
	if b.about != "" && s["$ref"] == nil {
		s["description"] = b.about
	}
	return s
}

// encodeBody returns the body of a request and its type, which is "" if there is none.
func (op *Operation) encodeBody(d *document, args arguments) (_ []byte, contentType string, err error) {
	b := op.body
	if b == nil {
		return nil, "", nil
	}
	value, given := args[b.arg]
	if b.arg == "" {
		members := map[string]any{}
		for _, f := range b.fields {
			if v, ok := args[f.arg]; ok {
				members[f.name] = v
			}
		}
		value, given = members, len(members) > 0 || b.required
	}
	if !given {
		return nil, "", nil
	}
	value = whole(value)
	members, _ := value.(map[string]any)
	switch base := baseType(b.mediaType); {
	case isJSON(base):
		encoded, err := json.Marshal(value)
		return encoded, b.mediaType, err
	case base == "application/x-www-form-urlencoded":
		encoded, err := b.form(members, d)
		return encoded, base, err
	case base == "multipart/form-data":
		return b.multipart(members, d)
	}
	if s, ok := value.(string); ok {
		return []byte(s), b.mediaType, nil
	}
	_, data, err := fileOf(value)
	return data, b.mediaType, err
}

func (b *body) form(members map[string]any, d *document) ([]byte, error) {
	var pairs []string
	obj, _ := d.resolve(b.schema)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		v := members[name]
		encoding := object(b.encoding, name)
		style := cmpOr(text(encoding, "style"), "form")
		explode, said := encoding["explode"].(bool)
		if _, isObject := v.(map[string]any); isObject && text(encoding, "style") == "" && !said {
			v = scalarText(v) // JSON
		}
		if v != nil {
			added := queryPairs(name, v, style, explode || !said && style == "form", "", escapeQuery)
			if err := checkNames(name, added, func(other string) bool {
				for own := range object(obj, "properties") {
					if own != name && strings.EqualFold(own, other) {
						return true
					}
				}
				return false
			}); err != nil {
				return nil, err
			}
			pairs = append(pairs, added...)
		}
	}
	return []byte(strings.Join(pairs, "&")), nil
}

func (b *body) multipart(members map[string]any, d *document) ([]byte, string, error) {
	var buf bytes.Buffer
	w := multipart.NewWriter(&buf)
	obj, _ := d.resolve(b.schema)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		values, isList := members[name].([]any)
		if !isList {
			values = []any{members[name]}
		}
		mediaType, isFile := b.file(object(obj, "properties")[name], d)
		mediaType = cmpOr(text(object(b.encoding, name), "contentType"), mediaType)
		for _, v := range values {
			if err := writePart(w, name, mediaType, v, isFile); err != nil {
				return nil, "", fmt.Errorf("the argument %s: %w", name, err)
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, "", err
	}
	return buf.Bytes(), w.FormDataContentType(), nil
}

func writePart(w *multipart.Writer, name, mediaType string, v any, isFile bool) error {
	if v == nil {
		return nil
	}
	disposition := map[string]string{"name": name}
	data, contentType := []byte(scalarText(v)), ""
	if isFile {
		filename, content, err := fileOf(v)
		if err != nil {
			return err
		}
		disposition["filename"], data, contentType = filename, content, "application/octet-stream"
	} else if kind := kindOf(v); kind == "object" || kind == "array" {
		contentType = "application/json"
	}
	contentType = partType(mediaType, disposition["filename"], data, contentType)
	header := textproto.MIMEHeader{"Content-Disposition": {"form-data; name=" + quoted(disposition["name"])}}
	if isFile {
		header.Set("Content-Disposition", header.Get("Content-Disposition")+"; filename="+quoted(disposition["filename"]))
	}
	if contentType != "" {
		header.Set("Content-Type", contentType)
	}
	part, err := w.CreatePart(header)
	if err != nil {
		return err
	}
	_, err = part.Write(data)
	return err
}

// partType returns the type of a part: among the declared ones, that of its content or its
// name, or the first.
func partType(declared, filename string, data []byte, otherwise string) string {
	var types []string
	for t := range strings.SplitSeq(declared, ",") {
		if t = strings.TrimSpace(t); t != "" && !strings.ContainsFunc(t, isControl) && !strings.Contains(t, "*") {
			types = append(types, t)
		}
	}
	for _, known := range []string{http.DetectContentType(data), mime.TypeByExtension(path.Ext(filename))} {
		if i := slices.IndexFunc(types, func(t string) bool { return baseType(t) == baseType(known) }); i >= 0 {
			return types[i]
		}
	}
	return append(types, otherwise)[0]
}

// quoted escapes a name in a Content-Disposition, as browsers do.
func quoted(s string) string {
	return `"` + strings.NewReplacer("\\", "\\\\", `"`, "%22", "\r", "%0D", "\n", "%0A").Replace(s) + `"`
}

// fileOf returns the name and the content of a file argument: a text, or an object as
// fileSchema describes.
func fileOf(v any) (name string, data []byte, err error) {
	if s, ok := v.(string); ok {
		return "file.txt", []byte(s), nil
	}
	obj, _ := v.(map[string]any)
	name = path.Base(strings.ReplaceAll(text(obj, "name"), "\\", "/"))
	if name == "." || name == "/" || name == ".." {
		name = "file"
	}
	if encoded := text(obj, "base64"); encoded != "" {
		data, err = base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return "", nil, errors.New("base64 is not valid")
		}
		return name, data, nil
	}
	return name, []byte(text(obj, "text")), nil
}
