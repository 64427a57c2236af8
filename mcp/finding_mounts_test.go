// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// stranger is a remote server that lists what it likes, and answers every call with
// what it was called for.
func stranger(lists map[string]string) mcp.Handler {
	return mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		switch req.Method {
		case mcp.MethodDiscover:
			caps := `{"tools":{},"prompts":{},"resources":{},"completions":{}}`
			res := &mcp.DiscoverResult{SupportedVersions: mcp.ModernVersions()}
			return res, json.Unmarshal([]byte(caps), &res.Capabilities)
		case mcp.MethodCallTool:
			return mcp.TextResult("the stranger's " + req.Name()), nil
		case mcp.MethodGetPrompt:
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{mcp.UserMessage(mcp.Text("the stranger's " + req.Name()))}}, nil
		case mcp.MethodReadResource:
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Name(), Text: "the stranger's " + req.Name()}}}, nil
		}
		if list, ok := lists[req.Method]; ok {
			res := &mcp.EmptyResult{}
			return res, json.Unmarshal([]byte(list), &res.Extra)
		}
		return nil, mcp.NewMethodNotFoundError(req.Method)
	})
}

// logged is a mux with a log to look at.
func logged() (*mcp.Mux, *bytes.Buffer) {
	log := new(bytes.Buffer)
	return mcp.NewMux("gateway", "v1", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(log, nil))}), log
}

// inFront runs fn with a client of each era in front of a gateway.
func inFront(t *testing.T, gw mcp.Handler, fn func(t *testing.T, c *mcp.Conn)) {
	t.Helper()
	for _, version := range bothEras {
		t.Run("in front "+version, func(t *testing.T) {
			fn(t, connect(t, gw, &mcp.ClientOptions{Version: version, Logger: quiet().Logger}))
		})
	}
}

// mountRemote mounts a connection to h.
func mountRemote(t *testing.T, mux *mcp.Mux, prefix string, h mcp.Handler) {
	t.Helper()
	mux.Mount(prefix, connect(t, h, &mcp.ClientOptions{Forward: true, Logger: quiet().Logger}))
}

// A remote server cannot describe a tool that a call would not bring to it: neither one
// of the gateway nor one of another mount.
func TestFindingS15MountsDescribeOnlyTheirOwn(t *testing.T) {
	gw, log := logged()
	gw.Tool("git_pay", says("own"))
	gw.Prompt("git_ask", promptSays("own"))
	gw.Resource("{+anything}", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Name(), Text: "own"}}}, nil
	}))
	mountRemote(t, gw, "git_", stranger(map[string]string{
		mcp.MethodListTools:     `{"tools":[{"name":"pay","description":"of a stranger","inputSchema":{"type":"object"}},{"name":"log","inputSchema":{"type":"object"}}]}`,
		mcp.MethodListPrompts:   `{"prompts":[{"name":"ask","description":"of a stranger"},{"name":"tell"}]}`,
		mcp.MethodListResources: `{"resources":[{"uri":"a://b","name":"b"},{"uri":"mount:hub_:a://b","name":"b"}]}`,
	}))
	inFront(t, gw, func(t *testing.T, c *mcp.Conn) {
		tools := map[string]string{}
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if _, twice := tools[tool.Name]; twice || tool.Description != "" && tool.Description == "of a stranger" {
				t.Errorf("listed %+v", tool)
			}
			if tools[tool.Name], err = mcp.Call[string](t.Context(), c, tool.Name, nil); err != nil {
				t.Error(err)
			}
		}
		if want := map[string]string{"git_pay": "own", "git_log": "the stranger's log"}; !maps.Equal(tools, want) {
			t.Errorf("the listed tools answer %q, want %q", tools, want)
		}
		prompts := map[string]string{}
		for prompt, err := range c.Prompts(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			res, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: prompt.Name})
			if err != nil {
				t.Fatal(err)
			}
			prompts[prompt.Name] += res.Messages[0].Content.(*mcp.TextContent).Text
		}
		if want := map[string]string{"git_ask": "own", "git_tell": "the stranger's tell"}; !maps.Equal(prompts, want) {
			t.Errorf("the listed prompts answer %q, want %q", prompts, want)
		}
		for uri, want := range map[string]string{
			"mount:git_:a://b":            "the stranger's a://b",
			"mount:git_:mount:hub_:a://b": "the stranger's mount:hub_:a://b",
			"elsewhere://b":               "own",
		} {
			if res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err != nil || res.Contents[0].Text != want || res.Contents[0].URI != uri {
				t.Errorf("%s: read %+v, %v", uri, res, err)
			}
		}
	})
	for _, name := range []string{"git_pay", "git_ask"} {
		if n := strings.Count(log.String(), name); n != 1 {
			t.Errorf("%s is left out with %d lines in the log, want one:\n%s", name, n, log)
		}
	}
}

// Prefixes of which one begins with the other are refused: a name could be meant for
// either mount.
func TestFindingCM13PrefixesAreDisjoint(t *testing.T) {
	for _, prefixes := range [][2]string{{"a_", "a_b_"}, {"a_b_", "a_"}, {"a", "ab"}} {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Mount(prefixes[0], stranger(nil))
		wantPanic(t, func() { mux.Mount(prefixes[1], stranger(nil)) }, prefixes[0], prefixes[1], "finding_mounts_test.go:")
		mux.Unmount(prefixes[0])
		mux.Mount(prefixes[1], stranger(nil))
	}
}

// URIs of a mount are its alone.
func TestFindingS15URIsOfAMountAreItsAlone(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Mount("a_", stranger(nil))
	for _, pattern := range []string{"mount:a_:x", "mount:a_:{+x}"} {
		wantPanic(t, func() { mux.Resource(pattern, reads("")) }, pattern, "mount:a_:", "finding_mounts_test.go:")
	}
	mux.Resource("mount:b_:x", reads(""))
	wantPanic(t, func() { mux.Mount("b_", stranger(nil)) }, "mount:b_:x")
}

// An error that a mount answers with, because there is no such name, has the name that
// the caller gave; so what is hidden there looks like what is absent.
func TestFindingCL3S18ErrorsNameTheOuterName(t *testing.T) {
	inner := mcp.NewMux("inner", "v1", quiet())
	inner.Tool("t", says(""))
	inner.Prompt("p", promptSays(""))
	inner.Resource("r://{x}", mcp.ResourceFunc(func(context.Context, struct {
		X string `json:"x"`
	}) (string, error) {
		return "", nil
	}, nil))
	for name, mounted := range map[string]mcp.Handler{"mux": inner, "remote": connect(t, inner, nil)} {
		outer := mcp.NewMux("outer", "v1", quiet())
		outer.Tool("own", says(""))
		outer.Prompt("own", promptSays(""))
		outer.Mount("c_", mounted)
		inFront(t, outer, func(t *testing.T, c *mcp.Conn) {
			want := func(err error, text string) {
				t.Helper()
				if err == nil || !strings.HasPrefix(err.Error(), text) {
					t.Errorf("%s: got %v, want %s", name, err, text)
				}
			}
			_, err := c.CallTool(t.Context(), tool("c_nope", ""))
			want(err, `unknown tool "c_nope"`)
			_, err = c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "c_nope"})
			want(err, `unknown prompt "c_nope"`)
			argument := mcp.CompleteArgument{Name: "x"}
			_, err = c.Complete(t.Context(), &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "c_nope"}, Argument: argument})
			want(err, `unknown prompt "c_nope"`)
			_, err = c.Complete(t.Context(), &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/resource", URI: "mount:c_:none://"}, Argument: argument})
			want(err, `unknown resource "mount:c_:none://"`)
		})
	}
}

// What a server lists wrongly is mended where that is certain, and left out otherwise:
// one bad item makes a whole list unreadable for many clients.
func TestFindingI4I10ListsOfMountsAreReadable(t *testing.T) {
	const object = `,"inputSchema":{"type":"object"}`
	gw, log := logged()
	mountRemote(t, gw, "b_", stranger(map[string]string{
		mcp.MethodListTools: `{"tools":[
			{"name":"good"` + object + `},
			{"name":"good","description":"again"` + object + `},
			{"name":""` + object + `},
			{"name":"hidden\u202e"` + object + `},
			{"name":"untyped","inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"any":true,"x":{"type":"string"}}}},
			{"name":"schemaless"},
			{"name":"text","inputSchema":{"type":"string"}},
			{"name":"maybe","inputSchema":{"type":["object","null"]}},
			{"name":"list","inputSchema":[]},
			{"name":"properties","inputSchema":{"type":"object","properties":[]}},
			{"name":"property","inputSchema":{"type":"object","properties":{"x":"string"}}},
			{"name":"required","inputSchema":{"type":"object","required":"x"}},
			{"name":"header","inputSchema":{"type":"object","properties":{"x":{"type":"object","x-mcp-header":"X"}}}},
			{"name":"output","outputSchema":{"type":"object","properties":7}` + object + `},
			{"name":"task","execution":{"taskSupport":"required"}` + object + `},
			{"name":"either","execution":{"taskSupport":"optional"}` + object + `}]}`,
		mcp.MethodListPrompts:           `{"prompts":[{"name":"p"},{"name":"p"},{"name":""}]}`,
		mcp.MethodListResources:         `{"resources":[{"uri":"r:1","name":"1"},{"uri":"r:1","name":"2"},{"uri":"","name":"3"}]}`,
		mcp.MethodListResourceTemplates: `{"resourceTemplates":[{"uriTemplate":"r:{x}","name":"1"},{"uriTemplate":"r:{x}","name":"2"},{"uriTemplate":"","name":"3"}]}`,
	}))
	inFront(t, gw, func(t *testing.T, c *mcp.Conn) {
		res, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range res.Tools {
			names = append(names, tool.Name)
			var schema struct {
				Type       string                    `json:"type"`
				Properties map[string]map[string]any `json:"properties"`
			}
			if err := json.Unmarshal(tool.InputSchema, &schema); err != nil || schema.Type != "object" {
				t.Errorf("%s has the schema %s, %v", tool.Name, tool.InputSchema, err)
			}
			if tool.Name == "b_untyped" && (schema.Properties["x"]["type"] != "string" || schema.Properties["any"] == nil) {
				t.Errorf("the schema became %s", tool.InputSchema)
			}
			if tool.OutputSchema != nil {
				t.Errorf("%s has the output schema %s", tool.Name, tool.OutputSchema)
			}
		}
		if want := []string{"b_good", "b_untyped", "b_schemaless", "b_output", "b_either"}; !slices.Equal(names, want) {
			t.Errorf("listed %q, want %q", names, want)
		}
		prompts, err := c.ListPrompts(t.Context(), nil)
		if err != nil || len(prompts.Prompts) != 1 {
			t.Errorf("%d prompts, %v", len(prompts.Prompts), err)
		}
		resources, err := c.ListResources(t.Context(), nil)
		if err != nil || len(resources.Resources) != 1 || resources.Resources[0].Name != "1" {
			t.Errorf("resources %+v, %v", resources.Resources, err)
		}
		templates, err := c.ListResourceTemplates(t.Context(), nil)
		if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].Name != "1" {
			t.Errorf("templates %+v, %v", templates.ResourceTemplates, err)
		}
	})
	for _, name := range []string{"good", "untyped", "schemaless", "text", "maybe", "list", "properties", "property", "required", "output", "task"} {
		if !strings.Contains(log.String(), name) {
			t.Errorf("nothing is logged of %s:\n%s", name, log)
		}
	}
	if strings.Contains(log.String(), "\u202e") {
		t.Errorf("the log is %s", log)
	}
}

// What a server lists wrongly is logged once, and not without end.
func TestFindingI4WarningsAreBounded(t *testing.T) {
	gw, log := logged()
	n := 0
	gw.Mount("b_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		n++
		return &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: fmt.Sprint("bad", n), InputSchema: []byte(`7`)}, {Name: "same", InputSchema: []byte(`7`)}}}, nil
	}))
	for range 1500 {
		if res, _, err := mcptest.Do(t, gw, mcptest.NewRequest(mcp.MethodListTools, nil)); err != nil || len(res.(*mcp.ListToolsResult).Tools) != 0 {
			t.Fatalf("listed %+v, %v", res, err)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines < 2 || lines > 1100 || strings.Count(log.String(), "b_same") != 1 {
		t.Errorf("%d lines were logged, %d of them of one tool", lines, strings.Count(log.String(), "b_same"))
	}
}

// The server that a caller of a gateway talks with is the gateway, whichever era the
// server behind it speaks.
func TestFindingI10ResultsNameTheGateway(t *testing.T) {
	for _, back := range bothEras {
		inFront(t, gateway(t, library(), back), func(t *testing.T, c *mcp.Conn) {
			call, err := c.CallTool(t.Context(), tool("b_find", ""))
			if err != nil {
				t.Fatal(err)
			}
			prompt, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "b_review", Arguments: map[string]string{"style": "long"}})
			if err != nil {
				t.Fatal(err)
			}
			read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mount:b_:book://1"})
			if err != nil {
				t.Fatal(err)
			}
			completed, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "b_review"}, Argument: mcp.CompleteArgument{Name: "style"}})
			if err != nil {
				t.Fatal(err)
			}
			for _, meta := range []mcp.Meta{call.Meta, prompt.Meta, read.Meta, completed.Meta} {
				var info mcp.Implementation
				if meta.Get(mcp.MetaServerInfo, &info); c.Version() == mcp.LatestVersion && info.Name != "gateway" {
					t.Errorf("in front of %s: a result of %+v", back, info)
				}
			}
		})
	}
}

// A part that is missing from a list is named in the log as it was mounted.
func TestFindingU19PartsOfLists(t *testing.T) {
	gw, log := logged()
	gw.Mount("web_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, mcp.Errorf(mcp.CodeInternalError, "out of order")
	}))
	if _, _, err := mcptest.Do(t, gw, mcptest.NewRequest(mcp.MethodListTools, nil)); err != nil {
		t.Fatal(err)
	}
	if got := log.String(); !strings.Contains(got, " part=web_ ") {
		t.Errorf("the log has %q", got)
	}
}
