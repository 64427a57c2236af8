// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/internal/seal"
)

// sealer keeps what a handler knows between the rounds of one request in the
// client's hands: encrypted, bound to the caller and the request, for a while.
type sealer struct {
	ring *seal.Ring
	ttl  time.Duration
}

// replayState is what travels in requestState.
type replayState struct {
	Expiry  int64                      `json:"e"` // unix seconds
	Answers map[string]json.RawMessage `json:"a,omitempty"`
	Once    map[string]json.RawMessage `json:"o,omitempty"`
}

func (s *sealer) seal(req *Request, state *replayState) string {
	state.Expiry = time.Now().Add(s.ttl).Unix()
	return s.ring.Seal(mustMarshal(state), binding(req))
}

// open refuses what was forged, transplanted or has expired.
func (s *sealer) open(req *Request, token string) (*replayState, *Error) {
	plain, err := s.ring.Open(token, binding(req))
	state := new(replayState)
	if err != nil || unmarshal(plain, state) != nil {
		return nil, Errorf(CodeInvalidParams, "params.requestState was not made for this request")
	}
	if time.Now().Unix() >= state.Expiry {
		return nil, Errorf(CodeInvalidParams, "params.requestState has expired; send the request anew without it")
	}
	return state, nil
}

// binding digests what must be the same when a request is repeated: the caller,
// the method, the name and the arguments. Arguments are compared by value, since
// clients may encode them anew.
func binding(req *Request) []byte {
	h := sha256.New()
	add := func(part []byte) {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part)))
		h.Write(part)
	}
	if p := req.Principal; p != nil {
		add([]byte("principal"))
		add([]byte(p.Issuer))
		add([]byte(p.Subject))
	}
	add([]byte(req.Method))
	add([]byte(req.Name()))
	add(normalized(req.Arguments()))
	return h.Sum(nil)
}

// normalized is args with its members sorted and no white space; numbers keep
// every digit.
func normalized(args json.RawMessage) []byte {
	if args == nil {
		return []byte("{}")
	}
	v := append(jsontext.Value(nil), args...)
	if err := v.Format(jsontext.ReorderRawObjects(true)); err != nil {
		return args
	}
	return v
}
