// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcpstdio"
)

func TestPages(t *testing.T) {
	opts := quiet()
	opts.PageSize = 3
	mux := mcp.NewMux("m", "v1", opts)
	var want []string
	for i := range 10 {
		name := fmt.Sprintf("t%d", i)
		want = append(want, name)
		mux.Tool(name, says(""))
		mux.Prompt(name, promptSays(""))
		mux.Resource("r:"+name, reads(""))
		mux.Resource("r:"+name+"/{x}", reads(""))
	}
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		res, err := c.ListTools(t.Context(), nil)
		if err != nil || len(res.Tools) != 3 || res.NextCursor == nil {
			t.Fatalf("first page %+v, %v", res, err)
		}
		lists := map[string][]string{}
		for v, err := range c.Tools(t.Context(), nil) {
			collect(t, lists, "tools", err, func() string { return v.Name })
		}
		for v, err := range c.Prompts(t.Context(), nil) {
			collect(t, lists, "prompts", err, func() string { return v.Name })
		}
		for v, err := range c.Resources(t.Context(), nil) {
			collect(t, lists, "resources", err, func() string { return v.URI[len("r:"):] })
		}
		for v, err := range c.ResourceTemplates(t.Context(), nil) {
			collect(t, lists, "templates", err, func() string { return v.URITemplate[len("r:") : len(v.URITemplate)-len("/{x}")] })
		}
		for kind, got := range lists {
			if !slices.Equal(got, want) {
				t.Errorf("%s: listed %q", kind, got)
			}
		}
		if len(lists) != 4 {
			t.Errorf("listed only %d kinds", len(lists))
		}
	})
}

func collect(t *testing.T, lists map[string][]string, kind string, err error, name func() string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	lists[kind] = append(lists[kind], name())
}

func TestBadCursor(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", says(""))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for _, cursor := range []string{"", "?", "bm90IGpzb24", "e30=", "W10"} {
			_, err := c.ListTools(t.Context(), &mcp.ListParams{Cursor: &cursor})
			if cursor == "" && err == nil {
				continue // the empty cursor may be a valid one
			}
			wantCode(t, err, mcp.CodeInvalidParams)
		}
	})
}

// T41: pages neither repeat nor skip items that stay while others are added and removed.
func TestPagesWhileRegistering(t *testing.T) {
	opts := quiet()
	opts.PageSize = 7
	mux := mcp.NewMux("m", "v1", opts)
	var stay []string
	for i := range 50 {
		name := fmt.Sprintf("stay%02d", i)
		stay = append(stay, name)
		mux.Tool(name, says(""))
	}
	stop := make(chan struct{})
	var working sync.WaitGroup
	defer working.Wait()
	defer close(stop)
	for _, prefix := range []string{"a", "stay10x", "z"} {
		working.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					name := fmt.Sprintf("%s%d", prefix, i%20)
					mux.Tool(name, says(""))
					mux.RemoveTool(name)
				}
			}
		})
	}
	c := mcptest.Connect(t, mux)
	for range 100 {
		var all, got []string
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, tool.Name)
			if slices.Contains(stay, tool.Name) {
				got = append(got, tool.Name)
			}
		}
		if !slices.Equal(got, stay) || !slices.IsSorted(all) || len(slices.Compact(all)) != len(all) {
			t.Fatalf("listed %q", all)
		}
	}
}

func TestCacheHints(t *testing.T) {
	opts := quiet()
	opts.ListCache = mcp.CacheFor(1500*time.Millisecond, mcp.CachePublic)
	kept := mcp.NewMux("kept", "v1", opts)
	kept.Tool("t", says(""))
	kept.Resource("r:r", reads(""))
	unsaid := mcp.NewMux("unsaid", "v1", quiet())
	unsaid.Tool("t", says(""))
	both := mcp.NewMux("both", "v1", opts)
	both.Tool("t", says(""))
	both.Mount("in_", unsaid)
	for _, test := range []struct {
		mux   *mcp.Mux
		ttl   int64
		scope string
	}{
		{kept, 1500, mcp.CachePublic},
		{unsaid, 0, mcp.CachePrivate},
		{both, 0, mcp.CachePrivate}, // the most restrictive of its parts
	} {
		c := mcptest.Connect(t, test.mux)
		res, err := c.ListTools(t.Context(), nil)
		if err != nil || *res.TTLMs != test.ttl || res.CacheScope != test.scope {
			t.Errorf("got %+v, %v; want %d %s", res.Cacheable, err, test.ttl, test.scope)
		}
		old := (&mcptest.Client{Options: mcp.ClientOptions{Version: "2025-11-25"}}).Connect(t, test.mux)
		if res, err = old.ListTools(t.Context(), nil); err != nil || res.TTLMs != nil || res.CacheScope != "" || res.ResultType != "" {
			t.Errorf("the legacy era got %+v, %v", res, err)
		}
	}
	// Resource contents are private and immediately stale, unless the handler says
	// otherwise.
	c := mcptest.Connect(t, kept)
	res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "r:r"})
	if err != nil || *res.TTLMs != 0 || res.CacheScope != mcp.CachePrivate {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestDiscover(t *testing.T) {
	opts := quiet()
	opts.Title, opts.Instructions, opts.WebsiteURL = "The M", "Be kind.", "https://example.com"
	opts.Capabilities = &mcp.ServerCapabilities{Extensions: mcp.Extensions{"example.com/x": []byte(`{}`)}}
	mux := mcp.NewMux("m", "v1", opts)
	mux.Tool("t", says(""))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		d, err := c.Discover(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var info mcp.Implementation
		if !d.Meta.Get(mcp.MetaServerInfo, &info) || info.Name != "m" || info.Version != "v1" || info.Title != "The M" {
			t.Errorf("the server is %+v", info)
		}
		if d.Instructions != "Be kind." || d.Capabilities.Tools == nil || d.Capabilities.Prompts != nil {
			t.Errorf("got %+v", d)
		}
		if _, ok := d.Capabilities.Extensions["example.com/x"]; !ok {
			t.Errorf("extensions %v", d.Capabilities.Extensions)
		}
		if !slices.Contains(d.SupportedVersions, c.Version()) {
			t.Errorf("supports %q", d.SupportedVersions)
		}
	})
}

// Every result of the modern era has its type and the name of the server.
func TestResultHead(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", says(""))
	c := mcptest.Connect(t, mux)
	res, err := c.CallTool(t.Context(), tool("t", ""))
	var info mcp.Implementation
	if err != nil || res.ResultType != mcp.ResultComplete || !res.Meta.Get(mcp.MetaServerInfo, &info) || info.Name != "m" {
		t.Errorf("got %+v, %v", res, err)
	}
	old := (&mcptest.Client{Options: mcp.ClientOptions{Version: "2024-11-05"}}).Connect(t, mux)
	if res, err = old.CallTool(t.Context(), tool("t", "")); err != nil || res.ResultType != "" || res.Meta != nil {
		t.Errorf("the legacy era got %+v, %v", res, err)
	}
}

// T40, behind a gateway: a server that repeats its cursor does not make the gateway's list
// endless. The items of the following servers are still listed.
func TestMountRepeatsCursor(t *testing.T) {
	for _, cursor := range []string{"", "again"} {
		endless := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != mcp.MethodListTools {
				return nil, mcp.NewMethodNotFoundError(req.Method)
			}
			return &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "a"}}, Page: mcp.Page{NextCursor: &cursor}}, nil
		})
		gw := mcp.NewMux("gw", "v1", quiet())
		gw.Mount("a_", endless)
		gw.Mount("b_", withTools("b"))
		c := connect(t, gw, nil)
		var names []string
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
		}
		if got := strings.Join(names, " "); got != "a_a a_a b_b" {
			t.Errorf("cursor %q: listed %.100s", cursor, got)
		}
	}
}

// An empty cursor from an older server ends the list. Only in the newest revision is it a
// cursor like any other (PAGE-04).
func TestEmptyCursorOfAnOlderServer(t *testing.T) {
	server := newOldServer(func(s *oldServer, m oldMessage) {
		if m.Method == mcp.MethodListTools {
			s.sayf(`"id":%s,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}],"nextCursor":""}`, m.ID)
			return
		}
		s.sayf(`"id":%s,"error":{"code":-32601,"message":"no"}`, m.ID)
	})
	c := connectTo(t, server, nil)
	n := 0
	for _, err := range c.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1 {
		t.Errorf("listed %d tools", n)
	}
}

// A mounted server whose cursor is too long for a request does not hide the servers listed
// after it.
func TestLongCursorOfAMount(t *testing.T) {
	long := strings.Repeat("c", 8<<20)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Mount("a_", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method != mcp.MethodListTools {
			return nil, mcp.NewMethodNotFoundError(req.Method)
		}
		return &mcp.ListToolsResult{Page: mcp.Page{NextCursor: &long}, Tools: []*mcp.Tool{{Name: "t", InputSchema: []byte(`{"type":"object"}`)}}}, nil
	}))
	mux.Mount("b_", hello())
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		var names []string
		for tool, err := range c.Tools(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, tool.Name)
		}
		if got := strings.Join(names, " "); got != "a_t b_hello" {
			t.Errorf("got %s", got)
		}
	})
}

// listing is a stream that requests the tools many times and reports the size of each
// response.
type listing struct {
	asked, times int
	answered     chan int // bytes
}

func (l *listing) Read(context.Context) ([]byte, error) {
	if l.asked++; l.asked > l.times {
		return nil, io.EOF
	}
	return []byte(eras[0].request(fmt.Sprint(l.asked), "tools/list", "")), nil
}

func (l *listing) Write(_ context.Context, message []byte) error {
	l.answered <- len(message)
	return nil
}

func (l *listing) Close() error { return nil }

func manyTools() *mcp.Mux {
	mux := mcp.NewMux("m", "v1", quiet())
	for i := range 1000 {
		opts := &mcp.Tool{Description: strings.Repeat("words ", 50)}
		mux.Tool(fmt.Sprintf("tool%03d", i), mcp.ToolFunc(func(context.Context, sumIn) (sumOut, error) { return sumOut{}, nil }, opts))
	}
	return mux
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Responses of half a megabyte reuse a buffer. If there is none yet, it is allocated in one
// step, instead of growing repeatedly by a quarter.
func TestFindingCM9LargeAnswers(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector keeps no memory")
	}
	mux := manyTools()
	list := func(times int) (size int) {
		s := &listing{times: times, answered: make(chan int, times)}
		if err := mcpstdio.ServeStream(t.Context(), mux, s, nil); err != nil {
			t.Fatal(err)
		}
		for range times {
			size = <-s.answered
		}
		return size
	}
	size := list(10)
	if size < 500_000 {
		t.Fatalf("the list has %d bytes", size)
	}
	const times = 200
	each := allocated(func() { list(times) }) / times
	t.Logf("%d bytes of %d are allocated for each", each, size)
	if each > uint64(size)/4 {
		t.Errorf("each list of %d bytes takes %d bytes of new memory", size, each)
	}

	message := []byte(eras[0].request("1", "tools/list", ""))
	fresh := allocated(func() { serveBytes(t, mux, nil, message) })
	if fresh > 2*uint64(size) {
		t.Errorf("the first list of %d bytes takes %d bytes of memory", size, fresh)
	}
}
