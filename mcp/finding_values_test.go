// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/legacyserver"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/middleware"
)

// Defaults stand for members that are absent, and are never merged into what a caller
// gave.
func TestFindingCM7(t *testing.T) {
	type args struct {
		Labels map[string]string `json:"labels,omitempty"`
		Page   struct {
			Size  int `json:"size,omitempty"`
			Start int `json:"start,omitempty"`
		} `json:"page,omitzero"`
		Any  any    `json:"any,omitempty"`
		Note string `json:"note,omitempty"`
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("show", mcp.ToolFunc(func(_ context.Context, in args) (string, error) {
		return fmt.Sprintln(in.Labels, in.Page.Size, in.Page.Start, in.Any, in.Note), nil
	}, &mcp.Tool{InputSchema: json.RawMessage(`{"type":"object","properties":{
		"labels":{"type":"object","default":{"env":"prod"}},
		"page":{"type":"object","default":{"size":100,"start":1}},
		"any":true,
		"note":{"type":["string","null"],"default":"none"}}}`)}))
	for given, want := range map[string]string{
		``:                                   "map[env:prod] 100 1 <nil> none",
		`{}`:                                 "map[env:prod] 100 1 <nil> none",
		`{"labels":{"team":"a"}}`:            "map[team:a] 100 1 <nil> none",
		`{"page":{"size":5}}`:                "map[env:prod] 5 0 <nil> none",
		`{"note":null,"any":1}`:              "map[env:prod] 100 1 1 none",
		`{"labels":{},"page":{},"note":"x"}`: "map[] 0 0 <nil> x",
	} {
		res, err := callTool(t, mux, "show", given)
		if err != nil || strings.Join(strings.Fields(textOf(res)), " ") != want {
			t.Errorf("%s: got %+v, %v; want %s", given, res, err, want)
		}
	}
}

// A list of one type of content is content.
func TestFindingCL6(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("texts", mcp.ToolFunc(func(context.Context, none) ([]*mcp.TextContent, error) {
		return []*mcp.TextContent{mcp.Text("a"), mcp.Text("b")}, nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		res, err := c.CallTool(t.Context(), tool("texts", ""))
		if err != nil || textOf(res) != "a\nb" || res.StructuredContent != nil {
			t.Errorf("got %+v, %v", res, err)
		}
	})
}

// Cursors do not tell what they hide, and are good for one caller, list and server.
func TestFindingS18Cursors(t *testing.T) {
	build := func(name string) *mcp.Mux {
		opts := quiet()
		opts.PageSize, opts.StateKeys = 1, [][]byte{slices.Repeat([]byte("k"), 32)}
		mux := mcp.NewMux(name, "v1", opts)
		mux.Use(middleware.Visible(func(_ context.Context, _ middleware.Kind, name string) bool { return !strings.Contains(name, "secret") }))
		for _, name := range []string{"a-secret", "b", "c"} {
			mux.Tool(name, says(name))
			mux.Prompt(name, promptSays(name))
		}
		return mux
	}
	mux := build("m")
	ann := &mcptest.Client{Principal: &mcp.Principal{Subject: "ann"}}
	list := func(h mcp.Handler, who *mcptest.Client, method string, cursor *string) (mcp.Result, error) {
		res, _, err := mcptest.Do(t, h, who.NewRequest(method, &mcp.ListParams{Cursor: cursor}))
		return res, err
	}
	res, err := list(mux, ann, mcp.MethodListTools, nil)
	if err != nil {
		t.Fatal(err)
	}
	cursor := res.(*mcp.ListToolsResult).NextCursor
	plain, _ := base64.RawURLEncoding.DecodeString(*cursor)
	if strings.Contains(*cursor, "secret") || strings.Contains(string(plain), "secret") {
		t.Errorf("the cursor says %q", plain)
	}
	for _, test := range []struct {
		what   string
		h      mcp.Handler
		who    *mcptest.Client
		method string
		ok     bool
	}{
		{"its own list", mux, ann, mcp.MethodListTools, true},
		{"a replica", build("m"), ann, mcp.MethodListTools, true},
		{"another caller", mux, &mcptest.Client{Principal: &mcp.Principal{Subject: "bob"}}, mcp.MethodListTools, false},
		{"nobody", mux, new(mcptest.Client), mcp.MethodListTools, false},
		{"another list", mux, ann, mcp.MethodListPrompts, false},
		{"another server", build("other"), ann, mcp.MethodListTools, false},
	} {
		if _, err := list(test.h, test.who, test.method, cursor); (err == nil) != test.ok {
			t.Errorf("%s: got %v", test.what, err)
		}
	}
}

// What makes a middleware may use the mux, and other muxes.
func TestFindingCM6(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	other := mcp.NewMux("other", "v1", quiet())
	mux.Use(func(next mcp.Handler) mcp.Handler {
		_ = mux.Walk(func(string, string, mcp.Handler) error { return nil })
		mux.Tool("made", says("made"))
		other.Tool("made", says("made"))
		_, _ = callTool(t, other, "made", "")
		return next
	})
	if res, err := callTool(t, mux, "made", ""); err != nil || textOf(res) != "made" {
		t.Errorf("got %+v, %v", res, err)
	}
}

// Templates are compared when one is registered, not at the next request after any
// change.
func TestFindingCL9(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	for _, pattern := range []string{"n://{+path}", "n://x/z/{+path}", "n://x/{+path}", "n://x/y"} {
		mux.Resource(pattern, reads(pattern))
	}
	read := func(uri string) string {
		res, _, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri}))
		if err != nil {
			return err.Error()
		}
		return res.(*mcp.ReadResourceResult).Contents[0].Text
	}
	for uri, want := range map[string]string{"n://a": "n://{+path}", "n://x/a": "n://x/{+path}", "n://x/y": "n://x/y", "n://x/z/1": "n://x/z/{+path}"} {
		if got := read(uri); got != want {
			t.Errorf("%s: read by %s, want %s", uri, got, want)
		}
	}
	mux.RemoveResource("n://x/{+path}")
	if got := read("n://x/a"); got != "n://{+path}" {
		t.Errorf("after a removal: read by %s", got)
	}
}

// A completion without the name of an argument is refused.
func TestFindingW17Completion(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Prompt("p", promptSays("p"))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for _, params := range []string{`{"ref":{"type":"ref/prompt","name":"p"}}`, `{"ref":{"type":"ref/prompt","name":"p"},"argument":{"value":"x"}}`} {
			_, err := serveRaw(t, c, mcp.MethodComplete, json.RawMessage(params))
			wantCode(t, err, mcp.CodeInvalidParams)
		}
	})
}

// What fits the schema fits the type: an integer is one however it is written, and what
// a type's own decoder refuses, it refuses in its own words.
func TestFindingCM8I2(t *testing.T) {
	type args struct {
		N    int            `json:"n,omitempty"`
		Big  *big.Int       `json:"big,omitempty"`
		U    uint8          `json:"u,omitempty"`
		Data []byte         `json:"data,omitempty"`
		Addr netip.Addr     `json:"addr,omitzero"`
		At   time.Time      `json:"at,omitzero"`
		Map  map[string]int `json:"map,omitempty"`
		Text string         `json:"text,omitempty"`
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("show", mcp.ToolFunc(func(_ context.Context, in args) (string, error) {
		return fmt.Sprintln(in.N, in.U, in.Map["a"], in.Text), nil
	}, nil))
	for given, want := range map[string]string{
		`{"n":5.0,"u":1e2,"map":{"a":-20e-1},"text":"1.0 \" 2.0"}`: `5 100 -2 1.0 " 2.0`,
		`{"n":5}`:            `5 0 0`,
		`{"n":1e30}`:         `/n is out of range`,
		`{"data":"%%%"}`:     `illegal base64`,
		`{"addr":"nowhere"}`: `unable to parse IP`,
	} {
		res, err := callTool(t, mux, "show", given)
		if err != nil || !strings.Contains(textOf(res), want) || strings.Contains(textOf(res), "must not be") {
			t.Errorf("%s: got %v, %v; want %s", given, textOf(res), err, want)
		}
	}
	mux.Prompt("n", mcp.PromptFunc(func(_ context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		return fmt.Sprint(in.N), nil
	}, nil))
	res, _, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodGetPrompt, &mcp.GetPromptParams{Name: "n", Arguments: map[string]string{"n": "2.0"}}))
	if err != nil || res.(*mcp.GetPromptResult).Messages[0].Content.(*mcp.TextContent).Text != "2" {
		t.Errorf("got %+v, %v", res, err)
	}
}

// So it is with what a client fills in, and with what a server returns.
func TestFindingI2AnswersAndOutputs(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		answer, err := mcp.Elicit[struct {
			N int `json:"n"`
		}](ctx, "n", "How many?")
		return fmt.Sprint(answer.N), err
	}, nil))
	mux.Tool("count", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"n":5.0}`)}, nil
	}))
	client := &mcptest.Client{Options: mcp.ClientOptions{Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: json.RawMessage(`{"n":30.0}`)}, nil
	}}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if got := mustCall(t, c, "ask", ""); got != "30" {
			t.Errorf("got %q", got)
		}
	})
	out, err := mcp.Call[struct {
		N int `json:"n"`
	}](t.Context(), connectTo(t, memory(t, mux), nil), "count", nil)
	if err != nil || out.N != 5 {
		t.Errorf("got %+v, %v", out, err)
	}
}

// The pause between two runs of a legacy call without a question never ends, however many
// rounds there are.
func TestFindingCL1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := "again"
		runs := 0
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("again", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			runs++
			return &mcp.InputRequired{RequestState: &state}, nil
		}))
		session := legacyserver.NewServer(mux, &legacyserver.Options{MaxRounds: 100, Logger: quiet().Logger}).NewSession(legacyserver.Details{}, nil)
		for _, m := range []string{eras[1].open[0], eras[1].request("1", "tools/call", `"name":"again"`)} {
			parsed, err := transport.ParseMessage([]byte(m))
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			play(t.Context(), session, parsed, sendNothing{})
			if took := time.Since(began); parsed.Method == mcp.MethodCallTool && took < 90*time.Second {
				t.Errorf("100 rounds took %v", took)
			}
		}
		if runs != 100 {
			t.Errorf("the handler ran %d times", runs)
		}
	})
}

type sendNothing struct{}

func (sendNothing) Send(context.Context, []byte) error { return nil }

type hiddenPart struct{ X int }

// Arguments that can never be decoded are a mistake that is found when a tool is made.
func TestFindingCL10(t *testing.T) {
	wantPanic(t, func() {
		mcp.ToolFunc(func(context.Context, struct{ *hiddenPart }) (string, error) { return "", nil }, nil)
	}, ".hiddenPart", "embed the type itself")
	wantPanic(t, func() {
		mcp.ToolFunc(func(context.Context, struct {
			Inner []struct{ Err error }
		}) (string, error) {
			return "", nil
		}, nil)
	}, ".Inner.Err", "interface with methods")
	mcp.ToolFunc(func(context.Context, struct {
		hiddenPart
		Any  any
		Addr *netip.Addr
		Raw  json.RawMessage
		Skip error `json:"-"`
	}) (string, error) {
		return "", nil
	}, nil)
}

// A version is compared as the text that it is.
func TestFindingW17Version(t *testing.T) {
	for version, code := range map[string]int{`"2\u002e0"`: 0, `"2.1"`: mcp.CodeInvalidRequest, `2.0`: mcp.CodeInvalidRequest} {
		_, err := transport.ParseMessage([]byte(`{"jsonrpc":` + version + `,"id":1,"method":"ping"}`))
		wantCode(t, err, code)
	}
}
