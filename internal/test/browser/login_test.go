// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package browser_test

import (
	"context"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/go-psi/psi/examples/login/provider"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcphttp/authserver"
)

// A door is an authorization server with a client that receives its answers.
type door struct {
	url, client string // of the server, and of the client's pages
	link        string // to which the client sends its user
	answers     chan url.Values
}

func newDoor(t *testing.T, name, redirect string) *door {
	t.Helper()
	d := &door{answers: make(chan url.Values, 10)}
	d.client = serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cb" {
			d.answers <- r.URL.Query()
			_, _ = w.Write([]byte("the client has its answer"))
		}
	}))
	if redirect == "" {
		redirect = d.client + "/cb"
	}
	issuer := mcptest.ServeFunc(t, provider.New)
	var front *authserver.Server
	d.url = mcptest.ServeFunc(t, func(base string) http.Handler {
		var err error
		front, err = authserver.New(base+"/mcp", &authserver.Options{
			Provider: authserver.OIDC(issuer, provider.ClientID, provider.ClientSecret), Scopes: []string{"notes:read", "notes:write"}, Logger: slog.New(slog.DiscardHandler),
			Identify: func(_ context.Context, claims map[string]any) (*mcp.Principal, error) {
				return &mcp.Principal{Subject: claims["email"].(string)}, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		return front
	})
	rec := httptest.NewRecorder()
	front.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/register", strings.NewReader(fmt.Sprintf(`{"client_name":%q,"redirect_uris":[%q]}`, name, redirect))))
	_, id, _ := strings.Cut(rec.Body.String(), `"client_id":"`)
	id, _, _ = strings.Cut(id, `"`)
	d.link = d.url + "/authorize?" + url.Values{
		"response_type": {"code"}, "client_id": {id}, "redirect_uri": {redirect}, "state": {"x"}, "scope": {"notes:read notes:write"},
		"code_challenge": {strings.Repeat("A", 43)}, "code_challenge_method": {"S256"},
	}.Encode()
	return d
}

// answer waits for the client's answer.
func (d *door) answer(t *testing.T, ctx context.Context) url.Values {
	t.Helper()
	select {
	case v := <-d.answers:
		waitFor(t, ctx, says("the client has its answer"))
		return v
	case <-ctx.Done():
		t.Fatalf("the client gets no answer; the page says\n%s", textOf(ctx))
		return nil
	}
}

// A user logs in with the keyboard alone. The first key leads to the button that denies, and
// Enter without it does nothing.
func TestLoginByKeyboard(t *testing.T) {
	d := newDoor(t, "Notes for the desk", "")
	ctx := open(t)
	do(t, ctx, chromedp.Navigate(d.link), chromedp.KeyEvent(kb.Enter), chromedp.KeyEvent(kb.Tab))
	waitFor(t, ctx, `document.activeElement.textContent === "Deny"`)
	do(t, ctx, chromedp.KeyEvent(kb.Enter))
	if back := d.answer(t, ctx); back.Get("error") != "access_denied" || back.Has("code") {
		t.Errorf("%v", back)
	}

	do(t, ctx, chromedp.Navigate(d.link), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab))
	waitFor(t, ctx, `document.activeElement.textContent === "Allow"`)
	outlined := get(t, ctx, chromedp.Evaluate[bool](`document.activeElement.matches(":focus-visible") && getComputedStyle(document.activeElement).outlineStyle !== "none"`))
	if !outlined {
		t.Error("the focus is not visible")
	}
	do(t, ctx, chromedp.KeyEvent(kb.Enter))
	waitFor(t, ctx, `document.querySelector("input[name=user]") !== null`)
	do(t, ctx, chromedp.Click(chromedp.CSS("button")))
	if back := d.answer(t, ctx); back.Get("code") == "" || back.Get("iss") != d.url || back.Get("state") != "x" {
		t.Errorf("%v", back)
	}

	// The user is remembered, and only the provider asks.
	do(t, ctx, chromedp.Navigate(d.link))
	waitFor(t, ctx, `document.querySelector("input[name=user]") !== null`)
}

// axe finds no serious violation on the pages, in light and dark mode, on a wide screen and
// on one of 400 pixels. No page is wider than the screen.
func TestLoginAccessibility(t *testing.T) {
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	if err != nil {
		browser(t) // skips without one
		t.Fatal(err)
	}
	plain := newDoor(t, "Notes for the desk", "")
	long := newDoor(t, strings.Repeat("WWWWWWWWWW", 10), "https://"+strings.Repeat("long.", 40)+"example/cb")
	ctx := open(t)
	for name, c := range map[string]struct{ link, says string }{
		"consent": {plain.link, "Allow access?"}, "consent-long": {long.link, "Allow access?"}, "unknown": {plain.url + "/authorize?client_id=x", "This does not work"},
		"wrong-request": {strings.Replace(long.link, "S256", "plain", 1), "Go there only if you know it."},
	} {
		for _, theme := range []string{"light", "dark"} {
			for _, width := range []int64{900, 400} {
				t.Run(fmt.Sprint(name, " ", theme, " ", width), func(t *testing.T) {
					emulate(t, ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
						Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
					})
					do(t, ctx, chromedp.EmulateViewport(width, 700), chromedp.Navigate(c.link))
					waitFor(t, ctx, says(c.says))
					run(t, ctx, string(axe))
					if found := get(t, ctx, chromedp.Evaluate[string](serious, chromedp.EvalAwaitPromise)); found != "" {
						t.Errorf("axe finds\n%s", found)
					}
					if over := get(t, ctx, chromedp.Evaluate[int]("document.documentElement.scrollWidth - document.documentElement.clientWidth")); over > 0 {
						t.Errorf("the page is %d pixels too wide", over)
					}
					screenshot(t, ctx, fmt.Sprintf("login-%s-%s-%d", name, theme, width))
				})
			}
		}
	}
}

// buttonAt returns where the button that allows is.
func buttonAt(t *testing.T, ctx context.Context) (x, y float64) {
	t.Helper()
	at := get(t, ctx, chromedp.Evaluate[[]float64](`(() => { const r = document.querySelector("[value=allow]").getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`))
	return at[0], at[1]
}

// clickAllow clicks the button that allows, as a user does: the pointer is over the page first.
func clickAllow(t *testing.T, ctx context.Context) {
	t.Helper()
	x, y := buttonAt(t, ctx)
	do(t, ctx, chromedp.MouseEvent(chromedp.MouseMoved, x, y))
	waitFor(t, ctx, `getComputedStyle(document.querySelector("[value=allow]")).pointerEvents === "auto"`)
	do(t, ctx, chromedp.MouseClickXY(x, y))
}

// A window of an attacker's lies above the page, and closes at the first click of a double click: the
// second one, at the place where the button is, gives no answer. A pointer that has been over the
// page for a moment does.
func TestLoginDoubleClick(t *testing.T) {
	d := newDoor(t, "Notes for the desk", "")
	ctx := open(t)
	do(t, ctx, chromedp.Navigate(d.link))
	run(t, ctx, `document.querySelector("form").addEventListener("submit", e => { e.preventDefault(); document.title = "answered" })`)
	x, y := buttonAt(t, ctx)
	do(t, ctx, chromedp.MouseClickXY(x, y))
	if title := get(t, ctx, chromedp.Evaluate[string]("document.title")); title == "answered" {
		t.Error("a click counts at once")
	}
	clickAllow(t, ctx)
	waitFor(t, ctx, `document.title === "answered"`)
}

// What an attacker's page tries in a real browser: to frame the page, to post the answer to
// it, and to have the user finish a login that began elsewhere.
func TestLoginAttacks(t *testing.T) {
	d := newDoor(t, "Notes for the desk", "")
	ctx := open(t)
	do(t, ctx, chromedp.Navigate(d.link))
	token := get(t, ctx, chromedp.Evaluate[string](`document.querySelector("[name=token]").value`))

	evil := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/frame":
			fmt.Fprintf(w, `<p>evil</p><iframe src="%s" onload="document.title='loaded'"></iframe>`, html.EscapeString(d.link))
		case "/post":
			fmt.Fprintf(w, `<form method="post" action="%s/consent"><input name="token" value="%s"><input name="answer" value="allow"></form><script>document.forms[0].submit()</script>`, d.url, html.EscapeString(token))
		}
	}))
	do(t, ctx, chromedp.Navigate(evil+"/post"))
	waitFor(t, ctx, says("This answer does not come from the page that asked."))

	do(t, ctx, chromedp.Navigate(evil+"/frame"))
	waitFor(t, ctx, `document.title === "loaded"`)
	// If the page were in the frame, these keys would give an answer.
	do(t, ctx, chromedp.Click(chromedp.CSS("iframe")), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	screenshot(t, ctx, "login-framed")

	// The attacker consents elsewhere, and sends the user the link to the provider.
	attacker := open(t)
	do(t, attacker, chromedp.Navigate(d.link), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	waitFor(t, attacker, `document.querySelector("input[name=user]") !== null`)
	do(t, ctx, chromedp.Navigate(get(t, attacker, chromedp.Evaluate[string]("location.href"))))
	do(t, ctx, chromedp.Click(chromedp.CSS("button")))
	waitFor(t, ctx, says("This login did not begin in this browser."))
	screenshot(t, ctx, "login-elsewhere")
	select {
	case back := <-d.answers:
		t.Errorf("the client gets %v", back)
	default:
	}
}
