// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi

import (
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// baseType returns a media type without parameters, in lower case.
func baseType(mediaType string) string {
	base, _, err := mime.ParseMediaType(mediaType)
	if err != nil {
		base, _, _ = strings.Cut(strings.ToLower(mediaType), ";")
	}
	return strings.TrimSpace(base)
}

func isJSON(mediaType string) bool {
	base := baseType(mediaType)
	return base == "application/json" || base == "text/json" || strings.HasSuffix(base, "+json")
}

// preferred sorts the media types of a body: what a model writes best comes first.
func preferred(mediaType string) int {
	switch base := baseType(mediaType); {
	case base == "application/json":
		return 0
	case isJSON(base):
		return 1
	case base == "application/x-www-form-urlencoded":
		return 2
	case base == "multipart/form-data":
		return 3
	case base == "*/*" || base == "application/*":
		return 4
	case strings.HasPrefix(base, "text/"):
		return 5
	case strings.HasPrefix(base, "multipart/"):
		return 9
	}
	return 6
}

func (d *document) readBody(op *Operation, spec map[string]any) error {
	if spec["requestBody"] == nil {
		return nil
	}
	raw, err := d.resolve(spec["requestBody"])
	if err != nil {
		return fmt.Errorf("body: %w", err)
	}
	content := object(raw, "content")
	mediaTypes := slices.SortedFunc(maps.Keys(content), func(a, b string) int {
		if a, b := preferred(a), preferred(b); a != b {
			return a - b
		}
		return strings.Compare(a, b)
	})
	if len(mediaTypes) == 0 || op.Method == http.MethodGet || op.Method == http.MethodHead {
		if flag(raw, "required") && len(mediaTypes) > 0 {
			return fmt.Errorf("%s has a body", op.Method)
		}
		return nil
	}
	media, _ := content[mediaTypes[0]].(map[string]any)
	b := &body{
		mediaType: mediaTypes[0], schema: media["schema"], encoding: object(media, "encoding"),
		required: flag(raw, "required"), about: description(raw), needs: map[string]bool{},
	}
	switch preferred(b.mediaType) {
	case 4:
		b.mediaType = "application/json"
	case 9:
		return fmt.Errorf("a body of the type %q is not supported", excerpt(b.mediaType))
	}
	if strings.ContainsFunc(b.mediaType, isControl) || !strings.Contains(b.mediaType, "/") {
		return fmt.Errorf("body: %q is not a media type", excerpt(b.mediaType))
	}
	op.body = b
	return nil
}

func (d *document) readResponses(op *Operation, spec map[string]any) error {
	responses := object(spec, "responses")
	op.answers = true
	found := 0
	for _, status := range slices.Sorted(maps.Keys(responses)) {
		if !strings.HasPrefix(status, "2") {
			continue
		}
		response, err := d.resolve(responses[status])
		if err != nil {
			return fmt.Errorf("response %s: %w", excerpt(status), err)
		}
		hasJSON := false
		content := object(response, "content")
		for _, mediaType := range slices.Sorted(maps.Keys(content)) {
			op.produces = append(op.produces, mediaType)
			media, _ := content[mediaType].(map[string]any)
			if (isJSON(mediaType) || baseType(mediaType) == "*/*") && media["schema"] != nil && !hasJSON {
				hasJSON, op.schema = true, media["schema"]
			}
		}
		if found++; !hasJSON || found > 1 || len(content) > 1 {
			op.answers = false
		}
	}
	op.answers = op.answers && found == 1
	slices.Sort(op.produces)
	op.produces = slices.Compact(op.produces)
	return nil
}
