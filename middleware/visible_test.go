// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// hiding returns a server with items that only admins can see.
func hiding() *mcp.Mux {
	mux := mcp.NewMux("hiding", "v1", &mcp.MuxOptions{ListCache: mcp.CacheFor(0, mcp.CachePublic)})
	mux.Use(middleware.Visible(func(ctx context.Context, _ mcp.Kind, name string) bool {
		p := mcp.PrincipalFromContext(ctx)
		return !strings.Contains(name, "admin") || p != nil && p.Subject == "root"
	}))
	for _, name := range []string{"admin", "public"} {
		mux.Tool(name, mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return name, nil }, nil))
		mux.Prompt(name, mcp.PromptFunc(func(context.Context, struct{}) (string, error) { return name, nil }, nil))
		mux.Resource("test:///"+name, mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return name, nil }, nil))
		mux.Resource("test:///"+name+"/{x}", mcp.ResourceFunc(func(context.Context, map[string]string) (string, error) { return name, nil }, nil))
	}
	return mux
}

// T45: a hidden item is not listed, and requests for it fail exactly as for an unknown one.
func TestVisible(t *testing.T) {
	requests := []struct {
		method string
		params func(name string) any
	}{
		{mcp.MethodCallTool, func(name string) any { return &mcp.CallToolParams{Name: name} }},
		{mcp.MethodGetPrompt, func(name string) any { return &mcp.GetPromptParams{Name: name} }},
		{mcp.MethodReadResource, func(name string) any { return &mcp.ReadResourceParams{URI: "test:///" + name} }},
		{mcp.MethodReadResource, func(name string) any { return &mcp.ReadResourceParams{URI: "test:///" + name + "/x"} }},
		{mcp.MethodComplete, func(name string) any {
			return &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/prompt", Name: name}, Argument: mcp.CompleteArgument{Name: "x"}}
		}},
		{mcp.MethodComplete, func(name string) any {
			return &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/resource", URI: "test:///" + name + "/{x}"}, Argument: mcp.CompleteArgument{Name: "x"}}
		}},
	}
	lists := []string{mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates}
	for subject, sees := range map[string]bool{"root": true, "guest": false} {
		client := &mcptest.Client{Principal: &mcp.Principal{Subject: subject}}
		client.Run(t, hiding(), func(t *testing.T, c *mcp.Conn) {
			for _, r := range requests {
				_, hidden := request(t, c, r.method, r.params("admin"))
				_, absent := request(t, c, r.method, r.params("nobody"))
				if absent == nil || (hidden == nil) != sees {
					t.Fatalf("%s %s: hidden %v, absent %v", subject, r.method, hidden, absent)
				}
				if same := strings.ReplaceAll(fmt.Sprintf("%+v", absent), "nobody", "admin"); !sees && fmt.Sprintf("%+v", hidden) != same {
					t.Errorf("%s: what is hidden answers %v, what is absent %v", r.method, hidden, absent)
				}
			}
			for _, method := range lists {
				res, err := request(t, c, method, nil)
				if err != nil {
					t.Fatalf("%s: %v", method, err)
				}
				raw := encoded(method, res)
				if strings.Contains(raw, "admin") != sees || !strings.Contains(raw, "public") {
					t.Errorf("%s sees in %s: %s", subject, method, raw)
				}
				if strings.Contains(raw, `"cacheScope":"public"`) {
					t.Errorf("%s is public: %s", method, raw)
				}
			}
		})
	}
}

// A subscription does not include updates of hidden resources.
func TestVisibleListen(t *testing.T) {
	c := (&mcptest.Client{Principal: &mcp.Principal{Subject: "guest"}}).Connect(t, hiding())
	s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{"test:///admin", "test:///public"}}, func(mcp.Change) {})
	if err != nil || fmt.Sprint(s.Accepted().ResourceSubscriptions) != "[test:///public]" {
		t.Errorf("accepted %+v, %v", s, err)
	}
}

func ExampleVisible() {
	mux := mcp.NewMux("server", "v1.0.0", nil)
	mux.Use(middleware.Visible(func(ctx context.Context, _ mcp.Kind, name string) bool {
		return !strings.HasPrefix(name, "admin_") || mcp.PrincipalFromContext(ctx).HasScope("admin")
	}))
	mux.Tool("admin_reset", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil))
	ctx := context.Background()
	conn, err := mcp.NewClient("client", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	_, err = conn.CallTool(ctx, &mcp.CallToolParams{Name: "admin_reset"})
	fmt.Println(err)
	// Output: unknown tool "admin_reset" (code -32602)
}

// tree returns a mux with a tree of resources. Those with "secret" in their names are
// hidden from everyone but root. All results may be cached for everyone.
func tree() *mcp.Mux {
	mux := mcp.NewMux("tree", "v1", &mcp.MuxOptions{Logger: quiet().Logger, ListCache: mcp.CacheFor(time.Minute, mcp.CachePublic)})
	mux.Use(middleware.Visible(func(ctx context.Context, _ mcp.Kind, name string) bool {
		p := mcp.PrincipalFromContext(ctx)
		return !strings.Contains(name, "secret") || p != nil && p.Subject == "root"
	}))
	mux.Resource("tree:///{dir}/{+path}", files{})
	return mux
}

// files serves the resources of a tree. Reading a directory returns several contents.
type files struct{}

func (files) ServeMCP(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	contents := []*mcp.ResourceContents{{URI: req.Name(), Text: "text"}}
	if strings.HasSuffix(req.Name(), "/") {
		contents = append(contents, &mcp.ResourceContents{URI: req.Name() + "open", Text: "text"}, &mcp.ResourceContents{URI: req.Name() + "secret", Text: "text"})
	}
	return &mcp.ReadResourceResult{Contents: contents, Cacheable: mcp.CacheFor(time.Minute, mcp.CachePublic)}, nil
}

func (files) Describe() mcp.Description {
	return &mcp.Resource{Name: "files", Completers: map[string]mcp.Completer{
		"dir":  mcp.CompleteFrom("docs", "secrets"),
		"path": mcp.CompleteFrom("open", "secret", "sub/", "sub/secret"),
	}}
}

func asSubject(name string) *mcptest.Client {
	return &mcptest.Client{Principal: &mcp.Principal{Subject: name}}
}

// Visible makes the results of reads private: a shared cache would serve them to callers
// from which they are hidden.
func TestFindingS16VisibleIsPrivate(t *testing.T) {
	for _, h := range []mcp.Handler{tree(), middleware.Visible(func(context.Context, mcp.Kind, string) bool { return true })(tree())} {
		for method, params := range map[string]any{
			mcp.MethodReadResource: &mcp.ReadResourceParams{URI: "tree:///docs/secret"}, mcp.MethodListTools: nil,
			mcp.MethodListPrompts: nil, mcp.MethodListResources: nil, mcp.MethodListResourceTemplates: nil,
		} {
			res, err := h.ServeMCP(t.Context(), as(&mcp.Principal{Subject: "root"}, mcptest.NewRequest(method, params)))
			if mcp.CodeOf(err) == mcp.CodeMethodNotFound {
				continue // not supported
			}
			if scope := cacheScope(res); err != nil || scope != mcp.CachePrivate {
				t.Errorf("%s: %q, %v", method, scope, err)
			}
		}
	}
	asSubject("root").Run(t, tree(), func(t *testing.T, c *mcp.Conn) {
		res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "tree:///docs/secret"})
		if err != nil || res.CacheScope == mcp.CachePublic {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

func cacheScope(res mcp.Result) string {
	switch r := res.(type) {
	case *mcp.ReadResourceResult:
		return r.CacheScope
	case *mcp.ListToolsResult:
		return r.CacheScope
	case *mcp.ListPromptsResult:
		return r.CacheScope
	case *mcp.ListResourcesResult:
		return r.CacheScope
	case *mcp.ListResourceTemplatesResult:
		return r.CacheScope
	}
	return ""
}

// A shared cache in front of a server with Visible does not serve the results of one caller
// to others.
func TestFindingS16SharedCache(t *testing.T) {
	h := middleware.NewCache(nil).Middleware(tree())
	read := func(subject string) error {
		_, err := h.ServeMCP(t.Context(), as(&mcp.Principal{Subject: subject}, mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "tree:///docs/secret"})))
		return err
	}
	if err := read("root"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, read("guest"), mcp.CodeInvalidParams)
}

// A completion contains neither values that result in the URI of a hidden resource nor a
// total.
func TestFindingS18VisibleCompletion(t *testing.T) {
	complete := func(uri, argument string, chosen map[string]string) *mcp.CompleteParams {
		return &mcp.CompleteParams{
			Ref: mcp.CompleteRef{Type: "ref/resource", URI: uri}, Argument: mcp.CompleteArgument{Name: argument},
			Context: &mcp.CompleteContext{Arguments: chosen},
		}
	}
	const template = "tree:///{dir}/{+path}"
	for name, test := range map[string]struct {
		params      *mcp.CompleteParams
		guest, root string
	}{
		"first variable":  {complete(template, "dir", nil), "[docs]", "[docs secrets]"},
		"second variable": {complete(template, "path", map[string]string{"dir": "docs"}), "[open sub/]", "[open secret sub/ sub/secret]"},
		"without context": {complete(template, "path", nil), "[open sub/]", "[open secret sub/ sub/secret]"},
		"below hidden":    {complete(template, "path", map[string]string{"dir": "secrets"}), "[]", "[open secret sub/ sub/secret]"},
		// The URIs of the values are unknown, even for root.
		"by a URI": {complete("tree:///docs/open", "path", nil), "[]", "[]"},
	} {
		for subject, want := range map[string]string{"guest": test.guest, "root": test.root} {
			asSubject(subject).Run(t, tree(), func(t *testing.T, c *mcp.Conn) {
				res, err := c.Complete(t.Context(), test.params)
				if err != nil || fmt.Sprint(res.Completion.Values) != want || res.Completion.Total != nil {
					t.Errorf("%s, for %s: %+v, %v; want %s", name, subject, res, err, want)
				}
			})
		}
	}
}

// The total is removed, because it includes hidden values.
func TestFindingS18VisibleCompletionTotal(t *testing.T) {
	h := middleware.Visible(func(_ context.Context, _ mcp.Kind, name string) bool { return name != "a:7" })(mcp.HandlerFunc(
		func(context.Context, *mcp.Request) (mcp.Result, error) {
			total := 120
			return &mcp.CompleteResult{Completion: mcp.Completion{Values: []string{"6", "7"}, Total: &total, HasMore: true}}, nil
		}))
	res, err := h.ServeMCP(t.Context(), mcptest.NewRequest(mcp.MethodComplete, &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/resource", URI: "a:{x}"}, Argument: mcp.CompleteArgument{Name: "x"}}))
	c := res.(*mcp.CompleteResult).Completion
	if err != nil || !slices.Equal(c.Values, []string{"6"}) || c.Total != nil || !c.HasMore {
		t.Errorf("%+v, %v", c, err)
	}
}

// A subscription to a directory does not include updates of hidden resources below it.
func TestFindingS18CM18VisibleUpdates(t *testing.T) {
	for subject, sees := range map[string]bool{"root": true, "guest": false} {
		mux := tree()
		mounting := mcp.NewMux("outer", "v1", quiet())
		mounting.Mount("in_", mux)
		prefix := map[mcp.Handler]string{mux: "", mounting: "mount:in_:"}
		for _, h := range []mcp.Handler{mux, mounting} {
			asSubject(subject).Run(t, h, func(t *testing.T, c *mcp.Conn) {
				changes := listen(t, c, mcp.SubscriptionFilter{ResourceSubscriptions: []string{prefix[h] + "tree:///docs/"}})
				for _, name := range []string{"open", "secret", "zebra"} {
					mux.ResourceUpdated("tree:///docs/" + name)
				}
				told := updatesUntil(t, changes, prefix[h]+"tree:///docs/zebra")
				if slices.Contains(told, prefix[h]+"tree:///docs/secret") != sees || !slices.Contains(told, prefix[h]+"tree:///docs/open") {
					t.Errorf("%s is told of %q", subject, told)
				}
			})
		}
	}
}

// updatesUntil returns the URIs of updates up to and including last.
func updatesUntil(t *testing.T, changes <-chan mcp.Change, last string) []string {
	t.Helper()
	var uris []string
	for {
		select {
		case change := <-changes:
			if uris = append(uris, change.URI); change.URI == last {
				return uris
			}
		case <-t.Context().Done():
			t.Fatalf("%q, and then nothing", uris)
		}
	}
}

// The function passed to Visible may log, even about the subscription that it filters.
func TestFindingCM18VisibleLogs(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(middleware.Visible(func(ctx context.Context, _ mcp.Kind, name string) bool {
		_ = mcp.RequestFromContext(ctx).Notify(ctx, mcp.NotificationMessage, map[string]any{"level": "info", "data": name})
		return !strings.Contains(name, "secret")
	}))
	mux.Resource("tree:///{dir}/{+path}", files{})
	asSubject("guest").Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		changes := listen(t, c, mcp.SubscriptionFilter{ResourceSubscriptions: []string{"tree:///docs/"}})
		mux.ResourceUpdated("tree:///docs/secret")
		mux.ResourceUpdated("tree:///docs/zebra")
		if told := updatesUntil(t, changes, "tree:///docs/zebra"); len(told) != 1 {
			t.Errorf("told of %q", told)
		}
	})
}

// If a resource has several contents, the hidden ones are omitted.
func TestFindingS18VisibleContents(t *testing.T) {
	for subject, want := range map[string]int{"root": 3, "guest": 2} {
		asSubject(subject).Run(t, tree(), func(t *testing.T, c *mcp.Conn) {
			res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "tree:///docs/sub/"})
			if err != nil || len(res.Contents) != want {
				t.Errorf("%s reads %+v, %v", subject, res, err)
			}
		})
	}
}

// A hidden resource cannot be read under another spelling of its URI that would give the
// handler the same variables.
func TestFindingS18VisibleSpelling(t *testing.T) {
	const hidden = "tree:///hr/b/secret-\u00df.txt"
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(middleware.Visible(func(_ context.Context, _ mcp.Kind, name string) bool {
		return !strings.HasPrefix(name, "tree:///hr/b/secret-%C3%9F")
	}))
	mux.Resource("tree:///{dir}/{+path}", files{})
	asSubject("guest").Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for _, uri := range []string{
			hidden, "tree:///hr/b/secret-%C3%9F.txt", "tree:///hr/b/secret-%c3%9f.txt", "tree:///%68r/b/secret-%C3%9F.txt", "tree:///hr/b%2Fsecret-%C3%9F.txt",
			"tree:///hr/b%2fsecret%2D%C3%9F%2Etxt", "tree:///hr/%62/%73ecret-\u00df.txt",
		} {
			res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err == nil {
				t.Errorf("%s is read: %+v", uri, res)
			}
			s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}}, func(mcp.Change) {})
			if err == nil && len(s.Accepted().ResourceSubscriptions) != 0 {
				t.Errorf("%s is subscribed to", uri)
			}
		}
		for _, uri := range []string{"tree:///hr/b/public", "tree:///hr/b%2Fpublic", "tree:///hr/b/%70ublic-\u00df", "tree:///hr/100%25"} {
			if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err != nil {
				t.Errorf("%s: %v", uri, err)
			}
		}
	})
}

// The same holds for spellings used by a mounted server.
func TestFindingS18VisibleSpellingOfServers(t *testing.T) {
	hide := middleware.Visible(func(_ context.Context, _ mcp.Kind, name string) bool { return !strings.Contains(name, "secret") })
	list := &mcp.ListResourcesResult{Resources: []*mcp.Resource{{URI: "a:open"}, {URI: "a:%73ecret"}, nil}}
	res, err := hide(&server{res: list}).ServeMCP(t.Context(), mcptest.NewRequest(mcp.MethodListResources, nil))
	if got, ok := res.(*mcp.ListResourcesResult); !ok || len(got.Resources) != 1 || got.Resources[0].URI != "a:open" {
		t.Errorf("%+v, %v", res, err)
	}
	read := &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "a:"}, {URI: "a:%73ecret"}}}
	res, err = hide(&server{res: read}).ServeMCP(t.Context(), mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "a:"}))
	if got, ok := res.(*mcp.ReadResourceResult); !ok || len(got.Contents) != 1 {
		t.Errorf("%+v, %v", res, err)
	}
}

// Every method that reaches the middleware of a registration fails as if the item did not
// exist, or with an error about the missing scope.
func TestFindingS6MethodsOfRegistrations(t *testing.T) {
	hide := middleware.Visible(func(_ context.Context, _ mcp.Kind, name string) bool { return !strings.Contains(name, "secret") })
	guard := middleware.RequireScopes("admin")
	requests := []*mcp.Request{
		mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "secret"}),
		mcptest.NewRequest(mcp.MethodGetPrompt, &mcp.GetPromptParams{Name: "secret"}),
		mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: "secret:"}),
		mcptest.NewRequest("resources/subscribe", &mcp.ReadResourceParams{URI: "secret:"}),
		mcptest.NewRequest(mcp.MethodComplete, &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/prompt", Name: "secret"}}),
		mcptest.NewRequest(mcp.MethodComplete, &mcp.CompleteParams{Ref: mcp.CompleteRef{Type: "ref/resource", URI: "secret:{x}"}}),
	}
	for _, req := range requests {
		s := &server{res: &mcp.EmptyResult{}}
		_, err := hide(s).ServeMCP(t.Context(), req)
		if wantCode(t, err, mcp.CodeInvalidParams); s.calls != 0 {
			t.Errorf("Visible let %s through", req.Method)
		}
	}
	for _, method := range []string{
		mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates,
		mcp.MethodComplete, mcp.MethodListen, "resources/subscribe", mcp.MethodReadResource,
	} {
		for scope, passes := range map[string]bool{"admin": true, "user": false} {
			s := &server{res: &mcp.EmptyResult{}}
			_, err := guard(s).ServeMCP(t.Context(), as(&mcp.Principal{Subject: "s", Scopes: []string{scope}}, mcptest.NewRequest(method, nil)))
			if (err == nil) != passes || (s.calls == 1) != passes || !passes && mcp.CodeOf(err) != mcp.CodeInsufficientScope {
				t.Errorf("%s with the scope %s: %v", method, scope, err)
			}
		}
	}
}

// The function is called with the spelling that templates produce, however a byte is
// encoded in the URI.
func TestVisibleSpellings(t *testing.T) {
	for uri, want := range map[string]string{
		"tree:///hr/%70": "tree:///hr/p", "tree:///hr/%7e": "tree:///hr/~", "tree:///hr/%0a": "tree:///hr/%0A", "tree:///hr/\u00e9": "tree:///hr/%C3%A9",
	} {
		mux := mcp.NewMux("m", "v1", quiet())
		seen := map[string]bool{}
		mux.Use(middleware.Visible(func(_ context.Context, _ mcp.Kind, name string) bool {
			seen[name] = true
			return true
		}))
		mux.Resource("tree:///{dir}/{+path}", files{})
		c := (&mcptest.Client{}).Connect(t, mux)
		if _, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err != nil || !seen[want] {
			t.Errorf("%s: asked for %v, want %s; %v", uri, slices.Collect(maps.Keys(seen)), want, err)
		}
	}
}

// Lists do not pass the middleware of one registration. Middleware that hides cannot be used
// there, and says where it can.
func TestFindingR27HidingOneRegistration(t *testing.T) {
	for name, hides := range map[string]mcp.Middleware{
		"Visible": middleware.Visible(func(context.Context, mcp.Kind, string) bool { return false }),
		"Allow":   middleware.Allow(mcp.KindTool, "a"),
		"Deny":    middleware.Deny(mcp.KindTool, "a"),
	} {
		registrations := map[string]func(*mcp.Mux){
			"tool": func(m *mcp.Mux) { m.Tool("t", says("")) },
			"prompt": func(m *mcp.Mux) {
				m.Prompt("p", mcp.WithDescription(mcp.HandlerFunc(says("").ServeMCP), &mcp.Prompt{}))
			},
			"resource": func(m *mcp.Mux) {
				m.Resource("r:r", mcp.WithDescription(mcp.HandlerFunc(says("").ServeMCP), &mcp.Resource{Name: "r"}))
			},
		}
		for kind, register := range registrations {
			func() {
				defer func() {
					text := fmt.Sprint(recover())
					for _, part := range []string{kind + " ", "visible_test.go:", "Use", "mount"} {
						if !strings.Contains(text, part) {
							t.Errorf("%s around a %s: %s, without %q", name, kind, text, part)
						}
					}
				}()
				register(mcp.NewMux("m", "v1", quiet()).With(hides))
			}()
		}
		mux := mcp.NewMux("m", "v1", quiet())
		inner := mcp.NewMux("inner", "v1", quiet())
		inner.Tool("t", says(""))
		mux.With(hides).Mount("in_", inner) // lists pass the middleware of a mount
		mux.Use(hides)
	}
}

// A URI that is too long to be matched here may be short enough without the prefix of a mount.
func TestLongURIsPassByNoPolicy(t *testing.T) {
	inner := mcp.NewMux("inner", "v1", quiet())
	inner.Resource("kbinfo://hr/{id}{?q}", mcp.ResourceFunc(func(context.Context, map[string]string) (string, error) { return "read", nil }, nil))
	mux := mcp.NewMux("outer", "v1", quiet())
	mux.Use(middleware.Deny(mcp.KindResource, "mount:in_:kbinfo://hr/*"))
	mux.Mount("in_", inner)
	conn := mcptest.Connect(t, mux)
	const begin, longest = "KBINFO://hr/7?q=", 8 << 10
	for n := longest - 10; n <= longest+10; n++ {
		uri := "mount:in_:" + begin + strings.Repeat("a", n-len(begin))
		if _, err := conn.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("a URI of %d bytes, %d of them inside the mount, was read", len(uri), n)
		}
	}
}

// A server behind a gateway may parse URIs as the URL standard says. The official TypeScript
// SDK does, and answers each of these spellings with the denied resource.
func TestParsedURIsPassByNoPolicy(t *testing.T) {
	inner := mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Name(), Text: "read"}}}, nil
	})
	newConn := func(policy mcp.Middleware) *mcp.Conn {
		mux := mcp.NewMux("outer", "v1", quiet())
		mux.Use(policy)
		mux.Mount("in_", inner)
		return mcptest.Connect(t, mux)
	}
	reads := func(c *mcp.Conn, uri string) bool {
		_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "mount:in_:" + uri})
		return err == nil
	}
	const file, kb, web = "file:///", "kbinfo://x/", "https://a.example/"
	denying := newConn(middleware.Deny(mcp.KindResource, "*:"+file+"hr/*", "*:"+kb+"hr/*", "*:"+web+"hr/*"))
	allowing := newConn(middleware.Allow(mcp.KindResource, "*:"+file+"pub/*", "*:"+kb+"pub/*", "*:"+web+"pub/*"))
	for _, uri := range []string{
		file + "pub/../hr/1", file + "pub/..\\hr/1", file + "pub/.\t./hr/1", file + "/../hr/1", "file:/hr/1", "file:hr/1", "file:../hr/1", "file:\\\\\\hr\\1", "FILE:\\/\t/hr/1",
		"file://localhost/hr/1", "file://LOCALHOST/hr/1", "file://loc%61lhost/hr/1", "file://\uff4cocalhost/hr/1",
		kb + "pub/../hr/1", kb + "pub/%2e%2E/hr/1", kb + "./hr/1", "kb\tinfo://x/hr/1", kb + "h\nr/1", "\x01" + kb + "hr/1", " " + kb + "hr/1", "KB\rINFO://x/pub/.%2e/hr/1 ",
		web + "pub/../hr/1", "https://a.example:443/hr/1", "https:a.example/hr/1", "https:////a.example\\hr\\1", "https://%61.example/hr/1", "https://a.example:/hr/1",
		"https://@a.example/hr/1", "https://:@a.example:0443/hr/1", "https://a.example.:443/hr/1", "https://a.0x7f/../hr/1", "kbinfo://@x/hr/1", "kbinfo://x:/hr/1",
	} {
		if reads(denying, uri) {
			t.Errorf("Deny: %q was read", uri)
		}
		if reads(allowing, uri) {
			t.Errorf("Allow: %q was read", uri)
		}
	}
	for uri, isAllowed := range map[string]bool{
		file + "pub/hr/1": true, file + "pub/.hidden": true, kb + "pub/..a/1": true, kb + "pub/1?a=/../hr/1": true, web + "pub/1#/../hr/1": true,
		kb + "pub/%5C": true, "https://a.example:8443/pub/1": false, "db://user@host:5432/table": false, "http://10.example/1": false, "http://127.0.0.1:8080/1": false, "http://[::1]/1": false, "urn:hr:1": false,
	} {
		if !reads(denying, uri) || reads(allowing, uri) != isAllowed {
			t.Errorf("%q: Deny must let it pass, and Allow: %t", uri, isAllowed)
		}
	}
}
