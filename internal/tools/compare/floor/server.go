// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package floor

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/go-psi/psi/internal/tools/compare/work"
)

// A Server answers messages.
type Server struct {
	tools []tool
}

// NewServer returns a server that lists n tools in addition to add and echo.
func NewServer(n int) *Server {
	const add = `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}`
	const sum = `{"type":"object","properties":{"sum":{"type":"integer"}},"required":["sum"],"additionalProperties":false}`
	const echo = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`
	s := &Server{tools: []tool{
		{"add", "Add two integers.", json.RawMessage(add), json.RawMessage(sum)},
		{"echo", "Say it again.", json.RawMessage(echo), json.RawMessage(echo)},
	}}
	for i := range n {
		s.tools = append(s.tools, tool{fmt.Sprintf("tool%04d", i), "Add two integers.", json.RawMessage(add), json.RawMessage(sum)})
	}
	return s
}

// Dispatch returns the answer to a message, or nil for a notification.
func (s *Server) Dispatch(ctx context.Context, message []byte) ([]byte, error) {
	var req request
	if err := json.Unmarshal(message, &req); err != nil {
		return nil, err
	}
	if req.ID == nil {
		return nil, nil
	}
	res := response{JSONRPC: "2.0", ID: req.ID}
	var err error
	if res.Result, err = s.serve(ctx, &req); err != nil {
		res.Error = &failure{-32602, err.Error()}
	}
	return json.Marshal(&res)
}

func (s *Server) serve(ctx context.Context, req *request) (any, error) {
	switch req.Method {
	case "tools/call":
		return s.call(ctx, req.Params)
	case "tools/list":
		return &listResult{"complete", 0, "private", s.tools}, nil
	case "initialize":
		var params struct {
			Version string `json:"protocolVersion"`
		}
		err := json.Unmarshal(req.Params, &params)
		return &initializeResult{Version: params.Version, Server: implementation{"raw", "v1"}}, err
	case "server/discover":
		var params struct {
			Meta meta `json:"_meta"`
		}
		err := json.Unmarshal(req.Params, &params)
		return &discoverResult{Type: "complete", Scope: "private", Versions: []string{params.Meta.Version}, Server: implementation{"raw", "v1"}}, err
	default:
		return nil, fmt.Errorf("unknown method %q", req.Method)
	}
}

func (s *Server) call(ctx context.Context, raw json.RawMessage) (any, error) {
	var params callParams
	if err := json.Unmarshal(raw, &params); err != nil {
		return nil, err
	}
	switch params.Name {
	case "add":
		return run(ctx, params.Arguments, work.Add)
	case "echo":
		return run(ctx, params.Arguments, work.Repeat)
	default:
		return nil, fmt.Errorf("unknown tool %q", params.Name)
	}
}

func run[In, Out any](ctx context.Context, arguments json.RawMessage, fn func(context.Context, In) (Out, error)) (any, error) {
	var in In
	if err := json.Unmarshal(arguments, &in); err != nil {
		return nil, err
	}
	out, err := fn(ctx, in)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(out)
	return &callResult{Type: "complete", Content: []text{{"text", string(data)}}, Structured: data}, err
}
