// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package browser_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcphttp/debug"
)

// trip is the form of an elicitation.
type trip struct {
	Seat string `json:"seat" jsonschema:"enum=window,enum=aisle"`
	Bags int    `json:"bags" jsonschema:"minimum=0,maximum=3"`
}

// desk returns the server shown on the page.
func desk() *mcp.Mux {
	mux := mcp.NewMux("desk", "v1.4.0", &mcp.MuxOptions{
		Title: "Travel desk", Instructions: "Look up flights before you book.", Logger: slog.New(slog.DiscardHandler),
	})
	type search struct {
		From  string   `json:"from" jsonschema:"description=Airport of departure"`
		Class string   `json:"class,omitempty" jsonschema:"enum=economy,enum=business,default=economy"`
		Max   int      `json:"max,omitempty" jsonschema:"minimum=1,maximum=50"`
		Via   []string `json:"via,omitempty"`
	}
	mux.Tool("search", mcp.ToolFunc(func(_ context.Context, in search) (map[string]any, error) {
		return map[string]any{"from": in.From, "flights": []string{"PS 12", "PS 40"}}, nil
	}, &mcp.Tool{Title: "Search flights", Description: "Finds flights."}))
	mux.Tool("book", mcp.ToolFunc(func(ctx context.Context, in struct {
		Flight string `json:"flight"`
	}) (string, error) {
		t, err := mcp.Elicit[trip](ctx, "trip", "Which seat on "+in.Flight+"?")
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("booked %s, %s, %d bags", in.Flight, t.Seat, t.Bags), nil
	}, &mcp.Tool{Description: "Books a flight."}))
	mux.Tool("pay", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		return "", &mcp.PrivateError{Public: "the payment failed", Err: errors.New("the ledger is locked <b>by nobody</b>")}
	}, nil))
	mux.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 3, 10, "boarding")
		mcp.ClientLogger(ctx).Info("the gate is open")
		<-ctx.Done()
		return "", ctx.Err()
	}, &mcp.Tool{Description: "Waits until it is cancelled."}))
	mux.Resource("ticket://{id}", mcp.ResourceFunc(func(_ context.Context, in struct {
		ID string `json:"id"`
	}) (string, error) {
		return "ticket " + in.ID, nil
	}, nil))
	return mux
}

// A debugged server has an endpoint at /mcp and the page at /debug/mcp.
type debugged struct {
	address string
	server  *http.Server
}

// startDebugged serves a mux at an address, whose port may be 0.
func startDebugged(t *testing.T, mux *mcp.Mux, address string) *debugged {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := mcphttp.NewHandler(mux, nil)
	routes := http.NewServeMux()
	routes.Handle("/mcp", endpoint)
	routes.Handle("/debug/mcp", debug.Handler(mux, endpoint))
	d := &debugged{l.Addr().String(), &http.Server{Handler: routes, ReadHeaderTimeout: time.Minute}}
	go func() { _ = d.server.Serve(l) }() // until it is closed
	t.Cleanup(func() { _ = d.server.Close() })
	return d
}

// page returns the URL of the debug page with a query.
func (d *debugged) page(query string) string { return "http://" + d.address + "/debug/mcp" + query }

// connect connects a client. Legacy versions use a session.
func (d *debugged) connect(t *testing.T, version string) *mcp.Conn {
	t.Helper()
	client := mcp.NewClient("desk app", "v2", &mcp.ClientOptions{Version: version})
	conn, err := client.Connect(t.Context(), mcphttp.NewTransport("http://"+d.address+"/mcp", nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func says(text string) string {
	return fmt.Sprintf("document.body.innerText.includes(%q)", text)
}

// clickOn clicks the element matched by a selector.
func clickOn(t *testing.T, ctx ctx, selector string) {
	t.Helper()
	do(t, ctx, chromedp.Click(chromedp.CSS(selector)))
}

// emulate sends the browser an emulation command.
func emulate[P, R any](t *testing.T, ctx ctx, command cdp.Command[P, R], params P) {
	t.Helper()
	if _, err := chromedp.Call(ctx, command, params); err != nil {
		t.Fatal(err)
	}
}

// The page shows the registered items, and follows changes.
func TestDebugLists(t *testing.T) {
	mux := desk()
	d := startDebugged(t, mux, "127.0.0.1:0")
	ctx := open(t)
	do(t, ctx, chromedp.Navigate(d.page("?view=registered")))
	waitFor(t, ctx, says("Finds flights.")+" && "+says("debug_test.go:")+" && "+says("live"))
	mux.Tool("refund", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", nil }, &mcp.Tool{Description: "Pays back."}))
	waitFor(t, ctx, says("Pays back."))
	mux.RemoveTool("search")
	waitFor(t, ctx, "!"+says("Finds flights."))
}

// A tool that elicits input can be called, and its question answered, with the keyboard
// alone.
func TestDebugAsks(t *testing.T) {
	d := startDebugged(t, desk(), "127.0.0.1:0")
	ctx := open(t)
	do(t, ctx, chromedp.Navigate(d.page("?view=item&kind=tool&name=book")))
	waitFor(t, ctx, `document.querySelector("[name='f.flight']") !== null`)
	do(t, ctx, chromedp.KeyEvent(kb.Tab))
	waitFor(t, ctx, `document.activeElement.className === "skip"`)
	do(t, ctx, chromedp.KeyEvent(kb.Enter))
	for range 20 {
		do(t, ctx, chromedp.KeyEvent(kb.Tab))
		if get(t, ctx, chromedp.Evaluate[bool](`document.activeElement.name === "f.flight"`)) {
			break
		}
	}
	do(t, ctx, chromedp.KeyEvent("PS 12"), chromedp.KeyEvent(kb.Enter, chromedp.KeyModifiers(chromedp.ModifierCtrl)))
	waitFor(t, ctx, says("Which seat on PS 12?"))
	screenshot(t, ctx, "debug-question")
	do(t, ctx, chromedp.SetValue(chromedp.CSS("[name='f.seat']"), `"aisle"`), chromedp.SetValue(chromedp.CSS("[name='f.bags']"), "2"))
	clickOn(t, ctx, "button[value=accept]")
	waitFor(t, ctx, says("booked PS 12, aisle, 2 bags"))
	screenshot(t, ctx, "debug-result")
}

// Progress and log messages are shown while a call is in flight, and the call can be
// cancelled.
func TestDebugProgress(t *testing.T) {
	d := startDebugged(t, desk(), "127.0.0.1:0")
	ctx := open(t)
	do(t, ctx, chromedp.Navigate(d.page("?view=item&kind=tool&name=wait")))
	clickOn(t, ctx, "button.primary")
	waitFor(t, ctx, says("3 of 10 boarding")+" && "+says("the gate is open")+" && "+says("working"))
	screenshot(t, ctx, "debug-progress")
	clickOn(t, ctx, "#stop")
	waitFor(t, ctx, says("cancelled from the debug page"))
}

// The overview shows requests from other clients as they arrive, and why they failed.
// Requests can be cancelled, and sessions can be ended.
func TestDebugActivity(t *testing.T) {
	d := startDebugged(t, desk(), "127.0.0.1:0")
	ctx := open(t)
	do(t, ctx, chromedp.Navigate(d.page("")))
	waitFor(t, ctx, says("Nothing is in flight.")+" && "+says("live"))
	conn, old := d.connect(t, ""), d.connect(t, "2025-11-25")
	if _, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "pay"}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, ctx, says("the ledger is locked <b>by nobody</b>")+" && "+says("2025-11-25"))
	ended := make(chan error, 1)
	go func() {
		_, err := old.CallTool(t.Context(), &mcp.CallToolParams{Name: "wait"})
		ended <- err
	}()
	waitFor(t, ctx, `document.querySelector("#inflight button") !== null`)
	screenshot(t, ctx, "debug-overview")
	clickOn(t, ctx, "#inflight button")
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "the operator of the server cancelled the request") {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Fatalf("the call goes on; the page says\n%s", textOf(ctx))
	}
	waitFor(t, ctx, says("cancelled"))
	clickOn(t, ctx, "#sessions button")
	waitFor(t, ctx, says("No sessions"))
}

// An open page reconnects after the server is restarted.
func TestDebugRestart(t *testing.T) {
	d := startDebugged(t, desk(), "127.0.0.1:0")
	ctx := open(t)
	do(t, ctx, chromedp.Navigate(d.page("?view=registered")))
	waitFor(t, ctx, says("live"))
	if err := d.server.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, ctx, says("reconnecting"))
	mux := desk()
	mux.Tool("upgrade", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", nil }, &mcp.Tool{Description: "A better seat."}))
	startDebugged(t, mux, d.address)
	waitFor(t, ctx, says("A better seat.")+" && "+says("live"))
}

// Without scripts, the page is readable and calls can be made.
func TestDebugWithoutScript(t *testing.T) {
	d := startDebugged(t, desk(), "127.0.0.1:0")
	ctx := open(t)
	emulate(t, ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	do(t, ctx, chromedp.Navigate(d.page("?view=item&kind=tool&name=search")))
	do(t, ctx, chromedp.SendKeys(chromedp.CSS("[name='f.from']"), "BER"))
	clickOn(t, ctx, "button.primary")
	do(t, ctx, chromedp.WaitVisible(chromedp.CSS(".tag.ok")))
	if text := get(t, ctx, chromedp.Text(chromedp.CSS("#result"))); !strings.Contains(text, "PS 40") || !strings.Contains(text, "BER") {
		t.Error(text)
	}
	do(t, ctx, chromedp.Navigate(d.page("")))
	if text := get(t, ctx, chromedp.Text(chromedp.CSS("main"))); !strings.Contains(text, "tools/call") || !strings.Contains(text, "debug page") {
		t.Error(text)
	}
	if state := get(t, ctx, chromedp.Text(chromedp.CSS("#status"))); state != "" {
		t.Errorf("the script runs: %q", state)
	}
}

// axe finds no serious violation, in light and dark mode, on a wide screen and on one of
// 400 pixels. No page is wider than the screen.
func TestDebugAccessibility(t *testing.T) {
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		browser(t) // skips without one
		t.Fatal(err)
	}
	d := startDebugged(t, desk(), "127.0.0.1:0")
	ctx := open(t)
	do(t, ctx, chromedp.Navigate(d.page("?view=item&kind=tool&name=book")))
	clickOn(t, ctx, "button.primary")
	waitFor(t, ctx, says("The server asks"))
	asking := strings.TrimPrefix(get(t, ctx, chromedp.Evaluate[string]("location.search")), "?")
	conn := d.connect(t, "2025-11-25")
	for tool, arguments := range map[string]string{"pay": "{}", "search": `{"from":"BER"}`} {
		if _, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)}); err != nil {
			t.Fatal(err)
		}
	}
	go func() { _, _ = conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "wait"}) }()
	for name, query := range map[string]string{
		"overview": "", "registered": "?view=registered", "tool": "?view=item&kind=tool&name=search", "request": failedRequest(t, d),
		"run": "?" + asking, "missing": "?view=nothing",
	} {
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int64{900, 400} {
				t.Run(fmt.Sprint(name, " ", theme, " ", width), func(t *testing.T) {
					emulate(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
						Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
					})
					do(t, ctx, chromedp.EmulateViewport(width, 900), chromedp.Navigate(d.page(query)))
					waitFor(t, ctx, `document.querySelector("main h1") !== null`)
					run(t, ctx, string(axe))
					found := get(t, ctx, chromedp.Evaluate[string](serious, chromedp.EvalAwaitPromise))
					if found != "" {
						t.Errorf("axe finds\n%s", found)
					}
					if over := get(t, ctx, chromedp.Evaluate[int]("document.documentElement.scrollWidth - document.documentElement.clientWidth")); over > 0 {
						t.Errorf("the page is %d pixels too wide", over)
					}
					screenshot(t, ctx, fmt.Sprintf("debug-%s-%s-%d", name, theme, width))
				})
			}
		}
	}
}

// failedRequest returns the query of the page that shows a failed request.
func failedRequest(t *testing.T, d *debugged) string {
	t.Helper()
	res, err := http.Get(d.page("?format=json"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var shown struct {
		Recent []struct {
			Number int
			Name   string
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&shown); err != nil {
		t.Fatal(err)
	}
	for _, r := range shown.Recent {
		if r.Name == "pay" {
			return fmt.Sprint("?view=request&number=", r.Number)
		}
	}
	t.Fatal("no request has failed")
	return ""
}

// serious is a script that returns the serious and critical violations found by axe.
const serious = `axe.run().then((r) => r.violations.filter((v) => ["serious", "critical"].includes(v.impact))
	.map((v) => v.impact + " " + v.id + ": " + v.nodes.map((n) => n.html + " " + n.failureSummary).join("\n")).join("\n"))`
