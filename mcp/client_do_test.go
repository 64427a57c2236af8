// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

type addends struct {
	Numbers []int `json:"numbers"`
}

type sumResult struct {
	mcp.ResultBase
	Sum int `json:"sum"`
}

// summing returns a mux with a method of its own.
func summing() *mcp.Mux {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Handle("example.com/sum", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		var in addends
		if err := req.Decode(&in); err != nil {
			return nil, err
		}
		res := new(sumResult)
		for _, n := range in.Numbers {
			res.Sum += n
		}
		return res, nil
	}))
	mux.Handle("example.com/fails", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, mcp.Errorf(7, "no sum")
	}))
	mux.Tool("hello", says("hello"))
	mux.Tool("asks", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		who, err := mcp.Elicit[struct{ Name string }](ctx, "name", "Your name?")
		return who.Name, err
	}, nil))
	return mux
}

// A client calls a method of its own as it calls those of the specification.
func TestDo(t *testing.T) {
	mcptest.Run(t, summing(), func(t *testing.T, c *mcp.Conn) {
		got, err := mcp.Do[sumResult](t.Context(), c, "example.com/sum", addends{[]int{1, 2, 3}})
		if err != nil || got.Sum != 6 {
			t.Errorf("got %+v, %v", got, err)
		}
		req, err := mcp.NewRequest("example.com/sum", addends{[]int{4}})
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.Do(t.Context(), req)
		if plain, ok := res.(*mcp.EmptyResult); err != nil || !ok || string(plain.Extra["sum"]) != "4" {
			t.Errorf("got %+v, %v", res, err)
		}
		_, err = mcp.Do[sumResult](t.Context(), c, "example.com/fails", nil)
		wantCode(t, err, 7)
		if _, err := mcp.Do[[]string](t.Context(), c, "example.com/sum", nil); !errors.Is(err, mcp.ErrUnreadable) {
			t.Errorf("an object as a list: %v", err)
		}
		if _, err := mcp.Do[sumResult](t.Context(), c, "example.com/sum", 5); err == nil {
			t.Error("params that are no object were sent")
		}
		tools, err := mcp.Do[*mcp.ListToolsResult](t.Context(), c, mcp.MethodListTools, nil)
		if err != nil || len(tools.Tools) != 2 {
			t.Errorf("got %+v, %v", tools, err)
		}
	})
}

// After Close, the error of Do is that of every call.
func TestDoAfterClose(t *testing.T) {
	c := mcptest.Connect(t, summing())
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := mcp.Do[sumResult](t.Context(), c, "example.com/sum", nil); !errors.Is(err, mcp.ErrClosed) {
		t.Error(err)
	}
}

// A question that the client does not answer is an error that contains it.
func TestDoInputRequired(t *testing.T) {
	c := mcptest.Dial(t, mcp.InProcess(summing()), &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{}},
	})
	_, err := mcp.Do[*mcp.CallToolResult](t.Context(), c, mcp.MethodCallTool, tool("asks", "{}"))
	asked, ok := errors.AsType[*mcp.InputRequiredError](err)
	if !ok || len(asked.Result.InputRequests) != 1 {
		t.Fatalf("got %v", err)
	}
}

// An Upstream sends requests, too.
func TestDoUpstream(t *testing.T) {
	up := mcp.NewClient("c", "v1", nil).Maintain(t.Context(), mcp.InProcess(summing()), nil)
	defer up.Close()
	if got, err := mcp.Do[sumResult](t.Context(), up, "example.com/sum", addends{[]int{2, 2}}); err != nil || got.Sum != 4 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// An extension lets the client's functions answer what its server asks in a way of its own.
func TestAnswer(t *testing.T) {
	c := mcptest.Dial(t, mcp.InProcess(summing()), &mcp.ClientOptions{
		Elicit: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return mcp.AcceptElicit(map[string]string{"asked": p.Message})
		},
	})
	form := json.RawMessage(`{"message":"sure?","requestedSchema":{"type":"object","properties":{"asked":{"type":"string"}}}}`)
	answer, err := c.Answer(t.Context(), mcp.InputRequest{Method: mcp.MethodElicit, Params: form})
	if err != nil || string(answer) != `{"action":"accept","content":{"asked":"sure?"}}` {
		t.Errorf("got %s, %v", answer, err)
	}
	for _, q := range []mcp.InputRequest{{Method: mcp.MethodCreateMessage, Params: json.RawMessage(`{}`)}, {Method: "x"}, {Method: mcp.MethodElicit, Params: json.RawMessage(`{"message":1}`)}} {
		if answer, err := c.Answer(t.Context(), q); err == nil {
			t.Errorf("%s was answered with %s", q.Method, answer)
		}
	}
}
