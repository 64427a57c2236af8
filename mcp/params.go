// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"slices"

	"github.com/go-psi/psi/internal/jsonscan"
)

// params is a params object and the parts of it that routing and the protocol
// need, found in one pass. The parts are slices of raw.
type params struct {
	raw            json.RawMessage
	name           string // params.name, else params.uri
	nameAt, nameTo int    // where its JSON stands in raw
	arguments      json.RawMessage
	meta           json.RawMessage
	retry          *retry // nil, as of most requests, if there is nothing of it
	progressToken  ID
}

// retry is what a request has that was asked for more.
type retry struct {
	inputResponses json.RawMessage
	requestState   json.RawMessage // a JSON string
}

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
	if problem != nil {
		return problem
	}
	return nil
}

// scanParams takes the params that come next in s. A syntax error is left in s.
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
		return p.scanName(s, start, "name")
	case "uri":
		if p.nameTo == 0 {
			return p.scanName(s, start, "uri")
		}
		s.Skip()
	case "arguments":
		return scanTyped(s, '{', &p.arguments, "params.arguments must be an object")
	case "inputResponses":
		return scanTyped(s, '{', &p.retrying().inputResponses, "params.inputResponses must be an object")
	case "requestState":
		return scanTyped(s, '"', &p.retrying().requestState, "params.requestState must be a string")
	case "_meta":
		return r.scanMeta(s)
	default:
		s.Skip()
	}
	return nil
}

// retrying is what p has of a retry, from now on.
func (p *params) retrying() *retry {
	if p.retry == nil {
		p.retry = new(retry)
	}
	return p.retry
}

// inputResponses is params.inputResponses, nil if it is absent or null.
func (p *params) inputResponses() json.RawMessage {
	if p.retry == nil {
		return nil
	}
	return p.retry.inputResponses
}

// requestState is params.requestState, a JSON string, nil if it is absent or null.
func (p *params) requestState() json.RawMessage {
	if p.retry == nil {
		return nil
	}
	return p.retry.requestState
}

func (p *params) scanName(s *jsonscan.Scanner, start int, member string) *Error {
	kind := s.Kind()
	at := s.Offset()
	value := s.Value()
	if kind != '"' {
		return Errorf(CodeInvalidParams, "params.%s must be a string", member)
	}
	if value != nil {
		p.name = string(jsonscan.Unquote(value))
		p.nameAt, p.nameTo = at-start, s.Offset()-start
	}
	return nil
}

// scanTyped takes the next value into dst if it is of the wanted kind; null
// counts as absent.
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
			r.peer.version = internVersion(jsonscan.Unquote(version))
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
		if r.params.progressToken, ok = parseID(token); !ok && token != nil {
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

func internVersion(b []byte) string {
	if i := slices.IndexFunc(versions[1:], func(v string) bool { return v == string(b) }); i >= 0 {
		return versions[i+1]
	}
	return string(b)
}

// rename is the params with another name, every other byte kept.
func (p *params) rename(name string) json.RawMessage {
	if p.nameTo == 0 {
		return p.raw
	}
	raw := make([]byte, 0, len(p.raw)+len(name)+2)
	raw = append(raw, p.raw[:p.nameAt]...)
	raw = jsonscan.AppendString(raw, name)
	return append(raw, p.raw[p.nameTo:]...)
}
