// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"unicode/utf8"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/mcp/transport"
)

// appendResponse appends the response to req, in the form of the newest revision, to dst:
// the result, or the error if err is not nil. A result that cannot be encoded becomes an
// internal error.
func appendResponse(dst []byte, req *Request, res Result, err error) []byte {
	if err != nil {
		return appendErrorResponse(dst, req.ID, modernError(err))
	}
	whole, err := appendResult(dst, req, res)
	if err != nil {
		return appendErrorResponse(dst, req.ID, Errorf(CodeInternalError, "the result could not be encoded: %w", err))
	}
	return whole
}

// errPanicked reports that encoding a result panicked, for example because of a nil
// pointer. The panic value is not sent to the peer.
var errPanicked = errors.New("encoding it panicked")

// appendResult appends a success response to dst. It recovers from panics in the encoders
// of result values.
func appendResult(dst []byte, req *Request, res Result) (whole []byte, err error) {
	defer func() {
		if recover() != nil {
			err = errPanicked
		}
	}()
	if err := checkResult(res); err != nil {
		return nil, err
	}
	whole = append(transport.AppendHead(dst, req.ID), `,"result":`...)
	if whole, err = appendModern(whole, req, res); err != nil {
		return nil, err
	}
	return append(whole, '}'), nil
}

// checkResult validates the raw JSON of a result.
func checkResult(res Result) error {
	if r, ok := res.(*CallToolResult); ok && r.StructuredContent != nil {
		if err := jsonscan.Valid(r.StructuredContent, 0); err != nil {
			return fmt.Errorf("structuredContent is not JSON: %w", err)
		}
	}
	return nil
}

// appendErrorResponse appends an error response to dst. A zero id is omitted. null would
// violate the schema of every revision.
func appendErrorResponse(dst []byte, id ID, err error) []byte {
	return transport.AppendError(dst, id, toWire(err))
}

// headMembers are the members of a result whose form depends on the revision; each revision
// writes them at the start of the object. The last two, the cache hints, apply only to
// results that are cacheable.
var headMembers = []string{"resultType", "_meta", "ttlMs", "cacheScope"}

func headMembersOf(res Result) []string {
	if _, ok := res.(cacheable); ok {
		return headMembers
	}
	return headMembers[:2]
}

// appendBody appends the remaining members of res, except those in omit, to an object whose
// head has been written, and closes the object.
func appendBody(dst []byte, res Result, form toolForm, omit []string) ([]byte, error) {
	switch r := res.(type) {
	case *CallToolResult:
		if len(r.Extra) == 0 {
			return appendCallToolBody(dst, r)
		}
	case *ListToolsResult:
		if len(r.Extra) == 0 {
			return appendListToolsBody(dst, r, form)
		}
	}
	body, err := marshal(res)
	if err != nil {
		return nil, err
	}
	return jsonscan.AppendMembers(dst, body, slices.Concat(headMembersOf(res), omit)...), nil
}

func appendCallToolBody(dst []byte, r *CallToolResult) ([]byte, error) {
	dst = jsonscan.AppendKey(dst, "content")
	dst, err := appendContents(dst, r.Content)
	if err != nil {
		return nil, err
	}
	if r.StructuredContent != nil {
		dst = jsonscan.AppendKey(dst, "structuredContent")
		dst = append(dst, r.StructuredContent...) // validated by checkResult
	}
	if r.IsError {
		dst = append(jsonscan.AppendKey(dst, "isError"), "true"...)
	}
	return append(dst, '}'), nil
}

func appendListToolsBody(dst []byte, r *ListToolsResult, form toolForm) ([]byte, error) {
	dst = append(jsonscan.AppendKey(dst, "tools"), '[')
	dst = slices.Grow(dst, cachedSize(r.Tools, form))
	for i, t := range r.Tools {
		if i > 0 {
			dst = append(dst, ',')
		}
		var err error
		if dst, err = appendTool(dst, t, form); err != nil {
			return nil, err
		}
	}
	dst = append(dst, ']')
	if r.NextCursor != nil {
		dst = jsonscan.AppendKey(dst, "nextCursor")
		dst = jsonscan.AppendString(dst, *r.NextCursor)
	}
	return append(dst, '}'), nil
}

// appendRaw appends raw JSON supplied by a handler. Invalid JSON is an error: it would break
// the message, or add members to it that a handler must not set.
func appendRaw(dst []byte, what string, raw json.RawMessage) ([]byte, error) {
	if err := jsonscan.Valid(raw, 0); err != nil {
		return nil, fmt.Errorf("%s is not JSON: %w", what, err)
	}
	return append(dst, raw...), nil
}

// appendModern appends a result in the form of the newest revision, with the result type,
// the server's identity and, if the result is cacheable, the cache hints.
func appendModern(dst []byte, req *Request, res Result) ([]byte, error) {
	base := res.base()
	kind := base.ResultType
	if kind == "" {
		kind = ResultComplete
	}
	dst = append(dst, `{"resultType":`...)
	dst = jsonscan.AppendString(dst, kind)
	dst, err := appendServerMeta(dst, base.Meta, req.server())
	if err != nil {
		return nil, err
	}
	if c, ok := res.(cacheable); ok && kind == ResultComplete {
		dst = appendHints(dst, c.hints(), req)
	}
	return appendBody(dst, res, toolForm{}, nil)
}

// appendServerMeta appends _meta, and adds the server's identity to it unless meta already
// has one. The identity is the name, version and title. Icons are sent with discovery only:
// one as a data URI would add kilobytes to every call.
func appendServerMeta(dst []byte, meta Meta, info []byte) ([]byte, error) {
	_, named := meta[MetaServerInfo]
	if len(meta) == 0 && info == nil {
		return dst, nil
	}
	dst = append(jsonscan.AppendKey(dst, "_meta"), '{')
	if !named && info != nil {
		dst = append(jsonscan.AppendKey(dst, MetaServerInfo), info...)
	}
	dst, err := appendMeta(dst, meta)
	return append(dst, '}'), err
}

// appendMeta appends the members of meta to an open object. A nil value is encoded as null.
func appendMeta(dst []byte, meta Meta) ([]byte, error) {
	if len(meta) == 0 {
		return dst, nil
	}
	for _, key := range slices.Sorted(maps.Keys(meta)) {
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		if !utf8.ValidString(key) {
			return nil, fmt.Errorf("the key %q of _meta is not valid UTF-8", key)
		}
		dst = append(jsonscan.AppendString(dst, key), ':')
		value := meta[key]
		if value == nil {
			value = json.RawMessage("null")
		}
		var err error
		if dst, err = appendRaw(dst, fmt.Sprintf("_meta[%q]", key), value); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// maxTTL is the largest integer that every client can represent; JavaScript clients reject
// larger ones.
const maxTTL = 1<<53 - 1

// appendHints appends the cache hints. A response to a request that carries answers or state
// must not be cached.
func appendHints(dst []byte, hints *Cacheable, req *Request) []byte {
	var ttl int64
	scope := CachePrivate
	if !req.isRetry() {
		if hints.TTLMs != nil {
			ttl = min(max(*hints.TTLMs, 0), maxTTL)
		}
		if hints.CacheScope == CachePublic {
			scope = CachePublic
		}
	}
	dst = strconv.AppendInt(jsonscan.AppendKey(dst, "ttlMs"), ttl, 10)
	return jsonscan.AppendString(jsonscan.AppendKey(dst, "cacheScope"), scope)
}

// isModern reports whether the request belongs to the modern era, that is, carries its own
// protocol version.
func (r *Request) isModern() bool { return r.peer.version != "" && r.sharedCall().session == nil }

// checkMeta checks that a modern request carries the required metadata (basic/index#meta).
// Its error is an [*Error] with CodeInvalidParams.
func (r *Request) checkMeta() error {
	switch {
	case r.peer.version == "":
		return missingMeta(MetaProtocolVersion)
	case r.peer.caps == nil && !r.IsNotification():
		return missingMeta(MetaClientCapabilities)
	}
	return nil
}

func missingMeta(key string) error {
	return Errorf(CodeInvalidParams, "params._meta must have the member %q", key)
}

// checkVersion checks that the protocol version of a modern request is supported. Its error
// is an [*Error] with CodeUnsupportedVersion.
func (r *Request) checkVersion() error {
	if !slices.Contains(ModernVersions(), r.peer.version) {
		return newUnsupportedVersionError(r.peer.version)
	}
	return nil
}

// A toolForm is the form of tools in one revision of the protocol. Its number is an index
// into [toolEncodings]; 0 is the newest revision.
type toolForm struct {
	number int
	change func(*Tool) *Tool // nil if tools are encoded unchanged
}

const maxToolForms = 8

// toolEncodings caches the encodings of a registered tool, so that it is not encoded again for
// every list request. It is valid for one Tool only, not for copies of it.
type toolEncodings struct {
	owner   *Tool
	encoded [maxToolForms]atomic.Pointer[[]byte]
}

func newToolEncodings(t *Tool) *toolEncodings { return &toolEncodings{owner: t} }

func appendTool(dst []byte, t *Tool, form toolForm) ([]byte, error) {
	if kept := cachedTool(t, form); kept != nil {
		return append(dst, *kept...), nil
	}
	changed := t
	if form.change != nil {
		changed = form.change(t)
	}
	raw, err := marshal(changed)
	if err != nil {
		return nil, err
	}
	if t.encodings != nil && t.encodings.owner == t {
		t.encodings.encoded[form.number].Store(&raw)
	}
	return append(dst, raw...), nil
}

// cachedTool returns the cached encoding of a tool, or nil.
func cachedTool(t *Tool, form toolForm) *[]byte {
	if t.encodings == nil || t.encodings.owner != t {
		return nil
	}
	return t.encodings.encoded[form.number].Load()
}

// cachedSize returns the number of bytes needed for the tools whose encoding is cached.
func cachedSize(tools []*Tool, form toolForm) (size int) {
	for _, t := range tools {
		if kept := cachedTool(t, form); kept != nil {
			size += len(*kept) + len(",")
		}
	}
	return size
}
