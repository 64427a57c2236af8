// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// An exploded variable and the path segments of other registrations are distinguished by
// the path that the handler receives.
func TestExplodedPathsBesideOthers(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	serve := func(name string) mcp.Handler {
		return mcp.ResourceFunc(func(ctx context.Context, _ none) (string, error) {
			return name + " " + mcp.RequestFromContext(ctx).PathValue("path"), nil
		}, nil)
	}
	mux.Resource("x://h{/path*}", serve("any"))
	mux.Resource("x://h/{name}", serve("one"))
	mux.Resource("x://h/secret/{name}", serve("secret"))
	mux.Resource("x://q{?path*}", serve("query"))
	c := mcptest.Connect(t, mux)
	for uri, want := range map[string]string{
		"x://h/a/b":              "any a/b",
		"x://h/a/b%20c":          "any a/b c",
		"x://h/a/b/c%20d":        "any a/b/c d",
		"x://h/secret/a%20b":     "secret ",
		"x://h/secret%2Fa":       "one ",
		"x://h/a/secret%2Fb":     "any a/secret/b",
		"x://q?path=a&path=b%20": "query a,b ",
	} {
		res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || res.Contents[0].Text != want {
			t.Errorf("%s: got %+v, %v, want %q", uri, res, err, want)
		}
	}
	mux.RemoveResource("x://h/{name}") // in which an encoded slash does not separate segments
	for _, uri := range []string{"x://h/secret%2Fa", "x://h/secret%2fa%20b"} {
		if res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s: got %+v", uri, res.Contents[0])
		}
	}
}

func TestResourceOutputs(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	resource := func(name string, h mcp.Handler) { mux.Resource("out:"+name, h) }
	resource("text", reads("hi"))
	resource("bytes", mcp.ResourceFunc(func(context.Context, none) ([]byte, error) { return []byte{0, 255}, nil }, nil))
	resource("json", mcp.ResourceFunc(func(context.Context, none) (point, error) { return point{X: 1}, nil }, nil))
	resource("typed", mcp.ResourceFunc(func(context.Context, none) (string, error) { return "# hi", nil }, &mcp.Resource{MIMEType: "text/markdown"}))
	resource("parts", mcp.ResourceFunc(func(context.Context, none) ([]*mcp.ResourceContents, error) {
		return []*mcp.ResourceContents{{Text: "a"}, {URI: "out:part", Text: "b"}}, nil
	}, nil))
	resource("empty", mcp.ResourceFunc(func(context.Context, none) ([]byte, error) { return nil, nil }, nil))
	resource("neither", mcp.ResourceFunc(func(context.Context, none) (*mcp.ReadResourceResult, error) { return nil, nil }, nil))
	resource("no part", mcp.ResourceFunc(func(context.Context, none) (*mcp.ResourceContents, error) { return nil, nil }, nil))
	resource("gone", mcp.ResourceFunc(func(context.Context, none) (string, error) { return "", fmt.Errorf("open: %w", fs.ErrNotExist) }, nil))
	resource("broken", mcp.ResourceFunc(func(context.Context, none) (string, error) { return "", errors.New("disk") }, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		read := func(name string) (*mcp.ReadResourceResult, error) {
			return c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "out:" + name})
		}
		for name, want := range map[string]string{
			"text":  `[out:text text/plain "hi" []]`,
			"bytes": `[out:bytes application/octet-stream "" [0 255]]`,
			"json":  `[out:json application/json "{\"x\":1}" []]`,
			"typed": `[out:typed text/markdown "# hi" []]`,
			"parts": `[out:parts  "a" []][out:part  "b" []]`,
			"empty": `[out:empty application/octet-stream "" []]`,
		} {
			res, err := read(name)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			got := ""
			for _, p := range res.Contents {
				got += fmt.Sprintf("[%s %s %q %v]", p.URI, p.MIMEType, p.Text, p.Blob)
			}
			if got != want {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
		}
		_, err := read("gone")
		if e := new(mcp.Error); !errors.As(err, &e) || string(e.Data) != `{"uri":"out:gone"}` {
			t.Errorf("gone: %v", err)
		}
		_, err = read("broken")
		wantCode(t, err, mcp.CodeInternalError)
		for _, name := range []string{"neither", "no part"} {
			_, err = read(name)
			if mcp.CodeOf(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), "returned neither contents nor an error") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// Template variables arrive decoded, in a struct or from PathValue.
func TestTemplateVariables(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("user://{name}/posts/{id}{?draft}", mcp.ResourceFunc(func(_ context.Context, in struct {
		Name  string `json:"name"`
		ID    int    `json:"id"`
		Draft bool   `json:"draft,omitempty"`
	}) (string, error) {
		return fmt.Sprintf("%s/%d/%t", in.Name, in.ID, in.Draft), nil
	}, nil))
	mux.Resource("raw://{+path}", mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if mcp.RequestFromContext(ctx) != req {
			t.Error("the context has another request")
		}
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Name(), Text: req.PathValue("path") + "|" + req.PathValue("other")}}}, nil
	}))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for uri, want := range map[string]string{
			"user://J%C3%BCrgen/posts/7":      "Jürgen/7/false",
			"user://a%2Fb/posts/7?draft=true": "a/b/7/true",
			"raw://a/b%20c":                   "a/b c|",
		} {
			res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err != nil || res.Contents[0].Text != want || res.Contents[0].URI != uri {
				t.Errorf("%s: got %+v, %v", uri, res, err)
			}
		}
		_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "user://a/posts/seven"})
		wantCode(t, err, mcp.CodeInvalidParams)
	})
}

// notebook lists the resources of a template on two pages.
func notebook() *mcp.Resource {
	return &mcp.Resource{Name: "note", List: func(_ context.Context, p *mcp.ListParams) (*mcp.ListResourcesResult, error) {
		switch {
		case p.Cursor == nil:
			next := "2"
			return &mcp.ListResourcesResult{Resources: []*mcp.Resource{{URI: "note://1", Name: "note"}}, Page: mcp.Page{NextCursor: &next}}, nil
		case *p.Cursor == "2":
			return &mcp.ListResourcesResult{Resources: []*mcp.Resource{{URI: "note://2", Name: "note"}}}, nil
		}
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "no such page")
	}}
}

// A handler of any type is listed by its description.
func TestResourceList(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("note://{id}", mcp.WithDescription(reads(""), notebook()))
	mux.Resource("note://own", reads(""))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		var got string
		for r, err := range c.Resources(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			got += r.URI + " "
		}
		if got != "note://own note://1 note://2 " {
			t.Errorf("listed %s", got)
		}
	})
}

// A list of resources that is answered with something else is left out and logged.
func TestResourceListOfAnotherType(t *testing.T) {
	mux, log := logged()
	mux.Resource("note://own", reads(""))
	odd := mux.With(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodListResources {
				return &mcp.EmptyResult{}, nil
			}
			return next.ServeMCP(ctx, req)
		})
	})
	odd.Resource("note://{id}", mcp.WithDescription(reads(""), notebook()))
	list, err := mcptest.Connect(t, mux).ListResources(t.Context(), nil)
	if err != nil || len(list.Resources) != 1 || !strings.Contains(log.String(), "was answered with a *mcp.EmptyResult") {
		t.Errorf("listed %+v, %v; logged %s", list, err, log)
	}
}

// Resource.List (U19) lists matching resources without a custom type.
func TestFindingU19ResourceList(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	read := func(_ context.Context, in struct {
		ID string `json:"id"`
	}) (string, error) {
		return in.ID, nil
	}
	list := func(_ context.Context, p *mcp.ListParams) (*mcp.ListResourcesResult, error) {
		if p.Cursor == nil {
			next := "2"
			return &mcp.ListResourcesResult{Resources: []*mcp.Resource{{URI: "note://1"}}, Page: mcp.Page{NextCursor: &next}}, nil
		}
		return &mcp.ListResourcesResult{Resources: []*mcp.Resource{{URI: "note://" + *p.Cursor}}}, nil
	}
	mux.Resource("note://{id}", mcp.ResourceFunc(read, &mcp.Resource{List: list}))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		var got string
		for r, err := range c.Resources(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			got += r.URI + " "
		}
		if got != "note://1 note://2 " {
			t.Errorf("listed %s", got)
		}
	})
}

func TestResourceListWithoutTemplate(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, `resource "note://1" at resource_test.go:`) || !strings.Contains(text, "List is for templates") {
			t.Errorf("panic %q", text)
		}
	}()
	mux.Resource("note://1", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "", nil }, &mcp.Resource{
		List: func(context.Context, *mcp.ListParams) (*mcp.ListResourcesResult, error) { return nil, nil },
	}))
}
