// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-psi/psi/internal/jsonscan"
)

// appendModern appends a result as the newest revision has it: with its type, who made
// it, and, if it may be kept, for how long.
func appendModern(dst []byte, req *Request, res Result) ([]byte, error) {
	base := res.base()
	kind := base.ResultType
	if kind == "" {
		kind = ResultComplete
	}
	dst = append(dst, `{"resultType":`...)
	dst = jsonscan.AppendString(dst, kind)
	dst, err := appendServerMeta(dst, base.Meta, req.call.server())
	if err != nil {
		return nil, err
	}
	if c, ok := res.(cacheable); ok && kind == ResultComplete {
		dst = appendHints(dst, c.hints(), req)
	}
	return appendBody(dst, res, toolForm{})
}

// appendServerMeta appends _meta with the server's identity in it, unless it
// names one already.
func appendServerMeta(dst []byte, meta Meta, info []byte) ([]byte, error) {
	_, named := meta[MetaServerInfo]
	if len(meta) == 0 && info == nil {
		return dst, nil
	}
	dst = append(appendKey(dst, "_meta"), '{')
	if !named && info != nil {
		dst = append(appendKey(dst, MetaServerInfo), info...)
	}
	dst, err := appendMeta(dst, meta)
	return append(dst, '}'), err
}

// appendMeta continues an object with the members of meta. A nil value is null.
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

// appendHints appends the cache hints. What answers a question's retry must not
// be kept by anyone.
func appendHints(dst []byte, hints *Cacheable, req *Request) []byte {
	var ttl int64
	scope := CachePrivate
	if !req.isRetry() {
		if hints.TTLMs != nil {
			ttl = max(*hints.TTLMs, 0)
		}
		if hints.CacheScope == CachePublic {
			scope = CachePublic
		}
	}
	dst = strconv.AppendInt(appendKey(dst, "ttlMs"), ttl, 10)
	return jsonscan.AppendString(appendKey(dst, "cacheScope"), scope)
}

// isModern reports whether the request belongs to the modern era: whether it
// names a protocol version for itself.
func (r *Request) isModern() bool { return r.peer.version != "" && r.call.session == nil }

// checkMeta checks that a modern request carries the metadata that every one
// must (basic/index#meta). Its error is an [*Error] with CodeInvalidParams.
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

// checkVersion checks that the version which a modern request names is served.
// Its error is an [*Error] with CodeUnsupportedVersion.
func (r *Request) checkVersion() error {
	if !slices.Contains(ModernVersions(), r.peer.version) {
		return UnsupportedVersion(r.peer.version)
	}
	return nil
}
