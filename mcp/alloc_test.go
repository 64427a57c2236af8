// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

var raceEnabled bool

type sumIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

type sumOut struct {
	Sum int `json:"sum"`
}

func passThrough(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) { return next.ServeMCP(ctx, req) })
}

// adder is a mux with a typed tool of two integers and three middlewares.
func adder() *mcp.Mux {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(passThrough, passThrough, passThrough)
	mux.Tool("add", mcp.ToolFunc(func(_ context.Context, in sumIn) (sumOut, error) { return sumOut{in.A + in.B}, nil }, nil))
	return mux
}

// serveBytes is what a transport does with one message.
func serveBytes(tb testing.TB, h mcp.Handler, dst, message []byte) []byte {
	m, err := transport.ParseMessage(message)
	if err != nil {
		tb.Fatal(err)
	}
	req := requestOf(tb, m)
	res, err := core.Serve(tb.Context(), h, req, nil, nil)
	return core.AppendResponse(dst, req, res, err)
}

// The budgets are what was measured, so that they do not creep. They may sink.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, too")
	}
	many := mcp.NewMux("m", "v1", quiet())
	for i := range 1000 {
		many.Tool(fmt.Sprintf("tool%03d", i), mcp.ToolFunc(func(context.Context, sumIn) (sumOut, error) { return sumOut{}, nil }, nil))
	}
	for _, test := range []struct {
		name    string
		h       mcp.Handler
		message string
		budget  float64
		want    string
	}{
		{"tools/call", adder(), eras[0].request("1", "tools/call", `"name":"add","arguments":{"a":1,"b":2}`), callBudget, `"structuredContent":{"sum":3}`},
		{"tools/list", many, eras[0].request("1", "tools/list", ""), listBudget, `"name":"tool999"`},
	} {
		message := []byte(test.message)
		dst := serveBytes(t, test.h, nil, message)
		if !bytes.Contains(dst, []byte(test.want)) {
			t.Fatalf("%s: got %.300s", test.name, dst)
		}
		got := testing.AllocsPerRun(200, func() { dst = serveBytes(t, test.h, dst[:0], message) })
		t.Logf("%s: %v allocations", test.name, got)
		if got > test.budget {
			t.Errorf("%s: %v allocations are over the budget of %v", test.name, got, test.budget)
		}
	}
}

const (
	callBudget   = 12
	listBudget   = 7
	clientBudget = 19
)

func BenchmarkCallTool(b *testing.B) {
	mux := adder()
	message := []byte(eras[0].request("1", "tools/call", `"name":"add","arguments":{"a":1,"b":2}`))
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = serveBytes(b, mux, dst[:0], message)
	}
}

// A canned server answers every request with the same result.
type cannedServer struct{ result []byte }

func (s cannedServer) Connect(context.Context, transport.Receiver) (transport.Conn, error) {
	return s, nil
}

func (s cannedServer) Call(_ context.Context, m *transport.Outgoing) (*transport.Message, error) {
	return &transport.Message{ID: m.ID, Result: s.result}, nil
}
func (cannedServer) Send(context.Context, *transport.Outgoing) error { return nil }
func (cannedServer) Close() error                                    { return nil }
func (cannedServer) Done() <-chan struct{}                           { return nil }
func (cannedServer) Err() error                                      { return nil }

// A call of a client whose context has no trace costs what it did before there were traces.
func TestClientAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates, too")
	}
	c, err := mcp.NewClient("c", "v1", nil).Connect(t.Context(), cannedServer{[]byte(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"content":[]}`)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, params := t.Context(), &mcp.CallToolParams{Name: "add", Arguments: []byte(`{"a":1,"b":2}`)}
	got := testing.AllocsPerRun(200, func() {
		if _, err := c.CallTool(ctx, params); err != nil {
			t.Fatal(err)
		}
	})
	if t.Logf("%v allocations", got); got > clientBudget {
		t.Errorf("%v allocations are over the budget of %v", got, clientBudget)
	}
}
