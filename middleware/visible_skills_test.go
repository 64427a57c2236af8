// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/skills"
	"github.com/go-psi/psi/middleware"
)

// withSkills returns a server with two skills, one of which is hidden. A file of the other
// is hidden, too.
func withSkills(t *testing.T, opts *skills.Options, mw func(isHidden func(kind mcp.Kind, name string) bool) mcp.Middleware) *mcp.Mux {
	catalog, err := skills.New(fstest.MapFS{
		"refunds/SKILL.md":           {Data: []byte("---\nname: refunds\ndescription: d\n---\n")},
		"refunds/secret.md":          {Data: []byte("s")},
		"refunds/notes/secret.md":    {Data: []byte("s")},
		"hr/salaries/SKILL.md":       {Data: []byte("---\nname: salaries\ndescription: d\n---\n")},
		"hr/salaries/tables/2026.md": {Data: []byte("s")},
	}, opts)
	if err != nil {
		t.Fatal(err)
	}
	mux := mcp.NewMux("skills", "v1.0.0", nil)
	mux.Use(mw(func(kind mcp.Kind, name string) bool {
		return kind == mcp.KindResource && (strings.HasPrefix(name, "skill://hr/") || strings.HasSuffix(name, "/secret.md"))
	}))
	catalog.Register(mux)
	return mux
}

// directory returns the names in a directory of a skill.
func directory(ctx context.Context, c *mcp.Conn, uri string) (string, error) {
	req, err := mcp.NewRequest(skills.MethodReadDirectory, &skills.ReadDirectoryParams{URI: uri})
	if err != nil {
		return "", err
	}
	res, err := c.ServeMCP(ctx, req)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(res)
	return string(raw), err
}

// Items hidden by their URIs are also hidden in the methods of skills.
func TestVisibleSkills(t *testing.T) {
	for name, mw := range map[string]func(isHidden func(kind mcp.Kind, name string) bool) mcp.Middleware{
		"Visible": func(isHidden func(kind mcp.Kind, name string) bool) mcp.Middleware {
			return middleware.Visible(func(_ context.Context, kind mcp.Kind, name string) bool { return !isHidden(kind, name) })
		},
		"RequireScopesFunc": func(isHidden func(kind mcp.Kind, name string) bool) mcp.Middleware {
			return middleware.RequireScopesFunc(func(kind mcp.Kind, name string) []string {
				if isHidden(kind, name) {
					return []string{"hr"}
				}
				return nil
			})
		},
		"Deny": func(func(kind mcp.Kind, name string) bool) mcp.Middleware {
			return middleware.Deny(mcp.KindResource, "skill://hr/*", "*/secret.md")
		},
		"Allow": func(func(kind mcp.Kind, name string) bool) mcp.Middleware {
			return middleware.Allow(mcp.KindResource, "skill://refunds/SKILL.md", "skill://nothing*")
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := (&mcptest.Client{}).Connect(t, withSkills(t, nil, mw))
			for s, err := range skills.List(t.Context(), c) {
				if err != nil || s.URI != "skill://refunds/SKILL.md" || len(s.Files) != 1 {
					t.Errorf("skills/list has %+v, %v", s, err)
				}
			}
			if s, err := skills.Get(t.Context(), c, "skill://refunds/SKILL.md"); err != nil || len(s.Files) != 1 {
				t.Errorf("skills/get: %+v, %v", s, err)
			}
			if names, err := directory(t.Context(), c, "skill://refunds"); err != nil || strings.Contains(names, "secret") {
				t.Errorf("the directory: %s, %v", names, err)
			}
			_, unknown := skills.Get(t.Context(), c, "skill://nothing/SKILL.md")
			_, hidden := skills.Get(t.Context(), c, "skill://hr/salaries/SKILL.md")
			wantSameRefusal(t, name, unknown, hidden, "nothing", "hr/salaries")
			_, unknown = directory(t.Context(), c, "skill://nothing")
			for _, uri := range []string{"skill://hr", "skill://hr/salaries", "skill://hr/salaries/tables"} {
				_, hidden = directory(t.Context(), c, uri)
				wantSameRefusal(t, name, unknown, hidden, "nothing", strings.TrimPrefix(uri, "skill://"))
			}
		})
	}
}

// wantSameRefusal checks that the error for a hidden item is the same as for one that does
// not exist, or that it is about scopes.
func wantSameRefusal(t *testing.T, how string, unknown, hidden error, unknownName, hiddenName string) {
	t.Helper()
	if hidden == nil {
		t.Errorf("%s is not hidden", hiddenName)
		return
	}
	if how == "RequireScopesFunc" {
		if _, ok := errors.AsType[*mcp.Error](hidden); !ok || !strings.Contains(hidden.Error(), "scope") {
			t.Errorf("%s: %v", hiddenName, hidden)
		}
		return
	}
	if unknown == nil || strings.ReplaceAll(unknown.Error(), unknownName, "") != strings.ReplaceAll(hidden.Error(), hiddenName, "") {
		t.Errorf("%s: %v; but what does not exist: %v", hiddenName, hidden, unknown)
	}
}

// Entries of skills that depend on the caller are marked as private.
func TestVisibleSkillsArePrivate(t *testing.T) {
	ttl := int64(1000)
	mux := withSkills(t, &skills.Options{Cache: mcp.Cacheable{TTLMs: &ttl, CacheScope: mcp.CachePublic}}, func(func(mcp.Kind, string) bool) mcp.Middleware {
		return middleware.Visible(func(context.Context, mcp.Kind, string) bool { return true })
	})
	c := (&mcptest.Client{}).Connect(t, mux)
	for _, method := range []string{skills.MethodList, skills.MethodGet} {
		req, err := mcp.NewRequest(method, &skills.GetParams{URI: "skill://refunds/SKILL.md"})
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.ServeMCP(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := json.Marshal(res); err != nil || !strings.Contains(string(raw), `"cacheScope":"private"`) {
			t.Errorf("%s: %s, %v", method, raw, err)
		}
	}
}

// The cursor of a page does not reveal a hidden skill or file at the end of the page.
func TestVisibleSkillsCursors(t *testing.T) {
	mux := withSkills(t, &skills.Options{PageSize: 1}, func(isHidden func(mcp.Kind, string) bool) mcp.Middleware {
		return middleware.Visible(func(_ context.Context, kind mcp.Kind, name string) bool { return !isHidden(kind, name) })
	})
	c := (&mcptest.Client{}).Connect(t, mux)
	for method, params := range map[string]any{
		skills.MethodList:          &mcp.ListParams{},
		skills.MethodReadDirectory: &skills.ReadDirectoryParams{URI: "skill://refunds/notes"},
	} {
		req, err := mcp.NewRequest(method, params)
		if err != nil {
			t.Fatal(err)
		}
		res, err := c.ServeMCP(t.Context(), req)
		raw, unencoded := json.Marshal(res)
		if text := string(raw) + fmt.Sprint(err); unencoded != nil || strings.Contains(text, "salaries") || strings.Contains(text, "secret") {
			t.Errorf("%s: %s", method, text)
		}
	}
	found := 0
	for s, err := range skills.List(t.Context(), c) {
		if found++; err != nil || s.URI != "skill://refunds/SKILL.md" {
			t.Errorf("%+v, %v", s, err)
		}
	}
	if found != 1 {
		t.Errorf("%d skills", found)
	}
}

// If all files on a page of a directory are hidden, the page is empty, because the
// directory exists.
func TestVisibleSkillsPages(t *testing.T) {
	mux := withSkills(t, &skills.Options{PageSize: 1}, func(func(mcp.Kind, string) bool) mcp.Middleware {
		return middleware.Deny(mcp.KindResource, "*/secret.md")
	})
	p := &skills.ReadDirectoryParams{URI: "skill://refunds"}
	for range 10 {
		req, err := mcp.NewRequest(skills.MethodReadDirectory, p)
		if err != nil {
			t.Fatal(err)
		}
		res, _, err := mcptest.Do(t, mux, req)
		if err != nil {
			t.Fatal(err)
		}
		if p.Cursor = res.(*skills.ReadDirectoryResult).NextCursor; p.Cursor == nil {
			return
		}
	}
	t.Error("the pages do not end")
}

// Items hidden on a connection to a server with skills are also hidden in the methods of
// skills.
func TestVisibleSkillsOfConnection(t *testing.T) {
	mux := withSkills(t, nil, func(func(mcp.Kind, string) bool) mcp.Middleware {
		return func(next mcp.Handler) mcp.Handler { return next }
	})
	distant := (&mcptest.Client{}).Connect(t, mux)
	shown := middleware.Deny(mcp.KindResource, "skill://hr/*", "*/secret.md")(distant)
	for method, params := range map[string]any{
		skills.MethodList:          &mcp.ListParams{},
		skills.MethodGet:           &skills.GetParams{URI: "skill://refunds/SKILL.md"},
		skills.MethodReadDirectory: &skills.ReadDirectoryParams{URI: "skill://refunds"},
	} {
		req, err := mcp.NewRequest(method, params)
		if err != nil {
			t.Fatal(err)
		}
		res, err := shown.ServeMCP(t.Context(), req)
		raw, unencoded := json.Marshal(res)
		if err != nil || unencoded != nil || strings.Contains(string(raw), "salaries") || strings.Contains(string(raw), "secret.md") {
			t.Errorf("%s: %s, %v", method, raw, err)
		}
	}
}
