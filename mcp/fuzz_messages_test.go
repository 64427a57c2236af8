// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// sample is a client message: a method and the members of its params, as in the modern era.
type sample struct{ method, members string }

// coreSamples covers every core method and every member of its params.
var coreSamples = []sample{
	{mcp.MethodDiscover, ``},
	{mcp.MethodListTools, ``},
	{mcp.MethodListTools, `"cursor":"MTA"`},
	{mcp.MethodCallTool, `"name":"hello"`},
	{mcp.MethodCallTool, `"name":"kinds","arguments":{"text":"t","int":1,"float":0.5,"flag":true,"pointer":7,"list":["a"],"map":{"a":1},"colour":"green","inner":{"int":2},"when":"2026-01-02T03:04:05Z","raw":[{}],"labels":{"a":"b"}}`},
	{mcp.MethodCallTool, `"name":"headers","arguments":{"region":"eu","n":42,"more":[1,2]}`},
	{mcp.MethodCallTool, `"name":"in_kinds","arguments":{"int":1}`},
	{mcp.MethodCallTool, `"name":"blocks"`},
	{mcp.MethodCallTool, `"name":"fails","arguments":{}`},
	{mcp.MethodCallTool, `"name":"refuses"`},
	{mcp.MethodCallTool, `"name":"talks"`},
	{mcp.MethodCallTool, `"name":"none"`},
	{mcp.MethodCallTool, `"name":"ask","arguments":{"a":1}`},
	{mcp.MethodCallTool, `"name":"ask","inputResponses":{"k":{"action":"accept","content":{"ok":true}}}`},
	{mcp.MethodCallTool, `"name":"ask","inputResponses":{"k":{"action":"decline"}},"requestState":"bm90IHNlYWxlZA"`},
	{mcp.MethodCallTool, `"name":"sample","inputResponses":{"s":{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m","stopReason":"endTurn"}}`},
	{mcp.MethodCallTool, `"name":"roots","inputResponses":{"r":{"roots":[{"uri":"file:///home","name":"home"}]}}`},
	{mcp.MethodCallTool, `"name":"visit","inputResponses":{"u":{"action":"accept"}}`},
	{mcp.MethodCallTool, `"name":"ask-all"`},
	{mcp.MethodCallTool, `"name":"ask-at-once","inputResponses":{"k":{"action":"accept","content":{"ok":false}},"r":{"roots":[]},"f":{"action":"accept","content":{"n":1,"e":["a"]}}}`},
	{mcp.MethodCallTool, `"name":"by-hand"`},
	{mcp.MethodCallTool, `"name":"by-hand","inputResponses":{"r":{"roots":[]}},"requestState":"asked"`},
	{mcp.MethodListPrompts, `"cursor":""`},
	{mcp.MethodGetPrompt, `"name":"greet","arguments":{"name":"Ada","tone":"formal","times":"2"}`},
	{mcp.MethodGetPrompt, `"name":"ask","inputResponses":{"k":{"action":"cancel"}}`},
	{mcp.MethodGetPrompt, `"name":"in_one","arguments":{"size":"small"}`},
	{mcp.MethodListResources, ``},
	{mcp.MethodListResourceTemplates, ``},
	{mcp.MethodReadResource, `"uri":"test://fixed"`},
	{mcp.MethodReadResource, `"uri":"test://blob"`},
	{mcp.MethodReadResource, `"uri":"test://users/ann/a/b%20c"`},
	{mcp.MethodReadResource, `"uri":"file:///docs/sub/b.bin"`},
	{mcp.MethodReadResource, `"uri":"mount:in_:test://one"`},
	{mcp.MethodReadResource, `"uri":"test://none"`},
	{mcp.MethodComplete, `"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"tone","value":"f"},"context":{"arguments":{"name":"Ada"}}`},
	{mcp.MethodComplete, `"ref":{"type":"ref/resource","uri":"test://users/{user}/{+path}"},"argument":{"name":"user","value":""}`},
	{mcp.MethodComplete, `"ref":{"type":"ref/resource","uri":"file:///docs/{+path}"},"argument":{"name":"path","value":"s"}`},
	{mcp.MethodComplete, `"ref":{"type":"ref/prompt","name":"in_one"},"argument":{"name":"size","value":"s"}`},
	{mcp.MethodListen, `"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["test://fixed","mount:in_:test://one"]}`},
	{"vendor/echo", `"a":[1,{"b":null}]`},
	{"vendor/unknown", ``},
	{mcp.NotificationCancelled, `"requestId":1,"reason":"no more"`},
	{mcp.NotificationProgress, `"progressToken":"p","progress":0.5,"total":1,"message":"half"`},
	{mcp.NotificationRootsListChanged, ``},
	{"notifications/vendor", `"a":1`},
}

// legacySamples covers the methods that exist only in the legacy era.
var legacySamples = []sample{
	{"ping", ``},
	{"logging/setLevel", `"level":"warning"`},
	{"resources/subscribe", `"uri":"test://fixed"`},
	{"resources/unsubscribe", `"uri":"test://fixed"`},
	{"notifications/initialized", ``},
	{"initialize", `"protocolVersion":"2025-11-25","capabilities":{"roots":{"listChanged":true}},"clientInfo":{"name":"c","version":"1"}`},
}

const (
	metaModern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{},"context":{}},"roots":{},"extensions":{"x/y":{}}},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/logLevel":"debug","progressToken":"p","traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}`
	metaLegacy = `"_meta":{"progressToken":7}`
)

// message returns the complete message, which is a notification if its method is one.
func (s sample) message(id int, meta string) string {
	params := s.params(meta)
	if strings.HasPrefix(s.method, "notifications/") {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, s.method, params)
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, id, s.method, params)
}

func (s sample) params(meta string) string {
	if s.members == "" {
		return `{` + meta + `}`
	}
	return `{` + s.members + `,` + meta + `}`
}

// methodsOf returns the methods of samples without duplicates.
func methodsOf(all []sample) []string {
	var methods []string
	for _, s := range all {
		if !slices.Contains(methods, s.method) {
			methods = append(methods, s.method)
		}
	}
	return methods
}

// required lists the members that a complete result must have, with the bytes that their
// JSON may begin with.
var required = map[string]map[string]string{
	mcp.MethodDiscover:              {"supportedVersions": "[", "capabilities": "{"},
	mcp.MethodListTools:             {"tools": "["},
	mcp.MethodCallTool:              {"content": "["},
	mcp.MethodListPrompts:           {"prompts": "["},
	mcp.MethodGetPrompt:             {"messages": "["},
	mcp.MethodListResources:         {"resources": "["},
	mcp.MethodListResourceTemplates: {"resourceTemplates": "["},
	mcp.MethodReadResource:          {"contents": "["},
	mcp.MethodComplete:              {"completion": "{"},
	"initialize":                    {"protocolVersion": `"`, "capabilities": "{", "serverInfo": "{"},
}

// cacheableResults lists the methods whose results have caching hints in the modern era.
var cacheableResults = []string{
	mcp.MethodDiscover, mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates, mcp.MethodReadResource,
}

// checkResponse checks that data is the response to a request in the given version: a
// complete result, or an error that is not internal. It returns the members of the result,
// or nil for an error.
func checkResponse(t *testing.T, version, method string, id mcp.ID, data []byte) map[string]json.RawMessage {
	t.Helper()
	m, err := transport.ParseMessage(data)
	if err != nil || !m.IsResponse() || m.ID != id.Canonical() {
		t.Fatalf("%s with the id %s was answered with %s, %v", method, id, data, err)
	}
	if m.Error != nil {
		if e := m.Error; e.Code == mcp.CodeInternalError || e.Message == "" {
			t.Errorf("%s was answered with %s", method, data)
		}
		return nil
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(m.Result, &members) != nil {
		t.Fatalf("%s was answered with %s", method, data)
	}
	want := map[string]string{}
	maps.Copy(want, required[method])
	if version == mcp.LatestVersion {
		want["resultType"], want["_meta"] = `"`, "{"
		if string(members["resultType"]) == `"input_required"` {
			want = map[string]string{"_meta": "{"}
			if members["inputRequests"] == nil && members["requestState"] == nil {
				t.Errorf("%s was answered with a question that is none: %s", method, data)
			}
		} else if slices.Contains(cacheableResults, method) {
			want["ttlMs"], want["cacheScope"] = "0123456789", `"`
		}
	}
	for name, kinds := range want {
		if v := members[name]; len(v) == 0 || !strings.ContainsRune(kinds, rune(v[0])) {
			t.Errorf("%s was answered without %s: %s", method, name, data)
		}
	}
	checkEra(t, version, data, members)
	return members
}

// checkEra checks that a result contains nothing unknown to its revision.
func checkEra(t *testing.T, version string, data []byte, members map[string]json.RawMessage) {
	t.Helper()
	if version == mcp.LatestVersion {
		return
	}
	unknown := []string{"resultType", "ttlMs", "cacheScope", "inputRequests", "requestState"}
	if version < "2025-06-18" {
		unknown = append(unknown, "structuredContent")
	}
	for _, name := range unknown {
		if members[name] != nil {
			t.Errorf("a result of %s has %s: %s", version, name, data)
		}
	}
	var blocks []struct{ Type string }
	_ = json.Unmarshal(members["content"], &blocks)
	for _, b := range blocks {
		if b.Type == "audio" && version < "2025-03-26" || b.Type == "resource_link" && version < "2025-06-18" {
			t.Errorf("a result of %s has a block of the type %s", version, b.Type)
		}
	}
}
