// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package transport

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/go-psi/psi/internal/jsonscan"
)

// AppendRequest appends a request to dst, or a notification if id is zero. params is nil or a
// JSON object, which is not validated.
func AppendRequest(dst []byte, id ID, method string, params json.RawMessage) []byte {
	dst = AppendHead(slices.Grow(dst, len(method)+len(params)+64), id)
	dst = append(dst, `,"method":`...)
	dst = jsonscan.AppendString(dst, method)
	if params != nil {
		dst = append(dst, `,"params":`...)
		dst = append(dst, params...)
	}
	return append(dst, '}')
}

// AppendNotification appends a notification to dst; see [AppendRequest].
func AppendNotification(dst []byte, method string, params json.RawMessage) []byte {
	return AppendRequest(dst, ID{}, method, params)
}

// AppendResult appends a response with a result to dst. The result is a JSON object, which is
// not validated.
func AppendResult(dst []byte, id ID, result json.RawMessage) []byte {
	dst = AppendHead(dst, id)
	dst = append(dst, `,"result":`...)
	dst = append(dst, result...)
	return append(dst, '}')
}

// AppendError appends an error response to dst. A zero id, for a request whose ID could not
// be read, is omitted. If e is nil, or if its data is not valid JSON, AppendError appends an
// internal error instead.
func AppendError(dst []byte, id ID, e *Error) []byte {
	if e == nil {
		e = &Error{Code: codeInternalError, Message: "internal error"}
	}
	code, message, data := e.Code, e.Message, e.Data
	if data != nil && jsonscan.Valid(data, 0) != nil {
		message = "the data of an error is not JSON; the error: " + message + " (code " + strconv.Itoa(code) + ")"
		code, data = codeInternalError, nil
	}
	dst = AppendHead(dst, id)
	dst = append(dst, `,"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	dst = append(dst, `,"message":`...)
	dst = jsonscan.AppendString(dst, message)
	if data != nil {
		dst = append(dst, `,"data":`...)
		dst = append(dst, data...)
	}
	return append(dst, "}}"...)
}

const codeInternalError = -32603

// AppendHead appends the beginning of a message: its version and, unless it is zero, its id.
// The caller appends the other members and the closing brace.
func AppendHead(dst []byte, id ID) []byte {
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	if !id.IsZero() {
		dst = append(dst, `,"id":`...)
		dst = append(dst, id.token...)
	}
	return dst
}

// AppendCancelled appends the notification that cancels the request with the given id
// (basic/utilities/cancellation).
func AppendCancelled(dst []byte, id ID, reason string) []byte {
	dst = append(AppendHead(dst, ID{}), `,"method":"notifications/cancelled","params":{"requestId":`...)
	dst = append(dst, id.token...)
	dst = append(dst, `,"reason":`...)
	dst = jsonscan.AppendString(dst, strings.ToValidUTF8(reason, "\ufffd"))
	return append(dst, "}}"...)
}
