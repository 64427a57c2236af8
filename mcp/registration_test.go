// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// Update replaces a handler atomically, so that it is never unknown.
func TestFindingU18ReplaceInOneStep(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", says("0"))
	mux.Resource("r:{id}", reads("0"))
	c := mcptest.Connect(t, mux)
	stop := make(chan struct{})
	var replacing sync.WaitGroup
	replacing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			err := mux.Update(func(m *mcp.Mux) {
				m.RemoveTool("t")
				m.RemoveResource("r:{id}")
				m.Tool("t", says("1"))
				m.Resource("r:{id}", reads("1"))
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	defer replacing.Wait()
	defer close(stop)
	for range 500 {
		mustCall(t, c, "t", "")
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "r:1"}); err != nil {
			t.Fatal(err)
		}
	}
}

// Update registers definitions from users without panicking, all or nothing.
func TestFindingU18ErrorsInsteadOfPanics(t *testing.T) {
	anything := mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) { return mcp.TextResult("ok"), nil })
	run := func(context.Context, map[string]any) (string, error) { return "ok", nil }
	child := mcp.NewMux("child", "v1", quiet())
	child.Tool("own", says(""))
	for name, test := range map[string]struct {
		fn   func(m *mcp.Mux)
		want string
	}{
		"the same name": {func(m *mcp.Mux) { m.Tool("a", says("")) }, `tool "a" registered at registration_test.go:`},
		"no name":       {func(m *mcp.Mux) { m.Prompt("", promptSays("")) }, "the name is empty"},
		"no handler":    {func(m *mcp.Mux) { m.Tool("b", nil) }, "the handler is nil"},
		"a bad schema": {func(m *mcp.Mux) {
			m.Tool("b", mcp.WithDescription(anything, &mcp.Tool{InputSchema: []byte(`{"type":"objekt"}`)}))
		}, "InputSchema"},
		"typed, too": {func(m *mcp.Mux) { m.Tool("b", mcp.ToolFunc(run, &mcp.Tool{InputSchema: []byte(`{"type":[]}`)})) }, "ToolFunc at registration_test.go:"},
		"a bad output schema": {func(m *mcp.Mux) {
			out := func(context.Context, none) (point, error) { return point{}, nil }
			m.Tool("b", mcp.ToolFunc(out, &mcp.Tool{OutputSchema: []byte(`{"type":[]}`)}))
		}, "ToolFunc at registration_test.go:"},
		"another kind":      {func(m *mcp.Mux) { m.Resource("s:s", mcp.WithDescription(reads(""), new(mcp.Prompt))) }, "describes itself as a *mcp.Prompt"},
		"an unknown name":   {func(m *mcp.Mux) { m.Prompt("b", completed("topik", "topic", "tone")) }, `no such name in Prompt.Arguments, which has topic, tone`},
		"no name to choose": {func(m *mcp.Mux) { m.Prompt("b", completed("topic")) }, "no such name in Prompt.Arguments, which has none"},
		"a bad template":    {func(m *mcp.Mux) { m.Resource("r:{", reads("")) }, `resource template "r:{"`},
		"two templates":     {func(m *mcp.Mux) { m.Resource("r:{x}", reads("")); m.Resource("r:{y}", reads("")) }, "neither is more specific"},
		"two mounts":        {func(m *mcp.Mux) { m.Mount("x_", says("")); m.Mount("x_", says("")) }, "something is mounted there"},
		"of a mount":        {func(m *mcp.Mux) { m.Mount("c_", child); m.Resource("mount:c_:x", reads("")) }, `belong to the mount`},
		"a method":          {func(m *mcp.Mux) { m.Handle("tools/call", says("")) }, "it is served by the mux itself"},
		"in a group":        {func(m *mcp.Mux) { m.Group(func(g *mcp.Mux) { g.With().Tool("a", says("")) }) }, "is registered at"},
		"in an update":      {func(m *mcp.Mux) { must(m.Update(func(m *mcp.Mux) { m.Tool("a", says("")) })) }, "is registered at"},
	} {
		t.Run(name, func(t *testing.T) {
			mux := mcp.NewMux("m", "v1", quiet())
			mux.Tool("a", says("a"))
			mux.Prompt("p", promptSays(""))
			mux.Resource("q:{x}", reads(""))
			mux.Mount("old_", says(""))
			before := namesIn(t, mux)
			err := mux.Update(func(m *mcp.Mux) {
				m.Tool("new", says(""))
				m.Resource("n:{x}", reads(""))
				m.Mount("new_", says(""))
				m.RemovePrompt("p")
				m.RemoveResource("q:{x}")
				m.Unmount("old_")
				test.fn(m)
			})
			if err == nil || !strings.HasPrefix(err.Error(), "mcp: ") || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error that says %q", err, test.want)
			}
			if after := namesIn(t, mux); !slices.Equal(before, after) {
				t.Errorf("registered are %q, and were %q", after, before)
			}
			mux.Mount("new_", child) // the failed update left nothing behind
			child.Tool("later", says(""))
			mux.Unmount("new_")
			child.RemoveTool("later")
		})
	}
}

// completed returns a prompt with arguments, and a completer for one that it may not have.
func completed(completes string, arguments ...string) mcp.Handler {
	p := &mcp.Prompt{Completers: map[string]mcp.Completer{completes: mcp.CompleteFrom("a")}}
	for _, name := range arguments {
		p.Arguments = append(p.Arguments, &mcp.PromptArgument{Name: name})
	}
	return mcp.WithDescription(promptSays(""), p)
}

// must panics on an unexpected error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// namesIn returns the methods and names registered in a mux.
func namesIn(t *testing.T, mux *mcp.Mux) []string {
	t.Helper()
	var names []string
	if err := mux.Walk(func(method, name string, _ mcp.Handler) error {
		names = append(names, method+" "+name)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return names
}

// An Update takes effect when its function returns. Middleware of the view applies, and panics
// other than registration errors propagate.
func TestUpdate(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	var escaped *mcp.Mux
	err := mux.With(middleware.RequireScopes("x")).Update(func(m *mcp.Mux) {
		escaped = m
		m.Tool("protected", says(""))
		if names := namesIn(t, mux); len(names) > 0 {
			t.Errorf("%q can be seen already", names)
		}
		must(m.Update(func(m *mcp.Mux) { m.Tool("nested", says("")) }))
	})
	if names := namesIn(t, mux); err != nil || len(names) != 2 {
		t.Fatalf("registered %q, %v", names, err)
	}
	for _, name := range []string{"protected", "nested"} {
		_, err = callTool(t, mux, name, "")
		wantCode(t, err, mcp.CodeInsufficientScope)
	}
	wantPanic(t, func() { escaped.Tool("late", says("")) }, "its function has returned")
	defer func() {
		if v := recover(); v != "boom" {
			t.Errorf("the panic is %v", v)
		}
	}()
	_ = mux.Update(func(*mcp.Mux) { panic("boom") })
}

// Subscribers are notified once of all changes of an Update, and not of a failed one.
func TestUpdateIsAnnouncedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("t", says(""))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := &sink{got: make(chan string, 100)}
		listenFor(ctx, mux, s, mcp.SubscriptionFilter{ToolsListChanged: true})
		if err := mux.Update(func(m *mcp.Mux) { m.Tool("u", says("")); m.Tool("u", says("")) }); err == nil {
			t.Fatal("two tools have one name")
		}
		synctest.Wait()
		if len(s.got) != 0 {
			t.Errorf("%s was announced, but nothing changed", <-s.got)
		}
		if err := mux.Update(func(m *mcp.Mux) { m.RemoveTool("t"); m.Tool("t", says("")); m.Tool("u", says("")) }); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(s.got) != 1 {
			t.Errorf("announced %d times", len(s.got))
		}
	})
}

// catalog is a template that lists matching resources.
type catalog struct{ uris []string }

func (c catalog) ServeMCP(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Name(), Text: "content"}}}, nil
}

func (c catalog) Describe() mcp.Description {
	return &mcp.Resource{List: c.list, Completers: map[string]mcp.Completer{"id": mcp.CompleteFrom("customer-1", "customer-2")}}
}

func (c catalog) list(context.Context, *mcp.ListParams) (*mcp.ListResourcesResult, error) {
	list := &mcp.ListResourcesResult{}
	for _, uri := range c.uris {
		list.Resources = append(list.Resources, &mcp.Resource{URI: uri, Name: uri})
	}
	return list, nil
}

func scoped(scopes ...string) *mcp.Principal {
	return &mcp.Principal{Issuer: "test", Subject: "ann", Scopes: scopes}
}

// accepts reports whether the server accepts a subscription to a resource.
func accepts(t *testing.T, c *mcp.Conn, uri string) bool {
	t.Helper()
	s, _ := listen(t, c, mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}})
	return slices.Contains(s.Accepted().ResourceSubscriptions, uri)
}

// Middleware around a registration wraps all of its operations: in addition to reading and
// getting, also completing, listing, subscribing and updates.
func TestFindingS6U2WithWrapsEverything(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	protected := mux.With(middleware.RequireScopes("hr"))
	protected.Resource("hr://{id}", catalog{[]string{"hr://customer-1"}})
	protected.Prompt("letter", mcp.PromptFunc(func(_ context.Context, in struct {
		To string `json:"to"`
	}) (string, error) {
		return in.To, nil
	}, &mcp.Prompt{Completers: map[string]mcp.Completer{"to": mcp.CompleteFrom("customer-1")}}))
	mux.Resource("open://{id}", catalog{[]string{"open://1"}})
	for _, granted := range []bool{false, true} {
		client := &mcptest.Client{Principal: scoped()}
		if granted {
			client.Principal = scoped("hr")
		}
		client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
			for _, p := range []*mcp.CompleteParams{
				{Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "letter"}, Argument: mcp.CompleteArgument{Name: "to"}},
				{Ref: mcp.CompleteRef{Type: "ref/resource", URI: "hr://{id}"}, Argument: mcp.CompleteArgument{Name: "id"}},
			} {
				res, err := c.Complete(t.Context(), p)
				if granted != (err == nil) || granted && len(res.Completion.Values) == 0 || !granted && mcp.CodeOf(err) != mcp.CodeInsufficientScope {
					t.Errorf("completing %+v: got %+v, %v", p.Ref, res, err)
				}
			}
			list, err := c.ListResources(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			listed := slices.ContainsFunc(list.Resources, func(r *mcp.Resource) bool { return r.URI == "hr://customer-1" })
			if listed != granted || len(list.Resources) == 0 {
				t.Errorf("listed is %t: %d resources", listed, len(list.Resources))
			}
			if got := accepts(t, c, "hr://customer-1"); got != granted || !accepts(t, c, "open://1") {
				t.Errorf("granted is %t: a subscription is accepted: %t", granted, got)
			}
		})
	}
}

// If a function denies reading a resource, it also denies subscribing. A Subscribe
// function, if set, decides instead.
func TestFindingU3SubscribingNeedsReading(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	var reads atomic.Int32
	mux.Resource("notes://{tenant}/{id}", mcp.ResourceFunc(func(ctx context.Context, in struct {
		Tenant string `json:"tenant"`
		ID     string `json:"id"`
	}) (string, error) {
		reads.Add(1)
		if mcp.PrincipalFromContext(ctx).Subject != in.Tenant {
			return "", fs.ErrNotExist
		}
		return "note " + in.ID, nil
	}, nil))
	mux.Resource("own://{tenant}", mcp.ResourceFunc(func(context.Context, struct {
		Tenant string `json:"tenant"`
	}) (string, error) {
		return "", fmt.Errorf("this must not be read")
	}, &mcp.Resource{Subscribe: func(ctx context.Context, uri string) error {
		if tenant := mcp.RequestFromContext(ctx).PathValue("tenant"); tenant != mcp.PrincipalFromContext(ctx).Subject || uri != "own://"+tenant {
			return mcp.NewResourceNotFoundError(uri)
		}
		return nil
	}}))
	client := &mcptest.Client{Principal: &mcp.Principal{Issuer: "test", Subject: "ann"}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for uri, want := range map[string]bool{"notes://ann/1": true, "notes://bob/1": false, "own://ann": true, "own://bob": false} {
			if got := accepts(t, c, uri); got != want {
				t.Errorf("%s: a subscription is accepted: %t", uri, got)
			}
		}
	})
	if reads.Load() == 0 {
		t.Error("the notes were never read")
	}
}

// A subscriber of a directory does not get URIs below it that another registration hides
// from the subscriber.
func TestFindingCM18UpdatesBelowADirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Resource("notes://{+path}", reads("public"))
		mux.With(middleware.RequireScopes("secret")).Resource("notes://secret/{+path}", reads("secret"))
		for _, granted := range []bool{false, true} {
			client := &mcptest.Client{Principal: scoped()}
			if granted {
				client.Principal = scoped("secret")
			}
			for _, version := range []string{mcp.LatestVersion, "2025-11-25"} {
				client.Options.Version = version
				c := client.Connect(t, mux)
				_, changes := listen(t, c, mcp.SubscriptionFilter{ResourceSubscriptions: []string{"notes://"}})
				mux.ResourceUpdated("notes://open/1")
				mux.ResourceUpdated("notes://secret/plan")
				synctest.Wait()
				told := strings.Join(received(changes), " ")
				if !strings.Contains(told, "notes://open/1") || strings.Contains(told, "notes://secret/plan") != granted {
					t.Errorf("granted is %t, version %s: told of %s", granted, version, told)
				}
				c.Close()
			}
		}
	})
}

// A directory ends in a slash. A resource whose URI merely has the same prefix is not below
// it.
func TestDirectoriesEndInASlash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Resource("notes://{+path}", reads("public"))
		c := mcptest.Connect(t, mux)
		_, changes := listen(t, c, mcp.SubscriptionFilter{ResourceSubscriptions: []string{"notes://a"}})
		mux.ResourceUpdated("notes://ab")
		mux.ResourceUpdated("notes://a/b")
		mux.ResourceUpdated("notes://a")
		synctest.Wait()
		if told := received(changes); len(told) != 1 || told[0] != "notes://a" {
			t.Errorf("told of %v", told)
		}
		c.Close()
	})
}

// A list is public only if no middleware protects the lister.
func TestFindingS16Listers(t *testing.T) {
	files := mcp.FileServerFS(fstest.MapFS{"a.txt": {Data: []byte("a")}}, &mcp.FileServerOptions{Cache: mcp.CacheFor(1000, mcp.CachePublic)})
	for _, protected := range []bool{false, true} {
		opts := quiet()
		opts.ListCache = mcp.CacheFor(1000, mcp.CachePublic)
		mux := mcp.NewMux("m", "v1", opts)
		group := mux.With()
		if protected {
			group = mux.With(middleware.RequireScopes("files"))
		}
		group.Resource("file:///{+path}", files)
		res, _, err := mcptest.Do(t, mux, (&mcptest.Client{Principal: scoped("files")}).NewRequest(mcp.MethodListResources, nil))
		if err != nil {
			t.Fatal(err)
		}
		list := res.(*mcp.ListResourcesResult)
		if public := list.CacheScope == mcp.CachePublic; public == protected || len(list.Resources) != 1 {
			t.Errorf("protected is %t: got the scope %q and %d resources", protected, list.CacheScope, len(list.Resources))
		}
	}
}

// The number of resources in a subscription is limited, and so is the number of
// subscriptions of each caller.
func TestFindingS9W14SubscriptionBounds(t *testing.T) {
	mux := mcp.NewMux("m", "v1", mcp.LimitSubscriptions(quiet(), 3, 2))
	mux.Resource("notes://{id}", reads("note"))
	uris := func(n int) (f mcp.SubscriptionFilter) {
		for i := range n {
			f.ResourceSubscriptions = append(f.ResourceSubscriptions, fmt.Sprint("notes://", i))
		}
		return f
	}
	ignore := func(mcp.Change) {}
	c := (&mcptest.Client{Principal: scoped()}).Connect(t, mux)
	_, err := c.Listen(t.Context(), uris(4), ignore)
	if mcp.CodeOf(err) != mcp.CodeInvalidParams || !strings.Contains(err.Error(), "has 4 URIs; the limit is 3") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	first, err := c.Listen(ctx, uris(3), ignore)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Listen(t.Context(), uris(1), ignore); err != nil {
		t.Error(err)
	}
	_, err = c.Listen(t.Context(), uris(1), ignore)
	wantCode(t, err, mcp.CodeRateLimited)
	bob := (&mcptest.Client{Principal: &mcp.Principal{Issuer: "test", Subject: "bob"}}).Connect(t, mux)
	if _, err := bob.Listen(t.Context(), uris(1), ignore); err != nil {
		t.Errorf("another caller: %v", err)
	}
	cancel()
	<-first.Done()
	for { // the server notices the end a moment later
		if _, err := c.Listen(t.Context(), uris(1), ignore); err == nil {
			break
		} else if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
	_, err = c.Listen(t.Context(), uris(1), ignore)
	wantCode(t, err, mcp.CodeRateLimited) // the remaining one still counts
}

// A session that exceeds the subscription limit keeps its existing subscriptions.
func TestFindingS9Sessions(t *testing.T) {
	mux := mcp.NewMux("m", "v1", mcp.LimitSubscriptions(quiet(), 2, 1000))
	mux.Resource("notes://{id}", reads("note"))
	c := (&mcptest.Client{Options: mcp.ClientOptions{Version: "2025-11-25"}}).Connect(t, mux)
	s, changes := listen(t, c, mcp.SubscriptionFilter{ResourceSubscriptions: []string{"notes://1", "notes://2", "notes://3"}})
	if !slices.Equal(s.Accepted().ResourceSubscriptions, []string{"notes://1", "notes://2"}) {
		t.Fatalf("got %+v", s.Accepted())
	}
	mux.ResourceUpdated("notes://3")
	mux.ResourceUpdated("notes://2")
	if got := next(t, changes, mcp.NotificationResourceUpdated); got.URI != "notes://2" {
		t.Errorf("got %s", got.URI)
	}
}

// Callers that can read a file can subscribe to it. Subscribing does not read its content.
func TestFindingU3Files(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("file:///{+path}", mcp.FileServerFS(fstest.MapFS{
		"dir/a.txt": {Data: []byte("a")}, "dir/large": {Data: make([]byte, 100)}, ".env": {Data: []byte("x")},
	}, &mcp.FileServerOptions{MaxBytes: 10}))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for uri, want := range map[string]bool{
			"file:///dir/a.txt": true, "file:///dir/": true, "file:///dir/large": true,
			"file:///.env": false, "file:///dir/none": false, "file:///dir/a.txt/": false, "file:///../x": false,
		} {
			if got := accepts(t, c, uri); got != want {
				t.Errorf("%s: a subscription is accepted: %t", uri, got)
			}
		}
	})
}
