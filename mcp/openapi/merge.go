// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi

import (
	"maps"
	"slices"
)

// merged returns the schema with the members of allOf merged into it. A list of one
// recursive reference remains a reference.
func (c *converter) merged(obj map[string]any, depth int) map[string]any {
	all := list(obj, "allOf")
	if len(all) == 1 {
		inner, _ := all[0].(map[string]any)
		if ref := text(inner, "$ref"); ref != "" && len(object(obj, "properties")) == 0 && c.d.cycles.isRecursive(ref) {
			return map[string]any{"$ref": ref}
		}
	}
	// The properties and the required names of out are its own, and grow in place: copied for
	// each part, a few KiB of parts would take gigabytes.
	out, props := maps.Clone(obj), map[string]any{}
	delete(out, "allOf")
	maps.Copy(props, object(obj, "properties"))
	out["properties"], out["required"] = props, slices.Clone(list(obj, "required"))
	for _, part := range all {
		inner, err := c.d.resolve(part)
		if c.nodes++; err != nil || depth <= 0 || c.isFull() {
			if c.err == nil {
				c.err = err
			}
			continue
		}
		if len(list(inner, "allOf")) > 0 {
			inner = c.merged(inner, depth-1)
			if ref := text(inner, "$ref"); ref != "" {
				inner, _ = c.d.resolve(inner)
			}
		}
		if c.copies(perName * (len(object(inner, "properties")) + len(list(inner, "required")))) {
			mergeInto(out, inner)
		}
	}
	if len(props) == 0 {
		delete(out, "properties")
	}
	if len(list(out, "required")) == 0 {
		delete(out, "required")
	}
	return out
}

// mergeInto changes the properties and the required names of out, which are its own.
func mergeInto(out, inner map[string]any) {
	for key, value := range inner {
		switch key {
		case "properties":
			props := object(out, "properties")
			for name, p := range object(inner, "properties") {
				if own, ok := props[name]; !ok {
					props[name] = p
				} else if ref := text(asObject(p), "$ref"); ref == "" || ref != text(asObject(own), "$ref") {
					props[name] = map[string]any{"allOf": []any{own, p}}
				}
			}
		case "required":
			out["required"] = append(list(out, "required"), list(inner, "required")...)
		case "additionalProperties":
			if value == false { // it would forbid the members of the other parts
				continue
			}
			out[key] = value
		case "nullable", "x-nullable": // all parts would have to be
		default:
			if _, own := out[key]; !own {
				out[key] = value
			}
		}
	}
}
