// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

// Peers see the error codes that the specification and HTTP define.
func TestCodesOnTheWire(t *testing.T) {
	era := eras[0]
	wrongVersion := strings.Replace(era.request("1", mcp.MethodListTools, ""), "2026-07-28", "2033-01-01", 1)
	returned := map[int]error{
		403: mcp.NewInsufficientScopeError("a"), 429: mcp.NewRateLimitedError(time.Second, "slow down"), -32603: fmt.Errorf("broken"),
		-32020: mcp.Errorf(mcp.CodeHeaderMismatch, "no"), 408: mcp.Errorf(mcp.CodeTimeout, "late"), 413: mcp.Errorf(mcp.CodeTooLarge, "long"),
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Handle("vendor/fail", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		var p struct {
			Code int `json:"code"`
		}
		if err := req.Decode(&p); err != nil {
			return nil, err
		}
		return nil, returned[p.Code]
	}))
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Roots(ctx, "k")
		return "", err
	}, nil))
	sent := map[string]int{
		`{`: -32700, `{"jsonrpc":"1.0","id":1,"method":"x"}`: -32600,
		era.request("1", "vendor/none", ""):                  -32601,
		era.request("1", mcp.MethodCallTool, `"name":5`):     -32602,
		era.request("1", mcp.MethodCallTool, `"name":"ask"`): -32021,
		wrongVersion: -32022,
	}
	for code := range returned {
		sent[era.request("1", "vendor/fail", fmt.Sprintf(`"code":%d`, code))] = code
	}
	for message, code := range sent {
		p := newPeer(t, mux, era)
		p.send(message)
		if got := p.read(); got.Error == nil || got.Error.Code != code {
			t.Errorf("%s: got %s, %v, want the code %d", message, got.Result, got.Error, code)
		}
	}
}

// A retry delay is rounded up to milliseconds and never negative. RetryAfter returns at
// most a day.
func TestRetryAfterBounds(t *testing.T) {
	for after, want := range map[time.Duration]time.Duration{
		-time.Hour: 0, -1: 0, 0: 0, 1: time.Millisecond, time.Millisecond: time.Millisecond, time.Millisecond + 1: 2 * time.Millisecond,
		24 * time.Hour: 24 * time.Hour, 24*time.Hour + 1: 24 * time.Hour, 48 * time.Hour: 24 * time.Hour,
		math.MaxInt64: 24 * time.Hour,
	} {
		if got, ok := mcp.RetryAfter(mcp.NewRateLimitedError(after, "no")); !ok || got != want {
			t.Errorf("%v: got %v, %t", after, got, ok)
		}
	}
	for data, want := range map[string]time.Duration{`{"retryAfterMs":-5}`: 0, `{"retryAfterMs":9223372036854775807}`: 24 * time.Hour} {
		if got, ok := mcp.RetryAfter(&mcp.Error{Code: mcp.CodeRateLimited, Data: json.RawMessage(data)}); !ok || got != want {
			t.Errorf("%s: got %v, %t", data, got, ok)
		}
	}
	for _, err := range []error{
		nil, fmt.Errorf("x"), &mcp.Error{Code: mcp.CodeRateLimited}, &mcp.Error{Code: mcp.CodeRateLimited, Data: json.RawMessage(`{"retryAfterMs":"1"}`)},
		&mcp.Error{Code: mcp.CodeRateLimited, Data: json.RawMessage(`{}`)}, &mcp.Error{Code: mcp.CodeTimeout, Data: json.RawMessage(`{"retryAfterMs":1}`)},
	} {
		if got, ok := mcp.RetryAfter(err); ok || got != 0 {
			t.Errorf("%v: got %v", err, got)
		}
	}
}

// An error ends the iteration over a list and is yielded last.
func TestListIterationErrors(t *testing.T) {
	calls := 0
	mux := described()
	h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if strings.HasSuffix(req.Method, "/list") {
			if calls++; calls > 1 {
				return nil, mcp.Errorf(mcp.CodeInternalError, "broken")
			}
			next := "more"
			res, err := mux.ServeMCP(ctx, req)
			switch r := res.(type) {
			case *mcp.ListToolsResult:
				r.NextCursor = &next
			case *mcp.ListPromptsResult:
				r.NextCursor = &next
			case *mcp.ListResourcesResult:
				r.NextCursor = &next
			}
			return res, err
		}
		return mux.ServeMCP(ctx, req)
	})
	c := connect(t, h, nil)
	check := func(name string, items int, errs []error) {
		if items != 1 || len(errs) != 1 || mcp.CodeOf(errs[0]) != mcp.CodeInternalError {
			t.Errorf("%s: %d items, then %v", name, items, errs)
		}
		calls = 0
	}
	count := func(err error, items *int, errs *[]error) {
		if err != nil {
			*errs = append(*errs, err)
		} else {
			*items++
		}
	}
	var items int
	var errs []error
	calls = 0
	for _, err := range c.Tools(t.Context(), nil) {
		count(err, &items, &errs)
	}
	check("tools", items, errs)
	items, errs = 0, nil
	for _, err := range c.Prompts(t.Context(), nil) {
		count(err, &items, &errs)
	}
	check("prompts", items, errs)
	items, errs = 0, nil
	for _, err := range c.Resources(t.Context(), nil) {
		count(err, &items, &errs)
	}
	check("resources", items, errs)
}

// The text of a server's error can neither control the terminal it is printed to nor start
// another log line. The message itself is unchanged.
func TestFindingS32ErrorTextIsPrintable(t *testing.T) {
	const message = "gone\x1b]0;pwned\x07\r\nlevel=INFO msg=\"all is well\" \u202efdp.exe\u2069 \u009b2J"
	server := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, &mcp.Error{Code: 7, Message: message}
	})
	for _, version := range bothEras {
		c := connect(t, failsTools(server), &mcp.ClientOptions{Version: version})
		_, err := c.CallTool(t.Context(), tool("x", ""))
		coded, ok := errors.AsType[*mcp.Error](err)
		if !ok || coded.Message != message {
			t.Fatalf("%s: got %v", version, err)
		}
		if text := err.Error(); strings.ContainsAny(text, "\x1b\x07\r\n\u202e\u2069\u009b") {
			t.Errorf("%s: the text is %q", version, text)
		}
	}
}

// failsTools returns a server that serves tools/call with h.
func failsTools(h mcp.Handler) mcp.Handler {
	mux := hello()
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodCallTool {
				return h.ServeMCP(ctx, req)
			}
			return next.ServeMCP(ctx, req)
		})
	})
	return mux
}

// An Error that wraps several causes matches each of them.
func TestFindingCL5ErrorfWithSeveralCauses(t *testing.T) {
	err := mcp.Errorf(1, "%w after %w", io.ErrUnexpectedEOF, fs.ErrNotExist)
	if !errors.Is(err, io.ErrUnexpectedEOF) || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the causes are lost: %#v", err)
	}
	if got, want := err.Error(), "unexpected EOF after file does not exist (code 1)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if one := mcp.Errorf(1, "one: %w", io.EOF); !errors.Is(one.Cause, io.EOF) {
		t.Errorf("the cause is %v", one.Cause)
	}
}

// In a conversation, each tool use has exactly one result, in the next user message, which
// contains nothing else.
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
		"message 1: tool results must be in user messages, with nothing else": {model(use("1")), model(result("1"))},
		"message 2: tool results must be in user messages":                    {user(hi), model(use("1")), user(result("1"), hi)},
		`message 1: there is no tool use "2" in the previous message`:         {model(use("1")), user(result("2"))},
		`message 0: there is no tool use "1" in the previous message`:         {user(result("1"))},
		`message 1: there is no tool use "1"`:                                 {model(use("1")), user(result("1"), result("1"))},
		`message 1: the tool use "1" has no result`:                           {model(use("1")), user(hi)},
		`message 1: the tool use "2" has no result`:                           {model(use("1"), use("2")), user(result("1"))},
		`the tool use "1" has no result`:                                      {user(hi), model(use("1"))},
	} {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			_, err := mcp.Sample(ctx, "s", &mcp.CreateMessageParams{MaxTokens: 9, Messages: messages, Tools: []*mcp.Tool{{Name: "a"}}})
			return "", err
		}, nil))
		opts := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapability{Tools: &struct{}{}}}, Sample: func(context.Context, *mcp.Conn, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
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

// Every call on a closed connection fails immediately with ErrClosed.
func TestClosedInProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) { <-ctx.Done(); return "", ctx.Err() }, nil))
		conn, err := mcp.InProcess(mux).Connect(t.Context(), func(*transport.Message) {})
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

// errorOf returns the error that ends a list, and the number of items before it.
func errorOf[T any](items iter.Seq2[*T, error]) (n int, err error) {
	for _, err := range items {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// Calls on a closed connection, or with values that cannot be encoded, return an error with
// the reason.
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

// A TimeoutError is recognized as a timeout like those of package net.
func TestTimeoutIsRecognized(t *testing.T) {
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](&mcp.TimeoutError{Method: "a"})
	if !ok || !timeout.Timeout() {
		t.Errorf("%v, %t", timeout, ok)
	}
}

// A resource needs a URI with a scheme, or a template that begins with a variable.
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

// A scheme with a character that schemes cannot have is not answered with another scheme.
func TestFindingR28SchemeWithUnderscore(t *testing.T) {
	wantPanic(t, func() { mcp.NewMux("m", "v1", quiet()).Resource("case_law://{id}", reads("x")) }, `the scheme "case_law" has the character '_'`)
}

// If the List function of a template fails, its resources are left out of the list and the reason is
// logged.
func TestListsThatFail(t *testing.T) {
	for want, list := range map[string]func(context.Context, *mcp.ListParams) (*mcp.ListResourcesResult, error){
		"it rains": func(context.Context, *mcp.ListParams) (*mcp.ListResourcesResult, error) {
			return nil, errors.New("it rains")
		},
		"returned neither a result nor an error": func(context.Context, *mcp.ListParams) (*mcp.ListResourcesResult, error) { return nil, nil },
	} {
		var log bytes.Buffer
		mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: plainLog(&log)})
		mux.Resource("test://own", reads("x"))
		mux.Resource("test://{a}", mcp.WithDescription(reads("x"), &mcp.Resource{List: list}))
		if page := listPage(t, mux, nil); len(page.Resources) != 1 {
			t.Errorf("%s: listed %v", want, page.Resources)
		}
		if got := log.String(); !strings.Contains(got, want) || !strings.Contains(got, "a part is missing from a list") {
			t.Errorf("logged %s, want %q", got, want)
		}
	}
}

var errDatabase = errors.New(`dial tcp 10.0.0.7:5432: password authentication failed for user "root"`)

// failing returns a tool whose function returns err.
func failing(err error) mcp.Handler {
	return mcp.ToolFunc(func(context.Context, none) (string, error) { return "", err }, nil)
}

// An errorSpy is middleware that records the error of each tool call, as a logger would.
type errorSpy struct {
	mu   sync.Mutex
	last error
}

func (s *errorSpy) watch(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		res, err := next.ServeMCP(ctx, req)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.last = err
		if r, ok := res.(*mcp.CallToolResult); ok {
			s.last = r.Err()
		}
		return res, err
	})
}

// seen returns the error of the last request.
func (s *errorSpy) seen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Middleware around the whole server gets the Go error of a tool, through a mounted mux and
// other middleware, in every era and on every transport. The error itself is not sent.
func TestFindingU7TheErrorOfAToolReachesMiddleware(t *testing.T) {
	saw := new(errorSpy)
	inner := mcp.NewMux("inner", "v1", quiet())
	inner.With(new(errorSpy).watch).Tool("load", failing(fmt.Errorf("load notes: %w", errDatabase)))
	mux := mcp.NewMux("outer", "v1", quiet())
	mux.Use(saw.watch)
	mux.Mount("in_", inner)
	mux.Tool("add", mcp.ToolFunc(func(_ context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		return "", nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		res, err := c.CallTool(t.Context(), tool("in_load", ""))
		if err != nil || !res.IsError || res.Err() != nil || textOf(res) != "load notes: "+errDatabase.Error() {
			t.Errorf("the client got %v, %v", res, err)
		}
		if !errors.Is(saw.seen(), errDatabase) {
			t.Errorf("middleware saw %v", saw.seen())
		}
		if _, err := c.CallTool(t.Context(), tool("add", `{"n":"x"}`)); err != nil {
			t.Error(err)
		}
		invalid, ok := errors.AsType[*mcp.ArgumentsError](saw.seen())
		if _, explained := errors.AsType[*jsonschema.ValidationError](invalid); !ok || !explained {
			t.Errorf("of invalid arguments middleware saw %v", saw.seen())
		}
		if mustCall(t, c, "add", `{"n":1}`); saw.seen() != nil {
			t.Errorf("of a tool that succeeded middleware saw %v", saw.seen())
		}
	})
}

// What peers see of an error is its text by default, the Public text of a PrivateError, or
// the result of MuxOptions.PublicError. Middleware always gets the error itself.
func TestFindingU7OnePlaceDecidesWhatModelsRead(t *testing.T) {
	private := &mcp.PrivateError{Public: "no notes today", Err: errDatabase}
	hide := func(_ context.Context, err error) error {
		if errors.Is(err, mcp.ErrDeclined) {
			return err
		}
		return errors.New("the tool failed; we look into it")
	}
	for name, test := range map[string]struct {
		err    error
		public func(context.Context, error) error
		model  string // text for the model, or "" if the request fails
		code   int    // of the request error
		text   string // of the request error
	}{
		"plain":                       {err: errDatabase, model: errDatabase.Error()},
		"private":                     {err: private, model: "no notes today"},
		"private, wrapped":            {err: fmt.Errorf("secret: %w", private), model: "no notes today"},
		"private, no words":           {err: &mcp.PrivateError{Err: errDatabase}, model: "internal error"},
		"private around an Error":     {err: &mcp.PrivateError{Public: "sorry", Err: mcp.Errorf(7, "secret: %w", errDatabase)}, model: "sorry"},
		"an Error around private":     {err: &mcp.Error{Code: 7, Message: "seven", Cause: private}, code: 7, text: "seven"},
		"decided":                     {err: errDatabase, public: hide, model: "the tool failed; we look into it"},
		"decided: the error itself":   {err: fmt.Errorf("%w: %w", mcp.ErrDeclined, errDatabase), public: hide, model: mcp.ErrDeclined.Error() + ": " + errDatabase.Error()},
		"decided: private":            {err: errDatabase, public: func(_ context.Context, err error) error { return &mcp.PrivateError{Public: "sorry", Err: err} }, model: "sorry"},
		"decided: nothing":            {err: errDatabase, public: func(context.Context, error) error { return nil }, model: "internal error"},
		"decided: an Error":           {err: errDatabase, public: func(context.Context, error) error { return mcp.Errorf(8, "eight") }, code: 8, text: "eight"},
		"an Error is not decided on":  {err: mcp.Errorf(7, "seven: %w", errDatabase), public: hide, code: 7, text: "seven: " + errDatabase.Error()},
		"a private Error, decided on": {err: &mcp.PrivateError{Err: mcp.Errorf(7, "secret: %w", errDatabase)}, public: hide, model: "the tool failed; we look into it"},
	} {
		t.Run(name, func(t *testing.T) {
			opts := quiet()
			opts.PublicError = test.public
			mux, saw := mcp.NewMux("m", "v1", opts), new(errorSpy)
			mux.Use(saw.watch)
			mux.Tool("t", failing(test.err))
			res, err := callTool(t, mux, "t", "")
			switch {
			case test.model == "":
				if coded, ok := errors.AsType[*mcp.Error](err); !ok || coded.Code != test.code || coded.Message != test.text {
					t.Errorf("got the error %v", err)
				}
			case err != nil || !res.IsError || textOf(res) != test.model:
				t.Errorf("the model reads %v, %v", res, err)
			case !errors.Is(res.Err(), errDatabase):
				t.Errorf("the error is lost: %v", res.Err())
			}
			if !errors.Is(saw.seen(), errDatabase) {
				t.Errorf("middleware saw %v", saw.seen())
			}
		})
	}
}

// PublicError applies to every error of a handler or middleware, also below a mount unless
// the mounted mux has its own. Explanations that psi writes for the model are not changed.
func TestFindingU7TheDecisionCoversEverything(t *testing.T) {
	publicly := func(text string) *mcp.MuxOptions {
		opts := quiet()
		opts.PublicError = func(context.Context, error) error { return errors.New(text) }
		return opts
	}
	fill := func(mux *mcp.Mux) *mcp.Mux {
		mux.Tool("t", failing(errDatabase))
		mux.Tool("raw", mcp.WithDescription(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			return nil, errDatabase
		}), &mcp.Tool{}))
		mux.Tool("own", mcp.ToolFunc(func(context.Context, none) (*mcp.CallToolResult, error) {
			res := mcp.ErrorResult(errDatabase)
			res.Content = append(res.Content, mcp.Text("own content"))
			return res, nil
		}, nil))
		mux.Prompt("p", mcp.PromptFunc(func(context.Context, map[string]string) (string, error) { return "", errDatabase }, &mcp.Prompt{
			Arguments:  []*mcp.PromptArgument{{Name: "x"}},
			Completers: map[string]mcp.Completer{"x": func(context.Context, *mcp.CompleteParams) ([]string, error) { return nil, errDatabase }},
		}))
		mux.Resource("r:r", mcp.ResourceFunc(func(context.Context, none) (string, error) { return "", errDatabase }, nil))
		return mux
	}
	mux := fill(mcp.NewMux("outer", "v1", publicly("outer")))
	mux.Handle("vendor/m", failing(errDatabase))
	mux.Mount("a_", fill(mcp.NewMux("a", "v1", quiet())))
	mux.Mount("b_", fill(mcp.NewMux("b", "v1", publicly("inner"))))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for prefix, want := range map[string]string{"": "outer", "a_": "outer", "b_": "inner"} {
			if got := mustCall(t, c, prefix+"t", ""); got != want {
				t.Errorf("%st: the model reads %q", prefix, got)
			}
			if got := mustCall(t, c, prefix+"own", ""); got != errDatabase.Error()+"\nown content" {
				t.Errorf("%sown: the content of the handler became %q", prefix, got)
			}
			if got := mustCall(t, c, prefix+"t", `{"x":1}`); !strings.Contains(got, "invalid arguments") {
				t.Errorf("%st: of invalid arguments the model reads %q", prefix, got)
			}
			uri := "r:r"
			if prefix != "" {
				uri = "mount:" + prefix + ":r:r"
			}
			ref := mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/prompt", Name: prefix + "p"}, Argument: mcp.CompleteArgument{Name: "x"}}
			for method, params := range map[string]any{
				mcp.MethodCallTool:     tool(prefix+"raw", ""),
				mcp.MethodGetPrompt:    &mcp.GetPromptParams{Name: prefix + "p"},
				mcp.MethodReadResource: &mcp.ReadResourceParams{URI: uri},
				mcp.MethodComplete:     &ref,
			} {
				_, err := serveRaw(t, c, method, params)
				if coded, ok := errors.AsType[*mcp.Error](err); !ok || coded.Code != mcp.CodeInternalError || coded.Message != want {
					t.Errorf("%s of %q: the client got %v", method, prefix, err)
				}
			}
		}
	})
}

// If a tool returns an error of a connection, or of connecting, the model sees neither
// addresses nor keys. The details are for the operator.
func TestFindingU1ToolsMayReturnErrorsOfConnections(t *testing.T) {
	back := httptest.NewServer(mcphttp.NewHandler(hello(), nil))
	transport := mcphttp.NewTransport(back.URL+"?key=SECRET", nil)
	up := connectTo(t, transport, &mcp.ClientOptions{Version: mcp.LatestVersion, Logger: quiet().Logger})
	back.CloseClientConnections()
	back.Close()
	mux, saw := mcp.NewMux("m", "v1", quiet()), new(errorSpy)
	mux.Use(saw.watch)
	for name, fails := range map[string]func(ctx context.Context) error{
		"call": func(ctx context.Context) error {
			_, err := mcp.Call[string](ctx, up, "hello", nil)
			return fmt.Errorf("saying hello: %w", err)
		},
		"ping":   up.Ping,
		"notify": func(ctx context.Context) error { return up.Notify(ctx, "notifications/vendor", nil) },
		"connect": func(ctx context.Context) error {
			_, err := mcp.NewClient("c", "v1", nil).Connect(ctx, transport)
			return err
		},
	} {
		mux.Tool(name, mcp.ToolFunc(func(ctx context.Context, _ none) (struct{}, error) { return struct{}{}, fails(ctx) }, nil))
		res, err := callTool(t, mux, name, "")
		if err != nil || !res.IsError || textOf(res) != "the server behind this one is not available" {
			t.Errorf("%s: the model reads %v, %v", name, res, err)
		}
		if seen := saw.seen(); seen == nil || !strings.Contains(seen.Error(), "SECRET") {
			t.Errorf("%s: the operator sees %v", name, seen)
		}
	}
}
