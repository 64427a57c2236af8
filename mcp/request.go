// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/uritemplate"
	"github.com/go-psi/psi/mcp/transport"
)

// A Request is an MCP request or, if its ID is zero, a notification, either received by a
// server or to be sent by a client. Its params are well-formed raw JSON, decoded on demand.
type Request struct {
	// Params have methods, not fields: a settable field could contradict the raw bytes. The
	// call is a pointer that may be nil, so that a zero Request works and a copy of one is
	// cheap.

	// Method is the name of the method.
	Method string
	// ID is the JSON-RPC id. It is zero for a notification.
	ID ID
	// Header is the HTTP header of the message that carried the request. It is nil on
	// other transports. It must not be modified, and is never forwarded.
	Header map[string][]string
	// Principal is the authenticated caller, or nil if the caller was not authenticated.
	Principal *Principal

	params  params
	peer    peer
	path    uritemplate.Values
	spelled spellings // the URIs in params, as its sender spelled them
	mounts  string    // the prefixes of the mounts that it has passed
	outer   *Request  // the request that the mux sent to the mount; nil before it has passed one

	unmirrored []string // arguments that the client did not send, as middleware has set them
	call       *call
}

// A peer describes the sender of a request, as given by the metadata of the request or, in
// the legacy era, by its session.
type peer struct {
	version  string
	info     json.RawMessage // an Implementation; nil if not given
	caps     json.RawMessage // ClientCapabilities; nil if not given
	logLevel LoggingLevel
}

// NewRequest returns a request with the given params, which may be nil, a [json.RawMessage], or
// a value that encodes as a JSON object. Other params are an error. The request has no ID;
// transports assign one when they send it.
func NewRequest(method string, params any) (*Request, error) {
	req := newRequest()
	if err := req.make(method, params); err != nil {
		return nil, err
	}
	return req, nil
}

// newRequest returns an empty request and its call, in one allocation.
func newRequest() *Request {
	both := new(struct {
		Request
		shared call
	})
	both.call = &both.shared
	return &both.Request
}

// make sets the method and params of a new request.
func (r *Request) make(method string, params any) error {
	raw, err := rawParams(params)
	if err != nil {
		return fmt.Errorf("mcp: params of %s: %w", method, err)
	}
	r.Method = method
	return r.setParams(raw)
}

// notificationParams encodes params and returns an error unless they are a JSON object.
func notificationParams(method string, params any) (json.RawMessage, error) {
	raw, err := rawParams(params)
	if err != nil {
		return nil, fmt.Errorf("mcp: params of %s: %w", method, err)
	}
	if raw == nil {
		return nil, nil
	}
	if err := jsonscan.Valid(raw, 0); err != nil {
		return nil, fmt.Errorf("mcp: params of %s: not JSON: %w", method, err)
	}
	if !jsonscan.IsObject(raw) {
		return nil, fmt.Errorf("mcp: params of %s: they must be a JSON object, not %.40s", method, raw)
	}
	return raw, nil
}

// rawParams returns params as raw JSON. Invalid UTF-8 is an error, not replaced as in
// results: params name what is asked for, and replacing a byte would change that.
func rawParams(params any) (json.RawMessage, error) {
	switch p := params.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		return p, nil
	case plainer: // a type of this package
		return marshalStrictly(p)
	}
	return marshalValue(params)
}

// Params returns the raw params object, or nil if there is none. It must not be modified.
func (r *Request) Params() json.RawMessage { return r.params.raw }

// Decode decodes the params into v, a pointer to a params struct such as [CallToolParams].
// If they cannot be decoded, it returns an [*Error] with CodeInvalidParams that names the
// invalid member.
func (r *Request) Decode(v any) error {
	if r.params.raw == nil {
		return nil
	}
	if err := unmarshal(r.params.raw, v); err != nil {
		return &Error{Code: CodeInvalidParams, Message: decodeProblem("params", err), Cause: err}
	}
	return nil
}

// Name returns the name of the tool or prompt, or the URI of the resource, that the request
// is about. A [Mux] uses it for routing. It is params.uri for resources/read and other
// methods about one resource, params.taskId for methods of tasks, params.name for all other
// methods, and "" if that member is absent. A request for a tool, a prompt or a resource
// never has both a name and a URI: the other member is removed when the request is parsed or
// created. Within a [Mux], URIs are in normal form; see [Mux.Resource].
func (r *Request) Name() string { return r.subject().text }

// Kind returns the kind of item that the request is about, whose name or URI is [Request.Name]:
// KindTool for tools/call, KindPrompt for prompts/get, and KindResource for resources/read and
// [MethodSubscribe]. It is "" for all other methods, including lists and completion.
func (r *Request) Kind() Kind {
	switch r.Method {
	case MethodCallTool:
		return KindTool
	case MethodGetPrompt:
		return KindPrompt
	case MethodReadResource, MethodSubscribe:
		return KindResource
	}
	return ""
}

// Arguments returns params.arguments, or nil if it is absent or null.
func (r *Request) Arguments() json.RawMessage { return r.params.arguments }

// Meta decodes params._meta. It returns nil if there is none.
func (r *Request) Meta() Meta {
	var m Meta
	if r.params.meta == nil || unmarshal(r.params.meta, &m) != nil {
		return nil
	}
	return m
}

// PathValue returns the percent-decoded value of a variable of the URI template that matched
// the URI of the request, or "" if there is no such variable.
func (r *Request) PathValue(name string) string { return r.path.Get(name) }

// Version returns the protocol version of the request. In the modern era it is the version
// named by the request; in the legacy era it is the negotiated version. It is "" if there is
// neither.
func (r *Request) Version() string { return r.peer.version }

// ClientCapabilities returns the capabilities that the client declared. It is never nil.
func (r *Request) ClientCapabilities() *ClientCapabilities {
	caps := new(ClientCapabilities)
	if r.peer.caps != nil && unmarshal(r.peer.caps, caps) != nil {
		caps = new(ClientCapabilities)
	}
	return caps
}

// ClientInfo returns the name and version reported by the client, or nil. They are not
// verified; do not base decisions on them.
func (r *Request) ClientInfo() *Implementation {
	if r.peer.info == nil {
		return nil
	}
	info := new(Implementation)
	if unmarshal(r.peer.info, info) != nil {
		return nil
	}
	return info
}

// LogLevel returns the minimum level of the log messages that the client wants for this
// request, or "" if it wants none.
func (r *Request) LogLevel() LoggingLevel { return r.peer.logLevel }

// ProgressToken returns the token for progress notifications. It is zero if the client does
// not want any.
func (r *Request) ProgressToken() ID { return r.params.progressToken }

// IsNotification reports whether the request is a notification, which has no response.
func (r *Request) IsNotification() bool { return r.ID.IsZero() }

// Clone returns a copy of r that belongs to the same call: it has the same ID and the same
// notification stream.
func (r *Request) Clone() *Request {
	c := *r
	return &c
}

// WithParams returns a clone of r with the given params, which are as in [NewRequest].
func (r *Request) WithParams(params any) (*Request, error) {
	raw, err := rawParams(params)
	if err != nil {
		return nil, fmt.Errorf("mcp: params of %s: %w", r.Method, err)
	}
	c := r.Clone()
	if err := c.setParams(raw); err != nil {
		return nil, err
	}
	return c, nil
}

// withName returns a clone of r with params.name or params.uri replaced. All other bytes of
// the params are unchanged.
func (r *Request) withName(name string) *Request {
	c := r.Clone()
	if err := c.setParams(r.renamed(name)); err != nil {
		panic("mcp: renaming broke the params: " + err.Error())
	}
	return c
}

// withoutParams returns a new request with the method and ID of r.
func (r *Request) withoutParams() *Request {
	bare := newRequest()
	bare.ID, bare.Method = r.ID, r.Method
	return bare
}

// requestOf returns m as a request or notification. If the params are invalid, it returns a
// request without params and an error.
func requestOf(m *transport.Message) (*Request, error) {
	req := newRequest()
	req.ID, req.Method = m.ID, m.Method
	if err := req.setParams(m.Params); err != nil {
		return req.withoutParams(), err
	}
	kept, err := keptParams(req.Method, req.params.raw)
	if err == nil && req.Method == MethodListen {
		err = req.setParams(kept)
	}
	if err != nil {
		return req.withoutParams(), err
	}
	return req, nil
}

type requestKey struct{}

// A requestContext is the context of a handler.
type requestContext struct {
	context.Context
	req *Request
}

func (c *requestContext) Value(key any) any {
	if key == (requestKey{}) {
		return c.req
	}
	return c.Context.Value(key)
}

func contextWithRequest(ctx context.Context, req *Request) context.Context {
	if RequestFromContext(ctx) == req {
		return ctx
	}
	return &requestContext{ctx, req}
}

// RequestFromContext returns the request that is being served with ctx, whether or not a
// [Mux] is involved. It returns nil if ctx does not belong to a request.
func RequestFromContext(ctx context.Context) *Request {
	req, _ := ctx.Value(requestKey{}).(*Request)
	return req
}

// Meta is a _meta object. Its values are raw JSON, so that forwarding a message loses
// nothing. Keys follow the grammar in basic/index#meta.
type Meta map[string]json.RawMessage

// Get decodes the value for key into v, a pointer. It reports whether the value exists and
// could be decoded.
func (m Meta) Get(key string, v any) bool {
	raw, ok := m[key]
	return ok && unmarshal(raw, v) == nil
}

// Set encodes v as the value for key. It allocates the map if it is nil, and panics if v
// cannot be encoded.
func (m *Meta) Set(key string, v any) {
	raw, err := marshal(v)
	if err != nil {
		panic(fmt.Sprintf("mcp: _meta value for %q: %v", key, err))
	}
	if *m == nil {
		*m = Meta{}
	}
	(*m)[key] = raw
}

// The _meta keys of the specification.
const (
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
	MetaProgressToken      = "progressToken"
)

// withoutKey returns a copy of m without key, or m itself if it does not contain key.
func withoutKey(m Meta, key string) Meta {
	if _, ok := m[key]; !ok {
		return m
	}
	m = maps.Clone(m)
	delete(m, key)
	return m
}

// An ID is a JSON-RPC id or a progress token: a string or an integer, preserved byte for
// byte as sent by the peer. IDs are comparable. The zero ID means that there is no id: a
// [Request] with a zero ID is a notification. See [transport.ID] for its methods.
type ID = transport.ID

// StringID returns the ID for the string s.
func StringID(s string) ID { return transport.StringID(s) }

// IntID returns the ID for the integer n.
func IntID(n int64) ID { return transport.IntID(n) }

// A Principal is the authenticated caller of a request. It is set by the authentication
// middleware of the transport. State that outlives a request (sealed state, sessions,
// caches) is bound to the issuer and subject. A nil Principal is an unauthenticated caller.
type Principal struct {
	Issuer  string    // the authority that names Subject; may be empty
	Subject string    // identifies the caller; unique per issuer
	Scopes  []string  // the granted scopes
	Expiry  time.Time // when the authentication expires; zero means unknown
	// Claims are further attributes. A tool behind tasks.Manager.Background sees them as
	// decoded from JSON: a list is a []any, a struct a map[string]any, and a number a
	// float64, or a [json.Number] if it is an integer that a float64 cannot represent. Use
	// such values from the start, as package auth does. The call fails if a claim cannot be
	// encoded.
	Claims map[string]any
}

// HasScope reports whether scope was granted. It returns false if p is nil.
func (p *Principal) HasScope(scope string) bool {
	return p != nil && slices.Contains(p.Scopes, scope)
}

// Is reports whether p and other are the same caller: either they have the same issuer and
// subject, or both are nil.
func (p *Principal) Is(other *Principal) bool {
	if p == nil || other == nil {
		return p == other
	}
	return p.Issuer == other.Issuer && p.Subject == other.Subject
}

// Key returns a text for maps and stores that identifies the caller: it is equal for two
// principals exactly if [Principal.Is] reports true. It is "" if p is nil.
func (p *Principal) Key() string {
	if p == nil {
		return ""
	}
	return strconv.Itoa(len(p.Issuer)) + ":" + p.Issuer + p.Subject // the length keeps the two apart
}

// PrincipalFromContext returns the caller of the request that ctx belongs to. It returns nil
// if the caller is not authenticated, as over stdio and in process, or if ctx does not belong
// to a request. HasScope and Is accept a nil Principal; check for nil before reading a field:
//
//	p := mcp.PrincipalFromContext(ctx)
//	if p == nil {
//		return nil, errors.New("log in first")
//	}
func PrincipalFromContext(ctx context.Context) *Principal {
	if req := RequestFromContext(ctx); req != nil {
		return req.Principal
	}
	return nil
}
