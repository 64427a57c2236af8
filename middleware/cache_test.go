// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/mark"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/middleware"
)

// counted is a handler that counts requests and allows its results to be cached.
type counted struct {
	n     int
	hints mcp.Cacheable
	err   error
}

func (h *counted) ServeMCP(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	h.n++
	if h.err != nil {
		return nil, h.err
	}
	if req.Method == mcp.MethodReadResource {
		return &mcp.ReadResourceResult{Cacheable: h.hints}, nil
	}
	if req.Method == mcp.MethodCallTool {
		return &mcp.CallToolResult{}, nil
	}
	return &mcp.ListToolsResult{Cacheable: h.hints}, nil
}

func TestCache(t *testing.T) {
	minute := mcp.CacheFor(time.Minute, mcp.CachePrivate)
	ask := func(t *testing.T, h mcp.Handler, subject, method string, params any) {
		t.Helper()
		req := mcptest.NewRequest(method, params)
		if subject != "" {
			req.Principal = &mcp.Principal{Subject: subject}
		}
		do(t, h, req)
	}
	list := func(t *testing.T, h mcp.Handler, subject string) {
		t.Helper()
		ask(t, h, subject, mcp.MethodListTools, nil)
	}
	state := "s"
	for name, test := range map[string]struct {
		hints mcp.Cacheable
		want  int
		do    func(t *testing.T, c *middleware.Cache, h mcp.Handler)
	}{
		"the same again": {minute, 1, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) { list(t, h, ""); list(t, h, "") }},
		"after its time": {minute, 2, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) {
			list(t, h, "")
			<-time.After(time.Minute)
			list(t, h, "")
		}},
		"of somebody else": {minute, 2, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) { list(t, h, "ann"); list(t, h, "bob") }},
		"public":           {mcp.CacheFor(time.Minute, mcp.CachePublic), 1, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) { list(t, h, "ann"); list(t, h, "bob") }},
		"nothing said":     {mcp.Cacheable{}, 2, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) { list(t, h, ""); list(t, h, "") }},
		"no time":          {mcp.CacheFor(0, mcp.CachePublic), 2, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) { list(t, h, ""); list(t, h, "") }},
		"changed": {minute, 2, func(t *testing.T, c *middleware.Cache, h mcp.Handler) {
			list(t, h, "")
			c.Changed(mcp.Change{Method: mcp.NotificationToolsListChanged})
			list(t, h, "")
		}},
		"something else": {minute, 1, func(t *testing.T, c *middleware.Cache, h mcp.Handler) {
			list(t, h, "")
			c.Changed(mcp.Change{Method: mcp.NotificationPromptsListChanged})
			list(t, h, "")
		}},
		"tools are not cached": {minute, 2, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) {
			ask(t, h, "", mcp.MethodCallTool, nil)
			ask(t, h, "", mcp.MethodCallTool, nil)
		}},
		"another page": {minute, 2, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) {
			empty := ""
			list(t, h, "")
			ask(t, h, "", mcp.MethodListTools, &mcp.ListParams{Cursor: &empty})
		}},
		"resources, by URI": {minute, 3, func(t *testing.T, c *middleware.Cache, h mcp.Handler) {
			for _, uri := range []string{"a:", "b:", "a:"} {
				ask(t, h, "", mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri})
			}
			c.Changed(mcp.Change{Method: mcp.NotificationResourceUpdated, URI: "a:"})
			ask(t, h, "", mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "a:"})
			ask(t, h, "", mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "b:"})
		}},
		"a question's retry": {minute, 2, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) {
			for range 2 {
				ask(t, h, "", mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "a:", Resume: mcp.Resume{RequestState: &state}})
			}
		}},
		"no more than allowed": {minute, 4, func(t *testing.T, _ *middleware.Cache, h mcp.Handler) {
			for _, uri := range []string{"a:", "b:", "c:", "a:"} {
				ask(t, h, "", mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri})
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &counted{hints: test.hints}
				cache := middleware.NewCache(&middleware.CacheOptions{MaxEntries: 2})
				test.do(t, cache, cache.Middleware(server))
				if server.n != test.want {
					t.Errorf("the server was asked %d times, want %d", server.n, test.want)
				}
			})
		})
	}
}

// If a cursor is rejected, the list is requested from the start.
func TestCacheRefusedCursor(t *testing.T) {
	server := &counted{hints: mcp.CacheFor(time.Minute, mcp.CachePrivate)}
	h := middleware.NewCache(nil).Middleware(server)
	do(t, h, mcptest.NewRequest(mcp.MethodListTools, nil))
	server.err = mcp.Errorf(mcp.CodeInvalidParams, "no such cursor")
	next := "next"
	do(t, h, mcptest.NewRequest(mcp.MethodListTools, &mcp.ListParams{Cursor: &next}))
	server.err = nil
	do(t, h, mcptest.NewRequest(mcp.MethodListTools, nil))
	if server.n != 3 {
		t.Errorf("the server was asked %d times, want 3", server.n)
	}
}

func ExampleCache() {
	cache := middleware.NewCache(nil)
	client := mcp.NewClient("client", "v1.0.0", nil)
	mux := mcp.NewMux("server", "v1.0.0", &mcp.MuxOptions{ListCache: mcp.CacheFor(time.Minute, mcp.CachePrivate)})
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodListTools {
				fmt.Println("the server was asked")
			}
			return next.ServeMCP(ctx, req)
		})
	})
	mux.Tool("hello", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "hello", nil }, nil))
	ctx := context.Background()
	conn, err := client.Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	conn.Use(cache.Middleware)
	changed := make(chan mcp.Change)
	_, err = conn.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, func(change mcp.Change) {
		cache.Changed(change)
		changed <- change
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	list := func() {
		res, err := conn.ListTools(ctx, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("tools:", len(res.Tools))
	}
	list()
	list()
	mux.Tool("bye", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "bye", nil }, nil))
	<-changed
	list()
	// Output:
	// the server was asked
	// tools: 1
	// tools: 1
	// the server was asked
	// tools: 2
}

// do serves a request and ignores the outcome.
func do(t *testing.T, h mcp.Handler, req *mcp.Request) {
	t.Helper()
	_, _, _ = mcptest.Do(t, h, req) //nolint:dogsled // that is the point
}

// toolsOf requests the list of tools and returns the name of the first.
func toolsOf(t *testing.T, h mcp.Handler) string {
	t.Helper()
	res, err := h.ServeMCP(t.Context(), outgoing(t, mcp.MethodListTools, nil))
	list, ok := res.(*mcp.ListToolsResult)
	if err != nil || !ok || len(list.Tools) != 1 {
		t.Fatalf("%+v, %v", res, err)
	}
	return list.Tools[0].Name
}

// lists returns a server with one tool.
func lists(name func() string) mcp.Handler {
	return mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: name()}}, Cacheable: mcp.CacheFor(time.Hour, mcp.CachePublic)}, nil
	})
}

// A Cache used by two connections does not mix up their servers. A change invalidates the
// results of both.
func TestFindingS19CacheOfTwoConnections(t *testing.T) {
	cache, change := middleware.NewCache(nil), ""
	git := cache.Middleware(lists(func() string { return "git" + change }))
	bank := cache.Middleware(lists(func() string { return "bank" + change }))
	for range 2 {
		for want, h := range map[string]mcp.Handler{"git": git, "bank": bank} {
			if got := toolsOf(t, h); got != want {
				t.Errorf("the tool %q, want %q", got, want)
			}
		}
	}
	change = "2"
	if got := toolsOf(t, git); got != "git" {
		t.Errorf("%q is not from the cache", got)
	}
	cache.Changed(mcp.Change{Method: mcp.NotificationToolsListChanged})
	for want, h := range map[string]mcp.Handler{"git2": git, "bank2": bank} {
		if got := toolsOf(t, h); got != want {
			t.Errorf("after a change: the tool %q, want %q", got, want)
		}
	}
}

// If the list changes while a request is in flight, its result is not cached, because it
// may be outdated.
func TestFindingCM5CacheOfAnswersUnderWay(t *testing.T) {
	for name, test := range map[string]struct {
		change mcp.Change
		want   string // result of the next request
	}{
		"the list changed":   {mcp.Change{Method: mcp.NotificationToolsListChanged}, "new"},
		"something else did": {mcp.Change{Method: mcp.NotificationPromptsListChanged}, "old"},
		"a resource did":     {mcp.Change{Method: mcp.NotificationResourceUpdated, URI: "a:"}, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			cache, tool := middleware.NewCache(nil), "old"
			h := cache.Middleware(lists(func() string {
				answer := tool
				if tool = "new"; answer == "old" {
					cache.Changed(test.change) // before the response has arrived
				}
				return answer
			}))
			if got := toolsOf(t, h); got != "old" {
				t.Errorf("first %q", got)
			}
			if got := toolsOf(t, h); got != test.want {
				t.Errorf("then %q, want %q", got, test.want)
			}
		})
	}
}

// The same holds for a resource, and for several requests of one caller.
func TestFindingCM5CacheOfResources(t *testing.T) {
	cache, n := middleware.NewCache(nil), 0
	h := cache.Middleware(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		if n++; n == 1 {
			cache.Changed(mcp.Change{Method: mcp.NotificationResourceUpdated, URI: "a:"})
		}
		return &mcp.ReadResourceResult{Cacheable: mcp.CacheFor(time.Hour, mcp.CachePrivate)}, nil
	}))
	for want := range 3 {
		do(t, h, mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "a:"}))
		if want = min(want+1, 2); n != want {
			t.Errorf("the server was asked %d times, want %d", n, want)
		}
	}
}

// A request made after a change does not share the response to a request made before it,
// and that response is not cached.
func TestFindingCM5CacheAroundSingleflight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan string)
		cache := middleware.NewCache(nil)
		h := mcp.Chain(lists(func() string { return <-answers }), cache.Middleware, middleware.Singleflight())
		got := make(chan string, 2)
		ask := func() {
			go func() { got <- toolsOf(t, h) }()
			synctest.Wait()
		}
		ask()
		cache.Changed(mcp.Change{Method: mcp.NotificationToolsListChanged})
		ask()
		for _, answer := range []string{"old", "new"} {
			select {
			case answers <- answer:
			case <-time.After(time.Minute):
				t.Fatal("the server was asked once only")
			}
			synctest.Wait()
		}
		both := []string{<-got, <-got}
		slices.Sort(both)
		if !slices.Equal(both, []string{"new", "old"}) {
			t.Errorf("answered %q", both)
		}
		ask()
		select {
		case name := <-got:
			t.Logf("kept is %q", name)
		default:
			t.Error("the answer to the second is not kept")
			answers <- "again"
		}
	})
}

// askingServer returns a transport to a server that asks before a resource is read, and
// allows everyone to cache the contents. Cache hints are mandatory, even in results that
// depend on an answer, which clients must not cache.
func askingServer(t *testing.T, reads *int) transport.Transport {
	t.Helper()
	return transport.FromStream(func(context.Context) (transport.Stream, error) {
		client, server := transport.Pipe()
		go func() {
			for {
				data, err := server.Read(context.Background())
				if err != nil {
					return
				}
				var m struct {
					ID     json.RawMessage
					Method string
					Params json.RawMessage
				}
				_ = json.Unmarshal(data, &m)
				result := `{"resultType":"complete","ttlMs":60000,"cacheScope":"public","contents":[{"uri":"a:","text":"for Ada"}]}`
				switch {
				case m.Method == mcp.MethodDiscover:
					result = `{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["` + mcp.LatestVersion + `"],"capabilities":{"resources":{}}}`
				case !strings.Contains(string(m.Params), "inputResponses"):
					*reads++
					result = `{"resultType":"input_required","requestState":"s","inputRequests":{"who":{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}}}}`
				}
				_ = server.Write(context.Background(), fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result))
			}
		}()
		return client, nil
	})
}

// A result that depends on an answer of the user is not cached, even though the request
// seen by the Cache contains no answer.
func TestCacheKeepsNoAnswers(t *testing.T) {
	reads, asked := 0, 0
	client := mcp.NewClient("c", "v1", &mcp.ClientOptions{
		Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			asked++
			return &mcp.ElicitResult{Action: mcp.ActionAccept}, nil
		},
	})
	conn, err := client.Connect(t.Context(), askingServer(t, &reads))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.Use(middleware.NewCache(nil).Middleware)
	for range 2 {
		if _, err := conn.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "a:"}); err != nil {
			t.Fatal(err)
		}
	}
	if reads != 2 || asked != 2 {
		t.Errorf("the server was asked %d times, and the user %d times; want 2 and 2", reads, asked)
	}
}

// A caller of a gateway that is notified of a change gets the changed list, even if the
// gateway's own subscription is slower than the caller's.
func TestCacheOfAGatewayIsNotBehindItsCallers(t *testing.T) {
	distant := mcp.NewMux("distant", "v1", &mcp.MuxOptions{ListCache: mcp.CacheFor(time.Hour, mcp.CachePublic)})
	distant.Tool("first", noop())
	upstream := mcptest.Connect(t, distant)
	cache, late := middleware.NewCache(nil), make(chan struct{})
	upstream.Use(cache.Middleware)
	_, err := upstream.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(change mcp.Change) {
		<-late
		cache.Changed(change)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer close(late)
	gateway := mcp.NewMux("gateway", "v1", quiet())
	gateway.Mount("d_", upstream)
	conn := mcptest.Connect(t, gateway)
	changes := listen(t, conn, mcp.SubscriptionFilter{ToolsListChanged: true})
	for want := 1; want <= 2; want++ {
		if res, err := conn.ListTools(t.Context(), nil); err != nil || len(res.Tools) != want {
			t.Fatalf("listed %+v, %v; want %d tools", res, err, want)
		}
		if want == 1 {
			distant.Tool("second", noop())
			<-changes
		}
	}
}

// An update of a directory also invalidates the files below it, for example after a
// connection was interrupted: there is no other notification that they have changed.
func TestCacheOfFilesBelowADirectory(t *testing.T) {
	cache, reads := middleware.NewCache(nil), map[string]int{}
	h := cache.Middleware(mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		reads[req.Name()]++
		return &mcp.ReadResourceResult{Cacheable: mcp.CacheFor(time.Hour, mcp.CachePublic)}, nil
	}))
	want := map[string]int{"file:///d/": 2, "file:///d/a": 2, "file:///d/b/c": 2, "file:///da": 1, "file:///": 1}
	for range 2 {
		for uri := range want {
			do(t, h, mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri}))
		}
		cache.Changed(mcp.Change{Method: mcp.NotificationResourceUpdated, URI: "file:///d/"})
	}
	if !maps.Equal(reads, want) {
		t.Errorf("read %v, want %v", reads, want)
	}
}

// A cached result carries the remaining time for which it is fresh, because a gateway
// passes it on to clients, which cache it for that long.
func TestCachePassesOnWhatRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := middleware.NewCache(nil).Middleware(lists(func() string { return "t" }))
		for _, want := range []time.Duration{time.Hour, 40 * time.Minute, 20 * time.Minute, time.Hour} {
			res, err := h.ServeMCP(t.Context(), outgoing(t, mcp.MethodListTools, nil))
			list, ok := res.(*mcp.ListToolsResult)
			if err != nil || !ok || len(list.Tools) != 1 || *list.TTLMs != want.Milliseconds() || list.CacheScope != mcp.CachePublic {
				t.Errorf("%+v, %v, want a TTL of %v", res, err, want)
			}
			<-time.After(20 * time.Minute)
		}
	})
}

// If a server rejects the headers of a call, the client requests the tool again and
// bypasses the Cache, whose version was just rejected.
func TestCacheAndRefusedHeaders(t *testing.T) {
	server := mcp.NewMux("m", "v1", &mcp.MuxOptions{ListCache: mcp.CacheFor(time.Hour, mcp.CachePublic)})
	server.Tool("t", noop())
	lists, calls := 0, 0
	server.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			switch req.Method {
			case mcp.MethodListTools:
				lists++
			case mcp.MethodCallTool:
				if calls++; lists < 2 {
					return nil, mcp.Errorf(mcp.CodeHeaderMismatch, "header Mcp-Param-New: the header is missing")
				}
			}
			return next.ServeMCP(ctx, req)
		})
	})
	conn := mcptest.Connect(t, server)
	cache := middleware.NewCache(nil)
	cache.Changed(mcp.Change{Method: mcp.NotificationToolsListChanged})
	conn.Use(cache.Middleware)
	if _, err := conn.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	server.Tool("new", noop())
	if _, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "t"}); err != nil || lists != 2 || calls != 2 {
		t.Errorf("%v after %d lists and %d calls", err, lists, calls)
	}
	if res, err := conn.ListTools(t.Context(), nil); err != nil || len(res.Tools) != 2 || lists != 2 {
		t.Errorf("then listed %+v, %v, after %d lists", res, err, lists)
	}
}

// If a result does not match the output schema of its tool, the connection looks the schema
// up again and bypasses the cache, too.
func TestCacheAndChangedOutput(t *testing.T) {
	server := mcp.NewMux("m", "v1", &mcp.MuxOptions{ListCache: mcp.CacheFor(time.Hour, mcp.CachePublic)})
	server.Tool("t", mcp.ToolFunc(func(context.Context, struct{}) (struct{ N int }, error) { return struct{ N int }{1}, nil }, nil))
	conn := mcptest.Connect(t, server)
	conn.Use(middleware.NewCache(nil).Middleware)
	if _, err := conn.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	server.RemoveTool("t")
	server.Tool("t", mcp.ToolFunc(func(context.Context, struct{}) (struct{ N string }, error) { return struct{ N string }{"one"}, nil }, nil))
	for range 2 {
		if _, err := conn.CallTool(t.Context(), &mcp.CallToolParams{Name: "t"}); err != nil {
			t.Error(err)
		}
	}
}

// A second tool is listed once its announcement has arrived, even though the list may be
// cached for an hour: in every era and over every transport, through one subscription.
func TestFindingU5CacheHearsOfChanges(t *testing.T) {
	var mux *mcp.Mux
	newMux := func(*testing.T) mcp.Handler {
		mux = mcp.NewMux("m", "v1", &mcp.MuxOptions{ListCache: mcp.CacheFor(time.Hour, mcp.CachePublic)})
		mux.Tool("first", noop())
		return mux
	}
	mcptest.RunNew(t, newMux, func(t *testing.T, c *mcp.Conn) {
		cache := middleware.NewCache(nil)
		c.Use(cache.Middleware)
		changed := make(chan mcp.Change, 10)
		_, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(change mcp.Change) {
			cache.Changed(change)
			changed <- change
		})
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Ping(t.Context()) // by then, a legacy server has read notifications/initialized
		for want := 1; want <= 2; want++ {
			if res, err := c.ListTools(t.Context(), nil); err != nil || len(res.Tools) != want {
				t.Fatalf("listed %+v, %v; want %d tools", res, err, want)
			}
			if want == 1 {
				mux.Tool("second", noop())
				<-changed
			}
		}
	})
}

// noop is a tool that does nothing.
func noop() mcp.Handler {
	return mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil)
}

// cacheOf returns a handler whose resources have size bytes, behind a cache, and a function
// that reads one and reports whether the server was asked.
func cacheOf(t *testing.T, size int, opts *middleware.CacheOptions) (read func(subject, uri string, caps mcp.ClientCapabilities) bool) {
	t.Helper()
	asked := 0
	h := middleware.NewCache(opts).Middleware(mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		asked++
		res := &mcp.ReadResourceResult{Cacheable: mcp.CacheFor(time.Hour, mcp.CachePrivate)}
		res.Contents = []*mcp.ResourceContents{{URI: req.Name(), Blob: make([]byte, size)}}
		return res, nil
	}))
	return func(subject, uri string, caps mcp.ClientCapabilities) bool {
		t.Helper()
		before := asked
		req := mcptest.NewRequest(mcp.MethodReadResource, map[string]any{
			"uri": uri, "_meta": map[string]any{"io.modelcontextprotocol/clientCapabilities": caps},
		})
		if subject != "" {
			req.Principal = &mcp.Principal{Subject: subject}
		}
		do(t, h, req)
		return asked > before
	}
}

// A cache is bounded in bytes, whatever the number and the size of the results: it keeps the
// most recently used ones, and none that would take much of its room.
func TestFindingX9CacheIsBoundedByBytes(t *testing.T) {
	const kept = 8
	read := cacheOf(t, 10_000, &middleware.CacheOptions{MaxBytes: 16 * 11_000})
	for range 2 {
		for i := range 20 {
			if !read("", fmt.Sprintf("a:%d", i), mcp.ClientCapabilities{}) {
				t.Errorf("the result %d of 20 was still cached", i)
			}
		}
	}
	for i := 19; i > 19-kept; i-- {
		if read("", fmt.Sprintf("a:%d", i), mcp.ClientCapabilities{}) {
			t.Errorf("the result %d of 20 was not cached any more", i)
		}
	}
	large := cacheOf(t, 12_000, &middleware.CacheOptions{MaxBytes: 16 * 11_000})
	for range 2 {
		if !large("", "a:", mcp.ClientCapabilities{}) {
			t.Error("a result of more than a sixteenth of the cache was cached")
		}
	}
	byKey := cacheOf(t, 0, &middleware.CacheOptions{MaxBytes: 1 << 16})
	for range 2 {
		if !byKey("", "a:"+strings.Repeat("x", 1<<13), mcp.ClientCapabilities{}) {
			t.Error("a result with a URI of more than a sixteenth of the cache was cached")
		}
	}
}

// A caller that makes up capabilities, so that each of its requests has a result of its own,
// evicts its own results and not those of others.
func TestFindingX13MadeUpCapabilitiesEvictTheirOwn(t *testing.T) {
	for name, opts := range map[string]*middleware.CacheOptions{"number": {MaxEntries: 16}, "bytes": {MaxBytes: 16 * 3000}} {
		t.Run(name, func(t *testing.T) {
			read := cacheOf(t, 1000, opts)
			for i := range 4 {
				read("victim", fmt.Sprintf("a:%d", i), mcp.ClientCapabilities{})
			}
			for i := range 200 {
				odd := mcp.ClientCapabilities{Experimental: map[string]json.RawMessage{"odd": json.RawMessage(fmt.Sprintf(`{"n":%d}`, i))}}
				if !read("attacker", "a:0", odd) {
					t.Fatal("results for different capabilities were shared")
				}
			}
			for i := range 4 {
				if read("victim", fmt.Sprintf("a:%d", i), mcp.ClientCapabilities{}) {
					t.Errorf("the result %d of another caller was evicted", i)
				}
			}
		})
	}
}

// A page of an app and the model do not share a list: they may see different tools.
func TestCacheSeparatesPagesFromTheModel(t *testing.T) {
	server := &counted{hints: mcp.CacheFor(time.Minute, mcp.CachePublic)}
	h := middleware.NewCache(nil).Middleware(server)
	for range 2 {
		do(t, h, mcptest.NewRequest(mcp.MethodListTools, nil))
		if _, err := h.ServeMCP(mark.App(t.Context()), mcptest.NewRequest(mcp.MethodListTools, nil)); err != nil {
			t.Fatal(err)
		}
	}
	if server.n != 2 {
		t.Errorf("the server was asked %d times, want 2", server.n)
	}
}

// A change of the list of resources makes the list of templates stale, too: there is no
// notification for templates alone.
func TestCacheOfTemplatesIsChangedWithResources(t *testing.T) {
	n := 0
	cache := middleware.NewCache(nil)
	h := cache.Middleware(mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		n++
		return &mcp.ListResourceTemplatesResult{Cacheable: mcp.CacheFor(time.Minute, mcp.CachePublic)}, nil
	}))
	for range 2 {
		do(t, h, mcptest.NewRequest(mcp.MethodListResourceTemplates, nil))
		cache.Changed(mcp.Change{Method: mcp.NotificationResourcesListChanged})
	}
	if n != 2 {
		t.Errorf("the server was asked %d times, want 2", n)
	}
}

// A change invalidates a resource in every spelling of its URI. The cached results of two
// spellings are distinct, because each has the URI that was asked for.
func TestFindingR23CacheOfSpellings(t *testing.T) {
	cache, reads := middleware.NewCache(nil), map[string]int{}
	h := cache.Middleware(mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		reads[req.Name()]++
		return &mcp.ReadResourceResult{Cacheable: mcp.CacheFor(time.Hour, mcp.CachePublic), Contents: []*mcp.ResourceContents{{URI: req.Name()}}}, nil
	}))
	for _, changed := range []string{"kbinfo://caf%c3%a9", "KBINFO://"} {
		for range 2 {
			for _, uri := range []string{"KBInfo://café", "kbinfo://caf%C3%A9"} {
				res, err := h.ServeMCP(t.Context(), mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri}))
				if err != nil || res.(*mcp.ReadResourceResult).Contents[0].URI != uri {
					t.Errorf("%s: got %+v, %v", uri, res, err)
				}
			}
		}
		cache.Changed(mcp.Change{Method: mcp.NotificationResourceUpdated, URI: changed})
	}
	if want := map[string]int{"KBInfo://café": 2, "kbinfo://caf%C3%A9": 2}; !maps.Equal(reads, want) {
		t.Errorf("read %v, want %v", reads, want)
	}
}
