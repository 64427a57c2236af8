// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/big"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/go-psi/psi/internal/server"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/middleware"
)

// protocolTypes lists the types of the protocol's objects.
var protocolTypes = []any{
	mcp.AcknowledgedParams{}, mcp.Annotations{}, mcp.AudioContent{}, mcp.CallToolParams{}, mcp.CallToolResult{}, mcp.CancelledParams{},
	mcp.ClientCapabilities{}, mcp.CompleteArgument{}, mcp.CompleteContext{}, mcp.CompleteParams{}, mcp.CompleteRef{}, mcp.CompleteResult{}, mcp.Completion{},
	mcp.CreateMessageParams{}, mcp.CreateMessageResult{}, mcp.DiscoverResult{}, mcp.ElicitParams{}, mcp.ElicitResult{},
	mcp.ElicitationCapability{}, mcp.EmbeddedResource{}, mcp.EmptyResult{}, mcp.GetPromptParams{}, mcp.GetPromptResult{}, mcp.Icon{},
	mcp.ImageContent{}, mcp.Implementation{}, mcp.InputRequest{}, mcp.InputRequired{}, mcp.ListCapability{}, mcp.ListParams{},
	mcp.ListPromptsResult{}, mcp.ListResourceTemplatesResult{}, mcp.ListResourcesResult{}, mcp.ListRootsResult{}, mcp.ListToolsResult{},
	mcp.ListenParams{}, mcp.ListenResult{}, mcp.LoggingMessageParams{}, mcp.ModelHint{}, mcp.ModelPreferences{}, mcp.ProgressParams{},
	mcp.Prompt{}, mcp.PromptArgument{}, mcp.PromptMessage{}, mcp.ReadResourceParams{}, mcp.ReadResourceResult{}, mcp.Resource{},
	mcp.ResourceContents{}, mcp.ResourceLink{}, mcp.ResourceTemplate{}, mcp.ResourceUpdatedParams{}, mcp.ResourcesCapability{}, mcp.Root{},
	mcp.RootsCapability{}, mcp.SamplingCapability{}, mcp.SamplingMessage{}, mcp.ServerCapabilities{}, mcp.SubscriptionFilter{},
	mcp.TextContent{}, mcp.Tool{}, mcp.ToolAnnotations{}, mcp.ToolChoice{}, mcp.ToolResultContent{}, mcp.ToolUseContent{},
}

// partsOnly lists structs that have no JSON methods because other structs embed them, and
// Error, which only transports send.
var partsOnly = map[string]bool{"ResultBase": true, "Cacheable": true, "Page": true, "Resume": true, "Error": true}

// encoding/json writes every protocol type in its wire format, filled in and empty, as a
// value and as a pointer, and reads it back without loss.
func TestFindingI7EncodingJSONIsRightBothWays(t *testing.T) {
	for _, zero := range protocolTypes {
		typ := reflect.TypeOf(zero)
		t.Run(typ.Name(), func(t *testing.T) {
			checkJSON(t, reflect.New(typ))
			filled := reflect.New(typ)
			fill(filled.Elem())
			data := checkJSON(t, filled)
			back := reflect.New(typ)
			if err := json.Unmarshal(data, back.Interface()); err != nil {
				t.Fatalf("%s cannot be read back: %v", data, err)
			}
			if !reflect.DeepEqual(back.Interface(), filled.Interface()) {
				t.Errorf("%s became\n%+v, want\n%+v", data, back, filled)
			}
			if extra := filled.Elem().FieldByName("Extra"); extra.IsValid() && !strings.Contains(string(data), `"unknown":1`) {
				t.Errorf("unknown members are lost: %s", data)
			}
		})
	}
}

// checkJSON checks that encoding/json writes the wire format.
func checkJSON(t *testing.T, v reflect.Value) []byte {
	t.Helper()
	ours, err := jsonv2.Marshal(v.Interface(), jsonv2.Deterministic(true))
	if err != nil {
		if _, err := json.Marshal(v.Interface()); err == nil {
			t.Errorf("it cannot be sent, and encoding/json writes it")
		}
		return nil
	}
	for _, v := range []reflect.Value{v, v.Elem()} {
		data, err := json.Marshal(v.Interface())
		if err != nil {
			t.Fatal(err)
		}
		var got, want any
		if json.Unmarshal(data, &got) != nil || json.Unmarshal(ours, &want) != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("encoding/json writes\n%s, sent is\n%s", data, ours)
		}
		if strings.Contains(string(data), `"Extra"`) {
			t.Errorf("Extra is written as a member: %s", data)
		}
	}
	return ours
}

// fill sets all fields of a struct that are sent.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case mcp.Extra:
		v.Set(reflect.ValueOf(mcp.Extra{"unknown": json.RawMessage("1")}))
		return
	case mcp.ID:
		v.Set(reflect.ValueOf(mcp.IntID(7)))
		return
	case json.RawMessage:
		v.SetBytes([]byte(`{"a":1}`))
		return
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 7, 28, 0, 0, 0, 0, time.UTC)))
		return
	}
	fillKind(v)
	if c, ok := reflect.TypeAssert[*mcp.ResourceContents](v.Addr()); ok {
		c.Text = "" // because it has a Blob
	}
}

func fillKind(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("s")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), value)
	case reflect.Interface:
		if v.Type() == reflect.TypeFor[mcp.Content]() {
			v.Set(reflect.ValueOf(mcp.Text("text")))
		} else {
			v.Set(reflect.ValueOf("any"))
		}
	case reflect.Struct:
		for f, field := range v.Fields() {
			if f.IsExported() && f.Tag.Get("json") != "-" {
				fill(field)
			}
		}
	}
}

// protocolTypes is complete: it contains every exported struct with JSON field names and
// every result.
func TestFindingI7AllProtocolTypesAreTested(t *testing.T) {
	tested := map[string]bool{}
	for _, v := range protocolTypes {
		tested[reflect.TypeOf(v).Name()] = true
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() || tested[spec.Name.Name] || partsOnly[spec.Name.Name] {
				return true
			}
			if s, ok := spec.Type.(*ast.StructType); ok && isProtocolStruct(s) {
				t.Errorf("%s: %s is not tested", name, spec.Name.Name)
			}
			return true
		})
	}
}

// isProtocolStruct reports whether a struct has JSON field names or is a result.
func isProtocolStruct(s *ast.StructType) bool {
	for _, f := range s.Fields.List {
		embedded, _ := f.Type.(*ast.Ident)
		if f.Tag != nil && strings.Contains(f.Tag.Value, "json:") || f.Names == nil && embedded != nil && embedded.Name == "ResultBase" {
			return true
		}
	}
	return false
}

// A client that encodes a result with encoding/json gets what the server sent, including
// the types of content blocks and members unknown to psi.
func TestFindingI7WhatAClientGotCanBeWrittenDown(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", mcp.ToolFunc(func(context.Context, none) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{
			ResultBase: mcp.ResultBase{Extra: mcp.Extra{"x": json.RawMessage("1")}},
			Content:    mcp.Contents{&mcp.ImageContent{Data: []byte("png"), MIMEType: "image/png", Extra: mcp.Extra{"y": json.RawMessage("2")}}},
		}, nil
	}, &mcp.Tool{Extra: mcp.Extra{"execution": json.RawMessage(`{"taskSupport":"optional"}`)}}))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		list, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		written, err := json.Marshal(list.Tools[0])
		var back mcp.Tool
		if err != nil || json.Unmarshal(written, &back) != nil || string(back.Extra["execution"]) != `{"taskSupport":"optional"}` {
			t.Errorf("the tool is written as %s, %v", written, err)
		}
		res, err := c.CallTool(t.Context(), tool("t", ""))
		if err != nil {
			t.Fatal(err)
		}
		res.Meta = nil
		got, err := json.Marshal(res)
		if want := `"content":[{"type":"image","data":"cG5n","mimeType":"image/png","y":2}]`; err != nil || !strings.Contains(string(got), want) || !strings.Contains(string(got), `"x":1`) {
			t.Errorf("the result is written as %s, %v", got, err)
		}
	})
}

// A single content block can be decoded if it has the expected type.
func TestFindingI7BlocksAlone(t *testing.T) {
	var text mcp.TextContent
	if err := json.Unmarshal([]byte(`{"type":"text","text":"a","z":1}`), &text); err != nil || text.Text != "a" || len(text.Extra) != 1 {
		t.Errorf("got %+v, %v", text, err)
	}
	if err := json.Unmarshal([]byte(`{"type":"image","data":""}`), &text); err == nil || !strings.Contains(err.Error(), `not of the type "text"`) {
		t.Errorf("an image as text: got %v", err)
	}
	var other mcp.UnknownContent
	const video = `{"type":"video","url":"u"}`
	if err := json.Unmarshal([]byte(video), &other); err != nil || other.Type != "video" {
		t.Errorf("got %+v, %v", other, err)
	}
	if data, err := json.Marshal(other); err != nil || string(data) != video {
		t.Errorf("got %s, %v", data, err)
	}
}

// Defaults replace absent members, and are never merged with values from the caller.
func TestFindingCM7DefaultsAreNotMerged(t *testing.T) {
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

// A slice of one content type is returned as content.
func TestFindingCL6ListOfContent(t *testing.T) {
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

// A cursor does not reveal hidden items. It is valid for one caller, list and server.
func TestFindingS18Cursors(t *testing.T) {
	build := func(name string) *mcp.Mux {
		opts := quiet()
		opts.PageSize, opts.StateKeys = 1, [][]byte{slices.Repeat([]byte("k"), 32)}
		mux := mcp.NewMux(name, "v1", opts)
		mux.Use(middleware.Visible(func(_ context.Context, _ mcp.Kind, name string) bool { return !strings.Contains(name, "secret") }))
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

// A middleware constructor may use the mux, and other muxes.
func TestFindingCM6MiddlewareUsesTheMux(t *testing.T) {
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

// Templates are compared when they are registered, not again by the next request after a
// change.
func TestFindingCL9TemplatesAreComparedOnce(t *testing.T) {
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

// A completion without an argument name is rejected.
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

// Values that match the schema can be decoded: integers may be written in any form. If a
// decoder rejects a value, its error text is reported.
func TestFindingCM8I2SchemaAndTypeAgree(t *testing.T) {
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

// The same is true for answers of a client and results of a server.
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
	client := &mcptest.Client{Options: mcp.ClientOptions{Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
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

// In the legacy era, a call that is repeated without a question pauses between runs, in
// every round.
func TestFindingCL1PauseBetweenRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state := "again"
		runs := 0
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("again", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			runs++
			return &mcp.InputRequired{RequestState: &state}, nil
		}))
		session := server.New(mux, &server.Options{Logger: quiet().Logger}).NewSession(server.Details{}, nil)
		for _, m := range []string{eras[1].open[0], eras[1].request("1", "tools/call", `"name":"again"`)} {
			parsed, err := transport.ParseMessage([]byte(m))
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			play(t.Context(), session, parsed, sendNothing{})
			if took := time.Since(began); parsed.Method == mcp.MethodCallTool && took < 20*time.Second {
				t.Errorf("32 rounds took %v", took)
			}
		}
		if runs != 32 {
			t.Errorf("the handler ran %d times", runs)
		}
	})
}

type sendNothing struct{}

func (sendNothing) Send(context.Context, []byte) error { return nil }

type hiddenPart struct{ X int }

// Argument types that can never be decoded panic when the tool is created.
func TestFindingCL10ArgumentsThatCannotBeDecoded(t *testing.T) {
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

// The JSON-RPC version is compared as decoded text.
func TestFindingW17Version(t *testing.T) {
	for version, code := range map[string]int{`"2\u002e0"`: 0, `"2.1"`: mcp.CodeInvalidRequest, `2.0`: mcp.CodeInvalidRequest} {
		_, err := transport.ParseMessage([]byte(`{"jsonrpc":` + version + `,"id":1,"method":"ping"}`))
		wantCode(t, err, code)
	}
}
