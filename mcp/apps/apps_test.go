// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package apps_test

import (
	"context"
	"encoding/json"
	"errors"
	"html/template"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

const seats = "ui://airline/seats"

func files() fstest.MapFS {
	return fstest.MapFS{
		"seats.html":    {Data: []byte("<!doctype html>\n<link rel=stylesheet href=css/seats.css>\n<h1>Seats</h1>\n<img src=\"logo.png\" alt=logo>\n<script src='seats.js' type=\"module\"></script>\n")},
		"seats.js":      {Data: []byte(`console.log("</script>")`)},
		"css/seats.css": {Data: []byte("h1 { background: url(../logo.png) }")},
		"logo.png":      {Data: []byte("\x89PNG\r\n\x1a\n")},
	}
}

func text(s string) func(context.Context, struct{}) (string, error) {
	return func(context.Context, struct{}) (string, error) { return s, nil }
}

// airline returns a server with a page, a tool for both the model and the app, and tools
// for only one of them.
func airline(opts *apps.Options) *mcp.Mux {
	mux := mcp.NewMux("airline", "v1.0.0", &mcp.MuxOptions{Logger: slog.New(slog.DiscardHandler)})
	mux.Resource(seats, apps.Page(files(), "seats.html", opts))
	mux.Tool("seat_map", mcp.ToolFunc(text("12A is free."), apps.Tool(&mcp.Tool{Description: "Shows free seats."}, seats)))
	mux.Tool("reserve", mcp.ToolFunc(text("reserved"), apps.Tool(nil, seats, apps.ForApp)))
	mux.Tool("refund", mcp.ToolFunc(text("refunded"), apps.Tool(&mcp.Tool{Description: "Pays back."}, "", apps.ForModel)))
	mux.Tool("weather", mcp.ToolFunc(text("sunny"), &mcp.Tool{Description: "Says how the weather is."}))
	return mux
}

func toolNames(t *testing.T, ctx context.Context, c *mcp.Conn) string {
	t.Helper()
	var names []string
	for tool, err := range c.Tools(ctx, nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return strings.Join(names, " ")
}

func call(ctx context.Context, c *mcp.Conn, tool string) error {
	_, err := mcp.Call[string](ctx, c, tool, nil)
	return err
}

// Every client can read a page, including its inlined files and its metadata.
func TestPage(t *testing.T) {
	opts := &apps.Options{
		CSP: &apps.CSP{ConnectDomains: []string{"https://api.example"}}, Permissions: apps.Permissions{Camera: true},
		Border: new(false), Domain: "airline", Cache: mcp.CacheFor(time.Hour, mcp.CachePublic), Resource: &mcp.Resource{Title: "Seats"},
	}
	mcptest.Run(t, airline(opts), func(t *testing.T, c *mcp.Conn) {
		d, err := apps.Read(t.Context(), c, seats)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"<!doctype html>\n", "<h1>Seats</h1>", `<img src="data:image/png;base64,iVBORw0KGgo=" alt="logo">`,
			`<style>h1 { background: url("data:image/png;base64,iVBORw0KGgo=") }</style>`,
			`<script type="module">console.log("<\/script>")</script>`,
		} {
			if !strings.Contains(d.HTML, want) {
				t.Errorf("there is no %s in\n%s", want, d.HTML)
			}
		}
		if m := d.Meta; m.CSP == nil || m.CSP.ConnectDomains[0] != "https://api.example" || m.PrefersBorder == nil || *m.PrefersBorder ||
			m.Domain != "airline" || m.Permissions.Allow() != "camera" {
			t.Errorf("%+v", m)
		}
		if got := string(c.Server().Capabilities.Extensions[apps.Extension]); got != "{}" {
			t.Errorf("declared %q", got)
		}
		for r, err := range c.Resources(t.Context(), nil) {
			if err != nil || r.URI != seats || r.Name != "seats.html" || r.MIMEType != apps.MIMEType || r.Meta["ui"] == nil {
				t.Errorf("%+v, %v", r, err)
			}
		}
	})
}

// The metadata of a tool reaches clients of both eras.
func TestTool(t *testing.T) {
	mcptest.Run(t, airline(nil), func(t *testing.T, c *mcp.Conn) {
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			m, err := apps.MetaOf(tool)
			if err != nil || m.IsFor(apps.ForModel) != (tool.Name != "reserve") || m.IsFor(apps.ForApp) != (tool.Name != "refund") {
				t.Errorf("%s: %+v, %v", tool.Name, m, err)
			}
		}
	})
}

func TestToolMeta(t *testing.T) {
	tool := apps.FlatKey(apps.Tool(&mcp.Tool{Name: "a", Meta: mcp.Meta{"x": json.RawMessage("1")}}, seats, apps.ForApp))
	want := `{"ui":{"resourceUri":"ui://airline/seats","visibility":["app"]},"ui/resourceUri":"ui://airline/seats","x":1}`
	if got, err := json.Marshal(tool.Meta); err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	for meta, want := range map[string]string{
		`{"ui/resourceUri":"ui://a"}`:                               "ui://a",
		`{"ui":{"resourceUri":"ui://b"},"ui/resourceUri":"ui://a"}`: "ui://b",
		`{"ui":{"resourceUri":"https://a"}}`:                        "is not a URI such as",
		`{"ui":{"resourceUri":"ui://"}}`:                            "is not a URI such as",
		`{"ui":{"visibility":["user"]}}`:                            "is neither",
		`{"ui":7}`:                                                  "_meta.ui",
		`{"ui/resourceUri":[]}`:                                     "ui/resourceUri",
	} {
		tool := &mcp.Tool{Name: "t"}
		if err := json.Unmarshal([]byte(meta), &tool.Meta); err != nil {
			t.Fatal(err)
		}
		m, err := apps.MetaOf(tool)
		if err != nil && strings.Contains(err.Error(), want) || err == nil && m.ResourceURI == want {
			continue
		}
		t.Errorf("%s: %+v, %v", meta, m, err)
	}
}

// Programming errors panic with a message that says what is wrong.
func TestMistakes(t *testing.T) {
	page := func(html string, csp *apps.CSP) func() {
		return func() { apps.Page(fstest.MapFS{"a.html": {Data: []byte(html)}}, "a.html", &apps.Options{CSP: csp}) }
	}
	const start = "<!doctype html>\n"
	for want, do := range map[string]func(){
		"file does not exist":                  func() { apps.Page(files(), "no.html", nil) },
		"does not begin with <!doctype html>":  page("<p>hello", nil),
		"line 2: <script>: open x.js":          page(start+"<script src=x.js></script>", nil),
		"line 2: <style>: open x.png":          page(start+"<style>\na { background: url(x.png) }</style>", nil),
		"psi:app.js cannot be a module":        page(start+"<script type=module src=psi:app.js></script>", nil),
		"did you mean psi:app.js?":             page(start+"<script src=psi:apps.js></script>", nil),
		"has the attribute defer":              page(start+"<script defer src=x.js></script>", nil),
		"is outside of the file system":        page(start+"<img src=../x.png>", nil),
		"ResourceDomains does not have":        page(start+"<script src=https://cdn.example/x.js></script>", nil),
		"\"https://cdn.example:8443/x.js\" is": page(start+"<script src=https://cdn.example:8443/x.js></script>", &apps.CSP{ResourceDomains: []string{"https://cdn.example"}}),
		"FrameDomains does not have":           page(start+"<iframe src=https://cdn.example/></iframe>", &apps.CSP{ResourceDomains: []string{"https://cdn.example"}}),
		"BaseURIDomains does not have":         page(start+"<base href=https://cdn.example/>", nil),
		"srcset":                               page(start+"<img srcset='a.png 2x'>", nil),
		"cannot be made a part":                page(start+"<link rel=manifest href=a.json>", nil),
		"csp.frameDomains[0] is":               page(start, &apps.CSP{FrameDomains: []string{"https://a.example; script-src *"}}),
		"the template is nil":                  func() { apps.Template(nil, nil, nil) },
		"is not a URI such as":                 func() { apps.Tool(nil, "https://a.example") },
		"neither a page nor a visibility":      func() { apps.Tool(nil, "") },
		"is neither":                           func() { apps.Tool(nil, seats, "everyone") },
		"names no page":                        func() { apps.FlatKey(&mcp.Tool{}) },
	} {
		t.Run(want, func(t *testing.T) {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "apps.") || !strings.Contains(text, want) {
					t.Errorf("panic %q, want %q", text, want)
				}
			}()
			do()
		})
	}
}

// Page accepts references to the origins declared in the CSP, and references that load
// nothing.
func TestDeclaredOrigins(t *testing.T) {
	csp := &apps.CSP{ResourceDomains: []string{"https://cdn.example", "https://*.images.example", "https://a.example:8443", "http://b.example:*"}, FrameDomains: []string{"video.example"}}
	for _, tag := range []string{
		"<script src=https://cdn.example/x.js></script>", "<script src=https://cdn.example:443/x.js></script>", "<script src=//cdn.example/x.js></script>",
		"<script src=https://a.example:8443/x.js></script>", "<script src=http://b.example:81/x.js></script>", "<img src=https://eu.images.example/a.png>", "<iframe src=https://video.example/1></iframe>",
		"<a href=https://elsewhere.example/>there</a>", "<img src=data:image/png;base64,AA==>", "<link rel=canonical href=https://elsewhere.example>",
	} {
		apps.Page(fstest.MapFS{"a.html": {Data: []byte("<!DOCTYPE HTML><title>x</title>" + tag)}}, "a.html", &apps.Options{CSP: csp})
	}
}

// A template is executed each time the page is read.
func TestTemplate(t *testing.T) {
	page := template.Must(template.New("hello").Parse("<!doctype html><p>{{.}}</p><script src=seats.js></script>"))
	visits := 0
	mux := mcp.NewMux("hello", "v1.0.0", nil)
	mux.Resource("ui://hello", apps.Template(page, func(context.Context) (any, error) {
		if visits++; visits == 3 {
			return nil, errors.New("there is no more")
		}
		return strings.Repeat("<", visits), nil
	}, &apps.Options{Assets: files()}))
	c := mcptest.Connect(t, mux)
	for _, want := range []string{"<p>&lt;</p>", "<p>&lt;&lt;</p>"} {
		if d, err := apps.Read(t.Context(), c, "ui://hello"); err != nil || !strings.Contains(d.HTML, want) || !strings.Contains(d.HTML, "console.log") {
			t.Errorf("%+v, %v", d, err)
		}
	}
	if _, err := apps.Read(t.Context(), c, "ui://hello"); err == nil || !strings.Contains(err.Error(), "there is no more") {
		t.Error(err)
	}
}

// The model and the app can call only the tools that are visible to them.
func TestVisibility(t *testing.T) {
	client := &mcptest.Client{Options: mcp.ClientOptions{Extensions: []*mcp.ClientExtension{apps.Client()}}}
	client.Run(t, airline(nil), func(t *testing.T, c *mcp.Conn) {
		model, app := t.Context(), apps.AsApp(t.Context())
		for tool, allowed := range map[string][2]bool{"seat_map": {true, true}, "reserve": {false, true}, "refund": {true, false}, "weather": {true, true}} {
			for i, ctx := range []context.Context{model, app} {
				err := call(ctx, c, tool)
				refused, ok := errors.AsType[*apps.VisibilityError](err)
				if allowed[i] != (err == nil) || ok && refused.Tool != tool {
					t.Errorf("%s, for side %d: %v", tool, i, err)
				}
			}
		}
		if got := toolNames(t, model, c); got != "refund seat_map weather" {
			t.Error(got)
		}
		if got := toolNames(t, app, c); got != "reserve seat_map weather" {
			t.Error(got)
		}
	})
}

// keepable returns a server whose tool list may be cached.
func keepable() *mcp.Mux {
	mux := airline(nil)
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			res, err := next.ServeMCP(ctx, req)
			if list, ok := res.(*mcp.ListToolsResult); ok {
				list.Cacheable = mcp.Cacheable{TTLMs: new(time.Hour.Milliseconds()), CacheScope: mcp.CachePublic}
			}
			return res, err
		})
	})
	return mux
}

// showsPages returns a client that can show pages.
func showsPages() *mcptest.Client {
	return &mcptest.Client{Options: mcp.ClientOptions{Extensions: []*mcp.ClientExtension{apps.Client()}}}
}

// Lists cached for the model are not returned to pages, nor the other way round.
func TestVisibilityWithCache(t *testing.T) {
	showsPages().Run(t, keepable(), func(t *testing.T, c *mcp.Conn) {
		c.Use(middleware.NewCache(nil).Middleware)
		for range 2 {
			if got := toolNames(t, apps.AsApp(t.Context()), c); got != "reserve seat_map weather" {
				t.Error("for pages:", got)
			}
			if got := toolNames(t, t.Context(), c); got != "refund seat_map weather" {
				t.Error("for the model:", got)
			}
		}
	})
}

// A gateway with a cache does not reveal the tools that a server hides from clients without
// pages.
func TestHideAppToolsBehindCache(t *testing.T) {
	mux := keepable()
	mux.Use(apps.HideAppTools())
	server := (&mcptest.Client{Options: mcp.ClientOptions{Forward: true}}).Connect(t, mux)
	server.Use(middleware.NewCache(nil).Middleware)
	gateway := mcp.NewMux("gateway", "v1.0.0", nil)
	gateway.Mount("air_", server)
	showsPages().Run(t, gateway, func(t *testing.T, c *mcp.Conn) {
		if got := toolNames(t, apps.AsApp(t.Context()), c); got != "air_reserve air_seat_map air_weather" {
			t.Error("for pages:", got)
		}
	})
	mcptest.Run(t, gateway, func(t *testing.T, c *mcp.Conn) {
		if got := toolNames(t, t.Context(), c); got != "air_refund air_seat_map air_weather" {
			t.Error("without pages:", got)
		}
	})
}

// Concurrent list requests from a page and the model do not share a response.
func TestVisibilityWithSingleflight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := airline(nil)
		mux.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				<-time.After(time.Second)
				return next.ServeMCP(ctx, req)
			})
		})
		h := middleware.Singleflight()(apps.Client().Middleware(nil)(mux))
		list := func(ctx context.Context, side apps.Visibility) {
			req, err := mcp.NewRequest(mcp.MethodListTools, nil)
			if err != nil {
				t.Error(err)
				return
			}
			req.ID = mcp.IntID(1)
			res, err := h.ServeMCP(ctx, req)
			if err != nil {
				t.Error(err)
				return
			}
			for _, tool := range res.(*mcp.ListToolsResult).Tools {
				if tool.Name == "reserve" && side == apps.ForModel {
					t.Error("the model got a tool for pages")
				}
			}
		}
		var group sync.WaitGroup
		group.Go(func() { list(apps.AsApp(t.Context()), apps.ForApp) })
		synctest.Wait()
		list(t.Context(), apps.ForModel)
		group.Wait()
	})
}

// A server can hide the tools for apps from clients that cannot show pages.
func TestHideAppTools(t *testing.T) {
	mux := airline(nil)
	mux.Use(apps.HideAppTools())
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if got := toolNames(t, t.Context(), c); got != "refund seat_map weather" {
			t.Error(got)
		}
		if err := call(t.Context(), c, "reserve"); mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Error(err)
		}
	})
	client := &mcptest.Client{Options: mcp.ClientOptions{Extensions: []*mcp.ClientExtension{apps.Client()}}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if err := call(apps.AsApp(t.Context()), c, "reserve"); err != nil {
			t.Error(err)
		}
	})
}

// If the lists cannot be read, the tool is not called.
func TestVisibilityUnknown(t *testing.T) {
	mux := airline(nil)
	fails := true
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if fails && req.Method == mcp.MethodListTools {
				return nil, mcp.Errorf(mcp.CodeInternalError, "no lists today")
			}
			return next.ServeMCP(ctx, req)
		})
	})
	client := &mcptest.Client{Options: mcp.ClientOptions{Extensions: []*mcp.ClientExtension{apps.Client()}}}
	c := client.Connect(t, mux)
	if err := call(t.Context(), c, "reserve"); err == nil || !strings.Contains(err.Error(), "no lists today") {
		t.Error(err)
	}
	fails = false
	if err := call(t.Context(), c, "seat_map"); err != nil {
		t.Error(err)
	}
}

// All pages of the tool list are read once, and again if a tool is not found.
func TestVisibilityWithoutList(t *testing.T) {
	mux := mcp.NewMux("many", "v1.0.0", &mcp.MuxOptions{PageSize: 1})
	mux.Tool("a", mcp.ToolFunc(text("a"), nil))
	mux.Tool("b", mcp.ToolFunc(text("b"), apps.Tool(nil, "", apps.ForApp)))
	lists := 0
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodListTools {
				lists++
			}
			return next.ServeMCP(ctx, req)
		})
	})
	client := &mcptest.Client{Options: mcp.ClientOptions{Extensions: []*mcp.ClientExtension{apps.Client()}}}
	c := client.Connect(t, mux)
	for range 3 {
		if _, ok := errors.AsType[*apps.VisibilityError](call(t.Context(), c, "b")); !ok || lists != 2 {
			t.Errorf("%v, %d lists", ok, lists)
		}
	}
	if err := call(t.Context(), c, "c"); mcp.CodeOf(err) != mcp.CodeInvalidParams || lists != 4 {
		t.Errorf("%v, %d lists", err, lists)
	}
}

// Tool names sent by callers are not remembered. A tool that is added later, or that is
// listed only for other callers, is still hidden, and callers cannot exhaust memory.
func TestNamesOfCallersAreNotRemembered(t *testing.T) {
	mux := airline(nil)
	mux.Use(apps.HideAppTools())
	client := &mcptest.Client{}
	c := client.Connect(t, mux)
	if err := call(t.Context(), c, "upgrade"); mcp.CodeOf(err) != mcp.CodeInvalidParams {
		t.Error(err)
	}
	mux.Tool("upgrade", mcp.ToolFunc(text("upgraded"), apps.Tool(nil, seats, apps.ForApp)))
	if err := call(t.Context(), c, "upgrade"); mcp.CodeOf(err) != mcp.CodeInvalidParams {
		t.Errorf("the tool for apps was called: %v", err)
	}
	const calls, size = 100, 100 << 10
	before := heap()
	for i := range calls {
		if err := call(t.Context(), c, strings.Repeat("x", size)+strconv.Itoa(i)); mcp.CodeOf(err) != mcp.CodeInvalidParams {
			t.Fatal(err)
		}
	}
	if grown := heap() - before; grown > calls*size/2 {
		t.Errorf("%d names of %d bytes took %d bytes", calls, size, grown)
	}
	runtime.KeepAlive(mux)
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// Every file that an element or a style refers to is inlined in the page or reported.
func TestFilesOfElements(t *testing.T) {
	const logo = "data:image/png;base64,iVBORw0KGgo="
	for body, want := range map[string]string{
		`<video src="logo.png" poster="logo.png">`:                        `<video src="` + logo + `" poster="` + logo + `">`,
		`<video src="logo.png" poster="https://elsewhere.example/p.png">`: "",
		`<style>h1 { background: url(logo.png) }</style>`:                 `<style>h1 { background: url("` + logo + `") }</style>`,
		`<style>h1 { background: url(missing.png) }</style>`:              "",
		`<style></style>url(missing.png)`:                                 `url(missing.png)`,
		`<style>h1 { color: red }</style><p>url(logo.png)</p>`:            `<p>url(logo.png)</p>`,
	} {
		fsys := files()
		fsys["page.html"] = &fstest.MapFile{Data: []byte("<!doctype html>\n" + body)}
		func() {
			defer func() {
				if problem := recover(); (problem != nil) != (want == "") {
					t.Errorf("%s: %v", body, problem)
				}
			}()
			mux := mcp.NewMux("airline", "v1.0.0", nil)
			mux.Resource(seats, apps.Page(fsys, "page.html", nil))
			d, err := apps.Read(t.Context(), (&mcptest.Client{}).Connect(t, mux), seats)
			if err != nil || !strings.Contains(d.HTML, want) {
				t.Errorf("%s becomes %s, %v", body, d.HTML, err)
			}
		}()
	}
}
