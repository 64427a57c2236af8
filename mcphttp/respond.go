// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"net/http"
	"strconv"

	"github.com/go-psi/psi/mcp"
)

// Header values that never change are shared: net/http does not write to them.
var (
	jsonType    = []string{typeJSON}
	streamType  = []string{typeStream}
	noCache     = []string{"no-cache, no-transform"}
	noBuffering = []string{"no"}
	noSniff     = []string{"nosniff"}
)

// writeResponse answers with one JSON message, in one write.
func writeResponse(w http.ResponseWriter, status int, message []byte) {
	header := w.Header()
	header["Content-Type"] = jsonType
	header["X-Content-Type-Options"] = noSniff
	declareLength(header, len(message))
	w.WriteHeader(status)
	_, _ = w.Write(message) //nolint:gosec // it is JSON and says so; a client that is gone needs no answer
}

// declareLength says how long a response is that is one write: net/http finds out by
// itself, and cheaper, if it fits in its buffer.
func declareLength(header http.Header, length int) {
	const buffer = 2 << 10
	if length > buffer {
		header["Content-Length"] = []string{strconv.Itoa(length)}
	}
}

// accepted answers a message that has no answer.
func accepted(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) }

// writeProblem answers with an error that belongs to no request.
func writeProblem(w http.ResponseWriter, status int, err error) {
	writeResponse(w, status, mcp.AppendErrorResponse(nil, mcp.ID{}, err))
}

// statusOf is the status for an error of the modern era. Where the specification
// does not choose one, the answer is an answer: 200.
func statusOf(err error) int {
	switch mcp.CodeOf(err) {
	case mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedVersion:
		return http.StatusBadRequest
	case mcp.CodeMethodNotFound:
		return http.StatusNotFound
	default:
		return http.StatusOK
	}
}
