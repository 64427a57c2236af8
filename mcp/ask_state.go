// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/replay"
	"github.com/go-psi/psi/internal/seal"
	"github.com/go-psi/psi/mcp/store"
)

// maxState is the maximum size of the answers and Once values of one call, as JSON. The state
// of a mounted server may be twice as large, because it is sealed.
const maxState = 256 << 10

// A sealer encrypts the state of a handler between the rounds of one request. The client
// holds the sealed state, which is bound to the server, the caller and the request, and
// expires.
type sealer struct {
	server string // the name of the mux
	ring   *seal.Ring
	ttl    time.Duration
	max    int          // maximum size of a state in bytes, before it is sealed
	used   store.Values // records used states; nil if a state may be used again
	logger *slog.Logger

	warned sync.Once // a state could not be decrypted
}

// replayState is the decrypted content of requestState.
type replayState struct {
	Expiry  int64                      `json:"e"`           // unix seconds
	Asked   map[string]string          `json:"q,omitempty"` // digests of the questions asked with this state, by key
	Answers map[string]replay.Answer   `json:"a,omitempty"`
	Once    map[string]json.RawMessage `json:"o,omitempty"`
	Mounted *string                    `json:"m,omitzero"` // the state of a mounted server
}

// digest returns a digest of everything in the question that the client is shown. An answer
// carries it: a user who agreed to "Buy for 10?" has not agreed to "Buy for 1000?".
func (r InputRequest) digest() string {
	sum := sha256.Sum256(append([]byte(r.Method+"\n"), normalized(r.Params)...))
	return base64.RawURLEncoding.EncodeToString(sum[:16])
}

func (s *sealer) seal(req *Request, state *replayState) (string, error) {
	state.Expiry = time.Now().Add(s.ttl).Unix()
	plain, err := marshalStrictly(state)
	if err != nil { // an invalid key: the values are already JSON
		return "", Errorf(CodeInternalError, "the keys of questions and of Once must be valid UTF-8: %w", err)
	}
	switch mounted := state.Mounted; {
	case mounted == nil && len(plain) > s.max:
		return "", Errorf(CodeInternalError, "the handler's answers and Once values take %d bytes; the limit is %d", len(plain), s.max)
	case mounted != nil && len(*mounted)/2 > s.max: // sealing makes a state a third larger
		return "", Errorf(CodeInternalError, "the state of the mounted server has %d bytes; the limit is %d", len(*mounted), 2*s.max)
	}
	return s.ring.Seal(plain, s.binding(req)), nil
}

// open decrypts a state. It returns an error if the state was forged, belongs to another
// request, was already used or has expired.
func (s *sealer) open(ctx context.Context, req *Request, token string) (*replayState, error) {
	plain, err := s.ring.Open(token, s.binding(req))
	state := new(replayState)
	if err != nil || unmarshal(plain, state) != nil {
		s.warned.Do(func() { // once: any client can send any state
			s.logger.WarnContext(ctx, "mcp: a requestState was refused: unless the client changed it, another process made it, and the replicas of a server need the same MuxOptions.StateKeys; further ones are not reported",
				"method", req.Method, "name", req.Name())
		})
		return nil, Errorf(CodeInvalidParams, "params.requestState was not made for this request")
	}
	rest := time.Until(time.Unix(state.Expiry, 0))
	if rest <= 0 {
		return nil, Errorf(CodeInvalidParams, "params.requestState has expired; send the request again without it")
	}
	if s.used == nil {
		return state, nil
	}
	return state, s.markUsed(ctx, token, rest)
}

// markUsed records a state as used until it expires. It does so when the state arrives, not
// when the call succeeds; after an error, the caller starts again.
func (s *sealer) markUsed(ctx context.Context, token string, rest time.Duration) error {
	sum := sha256.Sum256([]byte(token))
	_, err := s.used.Put(ctx, "mcp-state/"+base64.RawURLEncoding.EncodeToString(sum[:]), []byte{1}, 0, rest)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrConflict):
		return Errorf(CodeInvalidParams, "params.requestState was used before; send the request again without it")
	}
	return &Error{Code: CodeInternalError, Message: "the state of the request cannot be checked now; send it again later", Cause: err}
}

// binding returns a digest of everything that must be the same when a request is repeated.
// Params are compared by value, because clients may encode them differently.
func (s *sealer) binding(req *Request) []byte {
	rest := req.params.raw
	if rest != nil {
		rest = jsonscan.AppendMembers([]byte{'{'}, rest, "_meta", "inputResponses", "requestState", "arguments")
	}
	return digestParts(append(s.bindingOf(req), string(normalized(rest)), string(normalized(req.Arguments()))))
}

// digestParts returns a digest that differs for different lists of parts.
func digestParts(parts []string) []byte {
	h := sha256.New()
	for _, part := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return h.Sum(nil)
}

// bindingOf returns what every token that a client sends back is bound to: the server, the
// mounts on the way to it, the caller and the method. State is bound to the params as well,
// by value: clients may encode them differently when they repeat a request.
func (s *sealer) bindingOf(req *Request) []string {
	parts := []string{s.server, req.mounts, req.Method}
	if p := req.Principal; p != nil {
		parts = append(parts, "principal", p.Issuer, p.Subject)
	}
	return parts
}

// normalized returns args with sorted members and without white space. Numbers keep all
// digits.
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
