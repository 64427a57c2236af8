// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package browser_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/go-psi/psi/mcp/apps"
)

// The example page is shown and reserves a seat when the user clicks.
func TestSeats(t *testing.T) {
	s := newServer(t, seats(), "seats.html", &apps.Options{Border: new(true)})
	ctx := open(t)
	show(t, ctx, s.host(t), "seat_map", `{"flight":"PS 12"}`)
	waitForSeats(t, ctx)
	screenshot(t, ctx, "seats")
	click(t, ctx, 45, 75) // the first seat
	s.want(t, "reserved", "1A")
	s.want(t, "host-context", "Seat 1A on PS 12 is yours.")
	do(t, ctx, chromedp.Click(chromedp.CSS("#theme")))
	waitFor(t, ctx, `document.documentElement.dataset.theme === "dark"`)
	screenshot(t, ctx, "seats-reserved-dark")
}

// waitForSeats waits until the example page has received its result and been resized.
func waitForSeats(t *testing.T, ctx ctx) {
	t.Helper()
	waitFor(t, ctx, isShown+` && document.getElementById("cancel").disabled`)
	waitFor(t, ctx, `document.querySelector("#frame iframe").clientHeight > 165`)
}

// click clicks at a position in the app's page, in pixels from its top left corner.
func click(t *testing.T, ctx ctx, x, y float64) {
	t.Helper()
	at := get(t, ctx, chromedp.Evaluate[struct{ X, Y float64 }](`(({x, y}) => ({X: x, Y: y}))(document.querySelector("#frame iframe").getBoundingClientRect())`))
	do(t, ctx, chromedp.MouseClickXY(at.X+x, at.Y+y))
}

// A page made with the official library runs in psi's host.
func TestOfficialPage(t *testing.T) {
	html := "<!doctype html>\n<html><body><script type=\"module\">" + strings.ReplaceAll(bundle(t, "official.js"), "</script", "<\\/script") + "</script></body></html>"
	s := newServer(t, page(html), "page.html", nil)
	ctx := open(t)
	show(t, ctx, s.host(t), "seat_map", `{"flight":"PS 12"}`)
	s.wait(t, "done")
	s.want(t, "connected", `{"version":{"name":"PsiHost","version":"v1.2.3"},"theme":"light","tool":"seat_map"}`)
	s.want(t, "tool-input", `{"flight":"PS 12"}`)
	s.want(t, "tool-result", jsonOf(t, `{"flight":"PS 12","free":["1A","1C","2B"]}`))
	s.want(t, "resource", `"a note"`)
	s.want(t, "message", "{}")
	s.want(t, "host-message", "hello")
	s.want(t, "host-context", "seat 1A")
	s.want(t, "host-log", "logged")
	if got := s.wait(t, "display-mode"); !slices.Equal(got, []string{`{"mode":"fullscreen"}`, `{"mode":"inline"}`}) {
		t.Error(got)
	}
	if got := s.wait(t, "model-only")[0]; !strings.Contains(got, "denied") || strings.Contains(got, "called\"") {
		t.Error(got)
	}
	if got := s.wait(t, "bad-link")[0]; !strings.Contains(got, "only http and https") {
		t.Error(got)
	}
	waitFor(t, ctx, `document.querySelector("#frame iframe").style.height !== ""`)
	do(t, ctx, chromedp.Click(chromedp.CSS("#theme")))
	if got := s.wait(t, "context"); !strings.Contains(strings.Join(got, " "), "display") {
		t.Error(got)
	}
	screenshot(t, ctx, "official-page")
	do(t, ctx, chromedp.Click(chromedp.CSS("#close")))
	s.wait(t, "teardown")
	waitFor(t, ctx, `document.getElementById("state").textContent === "The page is closed." && !document.querySelector("iframe")`)
}

// If the user cancels a tool, the call is cancelled at the server and the page is notified.
func TestCancelled(t *testing.T) {
	html := "<!doctype html>\n<html><body><script type=\"module\">" + strings.ReplaceAll(bundle(t, "official.js"), "</script", "<\\/script") + "</script></body></html>"
	s := newServer(t, page(html), "page.html", nil)
	ctx := open(t)
	show(t, ctx, s.host(t), "slow", "{}")
	s.wait(t, "done")
	do(t, ctx, chromedp.Click(chromedp.CSS("#cancel")))
	s.want(t, "tool-cancelled", `"cancelled by the user"`)
	s.wait(t, "server-cancelled")
}

// Access that a page has not declared is blocked, and so are messages that do not come from
// the proxy of its frame.
func TestBlocked(t *testing.T) {
	for _, form := range []string{"yes", "no"} {
		declared, undeclared := newWall(t), newWall(t)
		html := file(t, "blocked.html", "UNDECLARED", undeclared.origin, "DECLARED", declared.origin, "FORM", form)
		s := newServer(t, page(html), "page.html", &apps.Options{CSP: &apps.CSP{ConnectDomains: []string{declared.origin}}})
		ctx := open(t)
		show(t, ctx, s.host(t), "seat_map", "{}")
		s.wait(t, "done")
		for event, want := range map[string]string{"declared": `"done"`, "undeclared": `"blocked"`, "image": `"blocked"`, "reached": `""`, "baseURI": "false"} {
			s.want(t, event, want)
		}
		for _, directive := range []string{"base-uri", "connect-src", "img-src", "frame-src", "script-src"} {
			if got := s.wait(t, "violations")[0]; !strings.Contains(got, directive) {
				t.Errorf("no violation of %s: %s", directive, got)
			}
		}
		waitFor(t, ctx, `document.getElementById("messages").textContent.includes("ignored a message from null")`)
		if s.has("forged") {
			t.Error("a message that went around the proxy was served")
		}
		<-time.After(500 * time.Millisecond) // for the page to navigate away
		if got := undeclared.seen(); len(got) > 0 {
			t.Errorf("reached %q", got)
		}
		if got := declared.seen(); !slices.Equal(got, []string{"/declared"}) {
			t.Errorf("reached %q", got)
		}
		screenshot(t, ctx, "blocked")
	}
}

// Messages from other windows are ignored, whatever their content.
func TestForgedMessages(t *testing.T) {
	s := newServer(t, seats(), "seats.html", nil)
	ctx := open(t)
	show(t, ctx, s.host(t), "seat_map", `{"flight":"PS 12"}`)
	waitFor(t, ctx, `document.getElementById("state").textContent === "The page is shown."`)
	run(t, ctx, `window.postMessage({jsonrpc: "2.0", id: 1, method: "tools/call", params: {name: "report", arguments: {event: "forged", detail: ""}}}, "*")`)
	do(t, ctx, chromedp.Click(chromedp.CSS("#theme"))) // the page answers after the messages above
	waitFor(t, ctx, `document.documentElement.dataset.theme === "dark"`)
	if s.has("forged") {
		t.Error("a forged message was served")
	}
}

// A page that floods the host with messages is closed.
func TestFlood(t *testing.T) {
	s := newServer(t, page(file(t, "flood.html")), "page.html", nil)
	ctx := open(t)
	show(t, ctx, s.host(t), "seat_map", "{}")
	waitFor(t, ctx, `document.getElementById("state").textContent.includes("too many messages") && !document.querySelector("iframe")`)
	screenshot(t, ctx, "flood")
}

// A page cannot replace the link that the user is being asked about.
func TestSecondLink(t *testing.T) {
	s := newServer(t, page(file(t, "links.html")), "page.html", nil)
	ctx := open(t)
	show(t, ctx, s.host(t), "seat_map", "{}")
	s.want(t, "second", `"denied: the user is asked about another link"`)
	if got := get(t, ctx, chromedp.Evaluate[string](`document.querySelector("#question span").textContent`)); got != "Open https://good.example/?" {
		t.Error(got)
	}
	do(t, ctx, chromedp.Click(chromedp.CSS("#no")))
	s.want(t, "first", `"denied by the user"`)
}

// A question from a page that has been closed can no longer be answered.
func TestLinkOfClosedPage(t *testing.T) {
	s := newServer(t, page(file(t, "links.html")), "page.html", nil)
	ctx := open(t)
	show(t, ctx, s.host(t), "seat_map", "{}")
	s.wait(t, "second")
	do(t, ctx, chromedp.Click(chromedp.CSS("#close")))
	waitFor(t, ctx, `document.getElementById("state").textContent === "The page is closed." && document.getElementById("question").hidden`)
}

// The index lists the apps visible to the model and shows one with the user's arguments.
func TestIndex(t *testing.T) {
	s := newServer(t, seats(), "seats.html", nil)
	ctx := open(t)
	do(t, ctx, chromedp.Navigate(s.host(t)))
	text := get(t, ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if !strings.Contains(text, "Seats") || strings.Contains(text, "reserve_seat") {
		t.Error(text)
	}
	screenshot(t, ctx, "index")
	do(t, ctx, chromedp.SetValue(chromedp.CSS("form textarea"), `{"flight":"PS 12"}`), chromedp.Click(chromedp.CSS("form button")))
	waitFor(t, ctx, `document.getElementById("state")?.textContent === "The page is shown."`)
}
