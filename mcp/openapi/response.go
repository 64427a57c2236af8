// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package openapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
)

// maxResponse is the largest body of a response, in bytes; what a model can read is less.
const maxResponse = 4 << 20

const maxErrorText = 4 << 10 // bytes of a response that a model gets as the text of an error

// result returns the result of a call with the response to it.
func (op *Operation) result(r *http.Response, out *jsonschema.Schema) (*mcp.CallToolResult, error) {
	data, err := io.ReadAll(io.LimitReader(r.Body, maxResponse+1))
	switch {
	case err != nil:
		return nil, unreachable(err)
	case len(data) > maxResponse:
		return nil, fmt.Errorf("the API answered with more than %d bytes; ask for less", maxResponse)
	case r.StatusCode >= 500:
		return nil, &mcp.PrivateError{
			Public: fmt.Sprintf("the API failed (HTTP %d); the call may have had effects", r.StatusCode),
			Err:    fmt.Errorf("openapi: %v: HTTP %d: %s", op, r.StatusCode, errorText(data)),
		}
	case r.StatusCode < 200 || r.StatusCode >= 300:
		return nil, statusError(r, data)
	}
	return op.success(r, data, out)
}

// unreachable returns the error of a call without a complete response. Unless there was no
// connection, the API may have done what it was asked for.
func unreachable(err error) error {
	public := "the API did not answer; the call may have had effects"
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		public = "the API cannot be reached"
	}
	return &mcp.PrivateError{Public: public, Err: err}
}

// statusError returns the error of a status that the caller can do something about.
func statusError(r *http.Response, data []byte) error {
	said := fmt.Sprintf("the API refused the call: HTTP %d %s", r.StatusCode, http.StatusText(r.StatusCode))
	switch {
	case r.StatusCode < 400:
		said = fmt.Sprintf("the API answered with HTTP %d, which is not followed", r.StatusCode)
	case r.StatusCode == http.StatusTooManyRequests && r.Header.Get("Retry-After") != "":
		said += ", retry after " + printable.Line(excerpt(r.Header.Get("Retry-After")))
	}
	if body := errorText(data); body != "" {
		said += "\n" + body
	}
	return errors.New(said)
}

func errorText(data []byte) string {
	return printable.Text(cut(strings.TrimSpace(string(data[:min(len(data), 2*maxErrorText)])), maxErrorText))
}

func (op *Operation) success(r *http.Response, data []byte, out *jsonschema.Schema) (*mcp.CallToolResult, error) {
	mediaType := r.Header.Get("Content-Type")
	if isJSON(mediaType) {
		data = bytes.TrimPrefix(data, []byte("\ufeff")) // which some frameworks write
	}
	structured := (isJSON(mediaType) || mediaType == "") && jsonscan.Valid(data, 0) == nil
	if out != nil {
		if !structured {
			return nil, fmt.Errorf("the call succeeded (HTTP %d), but the answer is not the JSON that the API describes:\n%s", r.StatusCode, errorText(data))
		}
		if err := out.Validate(r.Request.Context(), data); err != nil {
			return nil, fmt.Errorf("the call succeeded (HTTP %d), but the answer is not as the API describes it:\n%s", r.StatusCode, errorText(data))
		}
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return mcp.TextResult(strings.TrimSpace(fmt.Sprintf("HTTP %d %s", r.StatusCode, http.StatusText(r.StatusCode)))), nil
	}
	if structured {
		res := mcp.TextResult(string(data))
		if out != nil || bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
			res.StructuredContent = data
		}
		return res, nil
	}
	return &mcp.CallToolResult{Content: mcp.Contents{op.content(baseType(mediaType), data)}}, nil
}

// content returns a response that is not JSON.
func (op *Operation) content(mediaType string, data []byte) mcp.Content {
	switch {
	case strings.HasPrefix(mediaType, "image/") && mediaType != "image/svg+xml":
		return &mcp.ImageContent{Data: data, MIMEType: mediaType}
	case strings.HasPrefix(mediaType, "audio/"):
		return &mcp.AudioContent{Data: data, MIMEType: mediaType}
	case isText(mediaType) && utf8.Valid(data):
		return mcp.Text(string(data))
	}
	return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{
		URI: scheme + "/" + op.Tool.Name, MIMEType: cmpOr(mediaType, "application/octet-stream"), Blob: data,
	}}
}

func isText(mediaType string) bool {
	return mediaType == "" || strings.HasPrefix(mediaType, "text/") || strings.Contains(mediaType, "json") ||
		strings.HasSuffix(mediaType, "xml") || strings.HasSuffix(mediaType, "yaml") || strings.HasSuffix(mediaType, "javascript")
}
