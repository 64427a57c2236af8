// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// Content that is not valid JSON fails its call with an internal error, and none of it is
// sent.
func TestContentThatCannotBeEncoded(t *testing.T) {
	invalid := json.RawMessage(`"secret`)
	for name, block := range map[string]mcp.Content{
		"metadata":                 &mcp.TextContent{Text: "x", Meta: mcp.Meta{"k": invalid}},
		"an unknown member":        &mcp.TextContent{Text: "x", Extra: mcp.Extra{"k": invalid}},
		"unknown content":          &mcp.UnknownContent{Type: "x", Raw: invalid},
		"content that is no block": &mcp.UnknownContent{Type: "x", Raw: json.RawMessage(`[]`)},
		"a nil pointer":            (*mcp.ImageContent)(nil),
		"nothing":                  nil,
	} {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("t", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text("before"), block}}, nil
		}))
		mux.Prompt("p", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: mcp.RoleUser, Content: block}}}, nil
		}))
		for _, era := range eras {
			p := newPeer(t, mux, era)
			for id, method := range map[string]string{"1": mcp.MethodCallTool, "2": mcp.MethodGetPrompt} {
				p.send(era.request(id, method, map[string]string{"1": `"name":"t"`, "2": `"name":"p"`}[id]))
				if got := p.read(); got.Error == nil || got.Error.Code != mcp.CodeInternalError || strings.Contains(got.Error.Message, "secret") {
					t.Errorf("%s, %s, %s: got %s, %+v", name, era.name, method, got.Result, got.Error)
				}
			}
		}
	}
}

// Server content that does not match its type fails the call, and the error names the
// block.
func TestContentThatCannotBeDecoded(t *testing.T) {
	for content, want := range map[string]string{
		`[{"type":"text","text":"a"},{"type":"text","text":5}]`: "the result: /content/1/text must not be a JSON number",
		`[{"type":"image","data":"!"}]`:                         "the result: /content/0/data: illegal base64",
		`[{"text":"a"}]`:                                        "the result: /content/0 must be a content block, an object with a type",
		`[5]`:                                                   "the result: /content/0 must be a content block, an object with a type",
		`["type"]`:                                              "the result: /content/0 must be a content block, an object with a type",
	} {
		server := newHostile(t, mcp.LatestVersion, newScript([]byte(reply(`{"resultType":"complete","content":`+content+`}`)), 0))
		c := connectTo(t, transport.FromStream(server.connect), nil)
		if res, err := c.CallTool(t.Context(), tool("t", "")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %+v, %v", content, res, err)
		}
	}
}

// Client params that cannot be encoded fail the call and are not sent.
func TestParamsThatCannotBeEncoded(t *testing.T) {
	for _, version := range bothEras {
		c := connect(t, hello(), &mcp.ClientOptions{Version: version})
		for name, params := range map[string]any{"a function": func() {}, "no object": []int{1}, "no JSON": json.RawMessage(`{`)} {
			if err := c.Notify(t.Context(), "notifications/x", params); err == nil {
				t.Errorf("%s, %s: it was sent", version, name)
			}
			if _, err := mcp.NewRequest("x", params); err == nil {
				t.Errorf("%s: it is a request", name)
			}
		}
		if err := c.Notify(t.Context(), "notifications/x", map[string]int{"a": 1}); err != nil {
			t.Error(err)
		}
	}
}

// A file that cannot be read is a server error that names the resource, but not the file's
// location.
func TestFileServerReadErrors(t *testing.T) {
	broken := errors.New("reading /srv/private: the disk is gone")
	mux := serveFiles(mcp.FileServerFS(brokenFS{fstest.MapFS{"a": {}}, broken}, nil), filesTemplate)
	_, err := readURI(t, mux, "file:///docs/a")
	e, ok := errors.AsType[*mcp.Error](err)
	if !ok || e.Code != mcp.CodeInternalError || e.Message != `resource "file:///docs/a" could not be read` || !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// brokenFS contains files that can be opened but not read.
type brokenFS struct {
	fs.FS
	err error
}

func (b brokenFS) Open(name string) (fs.File, error) {
	f, err := b.FS.Open(name)
	if name == "a" {
		f = brokenFile{f, b.err}
	}
	return f, err
}

type brokenFile struct {
	fs.File
	err error
}

func (b brokenFile) Read([]byte) (int, error) { return 0, b.err }

// Resources and templates described without a name use their URI as the name.
func TestDescribedWithoutName(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("test://r", mcp.WithDescription(reads(""), &mcp.Resource{Title: "R"}))
	mux.Resource("test://named", mcp.WithDescription(reads(""), &mcp.Resource{Name: "own"}))
	mux.Resource("test://r/{x}", mcp.WithDescription(unasked, &mcp.Resource{Title: "R"}))
	c := connect(t, mux, nil)
	resources, err := c.ListResources(t.Context(), nil)
	if err != nil || len(resources.Resources) != 2 {
		t.Fatalf("got %+v, %v", resources, err)
	}
	for _, r := range resources.Resources {
		if want := map[string]string{"test://r": "test://r", "test://named": "own"}[r.URI]; r.Name != want {
			t.Errorf("%s has the name %q", r.URI, r.Name)
		}
	}
	templates, err := c.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].Name != "test://r/{x}" {
		t.Errorf("got %+v, %v", templates, err)
	}
}

// A blank text is logged unchanged, because it is not JSON and contains no secrets.
func TestBlankTextInLogs(t *testing.T) {
	for _, text := range []string{`"    "`, `"\n\t  "`, `""`, `"{"`, `"[]"`, `"{}"`} {
		if log := loggedCall(t, `{"text":`+text+`,"after":424242}`); strings.Contains(log, "(redacted)") || strings.Contains(log, "(malformed)") || !strings.Contains(log, "424242") {
			t.Errorf("%s is logged as\n%s", text, log)
		}
	}
}

// An unreadable message from the server is logged with at most 200 bytes of its method.
func TestLoggedExcerpts(t *testing.T) {
	for size, whole := range map[int]bool{200: true, 201: false} {
		var log bytes.Buffer
		name := strings.Repeat("m", size)
		heard := make(chan string, 8)
		c := connectTo(t, asks(`{"jsonrpc":"2.0","method":"`+name+`","params":[]}`, heard), &mcp.ClientOptions{
			Version: "2025-11-25", Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		_ = c.Ping(t.Context())
		_ = c.Close()
		if got := log.String(); !strings.Contains(got, name[:200]) || strings.Contains(got, name) != whole {
			t.Errorf("%d bytes are logged as %s", size, got)
		}
	}
}

// An in-process server rejects request bodies that are not messages.
func TestInProcessNeedsMessages(t *testing.T) {
	wire, err := mcp.InProcess(hello()).Connect(t.Context(), func(*transport.Message) {})
	if err != nil {
		t.Fatal(err)
	}
	defer wire.Close()
	for _, body := range []string{``, `{`, `[]`, `5`} {
		if m, err := wire.Call(t.Context(), &transport.Outgoing{ID: mcp.IntID(1), Method: "ping", Version: mcp.LatestVersion, Body: []byte(body)}); err == nil {
			t.Errorf("%q: got %+v", body, m)
		}
	}
}

// Nil params are treated as empty ones.
func TestNilParams(t *testing.T) {
	for _, version := range bothEras {
		c := connect(t, hello(), &mcp.ClientOptions{Version: version})
		for name, call := range map[string]func() error{
			"ListTools":             func() error { _, err := c.ListTools(t.Context(), nil); return err },
			"ListPrompts":           func() error { _, err := c.ListPrompts(t.Context(), nil); return err },
			"ListResources":         func() error { _, err := c.ListResources(t.Context(), nil); return err },
			"ListResourceTemplates": func() error { _, err := c.ListResourceTemplates(t.Context(), nil); return err },
			"CallTool":              func() error { _, err := c.CallTool(t.Context(), nil); return err },
			"GetPrompt":             func() error { _, err := c.GetPrompt(t.Context(), nil); return err },
			"ReadResource":          func() error { _, err := c.ReadResource(t.Context(), nil); return err },
			"Complete":              func() error { _, err := c.Complete(t.Context(), nil); return err },
			"Notify":                func() error { return c.Notify(t.Context(), "notifications/x", nil) },
		} {
			if err := call(); err != nil && mcp.CodeOf(err) != mcp.CodeInvalidParams && mcp.CodeOf(err) != mcp.CodeMethodNotFound {
				t.Errorf("%s, %s: %v", version, name, err)
			}
		}
	}
}

// A list item that cannot be encoded fails the list, and none of it is sent.
func TestListThatCannotBeEncoded(t *testing.T) {
	bad := mcp.Meta{"k": json.RawMessage(`"secret`)}
	for method, res := range map[string]mcp.Result{
		mcp.MethodListTools:             &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`), Meta: bad}}},
		mcp.MethodListPrompts:           &mcp.ListPromptsResult{Prompts: []*mcp.Prompt{{Name: "p", Meta: bad}}},
		mcp.MethodListResources:         &mcp.ListResourcesResult{Resources: []*mcp.Resource{{Name: "r", URI: "test://r", Meta: bad}}},
		mcp.MethodListResourceTemplates: &mcp.ListResourceTemplatesResult{ResourceTemplates: []*mcp.ResourceTemplate{{Name: "r", URITemplate: "test://{r}", Meta: bad}}},
	} {
		mux := hello()
		h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == method {
				return res, nil
			}
			return mux.ServeMCP(ctx, req)
		})
		for _, era := range []wireEra{eras[0], eraOf("2025-06-18")} {
			p := newPeer(t, h, era)
			p.send(era.request("7", method, ""))
			if got := p.read(); got.Error == nil || got.Error.Code != mcp.CodeInternalError || strings.Contains(got.Error.Message, "secret") {
				t.Errorf("%s, %s: got %s, %+v", era.name, method, got.Result, got.Error)
			}
		}
	}
}

// Any content that has a valid type can be read as unknown content.
func TestUnknownContentBounds(t *testing.T) {
	for text, kind := range map[string]string{`{"type":"text","text":"a"}`: "text", `{"type":"new","a":1}`: "new", `{}`: "", `{"type":""}`: "", `{"type":"text","text":1}`: ""} {
		var c mcp.UnknownContent
		if err := json.Unmarshal([]byte(text), &c); (err == nil) != (kind != "") || c.Type != kind || kind != "" && string(c.Raw) != text {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
}

// Base64 is accepted as libraries of other languages write it: Ruby and MIME break lines,
// some omit the padding, and older Python servers use the URL alphabet. Other clients
// accept these forms, and one image must not fail the whole result.
func TestBase64OfOtherServers(t *testing.T) {
	want := []byte{0xff, 0xfe, 0xfd, 0xfc, 0xfb, 0xfa, 0xf9}
	for _, text := range []string{
		"//79/Pv6+Q==", `//79\n/Pv6\n+Q==\n`, `//79\r\n/Pv6+Q==\r\n`, "//79/Pv6+Q", "__79_Pv6-Q==", "__79_Pv6-Q", " //79 /Pv6+Q== ", `__79\n_Pv6-Q==\n`,
	} {
		var tool mcp.CallToolResult
		err := json.Unmarshal(fmt.Appendf(nil, `{"content":[{"type":"image","data":"%s","mimeType":"image/png"},
			{"type":"audio","data":"%[1]s","mimeType":"audio/wav"},{"type":"resource","resource":{"uri":"file:///a","blob":"%[1]s"}}]}`, text), &tool)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		for i, got := range [][]byte{
			tool.Content[0].(*mcp.ImageContent).Data, tool.Content[1].(*mcp.AudioContent).Data, tool.Content[2].(*mcp.EmbeddedResource).Resource.Blob,
		} {
			if !bytes.Equal(got, want) {
				t.Errorf("%q: content %d is %x", text, i, got)
			}
		}
	}
	for _, text := range []string{`"%%%"`, `"A"`, `"=AAA"`, `"AA=A"`, "1", "{}"} {
		if err := json.Unmarshal([]byte(`{"type":"image","mimeType":"image/png","data":`+text+`}`), new(mcp.ImageContent)); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

// The type of content is that of its Go type, even if its Extra contains a "type" member.
func TestContentHasOneType(t *testing.T) {
	foreign := mcp.Resource{URI: "notes://a", Name: "a", Extra: mcp.Extra{"type": json.RawMessage(`"image"`), "x": json.RawMessage(`1`)}}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("link", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.CallToolResult{Content: mcp.Contents{&mcp.ResourceLink{Resource: foreign}}}, nil
	}))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		res, err := c.CallTool(t.Context(), tool("link", ""))
		if err != nil || textOf(res) != "*mcp.ResourceLink" {
			t.Fatalf("got %+v, %v", res, err)
		}
		if extra := res.Content[0].(*mcp.ResourceLink).Extra; len(extra) != 1 || extra["x"] == nil {
			t.Errorf("got %s", extra)
		}
		if len(foreign.Extra) != 2 { // the same for the next call
			t.Errorf("the handler's content has %s", foreign.Extra)
		}
	})
}
