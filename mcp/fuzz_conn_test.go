// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/server"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// Lines of a hostile server's script that are not messages.
const (
	lineSilence = "-" // the request is never answered
	lineEnd     = "!" // the server is gone
)

// hostile is a server that plays a script: each request consumes lines until one answers
// it. After the script, every request is rejected.
type hostile struct {
	*script
	t       *testing.T
	version string // of the handshake; if "", the script answers the handshake
	opened  bool

	said chan []byte
	gone chan struct{}
	end  sync.Once
}

func newHostile(t *testing.T, version string, s *script) *hostile {
	return &hostile{script: s, t: t, version: version, said: make(chan []byte, 4096), gone: make(chan struct{})}
}

// connect returns a new stream to the server, which continues the script.
func (h *hostile) connect(context.Context) (transport.Stream, error) {
	again := newHostile(h.t, h.version, h.script)
	return again, nil
}

func (h *hostile) Read(ctx context.Context) ([]byte, error) {
	select {
	case m := <-h.said:
		return m, nil
	default:
	}
	select {
	case m := <-h.said:
		return m, nil
	case <-h.gone:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (h *hostile) Close() error {
	h.end.Do(func() { close(h.gone) })
	return nil
}

// Write receives a message from the client, and fails the test if it is not valid.
func (h *hostile) Write(_ context.Context, message []byte) error {
	m, err := transport.ParseMessage(slices.Clone(message))
	if err != nil {
		h.t.Errorf("the client said %s: %v", message, err)
		return nil
	}
	if m.IsRequest() && !h.shake(&m) {
		h.respond(m.ID)
	}
	return nil
}

func (h *hostile) say(message []byte) {
	select {
	case h.said <- message:
	default: // the client does not read
	}
}

// shake answers the requests that open a connection of the version.
func (h *hostile) shake(req *transport.Message) bool {
	switch {
	case h.version == "":
		return false
	case req.Method == "logging/setLevel":
		h.say(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`, req.ID))
	case h.opened:
		return false
	case req.Method == mcp.MethodDiscover && h.version == mcp.LatestVersion:
		h.opened = true
		h.say(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":[%q],"capabilities":%s,"ttlMs":0,"cacheScope":"private"}}`, req.ID, h.version, serverCaps))
	case req.Method == mcp.MethodDiscover:
		h.say(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`, req.ID))
	default:
		h.opened = true
		h.say(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"s","version":"1"}}}`, req.ID, h.version, serverCaps))
	}
	return true
}

func (h *hostile) respond(id mcp.ID) {
	for {
		line, ok := h.next(id)
		switch {
		case !ok:
			h.say(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no more"}}`, id))
			return
		case string(line) == lineSilence:
			return
		case string(line) == lineEnd:
			_ = h.Close()
			return
		}
		h.say(line)
		if m, err := transport.ParseMessage(slices.Clone(line)); m.ID == id && (m.IsResponse() || err != nil && m.Method == "") {
			return
		}
	}
}

const serverCaps = `{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"completions":{},"logging":{}}`

// hostileOptions returns the options of a client that answers all questions, forwards them,
// or returns them to its callers.
func hostileOptions(mode byte, logger *slog.Logger) *mcp.ClientOptions {
	o := mcp.LimitQuestions(&mcp.ClientOptions{Logger: logger, CallTimeout: time.Second, LogLevel: mcp.LoggingLevelDebug}, 4, 16)
	switch mode % 3 {
	case 1:
		o.Forward = true
		return o
	case 2:
		o.Capabilities = &mcp.ClientCapabilities{
			Elicitation: &mcp.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}}, Sampling: &mcp.SamplingCapability{}, Roots: &mcp.RootsCapability{},
		}
		return o
	}
	o.Elicit = func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		if strings.Contains(p.Message, "decline") {
			return nil, errors.New("declined")
		}
		return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: json.RawMessage(`{"ok":true}`)}, nil
	}
	o.ElicitURL = func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: mcp.ActionCancel}, nil
	}
	o.Sample = func(_ context.Context, _ *mcp.Conn, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
		res := &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: p.SystemPrompt, Content: mcp.SamplingContent{mcp.Text("hi")}}
		for _, m := range p.Messages {
			res.Content = append(res.Content, m.Content...)
		}
		return res, nil
	}
	o.Roots = []mcp.Root{{URI: "file:///home"}}
	if mode&4 != 0 {
		o.Capabilities = &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapability{Tools: &struct{}{}}}
	}
	o.Log = func(context.Context, *mcp.Conn, *mcp.LoggingMessageParams) {}
	o.Notification = func(context.Context, *mcp.Conn, *mcp.Request) {}
	return o
}

// hostileCalls contains, by letter, the operations of a client on a connection to a hostile
// server. Results are encoded again, as in a gateway.
var hostileCalls = map[byte]func(ctx context.Context, t *testing.T, c *mcp.Conn) (mcp.Result, error){
	'd': func(ctx context.Context, _ *testing.T, c *mcp.Conn) (mcp.Result, error) {
		return outcome(c.Discover(ctx))
	},
	't': func(ctx context.Context, _ *testing.T, c *mcp.Conn) (mcp.Result, error) {
		return outcome(c.ListTools(ctx, nil))
	},
	'T': func(ctx context.Context, t *testing.T, c *mcp.Conn) (mcp.Result, error) {
		n := 0
		for tool, err := range c.Tools(ctx, nil) {
			if n++; n > 10_000 || (tool == nil) == (err == nil) {
				t.Fatalf("tool %d is %v, %v", n, tool, err)
			}
		}
		return nil, nil
	},
	'p': func(ctx context.Context, _ *testing.T, c *mcp.Conn) (mcp.Result, error) {
		return outcome(c.ListPrompts(ctx, nil))
	},
	'r': func(ctx context.Context, _ *testing.T, c *mcp.Conn) (mcp.Result, error) {
		return outcome(c.ListResources(ctx, nil))
	},
	'u': func(ctx context.Context, _ *testing.T, c *mcp.Conn) (mcp.Result, error) {
		return outcome(c.ListResourceTemplates(ctx, nil))
	},
	'c': func(ctx context.Context, _ *testing.T, c *mcp.Conn) (mcp.Result, error) {
		ctx = mcp.WithProgress(ctx, func(*mcp.ProgressParams) {})
		return outcome(c.CallTool(ctx, tool("a", `{"region":"eu","n":1}`)))
	},
	'g': func(ctx context.Context, _ *testing.T, c *mcp.Conn) (mcp.Result, error) {
		return outcome(c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "a"}))
	},
	'R': func(ctx context.Context, _ *testing.T, c *mcp.Conn) (mcp.Result, error) {
		return outcome(c.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://a"}))
	},
	'm': func(ctx context.Context, _ *testing.T, c *mcp.Conn) (mcp.Result, error) {
		return outcome(c.Complete(ctx, &mcp.CompleteParams{}))
	},
	'i': func(ctx context.Context, _ *testing.T, c *mcp.Conn) (mcp.Result, error) { return nil, c.Ping(ctx) },
	'a': func(ctx context.Context, _ *testing.T, c *mcp.Conn) (mcp.Result, error) {
		return nil, c.AddRoots(ctx, mcp.Root{URI: "file:///more"})
	},
	'l': func(ctx context.Context, _ *testing.T, c *mcp.Conn) (mcp.Result, error) {
		filter := mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"test://a", "test://b"}}
		_, err := c.Listen(ctx, filter, func(mcp.Change) {})
		return nil, err
	},
	'v': func(ctx context.Context, _ *testing.T, c *mcp.Conn) (mcp.Result, error) {
		req, err := mcp.NewRequest("vendor/x", json.RawMessage(`{"a":1}`))
		if err != nil {
			return nil, err
		}
		return c.ServeMCP(ctx, req)
	},
	'f': forwardedCall,
	'G': gatewayCalls,
}

func outcome[R any, P interface {
	*R
	mcp.Result
}](r P, err error) (mcp.Result, error) {
	if r == nil {
		return nil, err
	}
	return r, err
}

// forwardedCall forwards a received call, and answers a question that results from it.
func forwardedCall(ctx context.Context, _ *testing.T, c *mcp.Conn) (mcp.Result, error) {
	p := tool("a", `{}`)
	for range 4 {
		res, err := c.ServeMCP(ctx, mcptest.NewRequest(mcp.MethodCallTool, p))
		asked, ok := res.(*mcp.InputRequired)
		if !ok {
			return res, err
		}
		p.RequestState, p.InputResponses = asked.RequestState, map[string]json.RawMessage{}
		for key := range asked.InputRequests {
			p.InputResponses[key] = json.RawMessage(`{"action":"accept","content":{}}`)
		}
	}
	return nil, nil
}

// gatewayCalls serves the connection to a client of the oldest revision and makes calls.
func gatewayCalls(ctx context.Context, t *testing.T, c *mcp.Conn) (mcp.Result, error) {
	mux := mcp.NewMux("gateway", "v1", quiet())
	mux.Mount("gw_", c)
	session := server.New(mux, &server.Options{Logger: quiet().Logger}).NewSession(server.Details{}, nil)
	defer session.Close()
	p := &legacyPeer{script: newScript(nil, 0), t: t, ctx: ctx, session: session, forgiving: true}
	p.feed([]byte(sample{"initialize", `"protocolVersion":"2024-11-05","capabilities":` + allCaps + `,"clientInfo":{"name":"c","version":"1"}`}.message(1, `"_meta":{}`)))
	for i, s := range []sample{
		{mcp.MethodListTools, ``}, {mcp.MethodCallTool, `"name":"gw_a"`}, {mcp.MethodListResources, ``}, {mcp.MethodReadResource, `"uri":"mount:gw_:test://a"`},
		{mcp.MethodListPrompts, ``}, {mcp.MethodGetPrompt, `"name":"gw_a"`},
	} {
		p.feed([]byte(s.message(i, metaLegacy)))
	}
	return nil, nil
}

// maxHostileCalls is the maximum number of calls over one connection.
const maxHostileCalls = 12

// Whatever a server of either era sends, every call of its client ends in time, with an
// error or a result that can be forwarded, and nothing is left behind.
func FuzzConn(f *testing.F) {
	versions := append(mcp.LegacyVersions(), mcp.ModernVersions()...)
	for n, s := range hostileScripts() {
		for i := range versions {
			f.Add(uint8(i), byte(n+i)%3, []byte(s.calls), []byte(s.text), uint64(0))
		}
	}
	for _, text := range hostileHandshakes {
		f.Add(uint8(len(versions)), byte(4), []byte("dtc"), []byte(text), uint64(0))
	}
	f.Fuzz(func(t *testing.T, era uint8, mode byte, calls, text []byte, seed uint64) {
		version := append(versions, "")[int(era)%(len(versions)+1)]
		synctest.Test(t, func(t *testing.T) {
			bell := newAlarm()
			h := newHostile(t, version, newScript(text, seed))
			connecting, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			c, err := mcp.NewClient("c", "v1", hostileOptions(mode, slog.New(bell))).Connect(connecting, transport.FromStream(h.connect))
			if err != nil {
				if version != "" {
					t.Errorf("after a handshake: %v", err)
				}
				return
			}
			defer func() { _ = c.Close() }()
			for _, letter := range calls[:min(len(calls), maxHostileCalls)] {
				makeCall(t, c, letter, string(text))
			}
			_ = c.Close()
			synctest.Wait()
			bell.check(t)
		})
	})
}

func makeCall(t *testing.T, c *mcp.Conn, letter byte, text string) {
	t.Helper()
	call := hostileCalls[letter]
	if call == nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	res, err := call(ctx, t, c)
	if ctx.Err() != nil && letter != 'l' && letter != 'i' { // subscriptions and pings are bounded only by their callers
		t.Fatalf("the call %c took ten minutes", letter)
	}
	if res == nil {
		return
	}
	if err != nil {
		t.Errorf("the call %c returned %+v and %v", letter, res, err)
	}
	checkUsable(t, reflect.ValueOf(res))
	req := mcptest.NewRequest(mcp.MethodCallTool, tool("a", ""))
	m, err := transport.ParseMessage(mcp.AppendResponse(nil, req, res, nil))
	if err != nil || m.Error != nil {
		t.Errorf("the call %c returned %+v, which cannot be passed on: %v, %+v", letter, res, err, m)
	}
}

// checkUsable checks that the lists of a result contain no nil elements, which callers
// would not expect.
func checkUsable(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			checkUsable(t, v.Elem())
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			checkUsable(t, field)
		}
	case reflect.Slice:
		for i := range v.Len() {
			e := v.Index(i)
			if (e.Kind() == reflect.Pointer || e.Kind() == reflect.Interface) && e.IsNil() {
				t.Errorf("there is a nil in a %s", v.Type())
				return
			}
			checkUsable(t, e)
		}
	}
}

// hostileScript is a sequence of calls and the server's script for them.
type hostileScript struct{ calls, text string }

// reply returns a response with the given result.
func reply(result string) string { return `{"jsonrpc":"2.0","id":"$","result":` + result + `}` }

func fault(code, rest string) string {
	return `{"jsonrpc":"2.0","id":"$","error":{"code":` + code + `,"message":"m"` + rest + `}}`
}

// question returns a question as servers of the old revisions send it.
func question(id, method, params string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`
}

func note(method, params string) string {
	return `{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`
}

const (
	toolsPage = `{"resultType":"complete","ttlMs":1000,"cacheScope":"public","tools":[{"name":"a","title":"A","description":"d","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"n":{"type":"integer","x-mcp-header":"N"}}},"outputSchema":{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]},"annotations":{"readOnlyHint":true},"icons":[{"src":"https://example.com/i.png","sizes":["48x48"]}],"_meta":{"k":1},"vendor":1}]`
	toolDone  = `{"resultType":"complete","content":[{"type":"text","text":"a","annotations":{"audience":["user"],"priority":0.5,"lastModified":"2026-01-02T03:04:05Z"}},{"type":"image","data":"AQ==","mimeType":"image/png"},{"type":"audio","data":"AQ==","mimeType":"audio/wav"},{"type":"resource_link","uri":"test://a","name":"a","size":7},{"type":"resource","resource":{"uri":"test://a","blob":"AQ==","mimeType":"x/y"}},{"type":"tool_use","id":"1","name":"n","input":{}},{"type":"unheard","x":1}],"structuredContent":{"x":7},"isError":false,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}},"more":[1]}`
	form      = `{"mode":"form","message":"Sure?","requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean","default":true},"n":{"type":"integer","minimum":0}},"required":["ok"]}}`
	sampling  = `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"n","input":{}}]},{"role":"user","content":[{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":"x"}]}]}],"maxTokens":5,"systemPrompt":"s","temperature":0.5,"stopSequences":["x"],"modelPreferences":{"hints":[{"name":"m"}],"costPriority":1},"metadata":{"a":1},"includeContext":"none"}`
	asked     = `{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":` + form + `},"s":{"method":"sampling/createMessage","params":` + sampling + `},"r":{"method":"roots/list"}},"requestState":"sealed"}`
)

// hostileScripts returns scripts of well-behaved servers and of some others.
func hostileScripts() []hostileScript {
	say := func(lines ...string) string { return strings.Join(lines, "\n") }
	progress := note(mcp.NotificationProgress, `{"progressToken":"$","progress":0.5,"total":1,"message":"half"}`)
	lists := say(
		reply(`{"resultType":"complete","prompts":[{"name":"a","arguments":[{"name":"x","required":true}]},null],"ttlMs":1,"cacheScope":"private"}`),
		reply(`{"resultType":"complete","resources":[{"uri":"test://a","name":"a","mimeType":"text/plain","size":9007199254740993}],"nextCursor":"","ttlMs":1,"cacheScope":"x"}`),
		reply(`{"resultType":"complete","resourceTemplates":[{"uriTemplate":"test://{a}","name":"a"}],"ttlMs":-1,"cacheScope":"public"}`),
	)
	return []hostileScript{
		{"d", reply(`{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":` + serverCaps + `,"instructions":"i","ttlMs":0,"cacheScope":"private"}`)},
		{"tcT", say(reply(toolsPage+`}`), progress, note(mcp.NotificationMessage, `{"level":"info","logger":"l","data":{"a":1}}`), reply(toolDone), reply(toolsPage+`,"nextCursor":"x"}`), reply(toolsPage+`,"nextCursor":"x"}`))},
		{"pru", lists},
		{"g", reply(`{"resultType":"complete","description":"d","messages":[{"role":"user","content":{"type":"text","text":"a"}},{"role":"assistant","content":{"type":"resource_link","uri":"test://a","name":"a"}},null]}`)},
		{"R", reply(`{"resultType":"complete","contents":[{"uri":"test://a","text":"a"},{"uri":"test://a","blob":"AQ=="},null],"ttlMs":1,"cacheScope":"public"}`)},
		{"m", reply(`{"resultType":"complete","completion":{"values":["a"],"total":3,"hasMore":true}}`)},
		{"c", say(reply(asked), reply(toolDone))},
		{"c", say(question(`1`, "elicitation/create", form), question(`"s"`, "sampling/createMessage", sampling), question(`2`, "roots/list", `{}`), question(`3`, "ping", `{}`), reply(toolDone))},
		{"f", say(question(`1`, "elicitation/create", form), question(`"s"`, "sampling/createMessage", sampling), progress, reply(toolDone))},
		{"ff", say(reply(asked), reply(asked), reply(toolDone))},
		{"c", say(question(`1`, "elicitation/create", `{"mode":"url","message":"decline","url":"https://example.com","elicitationId":"e"}`), note(mcp.NotificationCancelled, `{"requestId":1,"reason":"r"}`), reply(`{"content":[null,7],"isError":true}`))},
		{"lti", say(
			note(mcp.NotificationAcknowledged, `{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["test://a"]},"_meta":{"io.modelcontextprotocol/subscriptionId":"$"}}`),
			note(mcp.NotificationToolsListChanged, `{"_meta":{"io.modelcontextprotocol/subscriptionId":"$"}}`), note(mcp.NotificationResourceUpdated, `{"uri":"test://a/b"}`),
			note(mcp.NotificationCancelled, `{"requestId":"$"}`), reply(`{}`), reply(`{}`), reply(toolsPage+`}`), reply(`{}`))},
		{"Gv", say(reply(toolsPage+`}`), reply(toolDone), lists, reply(`{"contents":[]}`), reply(`{"messages":[]}`), reply(`{"resultType":"vendor","x":1}`))},
		{"cia", say(lineSilence, fault(`-32020`, ``), lineEnd)},
		{"ccRc", say(fault(`-32042`, `,"data":{"elicitations":[{"mode":"url"}]}`), fault(`-32002`, `,"data":{"uri":"test://a"}`), fault(`-32021`, `,"data":{"requiredCapabilities":{}}`), `{"jsonrpc":"2.0","id":"$","error":7}`)},
		{"cGg", say(reply(`{"content":[{"type":"resource"},{"type":"resource_link"},{"type":"text"}]}`), reply(toolsPage+`}`), reply(`{"content":[{"type":"resource","resource":{}}]}`), reply(`{"messages":[{"role":"user","content":{"type":"resource"}}]}`))},
		{"cc", say(`[`+reply(toolDone)+`,`+progress+`]`, `{"jsonrpc":"2.0","id":"$"}`, `{"jsonrpc":"2.0","id":"$","result":7}`, `stray print`, reply(`{"resultType":"unheard"}`))},
	}
}

// hostileHandshakes contains scripts of servers that also answer the handshake.
var hostileHandshakes = []string{
	reply(`{"resultType":"complete","supportedVersions":["2025-11-25","2026-07-28"],"capabilities":{"tools":{},"extensions":{"x/y":{}}}}`) + "\n" + reply(toolsPage+`}`),
	fault(`-32022`, `,"data":{"supported":["2025-06-18"],"requested":"2026-07-28"}`) + "\n" + reply(`{"protocolVersion":"2025-06-18","capabilities":{"logging":{}},"serverInfo":{"name":"s","version":"1"}}`) + "\n" + reply(`{}`),
	fault(`-32022`, `,"data":{"supported":["2026-07-28"]}`) + "\n" + fault(`-32022`, ``) + "\n" + reply(`{"protocolVersion":"2027-01-01"}`),
	lineSilence + "\n" + reply(`{"protocolVersion":"2024-11-05","capabilities":null,"serverInfo":{}}`),
	lineEnd + "\n" + lineEnd,
	lineSilence + "\n" + lineSilence,
}
