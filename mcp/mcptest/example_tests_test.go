// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// Examples have no *testing.T. What they hand to inTest is a test, which TestExamples
// runs.
func inTest(test func(t *testing.T)) { shown = test }

var shown func(t *testing.T)

func TestExamples(t *testing.T) {
	for name, example := range map[string]func(){
		"Client": ExampleClient, "Connect": ExampleConnect, "Dial": ExampleDial, "Do": ExampleDo, "Faulty": ExampleFaulty, "Run": ExampleRun, "RunClient": ExampleRunClient,
	} {
		t.Run(name, func(t *testing.T) {
			example()
			shown(t)
		})
	}
}

// One connection, in memory.
func ExampleConnect() { //nolint:testableexamples // it shows a test
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(greet, nil))

	inTest(func(t *testing.T) {
		mcptest.NoLeaks(t) // whatever is started here has ended when the test has
		c := mcptest.Connect(t, mux)
		var names []string
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
		}
		if want := []string{"greet"}; !slices.Equal(names, want) {
			t.Errorf("tools %q, want %q", names, want)
		}
	})
}

// A handler by itself, and what it says on the way.
func ExampleDo() { //nolint:testableexamples // it shows a test
	mux := mcp.NewMux("importer", "v1.0.0", nil)
	mux.Tool("import", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 2, "half of it")
		return "done", nil
	}, nil))

	inTest(func(t *testing.T) {
		_, said, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "import"}))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range said.Notifications() {
			var p mcp.ProgressParams
			if err := n.Decode(&p); err != nil || p.Message != "half of it" {
				t.Errorf("%s: %+v, %v", n.Method, p, err)
			}
		}
	})
}

// A client that can be asked, and a caller whom somebody authenticated.
func ExampleClient() { //nolint:testableexamples // it shows a test
	type confirm struct {
		Sure bool `json:"sure"`
	}
	mux := mcp.NewMux("files", "v1.0.0", nil)
	mux.Tool("delete", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		answer, err := mcp.Elicit[confirm](ctx, "confirm", "Really?")
		if err != nil || !answer.Sure {
			return "kept", err
		}
		return "deleted for " + mcp.PrincipalFrom(ctx).Subject, nil
	}, nil))

	inTest(func(t *testing.T) {
		client := &mcptest.Client{
			Principal: &mcp.Principal{Issuer: "test", Subject: "ada"},
			Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				return mcptest.Accept(confirm{Sure: true}), nil
			},
		}
		client.Run(t, mux, func(t *testing.T, c *mcptest.Conn) {
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "delete"})
			if err != nil {
				t.Fatal(err)
			}
			if got := res.Content[0].(*mcp.TextContent).Text; got != "deleted for ada" {
				t.Errorf("got %q", got)
			}
		})
	})
}

// The client that programs use, over every transport and in both eras.
func ExampleRunClient() { //nolint:testableexamples // it shows a test
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(greet, nil))

	inTest(func(t *testing.T) {
		mcptest.RunClient(t, mux, nil, func(t *testing.T, c *mcp.Conn) {
			got, err := mcp.Call[string](t.Context(), c, "greet", map[string]string{"name": "Ada"})
			if err != nil || got != "Hello, Ada!" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	})
}

// One transport, for the time of a test.
func ExampleDial() { //nolint:testableexamples // it shows a test
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(greet, nil))

	inTest(func(t *testing.T) {
		for _, way := range mcptest.Ways() {
			t.Run(way.Name, func(t *testing.T) {
				c := mcptest.Dial(t, way.To(t, mux), &mcp.ClientOptions{KeepAlive: time.Minute})
				if err := c.Ping(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// What happens to a program when the network fails: here, its first call gets lost. In
// a bubble of testing/synctest nobody has to wait for the timeout.
func ExampleFaulty() { //nolint:testableexamples // it shows a test
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(greet, nil))

	inTest(func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			lost := 0
			transport := mcptest.Faulty(mcp.InProcess(mux), func(_ int, m *mcp.Envelope) mcptest.Fault {
				if m.Method != mcp.MethodCallTool || lost > 0 {
					return mcptest.Fault{}
				}
				lost++
				return mcptest.Fault{Drop: true}
			})
			c := mcptest.Dial(t, transport, &mcp.ClientOptions{CallTimeout: time.Minute})
			if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "greet"}); err == nil {
				t.Error("a call that got lost has an answer")
			}
			if err := c.Ping(t.Context()); err != nil {
				t.Errorf("the connection is of no use any more: %v", err)
			}
		})
	})
}
