// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// reports collects the violations that a checker reports.
type reports struct {
	testing.TB
	texts []string
}

func (r *reports) Errorf(format string, args ...any) {
	r.texts = append(r.texts, fmt.Sprintf(format, args...))
}

const (
	meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"v1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}`
	callTool  = `call {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a",` + meta + `,"progressToken":1,"io.modelcontextprotocol/logLevel":"warning"}}}`
	listTools = `call {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `}}}`
	listen    = `call {"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},` + meta + `}}}`
	ack       = `server {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`
	changed   = `server {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}`
	content   = `"content":[{"type":"text","text":"a"}]`

	task      = `"taskId":"t","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z"`
	getTask   = `call {"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"t",` + meta + `}}}`
	olderCall = `legacy call {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","task":{}}}`

	initialize  = `legacy call {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"v1"}}}`
	welcome     = `answer {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"logging":{},"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"v1"}}}`
	initialized = `legacy send {"jsonrpc":"2.0","method":"notifications/initialized"}`
	listRoots   = `server {"jsonrpc":"2.0","id":"q","method":"roots/list"}`
	roots       = `legacy send {"jsonrpc":"2.0","id":"q","result":{"roots":[]}}`
)

// play passes messages to a checker and returns its reports. Each line begins with its
// direction: call, send, answer, giveup or server, preceded by "legacy" if the client uses
// that era.
func play(t *testing.T, lines []string) []string {
	t.Helper()
	r := &reports{TB: t}
	c := newChecker(r)
	calls := map[mcp.ID]*checkedCall{}
	for _, line := range lines {
		version := mcp.LatestVersion
		if rest, ok := strings.CutPrefix(line, "legacy "); ok {
			version, line = "2025-11-25", rest
		}
		direction, message, _ := strings.Cut(line, " ")
		m, err := transport.ParseMessage([]byte(message))
		switch direction {
		case "call":
			calls[m.ID] = c.called(version, []byte(message))
		case "send":
			c.sent(version, []byte(message))
		case "answer":
			c.returned(calls[m.ID], &m)
		case "giveup":
			c.returned(calls[m.ID], nil)
		case "server":
			if err != nil {
				m = transport.UnreadableMessage(err)
			}
			c.received(&m)
		}
	}
	return r.texts
}

func answer(result string) string { return `answer {"jsonrpc":"2.0","id":1,"result":` + result + `}` }

func refusal(err string) string { return `answer {"jsonrpc":"2.0","id":1,"error":` + err + `}` }

func note(method, params string) string {
	return fmt.Sprintf(`server {"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
}

func progress(token, value string) string {
	return note(mcp.NotificationProgress, `{"progressToken":`+token+`,"progress":`+value+`}`)
}

func logged(level string) string {
	return note(mcp.NotificationMessage, `{"level":"`+level+`","data":1}`)
}

// The checker reports the message that violates a rule, and none before it.
func TestCheckerFindsViolations(t *testing.T) {
	for _, test := range []struct {
		rule  string
		lines []string // the last line violates the rule
	}{
		{"malformed JSON", []string{`server {"jsonrpc":"2.0","method":"a"`}},
		{"the member result is missing", []string{getTask, answer(`{"resultType":"complete",` + task + `,"status":"completed","ttlMs":null}`)}},
		{"ttlMs is neither", []string{getTask, answer(`{"resultType":"complete",` + task + `,"status":"working"}`)}},
		{"status is", []string{getTask, answer(`{"resultType":"complete",` + task + `,"status":"lost","ttlMs":1}`)}},
		{"the member inputRequests is missing", []string{note("notifications/tasks", `{`+task+`,"status":"working","ttlMs":1}`), note("notifications/tasks", `{`+task+`,"status":"input_required","ttlMs":1}`)}},
		{"a notification of the modern era", []string{initialize, welcome, initialized, note("notifications/tasks", `{`+task+`,"status":"working","ttlMs":1}`)}},
		{"servers of the modern era send no requests", []string{callTool, listRoots}},
		{"has no resultType", []string{callTool, answer(`{` + content + `}`)}},
		{"no extension with results of the type", []string{callTool, answer(`{"resultType":"task",` + content + `}`)}},
		{"must not ask about tools/list", []string{listTools, answer(`{"resultType":"input_required","requestState":"s"}`)}},
		{"neither inputRequests nor requestState", []string{callTool, answer(`{"resultType":"input_required"}`)}},
		{"did not declare the capability for roots/list", []string{callTool, answer(`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}`)}},
		{"did not declare the capability for elicitation/create", []string{callTool, answer(`{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"mode":"url","message":"","url":""}}}}`)}},
		{"the member content is missing", []string{callTool, answer(`{"resultType":"complete"}`)}},
		{"content[0]: the member type is missing", []string{callTool, answer(`{"resultType":"complete","content":[{}]}`)}},
		{"ttlMs", []string{listTools, answer(`{"resultType":"complete","tools":[],"cacheScope":"public"}`)}},
		{"cacheScope", []string{listTools, answer(`{"resultType":"complete","tools":[],"ttlMs":1,"cacheScope":"mine"}`)}},
		{"the member version is missing", []string{callTool, answer(`{"resultType":"complete",` + content + `,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}`)}},
		{"a code of the legacy era", []string{callTool, refusal(`{"code":-32002,"message":"m"}`)}},
		{"JSON-RPC reserves the code", []string{callTool, refusal(`{"code":-32650,"message":"m"}`)}},
		{"data", []string{callTool, refusal(`{"code":-32022,"message":"m"}`)}},
		{"requiredCapabilities is missing", []string{callTool, refusal(`{"code":-32021,"message":"m","data":{}}`)}},
		{"has the progress token 2", []string{callTool, progress("2", "1")}},
		{"progress must increase", []string{callTool, progress("1", "1"), progress("1", "1")}},
		{"has the progress token 1", []string{callTool, answer(`{"resultType":"complete",` + content + `}`), progress("1", "1")}},
		{"asked for the level info", []string{callTool, logged("warning"), logged("info")}},
		{"asked for the level error", []string{listTools, logged("error")}},
		{`the level "loud" does not exist`, []string{callTool, logged("loud")}},
		{"a notification of clients", []string{note(revision.Initialized, `{}`)}},
		{"is not the id of a subscription", []string{callTool, note(mcp.NotificationCancelled, `{"requestId":1}`)}},
		{"was not acknowledged", []string{listen, changed}},
		{"was not acknowledged", []string{listen, answer(`{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1}}`)}},
		{"was acknowledged before", []string{listen, ack, changed, ack}},
		{"subscriptionId is ", []string{listen, ack, answer(`{"resultType":"complete"}`)}},
		{"_meta has no", []string{listen, ack, note(mcp.NotificationToolsListChanged, `{}`)}},
		{"the subscription does not include it", []string{listen, ack, strings.Replace(changed, "tools", "prompts", 1)}},
		{"the client did not ask for", []string{listen, strings.Replace(ack, "tools", "prompts", 1)}},
		{"is not the id of a subscription", []string{listen, ack, strings.Replace(changed, ":1", ":2", 1)}},

		{"servers send no requests but pings", []string{initialize, `server {"jsonrpc":"2.0","id":1,"method":"ping"}`, welcome, listRoots}},
		{"did not declare the capability for elicitation/create", []string{initialize, welcome, initialized, listRoots, `server {"jsonrpc":"2.0","id":2,"method":"elicitation/create","params":{"message":"m"}}`}},
		{"servers do not send tools/call", []string{initialize, welcome, initialized, `server {"jsonrpc":"2.0","id":2,"method":"tools/call"}`}},
		{"the id \"q\" is in use", []string{initialize, welcome, initialized, listRoots, listRoots}},
		{"the server made no request", []string{initialize, welcome, initialized, listRoots, roots, note(mcp.NotificationCancelled, `{"requestId":"q"}`), note(mcp.NotificationCancelled, `{"requestId":"r"}`)}},
		{"asked for the level error", []string{initialize, welcome, initialized, logged("info"), `legacy call {"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"error"}}`, answer(`{}`), logged("info")}},
		{"did not declare that it reports", []string{initialize, welcome, initialized, note(mcp.NotificationToolsListChanged, `{}`), note(mcp.NotificationPromptsListChanged, `{}`)}},
		{"params.uri is missing", []string{initialize, welcome, initialized, note(mcp.NotificationResourceUpdated, `{}`)}},
		{"the legacy era has no acknowledgements", []string{initialize, welcome, initialized, ack}},
		{"with results of the type", []string{`legacy call {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}`, answer(`{"resultType":"input_required",` + content + `}`)}},

		{"the id 1 is in use", []string{listTools, listTools}},
		{"the progress token 1 is in use", []string{callTool, strings.Replace(callTool, `"id":1`, `"id":2`, 1)}},
		{"protocolVersion", []string{`call {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`}},
		{"a request of the legacy era", []string{`call {"jsonrpc":"2.0","id":1,"method":"ping"}`}},
		{"a request of the modern era", []string{`legacy call {"jsonrpc":"2.0","id":1,"method":"server/discover"}`}},
		{"a request of servers", []string{`call {"jsonrpc":"2.0","id":1,"method":"roots/list"}`}},
		{"it is not a request", []string{`call {"jsonrpc":"2.0","method":"tools/list"}`}},
		{"clients send no responses", []string{`send {"jsonrpc":"2.0","id":1,"result":{}}`}},
		{"waits for an answer", []string{initialize, welcome, initialized, listRoots, roots, roots}},
		{"a notification of the legacy era", []string{strings.TrimPrefix(initialized, "legacy ")}},
		{"a notification of servers", []string{`send {"jsonrpc":"2.0","method":"notifications/message"}`}},
		{"nothing waits for the answer", []string{strings.Replace(listTools, "call", "send", 1)}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := play(t, test.lines[:len(test.lines)-1]); len(got) > 0 {
				t.Errorf("reported too early: %q", got)
			}
			if got := play(t, test.lines); len(got) != 1 || !strings.Contains(got[0], test.rule) {
				t.Errorf("reported %q; want %q", got, test.rule)
			}
		})
	}
}

// Messages that only look like violations, because they cross each other or belong to a
// lost session, are not reported.
func TestCheckerAllowsCrossingMessages(t *testing.T) {
	cancelRoots := note(mcp.NotificationCancelled, `{"requestId":"q"}`)
	for name, lines := range map[string][]string{
		"progress of a call that was given up":     {callTool, progress("1", "1"), "giveup" + strings.TrimPrefix(callTool, "call"), progress("1", "2")},
		"an id again, after it was given up":       {callTool, "giveup" + strings.TrimPrefix(callTool, "call"), callTool},
		"an answer that crosses its cancellation":  {initialize, welcome, initialized, listRoots, cancelRoots, roots},
		"a cancellation that crosses its answer":   {initialize, welcome, initialized, listRoots, roots, cancelRoots},
		"an answer to a lost session":              {initialize, welcome, initialized, listRoots, initialize, welcome, roots},
		"the id of a question, in another session": {initialize, welcome, initialized, listRoots, initialize, welcome, initialized, listRoots},
		"a message before the handshake is over":   {initialize, logged("info"), welcome, logged("info")},
		"a refused initialize in a session":        {initialize, welcome, initialized, initialize, refusal(`{"code":-32600,"message":"m"}`), listRoots},
		"the end of a subscription":                {listen, ack, changed, note(mcp.NotificationCancelled, `{"requestId":1}`), answer(`{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1}}`)},
		"an extension":                             {note("notifications/vendor", `{}`), `send {"jsonrpc":"2.0","method":"notifications/vendor"}`},
	} {
		if got := play(t, lines); len(got) > 0 {
			t.Errorf("%s: reported %q", name, got)
		}
	}
}
