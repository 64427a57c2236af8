// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// broken is a result that panics when it is encoded.
type broken struct {
	mcp.ResultBase
	Value explosive `json:"value"`
}

type explosive struct{}

func (explosive) MarshalJSON() ([]byte, error) { panic("secret") }

// T43: what a handler returns and cannot be encoded, for whatever reason, fails its
// request and nothing else.
func TestResultsThatPanic(t *testing.T) {
	returning := func(res mcp.Result) mcp.Handler {
		return mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return res, nil })
	}
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			mux := hello()
			mux.Tool("nil text", mcp.ToolFunc(func(context.Context, none) (*mcp.TextContent, error) { return nil, nil }, nil))
			mux.Tool("nil image", returning(&mcp.CallToolResult{Content: mcp.Contents{(*mcp.ImageContent)(nil)}}))
			mux.Tool("nothing unknown", returning(&mcp.CallToolResult{Content: mcp.Contents{&mcp.UnknownContent{}, mcp.Text("")}}))
			mux.Handle("vendor/nil", returning((*mcp.CallToolResult)(nil)))
			mux.Handle("vendor/list", returning(&mcp.ListToolsResult{Tools: []*mcp.Tool{nil}}))
			mux.Handle("vendor/panic", returning(&broken{}))
			p := newPeer(t, mux, era)
			for _, request := range []string{
				era.request("1", "tools/call", `"name":"nil text"`), era.request("1", "tools/call", `"name":"nil image"`),
				era.request("1", "tools/call", `"name":"nothing unknown"`),
				era.request("1", "vendor/nil", ""), era.request("1", "vendor/list", ""), era.request("1", "vendor/panic", ""),
			} {
				p.send(request)
				if r := p.read(); r.Error == nil || r.Error.Code != mcp.CodeInternalError {
					t.Errorf("%s was answered with %s, %v", request, r.Result, r.Error)
				}
			}
			p.send(era.request("2", "tools/call", `"name":"hello"`))
			if r := p.read(); r.Error != nil {
				t.Errorf("after that: %v", r.Error)
			}
		})
	}
}
