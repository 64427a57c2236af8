// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package skills_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/skills"
)

const refunds = `---
name: refunds
description: Decides about refunds. Use it when a customer wants money back.
license: MIT
metadata: {version: "1.0", reviewed: 2026-03-01}
---

Read references/fees.md first.
`

// files returns the files of three skills, one of which is inside another.
func files() fstest.MapFS {
	return fstest.MapFS{
		"refunds/SKILL.md":                 &fstest.MapFile{Data: []byte(refunds)},
		"refunds/references/fees.md":       &fstest.MapFile{Data: []byte("No fees.\n")},
		"refunds/references/logo.png":      &fstest.MapFile{Data: []byte("\x89PNG\r\n\x1a\n\x00")},
		"refunds/abroad/SKILL.md":          &fstest.MapFile{Data: []byte("---\nname: abroad\ndescription: Refunds to other countries.\n---\n")},
		"refunds/.git/HEAD":                &fstest.MapFile{Data: []byte("secret")},
		"shop/letters/SKILL.md":            &fstest.MapFile{Data: []byte("---\nname: letters\ndescription: Writes letters.\n---\n")},
		"shop/letters/100% sure/no yes.md": &fstest.MapFile{Data: []byte("Dear customer")},
		"README.md":                        &fstest.MapFile{Data: []byte("not part of a skill")},
	}
}

func catalog(t *testing.T, fsys fstest.MapFS, opts *skills.Options) *skills.Catalog {
	t.Helper()
	o := skills.Options{}
	if opts != nil {
		o = *opts
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	c, err := skills.New(fsys, &o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func serve(t *testing.T, fsys fstest.MapFS, opts *skills.Options) *mcp.Mux {
	t.Helper()
	mux := mcp.NewMux("shop", "v1.0.0", nil)
	catalog(t, fsys, opts).Register(mux)
	return mux
}

// list returns all skills of a server by name.
func list(t *testing.T, c *mcp.Conn) map[string]*skills.Skill {
	t.Helper()
	all := map[string]*skills.Skill{}
	for s, err := range skills.List(t.Context(), c) {
		if err != nil {
			t.Fatal(err)
		}
		all[s.Frontmatter.Name()] = s
	}
	return all
}

func names(all map[string]*skills.Skill) string {
	return strings.Join(slices.Sorted(maps.Keys(all)), " ")
}

// readDirectory reads all pages of a directory listing.
func readDirectory(t *testing.T, h mcp.Handler, uri string) (children []string, err error) {
	t.Helper()
	for r, err := range skills.ReadDirectory(t.Context(), mcptest.Connect(t, h), uri) {
		if err != nil {
			return nil, err
		}
		children = append(children, r.URI+" "+r.Name+" "+r.MIMEType)
	}
	return children, nil
}

// A tamperer is server middleware that changes the files that are sent and records which
// are read.
type tamperer struct {
	mu     sync.Mutex
	reads  []string
	change func(uri, text string) string
}

func (m *tamperer) wrap(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		res, err := next.ServeMCP(ctx, req)
		read, ok := res.(*mcp.ReadResourceResult)
		if err != nil || !ok {
			return res, err
		}
		m.mu.Lock()
		m.reads = append(m.reads, req.Name())
		m.mu.Unlock()
		if m.change == nil {
			return res, nil
		}
		part := *read.Contents[0]
		part.Text = m.change(part.URI, part.Text)
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&part}}, nil
	})
}

// count returns the number of files that were read.
func (m *tamperer) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.reads)
}

// tampered returns a connection to a server whose files are changed by m.
func tampered(t *testing.T, m *tamperer) *mcp.Conn {
	t.Helper()
	mux := serve(t, files(), nil)
	mux.Use(m.wrap)
	return mcptest.Connect(t, mux)
}

// forged returns a connection to a server with one skill, described by entry.
func forged(t *testing.T, entry string) *mcp.Conn {
	t.Helper()
	mux := mcp.NewMux("forger", "v1.0.0", &mcp.MuxOptions{Capabilities: &mcp.ServerCapabilities{
		Extensions: mcp.Extensions{skills.Extension: json.RawMessage("{}")},
	}})
	mux.Handle(skills.MethodList, mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		res := &mcp.EmptyResult{}
		res.Extra = mcp.Extra{"skills": json.RawMessage("[" + entry + "]"), "ttlMs": json.RawMessage("0"), "cacheScope": json.RawMessage(`"private"`)}
		return res, nil
	}))
	return mcptest.Connect(t, mux)
}

func wantVerification(t *testing.T, err error, reason string) {
	t.Helper()
	if v, ok := errors.AsType[*skills.VerificationError](err); !ok || !strings.Contains(err.Error(), reason) {
		t.Errorf("got %v (%T), want a VerificationError that says %q", err, v, reason)
	}
}

// eventually returns the next change. It must be called in a synctest bubble, where time
// advances by itself.
func eventually(t *testing.T, changed <-chan mcp.Change) mcp.Change {
	t.Helper()
	select {
	case c := <-changed:
		return c
	case <-time.After(time.Hour):
		t.Fatal("nothing was announced")
		return mcp.Change{}
	}
}
