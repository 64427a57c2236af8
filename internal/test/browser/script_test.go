// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package browser_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
)

// The page of the guide shows the votes, and a vote reaches the server and the model.
func TestGuidePage(t *testing.T) {
	s := newServer(t, os.DirFS("../../../examples/guide/poll"), "poll.html", nil)
	votes := map[string]int{"soup": 1, "salad": 0}
	result := func() (map[string]any, error) { return map[string]any{"votes": votes}, nil }
	s.mux.Tool("poll", mcp.ToolFunc(func(context.Context, struct{}) (map[string]any, error) { return result() }, apps.Tool(nil, uri)))
	s.mux.Tool("vote", mcp.ToolFunc(func(_ context.Context, in struct {
		Dish string `json:"dish"`
	}) (map[string]any, error) {
		votes[in.Dish]++
		s.add(report{"voted", in.Dish})
		return result()
	}, apps.Tool(nil, uri, apps.ForApp)))
	ctx := open(t)
	show(t, ctx, s.host(t), "poll", "{}")
	waitFor(t, ctx, isShown+` && document.getElementById("cancel").disabled && document.querySelector("#frame iframe").clientHeight < 200`)
	click(t, ctx, 30, 85) // the first dish
	s.want(t, "voted", "salad")
	s.want(t, "host-context", "The user has voted for salad.")
	screenshot(t, ctx, "guide-page")
}

// scriptHost serves a page with the script psi:app.js, and a host for it that a test
// controls.
func scriptHost(t *testing.T) (origin string) {
	t.Helper()
	s := newServer(t, page(file(t, "script.html")), "page.html", nil)
	document, err := apps.Read(t.Context(), s.connect(t), uri)
	if err != nil {
		t.Fatal(err)
	}
	routes := http.NewServeMux()
	for path, text := range map[string]string{"/{$}": file(t, "scripthost.html"), "/page": document.HTML} {
		routes.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, text)
		})
	}
	return serve(t, routes)
}

// The script connects the page, follows the host, and answers all its requests.
func TestScript(t *testing.T) {
	ctx := open(t)
	do(t, ctx, chromedp.Navigate(scriptHost(t)))
	happened := func(event string) string {
		return `page().eval("JSON.stringify(events.filter(([name]) => name === '` + event + `').map(([, detail]) => detail))")`
	}
	waitFor(t, ctx, `said.some(([method]) => method === "ui/notifications/size-changed")`)
	for script, want := range map[string]string{
		happened("early"): `["call app.ready first"]`,
		happened("again"): `["app.ready was called before"]`,
		`JSON.stringify(said[0][1])`: `{"protocolVersion":"2026-01-26","appInfo":{"name":"Script","version":"1.0.0"},` +
			`"appCapabilities":{"availableDisplayModes":["inline","fullscreen"]}}`,
		`said.map(([method]) => method).slice(0, 3).join(" ")`:        "ui/initialize ui/notifications/initialized ui/notifications/size-changed",
		`String(said[2][1].height > 200 && said[2][1].width === 300)`: "true",
		`page().eval("app.context.theme + getComputedStyle(document.documentElement).getPropertyValue('--font-sans') + getComputedStyle(document.documentElement).colorScheme")`: "darkTestdark",
	} {
		if got := get(t, ctx, chromedp.Evaluate[string](script)); got != want {
			t.Errorf("%s\nis   %s\nwant %s", script, got, want)
		}
	}

	run(t, ctx, `
		send({ method: "ui/notifications/tool-input-partial", params: { arguments: {} } });
		send({ method: "ui/notifications/tool-input", params: { arguments: { a: 1 } } });
		send({ method: "ui/notifications/tool-result", params: { content: [{ type: "text", text: "one" }, { type: "image" }, { type: "text", text: "two" }] } });
		send({ method: "ui/notifications/tool-cancelled", params: { reason: "late" } });
		send({ method: "ui/notifications/host-context-changed", params: { theme: "light" } });
		send({ method: "host/unknown" });
		send({ id: 1, method: "ping" });
		send({ id: 2, method: "host/unknown" });
		send({ id: 3, method: "page/fails" });
		page().eval("app.call('reserve').catch((error) => note('failed')(error.message))");
		page().eval("app.notify('notifications/message', { level: 'info', data: 'x' })");
		page().eval("postMessage({ jsonrpc: '2.0', method: 'ui/notifications/tool-cancelled', params: { reason: 'forged' } }, '*')");
		send({ id: 4, method: "ui/resource-teardown", params: { reason: "over" } });`)
	waitFor(t, ctx, `answers[4] !== undefined`)
	for script, want := range map[string]string{
		happened("partial"):                    `[{"arguments":{}}]`,
		happened("input"):                      `[{"a":1}]`,
		happened("result"):                     `["one\ntwo"]`,
		happened("cancelled"):                  `["late"]`,
		happened("failed"):                     `["no\nair_eu_reserve"]`, // the prefixes of two gateways
		happened("teardown"):                   `[""]`,
		`JSON.stringify(answers[1])`:           `{}`,
		`answers[2].code + answers[2].message`: "-32601the page does not have the method host/unknown",
		`answers[3].code + answers[3].message`: "-32603it does not work",
		`page().eval("getComputedStyle(document.documentElement).colorScheme + app.context.toolInfo.tool.name")`: "lightair_eu_seat_map",
	} {
		if got := get(t, ctx, chromedp.Evaluate[string](script)); got != want {
			t.Errorf("%s\nis   %s\nwant %s", script, got, want)
		}
	}
}

// Outside of a host, the page says so.
func TestScriptWithoutHost(t *testing.T) {
	ctx := open(t)
	do(t, ctx, chromedp.Navigate(scriptHost(t)+"/page"))
	waitFor(t, ctx, `events.some(([event, detail]) => event === "problem" && detail.includes("a host of MCP Apps"))`)
}
