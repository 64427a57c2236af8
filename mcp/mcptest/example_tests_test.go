// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/middleware"
)

// inTest stands for the test function that an example shows, because examples have no
// *testing.T. TestExamples runs it.
func inTest(test func(t *testing.T)) { shown = test }

var shown func(t *testing.T)

func TestExamples(t *testing.T) {
	for name, example := range map[string]func(){
		"Check": ExampleCheck, "Client": ExampleClient, "Connect": ExampleConnect, "Dial": ExampleDial, "Do": ExampleDo, "Faulty": ExampleFaulty, "Golden": ExampleGolden,
		"Replay": ExampleReplay, "Run": ExampleRun,
		"As": ExampleAs, "RunNew": ExampleRunNew, "Serve": ExampleServe, "ServeFunc": ExampleServeFunc,
	} {
		t.Run(name, func(t *testing.T) {
			example()
			shown(t)
		})
	}
}

// Connect opens a single connection in memory.
func ExampleConnect() { //nolint:testableexamples // it shows a test
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(greet, nil))

	inTest(func(t *testing.T) {
		mcptest.NoLeaks(t) // nothing that was started goes on after the test
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

// Do serves a request without a connection and records the notifications of the handler.
func ExampleDo() { //nolint:testableexamples // it shows a test
	mux := mcp.NewMux("importer", "v1.0.0", nil)
	mux.Tool("import", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 2, "half of it")
		return "done", nil
	}, nil))

	inTest(func(t *testing.T) {
		_, rec, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "import"}))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range rec.Notifications() {
			var p mcp.ProgressParams
			if err := n.Decode(&p); err != nil || p.Message != "half of it" {
				t.Errorf("%s: %+v, %v", n.Method, p, err)
			}
		}
	})
}

// The client answers questions and acts on behalf of an authenticated caller.
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
		return "deleted for " + mcp.PrincipalFromContext(ctx).Subject, nil
	}, nil))

	inTest(func(t *testing.T) {
		client := &mcptest.Client{
			Principal: &mcp.Principal{Issuer: "test", Subject: "ada"},
			Options: mcp.ClientOptions{Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				return mcptest.Accept(confirm{Sure: true}), nil
			}},
		}
		client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
			got, err := mcp.Call[string](t.Context(), c, "delete", nil)
			if err != nil || got != "deleted for ada" {
				t.Errorf("got %q, %v", got, err)
			}
		})
	})
}

// Each path is tested with a connection that has its own options.
func ExampleDial() { //nolint:testableexamples // it shows a test
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(greet, nil))

	inTest(func(t *testing.T) {
		for _, path := range mcptest.Paths() {
			t.Run(path.Name, func(t *testing.T) {
				c := mcptest.Dial(t, path.Serve(t, mux), &mcp.ClientOptions{KeepAlive: time.Minute})
				if err := c.Ping(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// A server runs behind its real transport, such as a command, and every message is checked
// against the specification.
func ExampleCheck() { //nolint:testableexamples // it shows a test
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(greet, nil))

	inTest(func(t *testing.T) {
		transport := mcptest.Check(t, mcp.InProcess(mux)) // or mcpstdio.NewCommand, mcphttp.NewTransport
		c, err := mcp.NewClient("app", "v1.0.0", nil).Connect(t.Context(), transport)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for _, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// The network fails and the first call is lost. In a testing/synctest bubble, the timeout
// takes no time.
func ExampleFaulty() { //nolint:testableexamples // it shows a test
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(greet, nil))

	inTest(func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			lost := 0
			transport := mcptest.Faulty(mcp.InProcess(mux), func(_ int, m *transport.Outgoing) mcptest.Fault {
				if m.Method != mcp.MethodCallTool || lost > 0 {
					return mcptest.Fault{}
				}
				lost++
				return mcptest.Fault{Drop: true}
			})
			c := mcptest.Dial(t, transport, &mcp.ClientOptions{CallTimeout: time.Minute})
			if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "greet"}); err == nil {
				t.Error("a lost call has an answer")
			}
			if err := c.Ping(t.Context()); err != nil {
				t.Errorf("the connection is no longer usable: %v", err)
			}
		})
	})
}

// If a handler keeps state between calls, every run gets a new one.
func ExampleRunNew() { //nolint:testableexamples // it shows a test
	newHandler := func(t *testing.T) mcp.Handler {
		mux := mcp.NewMux("greeter", "v1.0.0", nil)
		once := middleware.RateLimit(middleware.ByPrincipal, middleware.NewTokenBucket(1, time.Hour, nil))
		mux.With(once).Tool("greet", mcp.ToolFunc(greet, nil))
		t.Cleanup(func() {}) // such as closing a database
		return mux
	}

	inTest(func(t *testing.T) {
		mcptest.RunNew(t, newHandler, func(t *testing.T, c *mcp.Conn) {
			if _, err := mcp.Call[string](t.Context(), c, "greet", map[string]string{"name": "Ada"}); err != nil {
				t.Error(err)
			}
			if _, err := mcp.Call[string](t.Context(), c, "greet", map[string]string{"name": "Ada"}); err == nil {
				t.Error("two calls in an hour")
			}
		})
	})
}

// The server is a complete router, with MCP next to other routes.
func ExampleServe() { //nolint:testableexamples // it shows a test
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(greet, nil))
	router := http.NewServeMux()
	router.Handle("/mcp", mcphttp.NewHandler(mux, nil))
	router.HandleFunc("/healthz", func(http.ResponseWriter, *http.Request) {})

	inTest(func(t *testing.T) {
		url := mcptest.Serve(t, router)
		c := mcptest.Dial(t, mcphttp.NewTransport(url+"/mcp", nil), nil)
		if _, err := mcp.Call[string](t.Context(), c, "greet", map[string]string{"name": "Ada"}); err != nil {
			t.Error(err)
		}
		res, err := http.Get(url + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			t.Error(res.Status)
		}
	})
}

// A server that publishes its own address is created with its URL.
func ExampleServeFunc() { //nolint:testableexamples // it shows a test
	newServer := func(url string) http.Handler {
		mux := mcp.NewMux("greeter", "v1.0.0", &mcp.MuxOptions{WebsiteURL: url})
		mux.Tool("greet", mcp.ToolFunc(greet, nil))
		return mcphttp.NewRouter(mux, nil)
	}

	inTest(func(t *testing.T) {
		url := mcptest.ServeFunc(t, newServer)
		c := mcptest.Dial(t, mcphttp.NewTransport(url+"/mcp", nil), nil)
		if got := c.ServerInfo(); got == nil || got.WebsiteURL != url {
			t.Errorf("the server describes itself as %+v, want %s", got, url)
		}
	})
}

// As sets the caller on a transport without authentication.
func ExampleAs() { //nolint:testableexamples // it shows a test
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.With(middleware.RequireScopes("notes:write")).Tool("write", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		return "written", nil
	}, nil))

	inTest(func(t *testing.T) {
		for scope, allowed := range map[string]bool{"notes:read": false, "notes:write": true} {
			ada := mcptest.As(&mcp.Principal{Subject: "ada", Scopes: []string{scope}})
			c := mcptest.Dial(t, mcp.InProcess(ada(mux)), nil)
			if _, err := mcp.Call[string](t.Context(), c, "write", nil); (err == nil) != allowed {
				t.Errorf("with %s: %v", scope, err)
			}
		}
	})
}

// A recording is a golden file: the test fails if the server answers differently.
func ExampleGolden() { //nolint:testableexamples // it shows a test
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(greet, nil))

	inTest(func(t *testing.T) { // func TestConversation(t *testing.T)
		var recorded bytes.Buffer
		c := mcptest.Dial(t, mcptest.Record(mcp.InProcess(mux), &recorded), nil)
		if _, err := mcp.Call[string](t.Context(), c, "greet", map[string]string{"name": "Ada"}); err != nil {
			t.Error(err)
		}
		mcptest.Golden(t, "testdata/greet.jsonl", recorded.Bytes(), nil)
	})
}

// A recording replaces a server, for example one that is expensive to call.
func ExampleReplay() { //nolint:testableexamples // it shows a test
	inTest(func(t *testing.T) { // func TestConversation(t *testing.T)
		file, err := os.Open("testdata/greet.jsonl")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		c := mcptest.Dial(t, mcptest.Replay(t, file, nil).Transport(), nil)
		got, err := mcp.Call[string](t.Context(), c, "greet", map[string]string{"name": "Ada"})
		if err != nil || got != "Hello, Ada!" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}
