// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// Each use of a tool has one result, in the next message of the user, which has nothing
// else.
func TestConversationBounds(t *testing.T) {
	use := func(id string) mcp.Content { return &mcp.ToolUseContent{ID: id, Name: "a"} }
	result := func(id string) mcp.Content { return &mcp.ToolResultContent{ToolUseID: id} }
	user := func(c ...mcp.Content) *mcp.SamplingMessage {
		return &mcp.SamplingMessage{Role: mcp.RoleUser, Content: c}
	}
	model := func(c ...mcp.Content) *mcp.SamplingMessage {
		return &mcp.SamplingMessage{Role: mcp.RoleAssistant, Content: c}
	}
	hi := mcp.Text("hi")
	for want, messages := range map[string][]*mcp.SamplingMessage{
		"":                 {user(hi), model(hi, use("1"), use("2")), user(result("2"), result("1")), model(use("1")), user(result("1"))},
		"message 1 is nil": {user(hi), nil},
		"message 1: results of tools stand in messages of the user, with nothing else": {model(use("1")), model(result("1"))},
		"message 2: results of tools stand in messages of the user":                    {user(hi), model(use("1")), user(result("1"), hi)},
		`message 1: there is no use "2" of a tool in the message before`:               {model(use("1")), user(result("2"))},
		`message 0: there is no use "1" of a tool in the message before`:               {user(result("1"))},
		`message 1: there is no use "1"`:                                               {model(use("1")), user(result("1"), result("1"))},
		`message 1: the use "1" of a tool has no result`:                               {model(use("1")), user(hi)},
		`message 1: the use "2" of a tool has no result`:                               {model(use("1"), use("2")), user(result("1"))},
		`the use "1" of a tool has no result`:                                          {user(hi), model(use("1"))},
	} {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			_, err := mcp.Sample(ctx, "s", &mcp.CreateMessageParams{MaxTokens: 9, Messages: messages, Tools: []*mcp.Tool{{Name: "a"}}})
			return "", err
		}, nil))
		opts := &mcp.ClientOptions{SampleTools: true, Sample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Content: mcp.SamplingContent{hi}, Model: "m"}, nil
		}}
		res, err := connect(t, mux, opts).CallTool(t.Context(), tool("ask", ""))
		got := ""
		if err != nil {
			got = err.Error()
		} else if res.IsError {
			got = textOf(res)
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A connection that was closed fails every call, at once, with ErrClosed.
func TestClosedInProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) { <-ctx.Done(); return "", ctx.Err() }, nil))
		conn, err := mcp.InProcess(mux).Connect(t.Context(), func(transport.Message, transport.ID) {})
		if err != nil {
			t.Fatal(err)
		}
		call := func() error {
			_, err := conn.Call(t.Context(), &transport.Outgoing{ID: transport.IntID(1), Method: mcp.MethodCallTool, Body: []byte(eras[0].request("1", mcp.MethodCallTool, `"name":"wait"`))})
			return err
		}
		failed := make(chan error)
		go func() { failed <- call() }()
		synctest.Wait()
		for _, malformed := range []string{"{", `{"jsonrpc":"2.0","method":"a","params":[]}`} {
			if err := conn.Send(t.Context(), &transport.Outgoing{Method: "a", Body: []byte(malformed)}); err == nil {
				t.Errorf("%s was sent", malformed)
			}
		}
		if err := conn.Send(t.Context(), &transport.Outgoing{Body: []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)}); err != nil {
			t.Errorf("a response: %v", err)
		}
		conn.Close()
		if err := <-failed; !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("a call in flight: %v", err)
		}
		if err := call(); !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("a call: %v", err)
		}
		if err := conn.Send(t.Context(), &transport.Outgoing{Method: "a", Body: []byte(`{"jsonrpc":"2.0","method":"a"}`)}); !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("a notification: %v", err)
		}
		if !errors.Is(conn.Err(), mcp.ErrClosed) {
			t.Errorf("Err is %v", conn.Err())
		}
	})
}

// errorOf returns the error with which a list ends, and how many items came before.
func errorOf[T any](items iter.Seq2[*T, error]) (n int, err error) {
	for _, err := range items {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Calls through a connection that is closed, or with values that cannot be encoded, fail
// with the reason.
func TestCallsThatFail(t *testing.T) {
	c := connect(t, hello(), nil)
	if _, err := mcp.Call[string](t.Context(), c, "hello", func() {}); err == nil || !strings.HasPrefix(err.Error(), "mcp: arguments of hello: ") {
		t.Errorf("arguments that are a function: %v", err)
	}
	if err := c.Notify(t.Context(), "vendor/x", func() {}); err == nil {
		t.Error("sent params that are a function")
	}
	c.Close()
	for name, list := range map[string]func() (int, error){
		"tools":     func() (int, error) { return errorOf(c.Tools(t.Context(), nil)) },
		"prompts":   func() (int, error) { return errorOf(c.Prompts(t.Context(), nil)) },
		"resources": func() (int, error) { return errorOf(c.Resources(t.Context(), nil)) },
		"templates": func() (int, error) { return errorOf(c.ResourceTemplates(t.Context(), nil)) },
		"call":      func() (int, error) { _, err := mcp.Call[string](t.Context(), c, "hello", nil); return 0, err },
		"notify":    func() (int, error) { return 0, c.Notify(t.Context(), "vendor/x", nil) },
		"ping":      func() (int, error) { return 0, c.Ping(t.Context()) },
		"listen": func() (int, error) {
			_, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {})
			return 0, err
		},
	} {
		if n, err := list(); n != 0 || !errors.Is(err, mcp.ErrClosed) {
			t.Errorf("%s of a closed connection: %d, %v", name, n, err)
		}
	}
}

// A TimeoutError is recognized as the timeouts of package net are.
func TestTimeoutIsRecognized(t *testing.T) {
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](&mcp.TimeoutError{Method: "a"})
	if !ok || !timeout.Timeout() {
		t.Errorf("%v, %t", timeout, ok)
	}
}

// A resource is registered under a URI with a scheme, or under a template that begins
// with a variable.
func TestSchemeBounds(t *testing.T) {
	for pattern, good := range map[string]bool{
		"notes://x": true, "a:x": true, "z+1-.:x": true, "Z:x": true, "{x}": true, "{x}:y": true,
		"1a:x": false, "+a:x": false, ":x": false, "//x": false, "x": false, "x{y}": true, "a b:x": false, "a_b:x": false, "é:x": false,
	} {
		register := func() { mcp.NewMux("m", "v1", quiet()).Resource(pattern, reads("x")) }
		if good {
			register()
		} else {
			t.Run(pattern, func(t *testing.T) { wantPanic(t, register, "a resource needs a URI with a scheme, such as notes://") })
		}
	}
}

// lister is a resource that lists what a function says.
type lister struct {
	mcp.Handler
	list func() (*mcp.ListResourcesResult, error)
}

func (l lister) ListResources(context.Context, string, *string) (*mcp.ListResourcesResult, error) {
	return l.list()
}

// What lists other resources, and fails, is left out of the list; the log has the reason.
func TestListersThatFail(t *testing.T) {
	for want, list := range map[string]func() (*mcp.ListResourcesResult, error){
		"it rains":                               func() (*mcp.ListResourcesResult, error) { return nil, errors.New("it rains") },
		"returned neither a result nor an error": func() (*mcp.ListResourcesResult, error) { return nil, nil },
	} {
		var log bytes.Buffer
		mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: plainLog(&log)})
		mux.Resource("test://own", reads("x"))
		mux.Resource("test://{a}", lister{reads("x"), list})
		if page := listPage(t, mux, nil); len(page.Resources) != 1 {
			t.Errorf("%s: listed %v", want, page.Resources)
		}
		if got := log.String(); !strings.Contains(got, want) || !strings.Contains(got, "a part is missing from a list") {
			t.Errorf("logged %s, want %q", got, want)
		}
	}
}
