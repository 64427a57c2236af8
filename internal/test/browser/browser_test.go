// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package browser_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/evanw/esbuild/pkg/api"
)

// variable is the environment variable that names the browser. If it is unset, the tests
// are skipped.
const variable = "PSI_BROWSER"

// browser returns the path of the browser, or skips the test.
func browser(t *testing.T) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skipf("%s does not name a browser; see run.sh", variable)
	}
	return path
}

// open returns the context of a new tab.
func open(t *testing.T) context.Context {
	t.Helper()
	path := browser(t)
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(900, 800))
	ctx, stopAllocator := chromedp.NewExecAllocator(t.Context(), opts...)
	t.Cleanup(stopAllocator)
	ctx, stop := chromedp.NewContext(ctx)
	t.Cleanup(stop)
	do(t, ctx) // starts the browser
	ctx, stopTimer := context.WithTimeout(ctx, time.Minute)
	t.Cleanup(stopTimer)
	return ctx
}

// do runs actions in a tab.
func do(t *testing.T, ctx context.Context, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// get runs an action that returns a value.
func get[T any](t *testing.T, ctx context.Context, action chromedp.Action[T]) T {
	t.Helper()
	v, err := chromedp.Run(ctx, action)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// run runs a script in a tab.
func run(t *testing.T, ctx context.Context, script string) {
	t.Helper()
	get(t, ctx, chromedp.Evaluate[bool](script+"; true"))
}

// waitFor waits until a script returns true, even across navigations.
func waitFor(t *testing.T, ctx context.Context, script string) {
	t.Helper()
	var err error
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); <-time.After(50 * time.Millisecond) {
		// A navigation makes the poll return an error.
		if _, err = chromedp.Run(ctx, chromedp.Poll[bool](script, chromedp.WithPollingTimeout(time.Until(end)))); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v; the page says\n%s", script, err, textOf(ctx))
}

// textOf returns the visible text of a tab.
func textOf(ctx context.Context) string {
	text, _ := chromedp.Run(ctx, chromedp.Evaluate[string]("document.body.innerText"))
	return text
}

// screenshot saves a picture of the tab for manual inspection.
func screenshot(t *testing.T, ctx context.Context, name string) {
	t.Helper()
	picture := get(t, ctx, chromedp.CaptureScreenshot())
	if err := os.MkdirAll("results", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join("results", name+".png"), picture, 0o644); err != nil {
		t.Fatal(err)
	}
}

// serve serves h on its own port and returns the origin.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

// bundle returns a script bundled with everything it imports.
func bundle(t *testing.T, name string) string {
	t.Helper()
	browser(t) // without a browser, the npm packages may be missing
	built := api.Build(api.BuildOptions{EntryPoints: []string{"pages/" + name}, Bundle: true, Format: api.FormatESModule, Target: api.ES2022, Platform: api.PlatformBrowser})
	if len(built.Errors) > 0 {
		t.Fatalf("%+v", built.Errors)
	}
	return string(built.OutputFiles[0].Contents)
}

// file returns the text of a file in pages, with replacements applied.
func file(t *testing.T, name string, replace ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("pages", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(replace...).Replace(string(text))
}

// A wall records the requests that reach it.
type wall struct {
	origin   string
	requests chan string
}

func newWall(t *testing.T) *wall {
	t.Helper()
	w := &wall{requests: make(chan string, 100)}
	w.origin = serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { w.requests <- r.URL.Path }))
	return w
}

// seen returns the paths of the requests so far.
func (w *wall) seen() (paths []string) {
	for {
		select {
		case path := <-w.requests:
			paths = append(paths, path)
		default:
			return paths
		}
	}
}

// show opens a tool with the given arguments from a host's list of tools.
func show(t *testing.T, ctx context.Context, origin, tool, arguments string) {
	t.Helper()
	do(t, ctx, chromedp.Navigate(origin+"/?"+url.Values{"tool": {tool}, "arguments": {arguments}}.Encode()))
	clickOn(t, ctx, "form button")
}
