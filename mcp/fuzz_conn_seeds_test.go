// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"strings"

	"github.com/go-psi/psi/mcp"
)

// hostileScript is what a server says to some calls.
type hostileScript struct{ calls, text string }

// reply is a response of a server.
func reply(result string) string { return `{"jsonrpc":"2.0","id":"$","result":` + result + `}` }

func fault(code, rest string) string {
	return `{"jsonrpc":"2.0","id":"$","error":{"code":` + code + `,"message":"m"` + rest + `}}`
}

// question is a question as servers of the old revisions ask it.
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

// hostileScripts are conversations of servers that behave, and of some that do not.
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

// hostileHandshakes are servers whose very answers to the handshake are theirs.
var hostileHandshakes = []string{
	reply(`{"resultType":"complete","supportedVersions":["2025-11-25","2026-07-28"],"capabilities":{"tools":{},"extensions":{"x/y":{}}}}`) + "\n" + reply(toolsPage+`}`),
	fault(`-32022`, `,"data":{"supported":["2025-06-18"],"requested":"2026-07-28"}`) + "\n" + reply(`{"protocolVersion":"2025-06-18","capabilities":{"logging":{}},"serverInfo":{"name":"s","version":"1"}}`) + "\n" + reply(`{}`),
	fault(`-32022`, `,"data":{"supported":["2026-07-28"]}`) + "\n" + fault(`-32022`, ``) + "\n" + reply(`{"protocolVersion":"2027-01-01"}`),
	lineSilence + "\n" + reply(`{"protocolVersion":"2024-11-05","capabilities":null,"serverInfo":{}}`),
	lineEnd + "\n" + lineEnd,
	lineSilence + "\n" + lineSilence,
}
