// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

const (
	typeJSON   = "application/json"
	typeStream = "text/event-stream"
)

// accepts is what a client takes for an answer.
type accepts struct{ json, stream bool }

// acceptable reads the Accept headers. None at all accepts everything.
func acceptable(h http.Header) accepts {
	values := h["Accept"]
	if len(values) == 0 {
		return accepts{true, true}
	}
	if len(values) == 1 && values[0] == typeJSON+", "+typeStream { // as nearly all clients have it
		return accepts{true, true}
	}
	ranges := parseAccept(values)
	return accepts{json: ranges.quality(typeJSON) > 0, stream: ranges.quality(typeStream) > 0}
}

// mediaRange is an element of an Accept header.
type mediaRange struct {
	name    string
	quality float64
}

type mediaRanges []mediaRange

func parseAccept(values []string) mediaRanges {
	var ranges mediaRanges
	for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
		name, params, _ := strings.Cut(part, ";")
		name = strings.ToLower(strings.TrimSpace(name))
		if name != "" {
			ranges = append(ranges, mediaRange{name, quality(params)})
		}
	}
	return ranges
}

func quality(params string) float64 {
	for p := range strings.SplitSeq(params, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if !strings.EqualFold(key, "q") {
			continue
		}
		if q, err := strconv.ParseFloat(value, 64); err == nil {
			return q
		}
	}
	return 1
}

// quality is that of the most specific range that covers the type.
func (rs mediaRanges) quality(name string) float64 {
	family, _, _ := strings.Cut(name, "/")
	best, q := 0, 0.0
	for _, r := range rs {
		specific := 0
		switch r.name {
		case name:
			specific = 3
		case family + "/*":
			specific = 2
		case "*/*":
			specific = 1
		}
		if specific > best {
			best, q = specific, r.quality
		}
	}
	return q
}

// isJSON reports whether a Content-Type is JSON's, whatever its parameters and
// case.
func isJSON(contentType string) bool {
	if contentType == typeJSON {
		return true
	}
	name, _, err := mime.ParseMediaType(contentType)
	return err == nil && name == typeJSON
}
