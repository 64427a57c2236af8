// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"strings"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/mcp/transport"
)

// params is a params object with the members that routing and the protocol need, found in one
// pass. The members are slices of raw.
type params struct {
	raw           json.RawMessage
	name, uri     subject
	task          subject
	misspelled    string // a member that differs from a known one only by case
	arguments     json.RawMessage
	meta          json.RawMessage
	retry         *retry // nil if there are no such members, as in most requests
	progressToken ID
}

// A subject is a member of params that identifies what a request is about.
type subject struct {
	text    string
	at, to  int  // offsets of its JSON in the raw params; to is 0 if it is absent
	invalid bool // it is not a string
}

// A retry holds the members of a request that is repeated with answers to questions.
type retry struct {
	inputResponses json.RawMessage
	requestState   json.RawMessage // a JSON string
}

// setParams sets the params of a request whose method is set.
func (r *Request) setParams(raw json.RawMessage) error {
	if raw == nil {
		r.params = params{}
		return nil
	}
	s := jsonscan.Get(raw, 0)
	defer s.Release()
	problem := r.scanParams(s)
	if err := s.End(); err != nil {
		return Errorf(CodeParseError, "malformed params: %w", err)
	}
	if problem == nil {
		problem = r.checkSubject()
	}
	if problem != nil {
		return problem
	}
	return nil
}

// subject returns the member that identifies what the request is about. It depends only on
// the method, never on which members are present: routing, authorization, headers and
// forwarding must all see the same name.
func (r *Request) subject() *subject {
	switch {
	case r.aboutURI():
		return &r.params.uri
	case strings.HasPrefix(r.Method, prefixTasks):
		return &r.params.task
	}
	return &r.params.name
}

func (r *Request) aboutURI() bool {
	return strings.HasPrefix(r.Method, "resources/") || r.Method == NotificationResourceUpdated
}

// strayMember returns the member that must not be present in addition to the subject, or ""
// if the method has no such member.
func (r *Request) strayMember() string {
	switch {
	case r.aboutURI():
		return "name"
	case r.Method == MethodCallTool, r.Method == MethodGetPrompt:
		return "uri"
	}
	return ""
}

// checkSubject validates the members that identify what the request is about. It removes a
// stray member from the params, because a handler, or a server that the request is forwarded
// to, might use it instead. The request is not rejected for it: objects are open, and clients
// may add members. Names that differ only in case are rejected, because decoders that ignore
// case, such as encoding/json, would confuse them.
func (r *Request) checkSubject() *Error {
	stray := r.strayMember()
	switch {
	case stray == "":
		return nil
	case r.subject().invalid:
		return Errorf(CodeInvalidParams, "params.%s must be a string", r.subjectMember())
	case r.params.misspelled != "":
		return Errorf(CodeInvalidParams, "params.%s: names of members are case-sensitive; expected %q", r.params.misspelled, foldedMember(r.params.misspelled))
	case r.params.name.to != 0 && r.params.uri.to != 0:
		raw := jsonscan.AppendMembers([]byte{'{'}, r.params.raw, stray)
		if err := r.setParams(raw); err != nil {
			return asError(err)
		}
	}
	return nil
}

func (r *Request) subjectMember() string {
	if r.aboutURI() {
		return "uri"
	}
	return "name"
}

// foldedMember returns the known member of params that equals name, ignoring case, or "".
// Servers that a request is forwarded to may ignore case and confuse the two.
func foldedMember(name string) string {
	for _, known := range [...]string{"name", "uri", "taskId", "arguments", "inputResponses", "requestState", "_meta"} {
		if strings.EqualFold(name, known) {
			return known
		}
	}
	return ""
}

// scanParams scans the params that come next in s. Syntax errors are reported by s.End.
func (r *Request) scanParams(s *jsonscan.Scanner) *Error {
	p := &r.params
	*p = params{}
	switch s.Kind() {
	case '{':
	case 'n':
		s.Skip()
		return nil
	default:
		s.Skip()
		return Errorf(CodeInvalidRequest, "params must be an object")
	}
	start := s.Offset()
	var problem *Error
	s.Object()
	for s.Member() {
		if err := r.scanMember(s, start); err != nil && problem == nil {
			problem = err
		}
	}
	p.raw = s.Since(start)
	return problem
}

func (r *Request) scanMember(s *jsonscan.Scanner, start int) *Error {
	p := &r.params
	switch string(s.Name()) {
	case "name":
		p.name.scan(s, start)
	case "uri":
		p.uri.scan(s, start)
	case "taskId":
		p.task.scan(s, start)
	case "arguments":
		return scanTyped(s, '{', &p.arguments, "params.arguments must be an object")
	case "inputResponses":
		return scanTyped(s, '{', &p.ensureRetry().inputResponses, "params.inputResponses must be an object")
	case "requestState":
		return scanTyped(s, '"', &p.ensureRetry().requestState, "params.requestState must be a string")
	case "_meta":
		return r.scanMeta(s)
	default:
		if p.misspelled == "" && foldedMember(string(s.Name())) != "" {
			p.misspelled = string(s.Name())
		}
		s.Skip()
	}
	return nil
}

// ensureRetry returns the retry of p, allocating it if necessary.
func (p *params) ensureRetry() *retry {
	if p.retry == nil {
		p.retry = new(retry)
	}
	return p.retry
}

// inputResponses returns params.inputResponses, or nil if it is absent or null.
func (p *params) inputResponses() json.RawMessage {
	if p.retry == nil {
		return nil
	}
	return p.retry.inputResponses
}

// requestState returns params.requestState, a JSON string, or nil if it is absent or null.
func (p *params) requestState() json.RawMessage {
	if p.retry == nil {
		return nil
	}
	return p.retry.requestState
}

// scan reads the value of the member, in params that begin at offset start. Null is treated
// as absent.
func (m *subject) scan(s *jsonscan.Scanner, start int) {
	kind := s.Kind()
	at := s.Offset()
	value := s.Value()
	switch {
	case kind == 'n':
	case kind != '"':
		m.invalid = true
	case value != nil:
		*m = subject{text: jsonscan.Text(value), at: at - start, to: s.Offset() - start}
	}
}

// scanTyped stores the next value in dst if it is of the given kind. It treats null as
// absent, and returns an error for other kinds.
func scanTyped(s *jsonscan.Scanner, kind byte, dst *json.RawMessage, problem string) *Error {
	switch s.Kind() {
	case kind:
		*dst = s.Value()
	case 'n':
		s.Skip()
	default:
		s.Skip()
		return Errorf(CodeInvalidParams, "%s", problem)
	}
	return nil
}

func (r *Request) scanMeta(s *jsonscan.Scanner) *Error {
	if s.Kind() != '{' {
		return scanTyped(s, '{', &r.params.meta, "params._meta must be an object")
	}
	start := s.Offset()
	var problem *Error
	s.Object()
	for s.Member() {
		if err := r.scanMetaMember(s); err != nil && problem == nil {
			problem = err
		}
	}
	r.params.meta = s.Since(start)
	return problem
}

func (r *Request) scanMetaMember(s *jsonscan.Scanner) *Error {
	switch string(s.Name()) {
	case MetaProtocolVersion:
		var version json.RawMessage
		err := scanTyped(s, '"', &version, "_meta: "+MetaProtocolVersion+" must be a string")
		if version != nil {
			r.peer.version = jsonscan.Text(version, LatestVersion)
		}
		return err
	case MetaClientCapabilities:
		return scanTyped(s, '{', &r.peer.caps, "_meta: "+MetaClientCapabilities+" must be an object")
	case MetaClientInfo:
		return scanTyped(s, '{', &r.peer.info, "_meta: "+MetaClientInfo+" must be an object")
	case MetaLogLevel:
		return r.scanLogLevel(s)
	case MetaProgressToken:
		token := s.Value()
		var ok bool
		if r.params.progressToken, ok = transport.ParseID(token); !ok && token != nil {
			return Errorf(CodeInvalidParams, "_meta: progressToken must be a string or an integer")
		}
	default:
		s.Skip()
	}
	return nil
}

func (r *Request) scanLogLevel(s *jsonscan.Scanner) *Error {
	raw := s.Value()
	level, ok := parseLoggingLevel(raw)
	if !ok && raw != nil {
		return Errorf(CodeInvalidParams, "_meta: unknown log level %.40s; expected one of %s", raw, loggingLevelNames)
	}
	r.peer.logLevel = level
	return nil
}

// renamed returns the params with the subject replaced by name. All other bytes are
// unchanged.
func (r *Request) renamed(name string) json.RawMessage {
	m, raw := r.subject(), r.params.raw
	if m.to == 0 {
		return raw
	}
	renamed := make([]byte, 0, len(raw)+len(name)+2)
	renamed = append(renamed, raw[:m.at]...)
	renamed = jsonscan.AppendString(renamed, name)
	return append(renamed, raw[m.to:]...)
}
