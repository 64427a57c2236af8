// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/go-psi/psi/mcp"
)

// The keys of the semantic conventions. The packages of OpenTelemetry have those of
// MCP in some versions only.
const (
	keyMethod          = attribute.Key("mcp.method.name")
	keyProtocolVersion = attribute.Key("mcp.protocol.version")
	keySessionID       = attribute.Key("mcp.session.id")
	keyResourceURI     = attribute.Key("mcp.resource.uri")
	keyTool            = attribute.Key("gen_ai.tool.name")
	keyPrompt          = attribute.Key("gen_ai.prompt.name")
	keyGenAIOperation  = attribute.Key("gen_ai.operation.name")
	keyRequestID       = attribute.Key("jsonrpc.request.id")
	keyStatusCode      = attribute.Key("rpc.response.status_code")
	keyErrorType       = attribute.Key("error.type")
	keyTransport       = attribute.Key("network.transport")
	keyProtocol        = attribute.Key("network.protocol.name")
)

// maxText is how many bytes of what a peer chose are recorded.
const maxText = 256

// spanAttributes are what is known of a request before it is served.
func (t *telemetry) spanAttributes(ctx context.Context, req *mcp.Request) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 10+len(t.opts.Attributes))
	attrs = append(attrs, keyMethod.String(clipped(req.Method)))
	attrs = appendTarget(attrs, req, clipped(req.Name()))
	if req.Method == mcp.MethodReadResource {
		attrs = append(attrs, keyResourceURI.String(clipped(publicURI(req.Name()))))
	}
	if t.kind == trace.SpanKindServer {
		attrs = appendPeer(attrs, req)
		if !req.ID.IsZero() {
			attrs = append(attrs, keyRequestID.String(clipped(idText(req.ID))))
		}
		if s := mcp.SessionFrom(ctx); s != nil && s.ID() != "" {
			attrs = append(attrs, keySessionID.String(digest(s.ID())))
		}
	}
	return append(attrs, t.opts.Attributes...)
}

// measureAttributes are the dimensions of a measurement.
func (t *telemetry) measureAttributes(req *mcp.Request, o outcome) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 8+len(t.opts.Attributes))
	attrs = append(attrs, keyMethod.String(t.names.method(req)))
	attrs = appendTarget(attrs, req, t.names.target(req))
	if t.kind == trace.SpanKindServer {
		attrs = appendPeer(attrs, req)
	}
	attrs = append(attrs, o.folded().attributes()...)
	return append(attrs, t.opts.Attributes...)
}

// appendTarget appends which tool or prompt a request is about, under this name.
func appendTarget(attrs []attribute.KeyValue, req *mcp.Request, name string) []attribute.KeyValue {
	switch {
	case req.Method == mcp.MethodCallTool:
		attrs = append(attrs, keyGenAIOperation.String("execute_tool"))
		if name != "" {
			attrs = append(attrs, keyTool.String(name))
		}
	case req.Method == mcp.MethodGetPrompt && name != "":
		attrs = append(attrs, keyPrompt.String(name))
	}
	return attrs
}

// appendPeer appends what a request that was received says of the way it came. A
// request without a header came over a transport that is not known.
func appendPeer(attrs []attribute.KeyValue, req *mcp.Request) []attribute.KeyValue {
	if v := req.Version(); slices.Contains(mcp.ModernVersions(), v) || slices.Contains(mcp.LegacyVersions(), v) {
		attrs = append(attrs, keyProtocolVersion.String(v))
	}
	if req.Header != nil {
		attrs = append(attrs, keyTransport.String("tcp"), keyProtocol.String("http"))
	}
	return attrs
}

// idText is an id as the conventions want it: a string without its quotes.
func idText(id mcp.ID) string {
	var text string
	if json.Unmarshal([]byte(id.String()), &text) == nil {
		return text
	}
	return id.String()
}

// digest names a session without giving it away.
func digest(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// publicURI is a URI without the parts in which secrets travel.
func publicURI(uri string) string {
	if i := strings.IndexAny(uri, "?#"); i >= 0 {
		uri = uri[:i]
	}
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return uri
	}
	authority, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + rest[strings.LastIndexByte(authority, '@')+1:]
}

// clipped is what is recorded of a text: not all of it if it is long, and UTF-8, which
// exporters insist on.
func clipped(s string) string {
	if len(s) <= maxText {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}
