// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// A result that cannot be encoded costs its own response, and nothing that stands
// before it in the buffer.
func TestAppendResponseAfterOthers(t *testing.T) {
	req := mcptest.NewRequest("vendor/x", nil)
	bad := &mcp.EmptyResult{ResultBase: mcp.ResultBase{Extra: mcp.Extra{"x": json.RawMessage("{")}}}
	got := string(core.AppendResponse([]byte("before "), req, bad, nil))
	if !strings.HasPrefix(got, `before {"jsonrpc"`) || !strings.Contains(got, "-32603") {
		t.Errorf("got %s", got)
	}
}

// A result of a type that only the modern era can have is not made one of another
// type for those who do not know types.
func TestUnknownResultTypeInLegacyEra(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Prompt("p", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.EmptyResult{ResultBase: mcp.ResultBase{ResultType: "vendor"}}, nil
	}))
	p := newPeer(t, mux, eras[1])
	p.send(eras[1].request("1", mcp.MethodGetPrompt, `"name":"p"`))
	if got := p.read(); got.Error == nil || !strings.Contains(got.Error.Message, `"vendor"`) {
		t.Errorf("got %s, %v", got.Result, got.Error)
	}
}

// Nulls in a question's lists do not reach the client's function, which need not
// expect them.
func TestNullsInASamplingQuestion(t *testing.T) {
	for _, params := range []string{`{"messages":[null],"maxTokens":1}`, `{"messages":[],"tools":[null],"maxTokens":1}`} {
		called := false
		opts := &mcp.ClientOptions{SampleTools: true, Sample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			called = true
			return &mcp.CreateMessageResult{}, nil
		}}
		asked := `{"resultType":"input_required","inputRequests":{"s":{"method":"sampling/createMessage","params":` + params + `}}}`
		c := connectTo(t, transport.FromStream(newHostile(t, mcp.LatestVersion, newScript([]byte(reply(asked)), 0)).connect), opts)
		if res, err := c.CallTool(t.Context(), tool("t", "")); mcp.CodeOf(err) != mcp.CodeInvalidParams || called {
			t.Errorf("%s: got %+v, %v, called: %t", params, res, err, called)
		}
	}
}
