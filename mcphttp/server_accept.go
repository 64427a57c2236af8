// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/go-psi/psi/internal/header"
	"github.com/go-psi/psi/mcp"
)

// formats are the formats that a response may have.
type formats struct{ JSON, Stream bool }

// chooseFormats returns the formats in may that the client of r accepts and w can write. If
// there are none, it writes an error response and returns false.
func chooseFormats(w http.ResponseWriter, r *http.Request, may formats) (chosen formats, ok bool) {
	accepted := accepted(r.Header)
	chosen = formats{JSON: may.JSON && accepted.JSON, Stream: may.Stream && accepted.Stream}
	switch {
	case chosen.Stream && !canFlush(w):
		chosen.Stream = false
		if !chosen.JSON {
			writeError(w, http.StatusInternalServerError, cannotStream(w))
			return chosen, false
		}
	case !chosen.JSON && !chosen.Stream:
		writeError(w, http.StatusNotAcceptable, mcp.Errorf(mcp.CodeInvalidRequest, "the client must accept %s", may))
		return chosen, false
	}
	return chosen, true
}

// String returns the media types for an error text.
func (f formats) String() string {
	switch {
	case !f.JSON:
		return header.EventStream
	case !f.Stream:
		return header.JSON
	}
	return header.JSON + " or " + header.EventStream
}

// canFlush reports whether w, or a writer that it wraps, can flush.
func canFlush(w http.ResponseWriter) bool {
	for {
		switch f := w.(type) {
		case http.Flusher, interface{ FlushError() error }:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = f.Unwrap()
		default:
			return false
		}
	}
}

// middlewareWriter returns the innermost writer that w wraps: the one that hides those below
// it, or that of net/http.
func middlewareWriter(w http.ResponseWriter) http.ResponseWriter {
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return w
		}
		w = outer.Unwrap()
	}
}

func cannotStream(w http.ResponseWriter) error {
	return mcp.Errorf(mcp.CodeInternalError,
		"this request needs an event stream, but the response writer %T can neither flush nor be unwrapped: the middleware that made it needs an Unwrap method", middlewareWriter(w))
}

// accepted parses the Accept headers. Without one, every format is accepted.
func accepted(h http.Header) formats {
	values := h["Accept"]
	switch {
	case len(values) == 0:
		return formats{true, true}
	case len(values) == 1 && values[0] == header.JSON+", "+header.EventStream: // what nearly all clients send
		return formats{true, true}
	case len(values) == 1 && values[0] == header.EventStream: // what they send for a stream
		return formats{Stream: true}
	}
	ranges := parseAccept(values)
	return formats{JSON: ranges.quality(header.JSON) > 0, Stream: ranges.quality(header.EventStream) > 0}
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
			ranges = append(ranges, mediaRange{name, parseQuality(params)})
		}
	}
	return ranges
}

func parseQuality(params string) float64 {
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

// quality returns the quality of the most specific range that covers a media type.
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
