// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi

import (
	"maps"
)

// styles are the values of collectionFormat, with the style and the delimiter.
var styles = map[string][2]string{
	"ssv": {"spaceDelimited", ""}, "pipes": {"pipeDelimited", ""}, "tsv": {"form", "\t"},
}

// upgrade returns an operation of version 2.0 in the form of version 3. Its parameters include
// those of the path.
func (d *document) upgrade(spec, item map[string]any) map[string]any {
	out := maps.Clone(spec)
	var params, form []any
	seen := map[string]bool{}
	for _, v := range append(append([]any{}, list(spec, "parameters")...), list(item, "parameters")...) {
		p, err := d.resolve(v)
		if err != nil {
			params = append(params, v) // which is reported when it is read
			continue
		}
		key := text(p, "in") + " " + text(p, "name")
		if seen[key] {
			continue
		}
		seen[key] = true
		switch text(p, "in") {
		case "body":
			out["requestBody"] = map[string]any{
				"required": p["required"], "description": p["description"],
				"content": d.content(spec, "consumes", p["schema"]),
			}
		case "formData":
			form = append(form, p)
		default:
			params = append(params, upgradeParam(p))
		}
	}
	out["parameters"] = params
	if len(form) > 0 {
		out["requestBody"] = upgradeForm(form, d.mediaTypes(spec, "consumes"))
	}
	responses := map[string]any{}
	for status, v := range object(spec, "responses") {
		response, err := d.resolve(v)
		if err != nil {
			responses[status] = v
			continue
		}
		response = maps.Clone(response)
		if response["schema"] != nil {
			response["content"] = d.content(spec, "produces", response["schema"])
		}
		responses[status] = response
	}
	out["responses"] = responses
	return out
}

func upgradeParam(p map[string]any) map[string]any {
	out := map[string]any{"name": p["name"], "in": p["in"], "required": p["required"], "description": p["description"], "schema": p}
	format := text(p, "collectionFormat")
	out["explode"] = format == "multi"
	if s, ok := styles[format]; ok {
		out["style"], out["x-delimiter"] = s[0], s[1]
	}
	return out
}

func upgradeForm(form []any, consumes []string) map[string]any {
	props := map[string]any{}
	var required []any
	mediaType := "application/x-www-form-urlencoded"
	for _, c := range consumes {
		if baseType(c) == "multipart/form-data" {
			mediaType = c
		}
	}
	for _, v := range form {
		p, _ := v.(map[string]any)
		p = maps.Clone(p)
		if flag(p, "required") {
			required = append(required, text(p, "name"))
		}
		if text(p, "type") == "file" {
			mediaType = "multipart/form-data"
			p["type"], p["format"] = "string", "binary"
		}
		delete(p, "required")
		props[text(p, "name")] = p
	}
	return map[string]any{
		"required": len(required) > 0,
		"content":  map[string]any{mediaType: map[string]any{"schema": map[string]any{"type": "object", "properties": props, "required": required}}},
	}
}

const maxMediaTypes = 32 // of bodies and of responses, each of which has them all

func (d *document) mediaTypes(spec map[string]any, key string) []string {
	types := list(spec, key)
	if len(types) == 0 {
		types = list(d.root, key)
	}
	return texts(types[:min(len(types), maxMediaTypes)])
}

func (d *document) content(spec map[string]any, key string, schema any) map[string]any {
	content := map[string]any{}
	for _, mediaType := range d.mediaTypes(spec, key) {
		content[mediaType] = map[string]any{"schema": schema}
	}
	if len(content) == 0 {
		content["application/json"] = map[string]any{"schema": schema}
	}
	return content
}
