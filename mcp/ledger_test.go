// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// The tests in ledger_*.go check messages on the wire, for rows of
// docs/evidence/conformance.md that no other test covers.

// everything returns a server with one of everything. Its tool "ask" asks a question.
func everything(opts *mcp.MuxOptions) *mcp.Mux {
	mux := mcp.NewMux("m", "v1", opts)
	mux.Tool("hello", says("hi"))
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Elicit[yes](ctx, "k", "Sure?")
		return "asked", err
	}, nil))
	mux.Prompt("p", mcp.PromptFunc(func(context.Context, essay) (string, error) { return "", nil }, nil))
	mux.Resource("r:r", reads("r"))
	mux.Resource("r:{x}/y", reads("y"))
	mux.Handle("vendor/empty", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return &mcp.EmptyResult{}, nil }))
	return mux
}

// head contains the members that the modern era adds to a result.
type head struct {
	ResultType *string `json:"resultType"`
	TTLMs      *int64  `json:"ttlMs"`
	CacheScope *string `json:"cacheScope"`
	Meta       struct {
		Server       *mcp.Implementation `json:"io.modelcontextprotocol/serverInfo"`
		Subscription json.RawMessage     `json:"io.modelcontextprotocol/subscriptionId"`
	} `json:"_meta"`
}

// RPC-16, META-04, CACHE-01, CACHE-02, CACHE-03: every result has its type and the name of
// the server. Only cacheable results have caching hints.
func TestResultHeads(t *testing.T) {
	p := newPeer(t, everything(quiet()), eras[0])
	for _, test := range []struct {
		method, members, kind string
		hints                 bool
	}{
		{"server/discover", "", mcp.ResultComplete, true},
		{"tools/list", "", mcp.ResultComplete, true},
		{"prompts/list", "", mcp.ResultComplete, true},
		{"resources/list", "", mcp.ResultComplete, true},
		{"resources/templates/list", "", mcp.ResultComplete, true},
		{"resources/read", `"uri":"r:r"`, mcp.ResultComplete, true},
		{"tools/call", `"name":"hello"`, mcp.ResultComplete, false},
		{"prompts/get", `"name":"p","arguments":{"topic":"x"}`, mcp.ResultComplete, false},
		{"completion/complete", `"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"tone","value":""}`, mcp.ResultComplete, false},
		{"vendor/empty", "", mcp.ResultComplete, false},
		{"tools/call", `"name":"ask"`, mcp.ResultInputRequired, false},
	} {
		p.send(eras[0].request("1", test.method, test.members))
		r := p.read()
		var h head
		if r.Error != nil || json.Unmarshal(r.Result, &h) != nil || h.ResultType == nil || *h.ResultType != test.kind || h.Meta.Server == nil || h.Meta.Server.Name != "m" {
			t.Errorf("%s: %s %v", test.method, r.Result, r.Error)
			continue
		}
		if (h.TTLMs != nil) != test.hints || (h.CacheScope != nil) != test.hints {
			t.Errorf("%s: hints, or none: %s", test.method, r.Result)
		}
		if test.hints && (*h.TTLMs < 0 || *h.CacheScope != mcp.CachePrivate && *h.CacheScope != mcp.CachePublic) {
			t.Errorf("%s: hints %d %s", test.method, *h.TTLMs, *h.CacheScope)
		}
	}
}

// RPC-14, MRTR-01, MRTR-04, STDIO-07: a question is sent as a result. Its requests have
// only a method and params.
func TestQuestionOnTheWire(t *testing.T) {
	p := newPeer(t, everything(quiet()), eras[0])
	p.send(eras[0].request("1", "tools/call", `"name":"ask"`))
	var res struct {
		InputRequests map[string]map[string]json.RawMessage `json:"inputRequests"`
		RequestState  *string                               `json:"requestState"`
	}
	r := p.read() // fails if it is not a response
	if err := json.Unmarshal(r.Result, &res); err != nil || len(res.InputRequests) != 1 || res.RequestState == nil {
		t.Fatalf("got %s, %v", r.Result, err)
	}
	q := res.InputRequests["k"]
	if len(q) != 2 || string(q["method"]) != `"elicitation/create"` || q["params"] == nil {
		t.Errorf("the question is %s", r.Result)
	}
	if said := p.finish(); len(said) > 0 {
		t.Errorf("got %q as well", said)
	}
}

// RPC-21, META-07: capabilities are not carried over from an earlier request.
func TestNothingIsRemembered(t *testing.T) {
	p := newPeer(t, everything(quiet()), eras[0])
	able, unable := eras[0], eras[0]
	unable.meta = strings.Replace(able.meta, `{"elicitation":{}}`, `{}`, 1)
	for range 2 {
		p.send(able.request("1", "tools/call", `"name":"ask"`))
		if r := p.read(); r.Error != nil || !strings.Contains(string(r.Result), mcp.ResultInputRequired) {
			t.Errorf("one that can be asked: %s %v", r.Result, r.Error)
		}
		p.send(unable.request("1", "tools/call", `"name":"ask"`))
		r := p.read()
		if r.Error == nil || r.Error.Code != mcp.CodeMissingCapability || !strings.HasPrefix(string(r.Error.Data), `{"requiredCapabilities":{"elicitation":{`) {
			t.Errorf("one that cannot: %s %v", r.Result, r.Error)
		}
	}
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello"}}`)
	if r := p.read(); r.Error == nil {
		t.Errorf("one that says nothing of itself: %s", r.Result)
	}
}

// VER-01, ERR-03: discovery also requires a supported version, and the error lists the
// requested and the supported versions.
func TestUnsupportedVersion(t *testing.T) {
	for _, method := range []string{"server/discover", "tools/list"} {
		p := newPeer(t, everything(quiet()), eras[0])
		p.send(strings.Replace(eras[0].request("1", method, ""), mcp.LatestVersion, "2999-01-01", 1))
		r := p.read()
		var data struct {
			Supported []string `json:"supported"`
			Requested string   `json:"requested"`
		}
		if r.Error == nil || r.Error.Code != mcp.CodeUnsupportedVersion || json.Unmarshal(r.Error.Data, &data) != nil ||
			data.Requested != "2999-01-01" || !slices.Contains(data.Supported, mcp.LatestVersion) {
			t.Errorf("%s: %s %v", method, r.Result, r.Error)
		}
	}
}

// RPC-07: a response has either a result or an error. One with both is invalid.
func TestResultOrError(t *testing.T) {
	for _, bad := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`,
		`{"jsonrpc":"2.0","id":1}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"error":7}`,
	} {
		if m, err := transport.ParseMessage([]byte(bad)); err == nil && m.IsResponse() {
			t.Errorf("%s became %+v", bad, m)
		}
	}
}

// RPC-11: the handshake is rejected in a batch.
func TestInitializeInABatch(t *testing.T) {
	p := newPeer(t, everything(quiet()), wireEra{})
	p.send("[" + strings.Replace(eras[1].open[0], "2025-11-25", "2025-03-26", 1) + "]")
	if got := p.receive(); !strings.Contains(got, `"error"`) || strings.Contains(got, "serverInfo") {
		t.Errorf("got %s", got)
	}
	p.send(eras[1].request("1", "tools/list", ""))
	if r := p.read(); r.Error == nil {
		t.Errorf("after that: %s", r.Result)
	}
}

// INIT-06: a client gets no notifications before it has sent notifications/initialized.
func TestSilenceBeforeInitialized(t *testing.T) {
	mux := everything(quiet())
	p := newPeer(t, mux, wireEra{"opening", eras[1].open[:1], eras[1].meta})
	mux.Tool("new", says(""))
	mux.ResourceUpdated("r:r")
	p.send(eras[1].request("1", "ping", ""))
	if r := p.read(); r.Error != nil || string(r.Result) != "{}" { // PING-01
		t.Errorf("ping: %s %v", r.Result, r.Error)
	}
	if said := p.finish(); len(said) > 0 {
		t.Errorf("it said %q", said)
	}
}

// LTASK-01: a server without tasks ignores that a call requests one.
func TestTaskIsIgnored(t *testing.T) {
	p := newPeer(t, everything(quiet()), eras[1])
	p.send(eras[1].request("1", "tools/call", `"name":"hello","task":{"ttl":1000}`))
	if r := p.read(); r.Error != nil || !strings.Contains(string(r.Result), `"text":"hi"`) {
		t.Errorf("got %s, %v", r.Result, r.Error)
	}
}

// MRTR-03: an InputRequired needs questions or a state.
func TestWhoMayAsk(t *testing.T) {
	state := "s"
	asks := func(res *mcp.InputRequired) mcp.Handler {
		return mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return res, nil })
	}
	question := &mcp.InputRequired{InputRequests: map[string]mcp.InputRequest{"k": {
		Method: mcp.MethodElicit, Params: json.RawMessage(`{"message":"?","requestedSchema":{"type":"object","properties":{}}}`),
	}}}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("asks", asks(question))
	mux.Tool("waits", asks(&mcp.InputRequired{RequestState: &state}))
	mux.Tool("nothing", asks(&mcp.InputRequired{}))
	for _, test := range []struct {
		method, members string
		fine            bool
	}{
		{"tools/call", `"name":"asks"`, true},
		{"tools/call", `"name":"waits"`, true},
		{"tools/call", `"name":"nothing"`, false},
	} {
		p := newPeer(t, mux, eras[0])
		p.send(eras[0].request("1", test.method, test.members))
		r := p.read()
		if asked := strings.Contains(string(r.Result), mcp.ResultInputRequired); asked != test.fine || asked == (r.Error != nil) {
			t.Errorf("%s %s: %s %v", test.method, test.members, r.Result, r.Error)
		}
	}
}

// TOOL-11: null structured content differs from absent content.
func TestStructuredNull(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	for name, content := range map[string]json.RawMessage{"null": json.RawMessage("null"), "absent": nil} {
		mux.Tool(name, returns(&mcp.CallToolResult{StructuredContent: content}))
	}
	p := newPeer(t, mux, eras[0])
	for name, there := range map[string]bool{"null": true, "absent": false} {
		p.send(eras[0].request("1", "tools/call", `"name":"`+name+`"`))
		if r := p.read(); r.Error != nil || strings.Contains(string(r.Result), `"structuredContent":null`) != there {
			t.Errorf("%s: %s %v", name, r.Result, r.Error)
		}
		res, err := mcptest.Connect(t, mux).CallTool(t.Context(), tool(name, ""))
		if err != nil || (string(res.StructuredContent) == "null") != there {
			t.Errorf("%s: read as %q, %v", name, res.StructuredContent, err)
		}
	}
}

// SAMP-13: the content of a sampling message is one block or, in revisions that allow it,
// several. Both forms can be read.
func TestSamplingContent(t *testing.T) {
	for in, want := range map[string]string{
		`{"type":"text","text":"a"}`:                              `{"type":"text","text":"a"}`,
		`[{"type":"text","text":"a"}]`:                            `{"type":"text","text":"a"}`,
		`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`: `[{"type":"text","text":"a"},{"type":"text","text":"b"}]`,
	} {
		var content mcp.SamplingContent
		if err := json.Unmarshal([]byte(in), &content); err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got, err := json.Marshal(content); err != nil || string(got) != want {
			t.Errorf("%s: written as %s, %v", in, got, err)
		}
	}
}

// ERR-01, ERR-02, ERR-05: error codes have the values of the specification.
func TestCodes(t *testing.T) {
	for _, code := range []int{mcp.CodeInsufficientScope, mcp.CodeTooLarge, mcp.CodeTimeout, mcp.CodeRateLimited} {
		if code >= -32768 && code <= -32000 {
			t.Errorf("the code %d of our own lies in the reserved range", code)
		}
	}
	for _, code := range []int{mcp.CodeHeaderMismatch, mcp.CodeMissingCapability, mcp.CodeUnsupportedVersion} {
		if code > -32020 || code < -32022 {
			t.Errorf("the code %d is none that the specification defines", code)
		}
	}
}

// META-09, META-10: the metadata keys of psi have the required form.
func TestMetaKeys(t *testing.T) {
	form := regexp.MustCompile(`^([A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z]([A-Za-z0-9-]*[A-Za-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	for _, key := range []string{
		mcp.MetaProtocolVersion, mcp.MetaClientCapabilities, mcp.MetaClientInfo, mcp.MetaServerInfo,
		mcp.MetaLogLevel, mcp.MetaProgressToken, mcp.MetaSubscriptionID,
	} {
		if !form.MatchString(key) {
			t.Errorf("the key %q is malformed", key)
		}
	}
}

// HDR-03, HDR-04, HDR-05, HDR-14: header values are encoded and decoded as specified.
func TestHeaderValues(t *testing.T) {
	for text, want := range map[string]string{
		"plain": "plain", "inner space": "inner space", "": "", "a=b": "a=b",
		"größe": "=?base64?Z3LDtsOfZQ==?=", " lead": "=?base64?IGxlYWQ=?=", "trail ": "=?base64?dHJhaWwg?=",
		"a\tb": "=?base64?YQli?=", "a\r\nb": "=?base64?YQ0KYg==?=", "\x7f": "=?base64?fw==?=",
		"=?base64?x?=": "=?base64?PT9iYXNlNjQ/eD89?=", "=?base64?x": "=?base64?x", "x?=": "x?=",
	} {
		if got := transport.EncodeHeaderValue(text); got != want {
			t.Errorf("%q is written %q, want %q", text, got, want)
		}
		if got, err := transport.DecodeHeaderValue(want); err != nil || got != text {
			t.Errorf("%q is read %q, %v; want %q", want, got, err, text)
		}
	}
	for _, bad := range []string{"=?base64?ZXU?=", "=?base64?!?=", "=?base64?ZXU==?=", "=?base64?ZX U=?="} {
		if got, err := transport.DecodeHeaderValue(bad); err == nil {
			t.Errorf("%q is read %q", bad, got)
		}
	}
}

// HDR-08, HDR-09, HDR-10: registering a tool with header annotations that the specification
// does not allow panics.
func TestBadSchemasPanic(t *testing.T) {
	property := func(p string) string { return `{"type":"object","properties":{"p":` + p + `}}` }
	for name, schema := range map[string]string{
		"empty name":  property(`{"type":"string","x-mcp-header":""}`),
		"no token":    property(`{"type":"string","x-mcp-header":"a b"}`),
		"control":     property(`{"type":"string","x-mcp-header":"a\tb"}`),
		"no text":     property(`{"type":"string","x-mcp-header":7}`),
		"number":      property(`{"type":"number","x-mcp-header":"A"}`),
		"object":      property(`{"type":"object","x-mcp-header":"A"}`),
		"union":       property(`{"type":["string","null"],"x-mcp-header":"A"}`),
		"twice":       `{"type":"object","properties":{"p":{"type":"string","x-mcp-header":"A"},"q":{"type":"string","x-mcp-header":"a"}}}`,
		"below items": property(`{"type":"array","items":{"type":"string","x-mcp-header":"A"}}`),
		"below anyOf": property(`{"anyOf":[{"type":"string","x-mcp-header":"A"}]}`),
		"below $defs": `{"type":"object","$defs":{"d":{"type":"string","x-mcp-header":"A"}},"properties":{"p":{"$ref":"#/$defs/d"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			wantPanic(t, func() {
				mcp.NewMux("m", "v1", quiet()).Tool("t", mcp.WithDescription(says(""), &mcp.Tool{InputSchema: json.RawMessage(schema)}))
			}, "ledger_test.go:")
		})
	}
	nested := `{"type":"object","properties":{"o":{"type":"object","properties":{"p":{"type":"integer","x-mcp-header":"A"}}}}}`
	mcp.NewMux("m", "v1", quiet()).Tool("t", mcp.WithDescription(says(""), &mcp.Tool{InputSchema: json.RawMessage(nested)}))
}

// PRM-03, META-16: params of the wrong type are reported as invalid params.
func TestParamsOfWrongTypes(t *testing.T) {
	for _, era := range eras {
		p := newPeer(t, everything(quiet()), era)
		for method, members := range map[string]string{
			"prompts/get":         `"name":"p","arguments":{"topic":7}`,
			"prompts/list":        `"cursor":7`,
			"resources/read":      `"uri":7`,
			"completion/complete": `"ref":7`,
		} {
			p.send(era.request("1", method, members))
			if r := p.read(); r.Error == nil || r.Error.Code != mcp.CodeInvalidParams {
				t.Errorf("%s: %s: %s %v", era.name, method, r.Result, r.Error)
			}
		}
	}
}

// CACHE-03: a caching time is never negative. It is limited to the integers of JavaScript,
// because the official TypeScript SDK rejects a whole result otherwise.
func TestHintsAreInRange(t *testing.T) {
	for ttl, want := range map[int64]string{-5: "0", math.MaxInt64: "9007199254740991"} {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Resource("r:r", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
			return &mcp.ReadResourceResult{Cacheable: mcp.Cacheable{TTLMs: &ttl, CacheScope: "everybody"}}, nil
		}))
		p := newPeer(t, mux, eras[0])
		p.send(eras[0].request("1", "resources/read", `"uri":"r:r"`))
		if r := p.read(); !strings.Contains(string(r.Result), `"ttlMs":`+want+`,"cacheScope":"private"`) {
			t.Errorf("%d: got %s", ttl, r.Result)
		}
	}
}

// ELI-03, ELI-04, INIT-10: URL questions have the form of the client's revision, and are
// sent only to clients that support them.
func TestLinksOnTheWire(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("link", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		return "", mcp.ElicitURL(ctx, "k", "?", "https://example.com/")
	}, nil))
	const url = `{"elicitation":{"url":{}}}`
	for version, want := range map[string][]string{
		"2026-07-28": {`"mode":"url","message":"?","url":"https://example.com/"}`},
		"2025-11-25": {`"mode":"url","message":"?","url":"https://example.com/"`, `"elicitationId":"`},
		"2025-06-18": {`-32021`, `"requiredCapabilities"`},
	} {
		era := eras[0]
		if version != mcp.LatestVersion {
			era = eras[1]
			open := strings.Replace(era.open[0], "2025-11-25", version, 1)
			era.open = []string{strings.Replace(open, `{"elicitation":{}}`, url, 1), era.open[1]}
		}
		era.meta = strings.Replace(era.meta, `{"elicitation":{}}`, url, 1)
		p := newPeer(t, mux, era)
		p.send(era.request("1", "tools/call", `"name":"link"`))
		got := p.receive()
		for _, part := range want {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %s lacks %s", version, got, part)
			}
		}
	}
}

// TOOL-06: registering a tool name that some clients reject logs a warning.
func TestToolNames(t *testing.T) {
	for name, fine := range map[string]bool{"a.b-c_D9": true, strings.Repeat("x", 128): true, strings.Repeat("x", 129): false, "a b": false, "a,b": false, "größe": false} {
		var log lockedBuffer
		mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		mux.Tool(name, says("hi"))
		if warned := strings.Contains(log.String(), "not one that every client accepts"); warned == fine {
			t.Errorf("%q: logged %q", name, log.String())
		}
		if got := mustCall(t, mcptest.Connect(t, mux), name, ""); got != "hi" {
			t.Errorf("%q cannot be called: %s", name, got)
		}
	}
}

// PING-03, ERR-06: methods that only the legacy era has are unknown in the modern era.
func TestRemovedMethods(t *testing.T) {
	p := newPeer(t, everything(quiet()), eras[0])
	for _, method := range []string{"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/get", "roots/list"} {
		p.send(eras[0].request("1", method, `"uri":"r:r","level":"info"`))
		if r := p.read(); r.Error == nil || r.Error.Code != mcp.CodeMethodNotFound {
			t.Errorf("%s: %s %v", method, r.Result, r.Error)
		}
	}
}

// MRTR-17, CACHE-06: the result of a retry is never cacheable, whatever its handler says.
func TestRetriesAreNotKept(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("r:r", mcp.ResourceFunc(func(ctx context.Context, _ none) (*mcp.ReadResourceResult, error) {
		_, err := mcp.Elicit[yes](ctx, "k", "Sure?")
		return &mcp.ReadResourceResult{Cacheable: mcp.CacheFor(time.Hour, mcp.CachePublic)}, err
	}, nil))
	p := newPeer(t, mux, eras[0])
	p.send(eras[0].request("1", "resources/read", `"uri":"r:r"`))
	var asked struct {
		RequestState json.RawMessage `json:"requestState"`
	}
	if r := p.read(); r.Error != nil || json.Unmarshal(r.Result, &asked) != nil || asked.RequestState == nil {
		t.Fatalf("got %s %v", r.Result, r.Error)
	}
	p.send(eras[0].request("2", "resources/read", `"uri":"r:r","requestState":`+string(asked.RequestState)+`,"inputResponses":{"k":{"action":"accept","content":{"ok":true}}}`))
	if r := p.read(); !strings.Contains(string(r.Result), `"ttlMs":0,"cacheScope":"private"`) {
		t.Errorf("got %s %v", r.Result, r.Error)
	}
}
