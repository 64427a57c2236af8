// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp"
)

var errDatabase = errors.New(`dial tcp 10.0.0.7:5432: password authentication failed for user "root"`)

// failing is a tool whose function returns err.
func failing(err error) mcp.Handler {
	return mcp.ToolFunc(func(context.Context, none) (string, error) { return "", err }, nil)
}

// An errorSpy is middleware that keeps the error of each tool call, as a logger would see it.
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
// other middleware, in every era and on every transport. It is not sent.
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

// One place decides what peers read of an error: its text, by default; what a PrivateError
// says; or what MuxOptions.PublicError makes of it. Middleware always gets the error itself.
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
		model  string // what the model reads, "" if the request fails
		code   int    // of the request, if it fails
		text   string // of its error
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

// It decides about everything that a handler or middleware can fail in, also below a mount,
// unless the mounted mux has decided. What psi itself explains to a model stays.
func TestFindingU7TheDecisionCoversEverything(t *testing.T) {
	publicly := func(text string) *mcp.MuxOptions {
		opts := quiet()
		opts.PublicError = func(context.Context, error) error { return errors.New(text) }
		return opts
	}
	fill := func(mux *mcp.Mux) *mcp.Mux {
		mux.Tool("t", failing(errDatabase))
		mux.Tool("raw", mcp.Describe(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
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

// A tool that passes on the error of a connection, or of connecting, tells the model no
// address and no key: the text is for the operator.
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
