// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package apps_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
	"github.com/go-psi/psi/mcp/mcptest"
)

// pageOf returns a server with one page that is not registered through package apps.
func pageOf(listed mcp.Meta, part mcp.ResourceContents) *mcp.Mux {
	mux := mcp.NewMux("by hand", "v1.0.0", nil)
	mux.Resource("ui://page", mcp.ResourceFunc(func(context.Context, struct{}) (*mcp.ResourceContents, error) {
		return &part, nil
	}, &mcp.Resource{Meta: listed}))
	return mux
}

const html = "<!doctype html><p>hello</p>"

// The metadata of a page is read from its contents or, if they have none, from the resource
// list.
func TestReadBothPlaces(t *testing.T) {
	ui := func(domain string) mcp.Meta { return mcp.Meta{"ui": json.RawMessage(`{"domain":"` + domain + `"}`)} }
	for _, c := range []struct {
		listed, own mcp.Meta
		want        string
	}{{ui("list"), nil, "list"}, {ui("list"), ui("own"), "own"}, {nil, ui("own"), "own"}, {nil, nil, ""}} {
		for _, part := range []mcp.ResourceContents{
			{MIMEType: apps.MIMEType, Text: html, Meta: c.own}, {MIMEType: "Text/HTML; profile=\"mcp-app\"", Blob: []byte(html), Meta: c.own},
		} {
			d, err := apps.Read(t.Context(), mcptest.Connect(t, pageOf(c.listed, part)), "ui://page")
			if err != nil || d.Meta.Domain != c.want || d.HTML != html {
				t.Errorf("%+v, %v, want %q", d, err, c.want)
			}
		}
	}
}

// Read looks for the entry of a page on every page of the resource list. A page that is not
// listed, or whose server has no list, has no metadata.
func TestReadListedElsewhere(t *testing.T) {
	wide := mcp.Meta{"ui": json.RawMessage(`{"prefersBorder":true}`)}
	noLists := func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodListResources {
				return nil, mcp.NewMethodNotFoundError(req.Method)
			}
			return next.ServeMCP(ctx, req)
		})
	}
	for name, test := range map[string]struct {
		uri    string
		use    mcp.Middleware
		listed bool
	}{
		"on the third page": {uri: "ui://page/2", listed: true},
		"not listed":        {uri: "ui://page/none"},
		"no list":           {uri: "ui://page/2", use: noLists},
	} {
		t.Run(name, func(t *testing.T) {
			mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{PageSize: 1})
			if test.use != nil {
				mux.Use(test.use)
			}
			read := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
				part := &mcp.ResourceContents{URI: req.Name(), MIMEType: apps.MIMEType, Text: "<!doctype html>"}
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{part}}, nil
			})
			for n := range 4 {
				mux.Resource(fmt.Sprint("ui://page/", n), mcp.WithDescription(read, &mcp.Resource{Meta: wide}))
			}
			mux.Resource("ui://page/{name}", read)
			d, err := apps.Read(t.Context(), mcptest.Connect(t, mux), test.uri)
			if err != nil {
				t.Fatal(err)
			}
			if border := d.Meta.PrefersBorder; (border != nil && *border) != test.listed {
				t.Errorf("what the page needs: %+v", d.Meta)
			}
		})
	}
}

func TestMalformedPages(t *testing.T) {
	for want, part := range map[string]mcp.ResourceContents{
		`its MIME type is "text/html"`:        {MIMEType: "text/html", Text: html},
		"its MIME type is":                    {Text: html},
		"does not begin with <!doctype html>": {MIMEType: apps.MIMEType, Text: "<p>hello</p>"},
		"not valid UTF-8":                     {MIMEType: apps.MIMEType, Blob: []byte(html + "\xff")},
		"the limit is":                        {MIMEType: apps.MIMEType, Text: html + strings.Repeat(" ", 16<<20)},
	} {
		_, err := apps.Read(t.Context(), mcptest.Connect(t, pageOf(nil, part)), "ui://page")
		if _, ok := errors.AsType[*apps.PageError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	_, err := apps.Read(t.Context(), mcptest.Connect(t, airline(nil)), "https://airline.example")
	if _, ok := errors.AsType[*apps.PageError](err); !ok {
		t.Error(err)
	}
	if _, err := apps.Read(t.Context(), mcptest.Connect(t, airline(nil)), "ui://no"); mcp.CodeOf(err) != mcp.CodeInvalidParams {
		t.Error(err)
	}
}

// A part of the metadata that cannot be used is left out with a warning, and the page is
// shown with fewer rights.
func TestFindingR15MalformedMetadata(t *testing.T) {
	const nothing = "connect-src 'none'; frame-src 'none'; base-uri 'self'"
	for ui, want := range map[string]struct{ warning, policy string }{
		`[]`:         {"_meta.ui: ", nothing},
		`{"csp":[]}`: {"csp: ", nothing},
		`{"csp":{"connectDomains":["https://a.example","*"]}}`:              {`csp.connectDomains[1] is "*"`, "connect-src 'self' https://a.example; frame"},
		`{"csp":{"connectDomains":"https://a.example"}}`:                    {"csp.connectDomains: ", "connect-src 'self'; frame"},
		`{"csp":{"resourceDomains":["'unsafe-eval'","data:","blob:"]}}`:     {`csp.resourceDomains[2] is "blob:"`, "script-src 'self' 'unsafe-inline'; style"},
		`{"csp":{"baseUriDomains":["https://a.example;frame-src *"]}}`:      {"csp.baseUriDomains[0] is", "frame-src 'none'; base-uri 'self'; object"},
		`{"csp":{"frameDomains":["a"` + strings.Repeat(`,"a"`, 200) + `]}}`: {"csp.frameDomains has 201 domains", "frame-src a" + strings.Repeat(" a", 199) + ";"},
		`{"permissions":"camera","prefersBorder":"yes","domain":5}`:         {"prefersBorder: ", nothing},
	} {
		part := mcp.ResourceContents{MIMEType: apps.MIMEType, Text: html, Meta: mcp.Meta{"ui": json.RawMessage(ui)}}
		conn := mcptest.Connect(t, pageOf(nil, part))
		d, err := apps.Read(t.Context(), conn, "ui://page")
		if err != nil {
			t.Errorf("%.80s: %v", ui, err)
			continue
		}
		if got := strings.Join(d.Warnings, "\n"); !strings.Contains(got, want.warning) {
			t.Errorf("%.80s: the warnings are %q, want %q", ui, got, want.warning)
		}
		if got := d.Meta.Policy(); !strings.Contains(got, want.policy) || d.Meta.Permissions.Allow() != "" {
			t.Errorf("%.80s: the policy is %s, want %s", ui, got, want.policy)
		}
	}
}

// The metadata of a result counts like that of its contents, and contents without a CSP do
// not hide the CSP of the list.
func TestFindingR15MetadataOfResultAndList(t *testing.T) {
	ui := func(text string) mcp.Meta { return mcp.Meta{"ui": json.RawMessage(text)} }
	mux := mcp.NewMux("m", "v1", nil)
	mux.Resource("ui://page", mcp.ResourceFunc(func(context.Context, struct{}) (*mcp.ReadResourceResult, error) {
		part := &mcp.ResourceContents{MIMEType: apps.MIMEType + "; charset=utf-8", Text: html, Meta: ui(`{"prefersBorder":false}`)}
		res := &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{part}}
		res.Meta = ui(`{"prefersBorder":true,"domain":"result"}`)
		return res, nil
	}, &mcp.Resource{Meta: ui(`{"domain":"list","csp":{"connectDomains":["https://a.example"]}}`)}))
	d, err := apps.Read(t.Context(), mcptest.Connect(t, mux), "ui://page")
	if err != nil {
		t.Fatal(err)
	}
	if *d.Meta.PrefersBorder || d.Meta.Domain != "result" || !strings.Contains(d.Meta.Policy(), "connect-src 'self' https://a.example;") || d.Warnings != nil {
		t.Errorf("the metadata is %+v, with the policy %s, and warnings %q", d.Meta, d.Meta.Policy(), d.Warnings)
	}
}

// What replaces a malformed member of the contents could be the rights that it was meant to
// withhold.
func TestMalformedMetadataIsNotReplaced(t *testing.T) {
	ui := func(text string) mcp.Meta { return mcp.Meta{"ui": json.RawMessage(text)} }
	for _, own := range []string{`[]`, `{"csp":"none","permissions":{"camera":false}}`} {
		part := mcp.ResourceContents{MIMEType: apps.MIMEType, Text: html, Meta: ui(own)}
		mux := mcp.NewMux("m", "v1", nil)
		mux.Resource("ui://page", mcp.ResourceFunc(func(context.Context, struct{}) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&part}}, nil
		}, &mcp.Resource{Meta: ui(`{"csp":{"connectDomains":["https://a.example"]},"permissions":{"camera":{}}}`)}))
		d, err := apps.Read(t.Context(), mcptest.Connect(t, mux), "ui://page")
		if err != nil {
			t.Fatal(err)
		}
		if policy := d.Meta.Policy(); !strings.Contains(policy, "connect-src 'none'") || d.Meta.Permissions.Allow() != "" || d.Warnings == nil {
			t.Errorf("%s: the page may use %q, with the policy %s, and warnings %q", own, d.Meta.Permissions.Allow(), policy, d.Warnings)
		}
	}
}

// The policy allows a page only what its metadata declares.
func TestPolicy(t *testing.T) {
	const end = "; object-src 'none'; form-action 'none'"
	for want, meta := range map[string]apps.PageMeta{
		"default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; media-src 'self' data:; " +
			"font-src 'self'; connect-src 'none'; frame-src 'none'; base-uri 'self'" + end: {},
		"default-src 'none'; script-src 'self' 'unsafe-inline' https://b; style-src 'self' 'unsafe-inline' https://b; img-src 'self' data: https://b; " +
			"media-src 'self' data: https://b; font-src 'self' https://b; connect-src 'self' https://a; frame-src https://c; base-uri https://d" + end: {CSP: &apps.CSP{
			ConnectDomains: []string{"https://a"}, ResourceDomains: []string{"https://b"}, FrameDomains: []string{"https://c"}, BaseURIDomains: []string{"https://d"},
		}},
	} {
		if got := meta.Policy(); got != want {
			t.Errorf("got\n%s, want\n%s", got, want)
		}
	}
	all := &apps.Permissions{Camera: true, Microphone: true, Geolocation: true, ClipboardWrite: true}
	if got := all.Allow(); got != "camera; microphone; geolocation; clipboard-write" {
		t.Error(got)
	}
	if raw, err := json.Marshal(all); err != nil || string(raw) != `{"camera":{},"microphone":{},"geolocation":{},"clipboardWrite":{}}` {
		t.Errorf("%s, %v", raw, err)
	}
	if got := (*apps.Permissions)(nil).Allow(); got != "" {
		t.Error(got)
	}
}

func airlineWithFlatKey() *mcp.Mux {
	mux := airline(nil)
	mux.Tool("old", mcp.ToolFunc(text(""), apps.FlatKey(apps.Tool(&mcp.Tool{Description: "d"}, seats))))
	return mux
}

// A mount renames pages together with the tools that refer to them, even in nested mounts.
func TestMounted(t *testing.T) {
	newOuter := func(t *testing.T) mcp.Handler {
		t.Helper()
		middle, outer := mcp.NewMux("middle", "v1.0.0", nil), mcp.NewMux("outer", "v1.0.0", nil)
		middle.Mount("air_", mcptest.Connect(t, airlineWithFlatKey()))
		outer.Mount("a_", airlineWithFlatKey())
		outer.Mount("b_", middle)
		return outer
	}
	if err := apps.Check(t.Context(), newOuter(t)); err != nil {
		t.Error(err)
	}
	mcptest.RunNew(t, newOuter, func(t *testing.T, c *mcp.Conn) {
		pages := map[string]string{}
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			if m, err := apps.MetaOf(tool); err != nil || m != nil {
				pages[tool.Name] = m.ResourceURI
			}
			var flat string
			if tool.Meta.Get("ui/resourceUri", &flat); flat != "" && flat != pages[tool.Name] {
				t.Errorf("%s: %q", tool.Name, flat)
			}
		}
		for tool, uri := range map[string]string{"a_seat_map": "ui://mount/a_/airline/seats", "b_air_old": "ui://mount/b_/mount/air_/airline/seats"} {
			if pages[tool] != uri {
				t.Errorf("%s: %q, want %q", tool, pages[tool], uri)
			}
			if d, err := apps.Read(t.Context(), c, uri); err != nil || d.URI != uri || !strings.Contains(d.HTML, "Seats") {
				t.Errorf("%+v, %v", d, err)
			}
		}
		for _, uri := range []string{"mount:a_:ui://airline/seats", "mount:a_:", "ui://airline/seats", "ui://mount/a_", "ui://mount/a_/"} {
			if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
				t.Errorf("%s can be read", uri)
			}
		}
	})
	if got := string(mcptest.Connect(t, newOuter(t)).Server().Capabilities.Extensions[apps.Extension]); got != "{}" {
		t.Errorf("declared %q", got)
	}
}

// URIs below the prefix of a mount's pages are reserved for the mount.
func TestMountedConflict(t *testing.T) {
	outer := mcp.NewMux("outer", "v1.0.0", nil)
	outer.Mount("a_", airline(nil))
	err := outer.Update(func(m *mcp.Mux) { m.Resource("ui://mount/a_/other", apps.Page(files(), "seats.html", nil)) })
	if err == nil || !strings.Contains(err.Error(), `begin with "ui://mount/a_/" belong to the mount`) {
		t.Error(err)
	}
}

// Check reports the problems that hosts would find.
func TestCheck(t *testing.T) {
	if err := apps.Check(t.Context(), airline(nil)); err != nil {
		t.Error(err)
	}
	for want, register := range map[string]func(*mcp.Mux){
		`its page "ui://no"`: func(m *mcp.Mux) { m.Tool("a", mcp.ToolFunc(text(""), apps.Tool(nil, "ui://no", apps.ForApp))) },
		"has no description": func(m *mcp.Mux) { m.Tool("a", mcp.ToolFunc(text(""), apps.Tool(nil, seats))) },
		`its MIME type is`: func(m *mcp.Mux) {
			m.Resource("ui://no", mcp.ResourceFunc(text(html), nil))
			m.Tool("a", mcp.ToolFunc(text(""), apps.Tool(nil, "ui://no", apps.ForApp)))
		},
		"is neither": func(m *mcp.Mux) {
			m.Tool("a", mcp.ToolFunc(text(""), &mcp.Tool{Meta: mcp.Meta{"ui": json.RawMessage(`{"visibility":["all"]}`)}}))
		},
	} {
		mux := airline(nil)
		register(mux)
		for _, h := range []mcp.Handler{mux, mcptest.Connect(t, mux)} {
			if err := apps.Check(t.Context(), h); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	}
}

// A page whose URI does not begin with ui:// cannot be read, and the error says why.
func TestPageURI(t *testing.T) {
	mux := mcp.NewMux("wrong", "v1.0.0", nil)
	mux.Resource("https://airline.example/seats", apps.Page(files(), "seats.html", nil))
	_, err := mcptest.Connect(t, mux).ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "https://airline.example/seats"})
	if err == nil || !strings.Contains(err.Error(), "does not begin with ui://") {
		t.Error(err)
	}
}
