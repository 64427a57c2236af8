// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package browser_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp/debug"
)

const isShown = `document.getElementById("state")?.textContent === "The page is shown."`

// The app of a tool opens from the debug page with the arguments of its form, once the user
// has confirmed it at the host. A link on a hostile page on another port gets no further
// than the form.
func TestDebugApp(t *testing.T) {
	s := newServer(t, seats(), "seats.html", nil)
	origin := s.host(t)
	page := serve(t, debug.NewHandler(s.mux, &debug.Options{Apps: origin}))
	ctx := open(t)
	do(t, ctx, chromedp.Navigate(page+"/?view=item&kind=tool&name=seat_map"))
	do(t, ctx, chromedp.SendKeys(chromedp.CSS(`[name="f.flight"]`), "PS 12"))
	clickOn(t, ctx, "#app")
	waitFor(t, ctx, fmt.Sprintf(`location.origin === %q && document.querySelector("textarea")?.value === '{"flight":"PS 12"}'`, origin))
	screenshot(t, ctx, "debug-app")
	clickOn(t, ctx, "form button")
	waitForSeats(t, ctx)
	click(t, ctx, 45, 75) // the first seat
	s.want(t, "reserved", "1A")
}

// Pages on other ports and other sites cannot open the app of a tool, which would call the
// tool.
func TestDebugAppHostile(t *testing.T) {
	s := newServer(t, seats(), "seats.html", nil)
	s.mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodCallTool {
				s.add(report{"called", req.Name()})
			}
			return next.ServeMCP(ctx, req)
		})
	})
	origin := s.host(t)
	hostile := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><form method="post" action="%[1]s/show?tool=seat_map"><button id="show" name="tool" value="seat_map">1</button></form> <a id="list" href="%[1]s/?tool=seat_map">2</a>`, origin)
	}))
	ctx := open(t)
	do(t, ctx, chromedp.Navigate(hostile))
	clickOn(t, ctx, "#show")
	waitFor(t, ctx, says("other sites are refused"))
	do(t, ctx, chromedp.Navigate(strings.Replace(hostile, "127.0.0.1", "localhost", 1))) // another site
	clickOn(t, ctx, "#list")
	waitFor(t, ctx, says("other sites are refused"))
	do(t, ctx, chromedp.Navigate(hostile))
	clickOn(t, ctx, "#list")
	waitFor(t, ctx, says("Shows free seats."))
	if s.has("called") {
		t.Error("a link has called the tool")
	}
	clickOn(t, ctx, "form button")
	s.want(t, "called", "seat_map")
}
