// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

// learnVersion records the version of a session from the response to initialize.
func (c *fakeClient) learnVersion(call *fakeCall) {
	if call.request.Method == revision.Initialize {
		c.version = text(jsonscan.Member(call.answer.Result, "protocolVersion"))
	}
}

// deleteClient removes the description of the client from the params of initialize.
func deleteClient(method string, params map[string]any) {
	if method == revision.Initialize {
		delete(params, "clientInfo")
		delete(params, "capabilities")
	}
}

// sessionName returns a name for the session of a request. The session ID cannot be
// inferred from it.
func sessionName(ctx context.Context) string {
	s := mcp.SessionFromContext(ctx)
	if s == nil {
		return ""
	}
	sum := sha256.Sum256([]byte(s.ID()))
	return hex.EncodeToString(sum[:4])
}

// modernParams returns the params of a request with the metadata that requests of the
// newest revision have.
func modernParams(req *mcp.Request) json.RawMessage {
	raw := req.Params()
	if core.IsModern(req) || req.Version() == "" {
		return raw
	}
	meta := []byte{'{'}
	meta = jsonscan.AppendString(jsonscan.AppendKey(meta, mcp.MetaProtocolVersion), mcp.LatestVersion)
	meta = append(jsonscan.AppendKey(meta, mcp.MetaClientCapabilities), strictjson.MustMarshal(req.ClientCapabilities())...)
	if info := req.ClientInfo(); info != nil {
		meta = append(jsonscan.AppendKey(meta, mcp.MetaClientInfo), strictjson.MustMarshal(info)...)
	}
	if level := req.LogLevel(); level != "" {
		meta = jsonscan.AppendString(jsonscan.AppendKey(meta, mcp.MetaLogLevel), string(level))
	}
	meta = appendRest(meta, jsonscan.Member(raw, "_meta"), mcp.MetaProtocolVersion, mcp.MetaClientCapabilities, mcp.MetaClientInfo, mcp.MetaLogLevel)
	return appendRest(append([]byte(`{"_meta":`), meta...), raw, "_meta")
}

// appendRest appends the members of an object, which may be nil, to the object begun in
// dst, except for the named ones, and closes it.
func appendRest(dst, object []byte, except ...string) []byte {
	if !jsonscan.IsObject(object) {
		return append(dst, '}')
	}
	return jsonscan.AppendMembers(dst, object, except...)
}
