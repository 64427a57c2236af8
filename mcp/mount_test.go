// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

// library is a server with one of everything, whose tool returns links.
func library() *mcp.Mux {
	m := mcp.NewMux("library", "v1", quiet())
	m.Tool("find", mcp.ToolFunc(func(context.Context, none) ([]mcp.Content, error) {
		return []mcp.Content{
			&mcp.ResourceLink{Resource: mcp.Resource{URI: "book://1", Name: "one"}},
			&mcp.ResourceLink{Resource: mcp.Resource{URI: "https://example.com/1", Name: "web"}},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "book://1", Text: "Once"}},
		}, nil
	}, nil))
	m.Prompt("review", mcp.PromptFunc(func(_ context.Context, in struct {
		Style string `json:"style" jsonschema:"enum=short,enum=long"`
	}) (*mcp.PromptMessage, error) {
		return mcp.UserMessage(&mcp.ResourceLink{Resource: mcp.Resource{URI: "book://" + in.Style, Name: "it"}}), nil
	}, nil))
	m.Resource("book://1", reads("Once"))
	m.Resource("shelf://{name}", mcp.ResourceFunc(func(_ context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return "shelf " + in.Name, nil
	}, &mcp.Resource{Completers: map[string]mcp.Completer{"name": mcp.CompleteFrom("art", "arms", "music")}}))
	return m
}

// What is mounted is renamed, and the new names lead back.
func TestMountRenames(t *testing.T) {
	inner := mcp.NewMux("inner", "v1", quiet())
	inner.Mount("lib_", library())
	outer := mcp.NewMux("outer", "v1", quiet())
	outer.Mount("a_", inner)
	mcptest.Run(t, outer, func(t *testing.T, c *mcp.Conn) {
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil || tool.Name != "a_lib_find" {
				t.Errorf("tool %+v, %v", tool, err)
			}
		}
		res, err := c.CallTool(t.Context(), tool("a_lib_find", ""))
		if err != nil {
			t.Fatal(err)
		}
		const book = "mount:a_:mount:lib_:book://1"
		link, web := res.Content[0].(*mcp.ResourceLink), res.Content[1].(*mcp.ResourceLink)
		embedded := res.Content[2].(*mcp.EmbeddedResource)
		if link.URI != book || embedded.Resource.URI != book || web.URI != "https://example.com/1" {
			t.Errorf("links to %q, %q and %q", link.URI, embedded.Resource.URI, web.URI)
		}
		read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: link.URI})
		if err != nil || read.Contents[0].Text != "Once" || read.Contents[0].URI != book {
			t.Errorf("read %+v, %v", read, err)
		}
		prompt, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "a_lib_review", Arguments: map[string]string{"style": "long"}})
		if err != nil || prompt.Messages[0].Content.(*mcp.ResourceLink).URI != "mount:a_:mount:lib_:book://long" {
			t.Errorf("prompt %+v, %v", prompt, err)
		}
	})
}

func TestMountedTemplates(t *testing.T) {
	outer := mcp.NewMux("outer", "v1", quiet())
	outer.Mount("lib_", library())
	mcptest.Run(t, outer, func(t *testing.T, c *mcp.Conn) {
		var templates []string
		for r, err := range c.ResourceTemplates(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			templates = append(templates, r.URITemplate)
		}
		if want := []string{"mount:lib_:shelf://{name}"}; !slices.Equal(templates, want) {
			t.Fatalf("templates %q", templates)
		}
		read, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mount:lib_:shelf://art"})
		if err != nil || read.Contents[0].Text != "shelf art" {
			t.Errorf("read %+v, %v", read, err)
		}
		for what, p := range map[string]*mcp.CompleteParams{
			"arms art": {Ref: mcp.CompleteRef{Type: "ref/resource", URI: templates[0]}, Argument: mcp.CompleteArgument{Name: "name", Value: "ar"}},
			"long":     {Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "lib_review"}, Argument: mcp.CompleteArgument{Name: "style", Value: "l"}},
		} {
			res, err := c.Complete(t.Context(), p)
			if err != nil {
				t.Error(err)
				continue
			}
			if got := strings.Join(slices.Sorted(slices.Values(res.Completion.Values)), " "); got != what {
				t.Errorf("completed to %q, want %q", got, what)
			}
		}
		_, err = c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mount:lib_:book://2"})
		if e := new(mcp.Error); !errors.As(err, &e) || string(e.Data) != `{"uri":"mount:lib_:book://2"}` {
			t.Errorf("got %v, which must name the URI that was asked for", err)
		}
	})
}

// Pages go through the own items of a mux, then those of its mounts.
func TestMountPages(t *testing.T) {
	small := quiet()
	small.PageSize = 2
	outer := mcp.NewMux("outer", "v1", small)
	var want []string
	for _, name := range []string{"a", "b", "c"} {
		outer.Tool(name, says(""))
		want = append(want, name)
	}
	for _, prefix := range []string{"x_", "y_", "z_"} {
		child := mcp.NewMux(prefix, "v1", small)
		for i := range 5 {
			child.Tool(fmt.Sprint(i), says(""))
			want = append(want, prefix+fmt.Sprint(i))
		}
		outer.Mount(prefix, child)
	}
	mcptest.Run(t, outer, func(t *testing.T, c *mcp.Conn) {
		var got []string
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, tool.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("listed %q, want %q", got, want)
		}
	})
}

// A mount that cannot be asked is missing from a list; it does not break it.
func TestMountThatFails(t *testing.T) {
	outer := mcp.NewMux("outer", "v1", quiet())
	outer.Tool("own", says(""))
	outer.Mount("down_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return nil, errors.New("no connection")
	}))
	outer.Mount("odd_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.EmptyResult{}, nil
	}))
	outer.Mount("null_", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.ListToolsResult{Tools: []*mcp.Tool{nil}}, nil // T39
	}))
	mcptest.Run(t, outer, func(t *testing.T, c *mcp.Conn) {
		res, err := c.ListTools(t.Context(), nil)
		if err != nil || len(res.Tools) != 1 || res.Tools[0].Name != "own" {
			t.Errorf("listed %+v, %v", res, err)
		}
		_, err = c.CallTool(t.Context(), tool("down_x", ""))
		wantCode(t, err, mcp.CodeInternalError)
	})
}

func TestMountCapabilities(t *testing.T) {
	outer := mcp.NewMux("outer", "v1", quiet())
	outer.Mount("lib_", library())
	mcptest.Run(t, outer, func(t *testing.T, c *mcp.Conn) {
		d, err := c.Discover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		caps := d.Capabilities
		if caps.Tools == nil || caps.Prompts == nil || caps.Resources == nil || caps.Completions == nil {
			t.Errorf("declared %+v", caps)
		}
		var info mcp.Implementation
		if !d.Meta.Get(mcp.MetaServerInfo, &info) || info.Name != "outer" {
			t.Errorf("the server is %+v", info)
		}
	})
}

func TestMountPrecedence(t *testing.T) {
	outer := mcp.NewMux("outer", "v1", quiet())
	near, far := mcp.NewMux("near", "v1", quiet()), mcp.NewMux("far", "v1", quiet())
	far.Tool("x", says("far"))
	near.Tool("x", says("near"))
	outer.Mount("a_", far)
	outer.Mount("b_", near)
	outer.Tool("a_own", says("own"))
	for name, want := range map[string]string{"a_x": "far", "b_x": "near", "a_own": "own"} {
		if res, err := callTool(t, outer, name, ""); err != nil || textOf(res) != want {
			t.Errorf("%s: got %+v, %v", name, res, err)
		}
	}
	outer.Unmount("b_")
	outer.Unmount("never_")
	_, err := callTool(t, outer, "b_x", "")
	wantCode(t, err, mcp.CodeInvalidParams)
}

// Clients are told that all lists have changed when a server is mounted or unmounted.
func TestMountsAreAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		c := connect(t, mux, nil)
		_, changes := listen(t, c, mcp.SubscriptionFilter{ToolsListChanged: true, PromptsListChanged: true, ResourcesListChanged: true})
		for _, change := range []func(){
			func() { mux.Mount("b_", hello()) }, func() { mux.Unmount("b_") },
		} {
			change()
			<-time.After(time.Second)
			lists := map[string]bool{}
			for len(changes) > 0 {
				lists[(<-changes).Method] = true
			}
			if len(lists) != 3 {
				t.Errorf("the client was told of %v", lists)
			}
		}
	})
}

// Names collide in both directions and through levels, and the panic says where.
func TestMountConflicts(t *testing.T) {
	const here = "mount_test.go:"
	build := func() (top, middle, bottom *mcp.Mux) {
		top, middle, bottom = mcp.NewMux("t", "v1", quiet()), mcp.NewMux("m", "v1", quiet()), mcp.NewMux("b", "v1", quiet())
		bottom.Tool("x", says(""))
		return top, middle, bottom
	}
	for name, fn := range map[string]func(){
		"mount onto a name": func() {
			top, _, bottom := build()
			top.Tool("b_x", says(""))
			top.Mount("b_", bottom)
		},
		"name onto a mount": func() {
			top, _, bottom := build()
			top.Mount("b_", bottom)
			top.Tool("b_x", says(""))
		},
		"name below a mount": func() {
			top, _, bottom := build()
			top.Tool("b_y", says(""))
			top.Mount("b_", bottom)
			bottom.Tool("y", says(""))
		},
		"mount through two levels": func() {
			top, middle, bottom := build()
			top.Tool("m_b_x", says(""))
			middle.Mount("b_", bottom)
			top.Mount("m_", middle)
		},
		"inner mount below a mount": func() {
			top, middle, bottom := build()
			top.Tool("m_b_x", says(""))
			top.Mount("m_", middle)
			middle.Mount("b_", bottom)
		},
		"name below two mounts": func() {
			top, middle, bottom := build()
			top.Tool("m_b_y", says(""))
			top.Mount("m_", middle)
			middle.Mount("b_", bottom)
			bottom.Tool("y", says(""))
		},
		"mounts of each other's prefix": func() {
			top, middle, bottom := build()
			middle.Tool("b_x", says(""))
			top.Mount("m_", middle)
			top.Mount("m_b_", bottom)
		},
		"prefix twice": func() {
			top, middle, bottom := build()
			top.Mount("b_", bottom)
			top.Mount("b_", middle)
		},
	} {
		t.Run(name, func(t *testing.T) { wantPanic(t, fn, here) })
	}
	t.Run("itself", func(t *testing.T) {
		top, middle, _ := build()
		top.Mount("m_", middle)
		wantPanic(t, func() { middle.Mount("t_", top) }, "contain itself")
	})
	t.Run("prefix", func(t *testing.T) {
		top, _, bottom := build()
		wantPanic(t, func() { top.Mount("a/b", bottom) }, here, "prefix")
		wantPanic(t, func() { top.Mount("a_", nil) }, here, "nil")
	})
}

// Middleware of the mux is around that of what is mounted.
func TestMountMiddleware(t *testing.T) {
	var j journal
	child := mcp.NewMux("child", "v1", quiet())
	child.Use(j.middleware("c"))
	child.Tool("x", says(""))
	outer := mcp.NewMux("outer", "v1", quiet())
	outer.Use(j.middleware("o"))
	outer.With(j.middleware("w")).Mount("c_", child)
	if _, err := callTool(t, outer, "c_x", ""); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(j.take(), " "); got != "o w c C W O" {
		t.Errorf("passed %q", got)
	}
}

// What changes in a mounted mux, its mounts included, listeners hear of outside.
func TestMountChangesGoUp(t *testing.T) {
	bottom := mcp.NewMux("bottom", "v1", quiet())
	bottom.Tool("x", says(""))
	bottom.Resource("note://a", reads("a"))
	middle, top := mcp.NewMux("middle", "v1", quiet()), mcp.NewMux("top", "v1", quiet())
	middle.Mount("b_", bottom)
	top.Mount("m_", middle)
	mcptest.Run(t, top, func(t *testing.T, c *mcp.Conn) {
		const uri = "mount:m_:mount:b_:note://a"
		filter := mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{uri}}
		s, changes := listen(t, c, filter)
		if !s.Accepted.ToolsListChanged || len(s.Accepted.ResourceSubscriptions) != 1 {
			t.Fatalf("accepted %+v", s.Accepted)
		}
		bottom.ResourceUpdated("note://a")
		if got := next(t, changes, mcp.NotificationResourceUpdated); got.URI != uri {
			t.Errorf("got %s", got.URI)
		}
		bottom.Tool("new", says(""))
		next(t, changes, mcp.NotificationToolsListChanged)
		bottom.RemoveTool("new")
	})
}

// An error of a tool is the same through a mount, also one that tells of a resource.
func TestMountKeepsErrorsOfTools(t *testing.T) {
	inner := mcp.NewMux("inner", "v1", quiet())
	inner.Tool("look", mcp.ToolFunc(func(context.Context, none) (string, error) {
		return "", mcp.NewResourceNotFoundError("notes://lost")
	}, nil))
	outer := mcp.NewMux("outer", "v1", quiet())
	outer.Mount("in_", inner)
	if _, err := callTool(t, outer, "in_look", ""); err == nil || !strings.Contains(err.Error(), `"notes://lost"`) {
		t.Errorf("the error became %v", err)
	}
}
