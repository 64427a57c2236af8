// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// spelledURIs are pairs of a registration, and the spelling of a client of one URI. form is
// the normal form, in which middleware and handlers see the URI.
var spelledURIs = []struct{ registered, asked, form, value string }{
	{"KBInfo://summary", "kbinfo://summary", "kbinfo://summary", ""},
	{"KBInfo://summary", "KBInfo://summary", "kbinfo://summary", ""},
	{"kbinfo://summary", "KBInfo://summary", "kbinfo://summary", ""},
	{"https://example.com", "https://example.com/", "https://example.com/", ""},
	{"https://example.com", "https://example.com", "https://example.com/", ""},
	{"https://example.com/a", "HTTPS://Example.COM/a", "https://example.com/a", ""},
	{"notes://café/menu", "notes://café/menu", "notes://caf%C3%A9/menu", ""},
	{"notes://café/menu", "notes://caf%C3%A9/menu", "notes://caf%C3%A9/menu", ""},
	{"notes://café/menu", "notes://caf%c3%a9/menu", "notes://caf%C3%A9/menu", ""},
	{"notes://café/items/{id}", "notes://café/items/5", "notes://caf%C3%A9/items/5", "5"},
	{"notes://café/items/{id}", "notes://caf%C3%A9/items/5", "notes://caf%C3%A9/items/5", "5"},
	{"repo://{id}/{repo}", "repo://a b/c", "repo://a%20b/c", "a b"},
	{"repo://{id}/{repo}", "repo://a%20b/c", "repo://a%20b/c", "a b"},
	{"KBInfo://items/{id}", "kbinfo://items/{5}", "kbinfo://items/%7B5%7D", "{5}"},
}

// URIs are compared as URIs: every spelling is found, is answered as it was asked for, and is
// seen by middleware and handlers in one form, in every era and through a gateway.
func TestFindingR23SpellingsOfAResource(t *testing.T) {
	for _, spelled := range spelledURIs {
		t.Run(spelled.registered+" as "+spelled.asked, func(t *testing.T) {
			var seen []string
			see := func(next mcp.Handler) mcp.Handler {
				return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
					if req.Method == mcp.MethodReadResource {
						seen = append(seen, req.Name())
						var p mcp.ReadResourceParams
						_ = req.Decode(&p)
						seen = append(seen, p.URI)
					}
					return next.ServeMCP(ctx, req)
				})
			}
			mux := mcp.NewMux("m", "v1", quiet())
			mux.Use(see)
			mux.With(see).Resource(spelled.registered, mcp.ResourceFunc(func(_ context.Context, in map[string]string) (string, error) {
				return "value " + in["id"], nil
			}, nil))
			gateway := mcp.NewMux("g", "v1", quiet())
			gateway.Use(see)
			gateway.Mount("m_", mux)
			for prefix, h := range map[string]mcp.Handler{"": mux, "mount:m_:": gateway} {
				t.Run(prefix, func(t *testing.T) {
					mcptest.Run(t, h, func(t *testing.T, c *mcp.Conn) {
						seen = nil
						res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: prefix + spelled.asked})
						if err != nil || len(res.Contents) != 1 || res.Contents[0].URI != prefix+spelled.asked || res.Contents[0].Text != "value "+spelled.value {
							t.Fatalf("got %+v, %v", res, err)
						}
						for _, uri := range seen {
							if strings.TrimPrefix(uri, prefix) != spelled.form {
								t.Errorf("middleware saw %q", seen)
							}
						}
						changes := make(chan mcp.Change, 10)
						s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{prefix + spelled.asked}}, func(change mcp.Change) { changes <- change })
						if err != nil || !slices.Equal(s.Accepted().ResourceSubscriptions, []string{prefix + spelled.asked}) {
							t.Fatalf("accepted %+v, %v", s, err)
						}
						mux.ResourceUpdated(strings.ReplaceAll(spelled.registered, "{id}/{repo}", "a b/c"))
						mux.ResourceUpdated(spelled.form)
						if got := next(t, changes, mcp.NotificationResourceUpdated); got.URI != prefix+spelled.asked {
							t.Errorf("notified of %s", got.URI)
						}
						s.Close()
					})
				})
			}
		})
	}
}

// A resource that does not exist is named in the error as the caller spelled it.
func TestFindingR23MissingResource(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("x:{id}", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return nil, mcp.NewResourceNotFoundError(req.Name())
	}))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		for _, uri := range []string{"X:é", "Y:é"} {
			_, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", uri)) {
				t.Errorf("%s: got %v", uri, err)
			}
		}
	})
}

// One registration serves all spellings: another one conflicts, in this mux and in a mux
// mounted in it, and any spelling removes it. It is listed as it was registered.
func TestFindingR23SpellingsOfARegistration(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("KBInfo://café", reads("a"))
	mux.Resource("KBInfo://café/{id}", mcp.ResourceFunc(func(context.Context, map[string]string) (string, error) { return "", nil }, nil))
	wantPanic(t, func() { mux.Resource("kbinfo://caf%c3%a9", reads("b")) }, "registered at")
	wantPanic(t, func() { mux.Resource("kbinfo://caf%C3%A9/{id}", reads("b")) }, "registered at")
	wantPanic(t, func() { mux.Resource("kbinfo://caf%C3%A9/{other}", reads("b")) }, "conflicts")
	gateway := mcp.NewMux("g", "v1", quiet())
	gateway.Mount("m_", mux)
	wantPanic(t, func() { gateway.Resource("MOUNT:m_:x:y", reads("b")) }, "belong to the mount")
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		resources, err := c.ListResources(t.Context(), nil)
		if err != nil || len(resources.Resources) != 1 || resources.Resources[0].URI != "KBInfo://café" {
			t.Errorf("listed %+v, %v", resources, err)
		}
		templates, err := c.ListResourceTemplates(t.Context(), nil)
		if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].URITemplate != "KBInfo://café/{id}" {
			t.Errorf("listed %+v, %v", templates, err)
		}
	})
	mux.RemoveResource("KBINFO://caf%c3%a9", "kbinfo://caf%C3%A9/{id}")
	mux.Resource("kbinfo://caf%c3%a9", reads("b"))
	mux.Resource("kbinfo://caf%C3%A9/{other}", reads("b"))
}

// A client completes the variables of a template in the spelling that it has been listed in,
// or in another one.
func TestFindingR23SpellingsInCompletion(t *testing.T) {
	var seen string
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("Notes://café/{id}", mcp.ResourceFunc(func(context.Context, map[string]string) (string, error) { return "", nil },
		&mcp.Resource{Completers: map[string]mcp.Completer{"id": func(_ context.Context, p *mcp.CompleteParams) ([]string, error) {
			seen = p.Ref.URI
			return []string{"1"}, nil
		}}}))
	gateway := mcp.NewMux("g", "v1", quiet())
	gateway.Mount("m_", mux)
	for prefix, h := range map[string]mcp.Handler{"": mux, "mount:m_:": gateway, "MOUNT:m_:": gateway} {
		mcptest.Run(t, h, func(t *testing.T, c *mcp.Conn) {
			for _, ref := range []string{"Notes://café/{id}", "notes://caf%C3%A9/{id}", "NOTES://caf%c3%a9/{id}"} {
				res, err := c.Complete(t.Context(), &mcp.CompleteParams{
					Ref: mcp.CompleteRef{Type: "ref/resource", URI: prefix + ref}, Argument: mcp.CompleteArgument{Name: "id"},
				})
				if err != nil || len(res.Completion.Values) != 1 || seen != "notes://caf%C3%A9/{id}" {
					t.Errorf("%s: got %+v, %v; the completer saw %s", ref, res, err, seen)
				}
			}
		})
	}
}

// A mounted server that compares URIs byte for byte receives them as it has listed them,
// although the gateway compares them in another form.
func TestFindingR23MountedServersComparingBytes(t *testing.T) {
	const listed = "KBInfo://café au lait"
	behind := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		switch req.Method {
		case mcp.MethodDiscover:
			return &mcp.DiscoverResult{SupportedVersions: mcp.ModernVersions(), Capabilities: &mcp.ServerCapabilities{Resources: &mcp.ResourcesCapability{Subscribe: true}}}, nil
		case mcp.MethodReadResource:
			if req.Name() == listed {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: listed, Text: "text"}}}, nil
			}
		case mcp.MethodListen:
			var p mcp.ListenParams
			if err := req.Decode(&p); err != nil {
				return nil, err
			}
			meta := mcp.Meta{}
			meta.Set(mcp.MetaSubscriptionID, req.ID)
			accepted := mcp.SubscriptionFilter{}
			if slices.Contains(p.Notifications.ResourceSubscriptions, listed) {
				accepted.ResourceSubscriptions = []string{listed}
			}
			_ = req.Notify(ctx, mcp.NotificationAcknowledged, &mcp.AcknowledgedParams{Notifications: accepted, Meta: meta})
			_ = req.Notify(ctx, mcp.NotificationResourceUpdated, &mcp.ResourceUpdatedParams{URI: listed, Meta: meta})
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return nil, mcp.NewResourceNotFoundError(req.Name())
	})
	gateway := mcp.NewMux("g", "v1", quiet())
	gateway.Mount("b_", behind)
	mcptest.Run(t, gateway, func(t *testing.T, c *mcp.Conn) {
		const uri = "mount:b_:" + listed
		res, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri})
		if err != nil || res.Contents[0].URI != uri {
			t.Errorf("got %+v, %v", res, err)
		}
		_, changes := listen(t, c, mcp.SubscriptionFilter{ResourceSubscriptions: []string{uri}})
		if got := next(t, changes, mcp.NotificationResourceUpdated); got.URI != uri {
			t.Errorf("notified of %s", got.URI)
		}
	})
}

// No spelling of a hidden resource passes by a policy, directly, through a mount, or through
// a mount of a mount: neither reading, nor subscribing, nor completing.
func TestFindingR23NoSpellingPassesByAPolicy(t *testing.T) {
	newMux := func(policy mcp.Middleware) *mcp.Mux {
		mux := mcp.NewMux("m", "v1", quiet())
		if policy != nil {
			mux.Use(policy)
		}
		return mux
	}
	register := func(mux *mcp.Mux) *mcp.Mux {
		for _, uri := range []string{"KBInfo://sécret/1", "https://Secret.example", "kbinfo://{+any}", "https://{+any}"} {
			mux.Resource(uri, mcp.ResourceFunc(func(context.Context, map[string]string) (string, error) { return "read", nil }, nil))
		}
		return mux
	}
	policies := map[string]func(prefix string) mcp.Middleware{
		"Visible": func(string) mcp.Middleware {
			return middleware.Visible(func(_ context.Context, _ mcp.Kind, name string) bool {
				return !strings.Contains(name, "kbinfo://s%C3%A9cret/") && !strings.Contains(name, "https://secret.example/")
			})
		},
		"Deny": func(prefix string) mcp.Middleware {
			return middleware.Deny(mcp.KindResource, prefix+"KBInfo://sécret/*", prefix+"https://Secret.example", prefix+"https://Secret.example/*")
		},
		"Deny anywhere": func(string) mcp.Middleware {
			return middleware.Deny(mcp.KindResource, "*KBInfo://sécret/*", "*HTTPS://*ret.Example*", "mount:*:HTTPS://Secret.Example/*")
		},
		"RequireScopesFunc": func(string) mcp.Middleware {
			return middleware.RequireScopesFunc(func(_ mcp.Kind, name string) []string {
				if strings.Contains(name, "kbinfo://s%C3%A9cret/") || strings.Contains(name, "https://secret.example/") {
					return []string{"s"}
				}
				return nil
			})
		},
		"a middleware": func(prefix string) mcp.Middleware {
			hidden := []string{prefix + "kbinfo://s%C3%A9cret/1", prefix + "https://secret.example/"}
			return func(next mcp.Handler) mcp.Handler {
				return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
					var listen mcp.ListenParams
					var complete mcp.CompleteParams
					_, _ = req.Decode(&listen), req.Decode(&complete)
					for _, uri := range hidden {
						if req.Name() == uri || complete.Ref.URI == uri || slices.Contains(listen.Notifications.ResourceSubscriptions, uri) {
							return nil, mcp.NewResourceNotFoundError(uri)
						}
					}
					return next.ServeMCP(ctx, req)
				})
			}
		},
	}
	spelled := []string{
		"KBInfo://sécret/1", "kbinfo://sécret/1", "KBINFO://s%c3%a9cret/1", "kbinfo://s%C3%A9cret/1", "kbInfo://s%c3%A9cret/1",
		"https://Secret.example", "https://secret.example/", "HTTPS://SECRET.EXAMPLE", "https://secret.Example/",
	}
	for name, policy := range policies {
		inner, innermost := register(newMux(nil)), register(newMux(nil))
		direct, gateway, outer := register(newMux(policy(""))), newMux(policy("mount:m_:")), newMux(policy("mount:o_:mount:m_:"))
		gateway.Mount("m_", inner)
		middle := newMux(nil)
		middle.Mount("m_", innermost)
		outer.Mount("o_", middle)
		for _, prefix := range []string{"", "mount:m_:", "MOUNT:m_:", "mount:o_:mount:m_:", "Mount:o_:MOUNT:m_:"} {
			h := map[int]mcp.Handler{0: direct, 1: gateway, 2: outer}[strings.Count(strings.ToLower(prefix), "mount")]
			for _, uri := range spelled {
				uri = prefix + uri
				t.Run(name+" "+uri, func(t *testing.T) {
					if res, _, err := mcptest.Do(t, h, mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri})); err == nil {
						t.Errorf("read %+v", res)
					}
					for _, ack := range acknowledged(t, h, uri) {
						t.Errorf("subscribed to %s", ack)
					}
					res, _, err := mcptest.Do(t, h, mcptest.NewRequest(mcp.MethodComplete, &mcp.CompleteParams{
						Ref: mcp.CompleteRef{Type: "ref/resource", URI: uri}, Argument: mcp.CompleteArgument{Name: "any"},
					}))
					if err == nil {
						t.Errorf("completed %+v", res)
					}
				})
			}
		}
	}
}

// acknowledged returns the resources of a subscription that h accepts.
func acknowledged(t *testing.T, h mcp.Handler, uris ...string) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var accepted mcp.AcknowledgedParams
	req := mcptest.NewRequest(mcp.MethodListen, &mcp.ListenParams{Notifications: mcp.SubscriptionFilter{ResourceSubscriptions: uris}})
	_, _ = core.Serve(ctx, h, req, notifying(func(method string, params json.RawMessage) {
		if method == mcp.NotificationAcknowledged {
			_ = json.Unmarshal(params, &accepted)
			cancel()
		}
	}), quiet().Logger)
	cancel()
	return accepted.Notifications.ResourceSubscriptions
}

// A caller cannot tell a hidden resource from one that does not exist, however it spells the
// URI.
func TestFindingR23HiddenIsAbsentInEverySpelling(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(middleware.Deny(mcp.KindResource, "KBInfo://hidden*"))
	mux.Resource("KBInfo://hidden/{id}", mcp.ResourceFunc(func(context.Context, map[string]string) (string, error) { return "", nil }, nil))
	gateway := mcp.NewMux("g", "v1", quiet())
	gateway.Mount("m_", mux)
	for prefix, h := range map[string]mcp.Handler{"": mux, "mount:m_:": gateway} {
		refusals := func(name string) (texts []string) {
			uri := prefix + "kbINFO://" + name + "/"
			_, _, err := mcptest.Do(t, h, mcptest.NewRequest(mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri + "é"}))
			texts = append(texts, fmt.Sprint(err))
			_, _, err = mcptest.Do(t, h, mcptest.NewRequest(mcp.MethodComplete, &mcp.CompleteParams{
				Ref: mcp.CompleteRef{Type: "ref/resource", URI: uri + "{id}"}, Argument: mcp.CompleteArgument{Name: "id"},
			}))
			texts = append(texts, fmt.Sprint(err))
			for i := range texts {
				texts[i] = strings.ReplaceAll(texts[i], name, "NAME")
			}
			return texts
		}
		if hidden, absent := refusals("hidden"), refusals("absent"); !slices.Equal(hidden, absent) {
			t.Errorf("hidden: %q, absent: %q", hidden, absent)
		}
	}
}

// A page of MCP Apps has one URI at a gateway, however it is spelled.
func TestFindingR23PagesHaveOneURI(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("ui://Seats", reads("page"))
	gateway := mcp.NewMux("g", "v1", quiet())
	gateway.Mount("m_", mux)
	for uri, found := range map[string]bool{
		"ui://mount/m_/Seats": true, "UI://mount/m_/Seats": true,
		"mount:m_:ui://Seats": false, "mount:m_:UI://Seats": false, "MOUNT:m_:Ui://Seats": false,
	} {
		if _, err := readURI(t, gateway, uri); (err == nil) != found {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// A client that subscribes to two spellings of a URI is notified of each change in both, and
// updates below a directory are in the spelling of the directory.
func TestFindingR23SeveralSpellingsInASubscription(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Resource("KBInfo://dir/{+path}", mcp.ResourceFunc(func(context.Context, map[string]string) (string, error) { return "", nil }, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		_, changes := listen(t, c, mcp.SubscriptionFilter{ResourceSubscriptions: []string{"KBInfo://dir/é", "kbinfo://dir/é", "KBInfo://dir/sub/"}})
		mux.ResourceUpdated("kbinfo://dir/é")
		got := []string{next(t, changes, mcp.NotificationResourceUpdated).URI, next(t, changes, mcp.NotificationResourceUpdated).URI}
		slices.Sort(got)
		if !slices.Equal(got, []string{"KBInfo://dir/é", "kbinfo://dir/é"}) {
			t.Errorf("notified of %q", got)
		}
		mux.ResourceUpdated("kbinfo://dir/sub/1")
		if got := next(t, changes, mcp.NotificationResourceUpdated); got.URI != "KBInfo://dir/sub/1" {
			t.Errorf("notified of %s", got.URI)
		}
	})
}
