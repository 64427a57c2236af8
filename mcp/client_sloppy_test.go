// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

const (
	description = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}`
	initialized = `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"old","version":"1"}}`
)

// responding returns a transport to a server of the era of version, which answers every other
// request with answer(): a member "result" or "error".
func responding(version string, answer func() string) transport.Transport {
	return fakeServer(func(method, id string) (string, bool) {
		switch {
		case id == "":
			return "", true
		case method == mcp.MethodDiscover && version != "2025-11-25":
			return `{"jsonrpc":"2.0","id":` + id + `,"result":` + description + `}`, true
		case method == "initialize":
			return `{"jsonrpc":"2.0","id":` + id + `,"result":` + initialized + `}`, true
		}
		return `{"jsonrpc":"2.0","id":` + id + `,` + answer() + `}`, true
	})
}

// To JSON Schema, 10.0 is an integer. The protocol's integers are codes and hints: those with
// a fraction are rounded.
func TestFindingY7IntegersInAnyForm(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		for written, want := range map[string]int64{"10": 10, "10.0": 10, "1e1": 10, "10.4": 10, "9.5": 10, "-0.0": 0, "1e18": 1e18} {
			var answer string
			c := connectTo(t, responding(version, func() string { return answer }), &mcp.ClientOptions{Version: version})
			answer = `"result":{"resources":[{"uri":"a:b","name":"b","size":` + written + `}],"ttlMs":` + written + `}`
			page, err := c.ListResources(t.Context(), nil)
			if err != nil || *page.TTLMs != want || *page.Resources[0].Size != want {
				t.Errorf("%s, a list with %s: %+v, %v", version, written, page, err)
			}
			answer = `"result":{"completion":{"values":[],"total":` + written + `}}`
			values, err := c.Complete(t.Context(), &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "p"}})
			if err != nil || int64(*values.Completion.Total) != want {
				t.Errorf("%s, a total of %s: %+v, %v", version, written, values, err)
			}
			answer = `"result":{"content":[{"type":"resource_link","uri":"a:b","name":"b","size":` + written + `}]}`
			res, err := c.CallTool(t.Context(), tool("t", ""))
			if err != nil || *res.Content[0].(*mcp.ResourceLink).Size != want {
				t.Errorf("%s, a link with %s: %+v, %v", version, written, res, err)
			}
			answer = `"error":{"code":` + written + `,"message":"no"}`
			_, err = c.CallTool(t.Context(), tool("t", ""))
			if refused, ok := errors.AsType[*mcp.Error](err); !ok || int64(refused.Code) != want {
				t.Errorf("%s, the code %s: %v", version, written, err)
			}
			answer = `"error":{"code":429,"message":"no","data":{"retryAfterMs":` + written + `}}`
			_, err = c.CallTool(t.Context(), tool("t", ""))
			if after, ok := mcp.RetryAfter(err); !ok || after.Milliseconds() != min(want, 24*3600*1000) {
				t.Errorf("%s, retry after %s: %v, %v", version, written, after, err)
			}
		}
	}
}

// One member that the call does not need hides nothing else. It is left out, with one warning
// that names it. A tool that cannot be called, or not be described to a model, is left out.
func TestFindingY8OneOddMemberHidesNothing(t *testing.T) {
	const good = `{"name":"good","inputSchema":{"type":"object"}}`
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		for odd, want := range map[string]struct{ tools, warning string }{
			`"icons":"x"`:                          {"odd good", "/tools/0/icons must not be a JSON string"},
			`"icons":[{"src":1},{"src":"a:b"}]`:    {"odd good", "/tools/0/icons/0/src must not be a JSON number"},
			`"annotations":{"readOnlyHint":"yes"}`: {"odd good", "/tools/0/annotations/readOnlyHint must not be a JSON string"},
			`"title":5`:                            {"odd good", "/tools/0/title must not be a JSON number"},
			`"_meta":[]`:                           {"odd good", "/tools/0/_meta must not be a JSON array"},
			`"description":["a"]`:                  {"odd good", "/tools/0/description must not be a JSON array"},
			`"outputSchema":"s"`:                   {"odd good", "/tools/0/outputSchema must be an object"},
			`"title":5,"icons":{},"_meta":7`:       {"odd good", "count=3"},
			`"execution":5`:                        {"odd good", ""},
			`"title":null,"icons":null,"_meta":null,"annotations":null,"outputSchema":null`: {"odd good", ""},
			`"inputSchema":"s"`: {"good", "/tools/0/inputSchema must be an object"},
			`"name":""`:         {"good", "/tools/0/name is missing"},
			`"name":{}`:         {"good", "/tools/0/name must not be a JSON object"},
		} {
			var log bytes.Buffer
			members := odd
			for _, member := range []string{`"name":"odd"`, `"inputSchema":{}`} {
				if name, _, _ := strings.Cut(member, ":"); !strings.Contains(odd, name) {
					members += "," + member
				}
			}
			c := connectTo(t, responding(version, func() string { return `"result":{"tools":[{` + members + `},` + good + `]}` }),
				&mcp.ClientOptions{Version: version, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			var names []string
			for tool, err := range c.Tools(t.Context(), nil) {
				if err != nil {
					t.Fatalf("%s, %s: %v", version, odd, err)
				}
				names = append(names, tool.Name)
			}
			if got := strings.Join(names, " "); got != want.tools {
				t.Errorf("%s, %s: the tools are %s", version, odd, got)
			}
			lines := strings.Count(log.String(), "parts of the server's answer were left out")
			if want.warning == "" && lines != 0 || want.warning != "" && lines != 1 || !strings.Contains(log.String(), want.warning) {
				t.Errorf("%s, %s: the log is %s", version, odd, &log)
			}
		}
	}
}

// A server cannot fill the log with odd members: each answer is one short line, and after 16
// answers only every power of two is logged.
func TestFindingY8OddMembersDoNotFillTheLog(t *testing.T) {
	var log bytes.Buffer
	odd := `{"name":"t","inputSchema":{},"annotations":{"readOnlyHint":"` + strings.Repeat("x", 1000) + `"}}`
	c := connectTo(t, responding("2026-07-28", func() string { return `"result":{"tools":[` + odd + strings.Repeat(","+odd, 99) + `]}` }),
		&mcp.ClientOptions{Version: "2026-07-28", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 100 {
		if page, err := c.ListTools(t.Context(), nil); err != nil || len(page.Tools) != 100 {
			t.Fatal(page, err)
		}
	}
	if lines := strings.Count(log.String(), "\n"); lines != 18 || log.Len() > 18*1024 {
		t.Errorf("%d lines of %d bytes", lines, log.Len())
	}
}

// The content of a result, and the members that change what it means, are what the caller has
// requested: if they cannot be read, the call fails.
func TestFindingY8NeededMembers(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		for result, want := range map[string]string{
			`{"content":[{"type":"text","text":5}]}`:                   "/content/0/text must not be a JSON number",
			`{"content":[{"type":"text","text":"t"}],"isError":"yes"}`: "/isError must not be a JSON string",
			`{"content":"t"}`: "/content must be a content block",
			`{"content":[{"type":"text","text":"t"},{"type":"image","data":"?","mimeType":"image/png"}]}`: "/content/1/data",
		} {
			c := connectTo(t, responding(version, func() string { return `"result":` + result }), &mcp.ClientOptions{Version: version, Logger: quiet().Logger})
			if res, err := c.CallTool(t.Context(), tool("t", "")); err == nil || !strings.Contains(err.Error(), "the answer to tools/call: the result: "+want) {
				t.Errorf("%s, %s: %+v, %v", version, result, res, err)
			}
		}
	}
}

// A valid answer of which one optional member is replaced by any other value keeps all others.
func FuzzOptionalMembers(f *testing.F) {
	var all [][]string // the method, and the path of each optional member of its result
	answers := map[string]string{mcp.MethodDiscover: modernDiscovery, "initialize": legacyOpening}
	for method, result := range resultsOf {
		answers[method] = result
		if method != mcp.MethodCallTool && method != mcp.MethodGetPrompt && method != mcp.MethodComplete {
			answers[method] = modernResult(method, result)
		}
	}
	for method, result := range answers {
		for _, path := range optionalMembers(parsed(f, result), nil) {
			all = append(all, append([]string{method}, path...))
		}
	}
	slices.SortFunc(all, slices.Compare[[]string])
	for i := range all {
		for _, value := range []string{`null`, `5`, `-1.5`, `1e99`, `"x"`, `true`, `[]`, `[5]`, `{}`, `{"a":[{}]}`} {
			f.Add(uint16(i), value)
		}
	}
	f.Fuzz(func(t *testing.T, i uint16, value string) {
		method, path := all[int(i)%len(all)][0], all[int(i)%len(all)][1:]
		mutant := parsed(t, answers[method])
		if err := json.Unmarshal([]byte(value), new(any)); err != nil {
			t.Skip("not JSON")
		}
		setMember(mutant, path, json.RawMessage(value))
		text, err := json.Marshal(mutant)
		if err != nil {
			t.Skip(err)
		}
		want, err := answeredWith(t, method, answers[method])
		if err != nil {
			t.Fatal(err)
		}
		got, err := answeredWith(t, method, string(text))
		if _, malformed := errors.AsType[*transport.MessageError](err); malformed {
			t.Skip("a name twice, or text that is not UTF-8")
		}
		setMember(want, path, nil)
		setMember(got, path, nil)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s with %s at %v: %v\ngot  %v\nwant %v", method, value, path, err, got, want)
		}
	})
}

// answeredWith returns what a client makes of a result: decoded, encoded, and parsed.
func answeredWith(t *testing.T, method, result string) (any, error) {
	version, answered := "2026-07-28", method
	if method == "initialize" {
		version, answered = "2025-11-25", mcp.MethodDiscover
	}
	c, err := mcp.NewClient("c", "v1", &mcp.ClientOptions{Version: version, Logger: quiet().Logger}).Connect(t.Context(), fakeServer(func(m, id string) (string, bool) {
		switch {
		case id == "":
			return "", true
		case m == method:
			return resultFor(id, result), true
		}
		return resultFor(id, description), true
	}))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var res any = c.Server()
	if answered != mcp.MethodDiscover {
		if res, err = serveRaw(t, c, method, json.RawMessage(`{"name":"a","uri":"test://a"}`)); err != nil {
			return nil, err
		}
	}
	text, err := json.Marshal(res)
	return parsed(t, string(text)), err
}

func parsed(tb testing.TB, text string) (v any) {
	tb.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		tb.Fatal(err)
	}
	return v
}

// needed are the members that are required, or change what a result means.
var needed = []string{
	"resultType", "name", "uri", "uriTemplate", "inputSchema", "type", "role", "content", "contents", "messages", "text", "blob", "data",
	"values", "completion", "isError", "supportedVersions", "protocolVersion", "capabilities", "serverInfo", "resource", "resourceTemplates", "src", "version",
}

// optionalMembers returns the paths of the optional members in a result.
func optionalMembers(v any, at []string) (paths [][]string) {
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			paths = append(paths, optionalMembers(item, append(slices.Clone(at), strconv.Itoa(i)))...)
		}
	case map[string]any:
		isList := len(at) == 0 && v["capabilities"] == nil
		isMedia := v["data"] != nil
		for name, value := range v {
			path := append(slices.Clone(at), name)
			isNeeded := slices.Contains(needed, name) || isMedia && name == "mimeType" ||
				isList && slices.Contains([]string{"tools", "prompts", "resources"}, name)
			if !isNeeded {
				paths = append(paths, path)
			}
			if name != "serverInfo" {
				paths = append(paths, optionalMembers(value, path)...)
			}
		}
	}
	return paths
}

// setMember replaces a member, or removes it if value is nil.
func setMember(v any, path []string, value json.RawMessage) {
	for _, name := range path[:len(path)-1] {
		switch parent := v.(type) {
		case map[string]any:
			v = parent[name]
		case []any:
			i, _ := strconv.Atoi(name)
			v = parent[i]
		}
	}
	parent, ok := v.(map[string]any)
	switch name := path[len(path)-1]; {
	case !ok:
	case value == nil:
		delete(parent, name)
	default:
		parent[name] = value
	}
}

// However long the message of an error is, its text is short. The message is complete.
func TestFindingY15ErrorTextsAreShort(t *testing.T) {
	long := strings.Repeat("ä", 1<<19)
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		answer := `"error":{"code":7,"message":"` + long + `"}`
		c := connectTo(t, responding(version, func() string { return answer }), &mcp.ClientOptions{Version: version})
		_, err := c.CallTool(t.Context(), tool("t", ""))
		refused, ok := errors.AsType[*mcp.Error](err)
		if text := err.Error(); !ok || refused.Message != long || len(text) > 5<<10 || !utf8.ValidString(text) || !strings.HasSuffix(text, "… (code 7)") {
			t.Errorf("%s: an error of %d bytes: %.50s", version, len(text), text)
		}
		answer = `"result":{"content":[{"type":"text","text":"` + long + `"}],"isError":true}`
		if _, err := mcp.Call[string](t.Context(), c, "t", nil); err == nil || len(err.Error()) > 5<<10 {
			t.Errorf("%s: a tool failed with %.50v", version, err)
		}
	}
	if err := error(&transport.Error{Message: long}); len(err.Error()) > 5<<10 {
		t.Error("the error of a transport is longer")
	}
}

// A result of an unknown type is described in the caller's words.
func TestFindingY15ResultOfAnotherType(t *testing.T) {
	for kind, want := range map[string]string{
		"task":  "mcp: the server answered tools/call with a task: add tasks.Client to ClientOptions.Extensions",
		"video": `mcp: the server answered tools/call with a result of the type "video", which none of ClientOptions.Extensions understands`,
	} {
		c := connectTo(t, responding("2026-07-28", func() string { return `"result":{"resultType":"` + kind + `"}` }), nil)
		if _, err := c.CallTool(t.Context(), tool("t", "")); err == nil || err.Error() != want {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// A server that refuses to be connected to is quoted, and the error says what it refused.
func TestFindingY15ConnectSaysWhatWasRefused(t *testing.T) {
	for _, version := range []string{"", "2026-07-28", "2025-11-25"} {
		_, err := mcp.NewClient("c", "v1", &mcp.ClientOptions{Version: version}).Connect(t.Context(), fakeServer(func(_, id string) (string, bool) {
			return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32020,"message":"h"}}`, true
		}))
		want := "mcp: Connect: the server refused server/discover: h (code -32020)"
		if version == "2025-11-25" {
			want = "mcp: Connect: the server refused initialize: h (code -32020)"
		}
		if refused, ok := errors.AsType[*mcp.Error](err); !ok || refused.Code != mcp.CodeHeaderMismatch || err.Error() != want {
			t.Errorf("%q: %v", version, err)
		}
	}
}
