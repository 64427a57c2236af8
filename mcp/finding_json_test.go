// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// protocolTypes are the types of the protocol's objects.
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

// partsOnly are structs that others embed, which have no methods for that reason, and an
// error that is sent by the transports.
var partsOnly = map[string]bool{"ResultBase": true, "Cacheable": true, "Page": true, "Retry": true, "Error": true}

// encoding/json writes every type of the protocol as it goes over the wire, filled in and
// empty, as a value and as a pointer, and reads it back without loss.
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

// checkJSON checks that encoding/json writes what this package sends.
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
		c.Text = "" // it has a Blob
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

// The list above is complete: it has every exported struct whose fields have JSON names, and
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

// isProtocolStruct reports whether a struct has a JSON name or is a result.
func isProtocolStruct(s *ast.StructType) bool {
	for _, f := range s.Fields.List {
		embedded, _ := f.Type.(*ast.Ident)
		if f.Tag != nil && strings.Contains(f.Tag.Value, "json:") || f.Names == nil && embedded != nil && embedded.Name == "ResultBase" {
			return true
		}
	}
	return false
}

// A client that writes down what it got, with encoding/json, has what the server sent: the
// types of blocks, and members that psi does not know.
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

// A block can be read alone, if it is of the type that is wanted.
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
