// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/mcp"
)

// The attribute keys of the semantic conventions. Only some versions of the OpenTelemetry
// packages define the keys for MCP.
const (
	keyMethod          = attribute.Key("mcp.method.name")
	keyProtocolVersion = attribute.Key("mcp.protocol.version")
	keyResourceURI     = attribute.Key("mcp.resource.uri")
	keyTool            = attribute.Key("gen_ai.tool.name")
	keyPrompt          = attribute.Key("gen_ai.prompt.name")
	keyGenAIOperation  = attribute.Key("gen_ai.operation.name")
	keyRequestID       = attribute.Key("jsonrpc.request.id")
	keyStatusCode      = attribute.Key("rpc.response.status_code")
	keyErrorType       = attribute.Key("error.type")
	keyMended          = attribute.Key("mcp.tool.mended_arguments") // not in the conventions
	keyTransport       = attribute.Key("network.transport")
	keyProtocol        = attribute.Key("network.protocol.name")
)

// maxText is the maximum length, in bytes, of recorded text from a peer.
const maxText = 256

// spanAttributes returns the attributes that are known before a request is served.
func (t *telemetry) spanAttributes(ctx context.Context, req *mcp.Request) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 10+len(t.opts.Attributes))
	attrs = append(attrs, keyMethod.String(clip(req.Method)))
	attrs = appendTarget(attrs, req, clip(req.Name()))
	if req.Method == mcp.MethodReadResource {
		attrs = append(attrs, keyResourceURI.String(clip(publicURI(req.Name()))))
	}
	if t.kind == trace.SpanKindServer {
		attrs = appendPeer(attrs, req)
		if !req.ID.IsZero() {
			attrs = append(attrs, keyRequestID.String(clip(idText(req.ID))))
		}
		attrs = appendSession(ctx, attrs)
	}
	return append(attrs, t.opts.Attributes...)
}

// measureAttributes returns the attributes of a measurement.
func (t *telemetry) measureAttributes(req *mcp.Request, o outcome) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 8+len(t.opts.Attributes))
	attrs = append(attrs, keyMethod.String(methodOf(req)))
	attrs = appendTarget(attrs, req, t.names.target(req))
	if t.kind == trace.SpanKindServer {
		attrs = appendPeer(attrs, req)
	}
	attrs = append(attrs, o.withKnownCode().attributes()...)
	return append(attrs, t.opts.Attributes...)
}

// appendTarget appends the tool or prompt of a request, under the given name.
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

// appendPeer appends the protocol version and the transport of a received request. Without
// a header, the transport is unknown.
func appendPeer(attrs []attribute.KeyValue, req *mcp.Request) []attribute.KeyValue {
	if v := req.Version(); slices.Contains(mcp.ModernVersions(), v) || slices.Contains(mcp.LegacyVersions(), v) {
		attrs = append(attrs, keyProtocolVersion.String(v))
	}
	if req.Header != nil {
		attrs = append(attrs, keyTransport.String("tcp"), keyProtocol.String("http"))
	}
	return attrs
}

// idText returns an ID in the form that the conventions require: a string without its
// quotes.
func idText(id mcp.ID) string {
	var text string
	if json.Unmarshal([]byte(id.String()), &text) == nil {
		return text
	}
	return id.String()
}

// publicURI returns a URI without the parts that can contain secrets.
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

// publicText returns the text of an error of a request with secrets removed. Errors often
// repeat the URI of a resource.
func publicText(req *mcp.Request, text string) string {
	if req.Method == mcp.MethodReadResource {
		text = strings.ReplaceAll(text, req.Name(), publicURI(req.Name()))
	}
	return redact.Text(text)
}

// clip truncates a long text and makes it valid UTF-8, as exporters require.
func clip(s string) string {
	if len(s) <= maxText {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.ToValidUTF8(s[:maxText], "") + "…"
}

// other replaces unknown values that peers can choose.
const other = "_OTHER"

// names holds the tools and prompts that may be attributes of measurements.
type names struct {
	mu    sync.RWMutex
	known map[target]bool
}

// A target is a tool or a prompt.
type target struct{ method, name string }

// methodOf returns the method of a request, or the constant other if the specification does
// not have it.
func methodOf(req *mcp.Request) string {
	if mcp.IsMethod(req.Method) {
		return req.Method
	}
	return other
}

// target returns the name of a request's tool or prompt, the constant other if it is not
// known to exist, or "" if the request has neither.
func (n *names) target(req *mcp.Request) string {
	if !hasTarget(req) {
		return ""
	}
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.known[target{req.Method, req.Name()}] {
		return req.Name()
	}
	return other
}

// spanName returns the name of a request's span.
func (n *names) spanName(req *mcp.Request) string {
	if name := n.target(req); name != "" && name != other {
		return req.Method + " " + name
	}
	return methodOf(req)
}

// learn adds the name of a request to the known names if there is room.
func (n *names) learn(req *mcp.Request) {
	if !hasTarget(req) || len(req.Name()) > maxText || n.target(req) != other {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) < maxNames {
		n.known[target{req.Method, req.Name()}] = true
	}
}

func hasTarget(req *mcp.Request) bool {
	return (req.Method == mcp.MethodCallTool || req.Method == mcp.MethodGetPrompt) && req.Name() != ""
}
