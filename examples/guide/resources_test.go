// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"fmt"
	"io/fs"
	"log"
	"slices"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

type noteIn struct {
	User string `json:"user"`
	ID   int    `json:"id"`
}

func readNote(ctx context.Context, in noteIn) (string, error) {
	if p := mcp.PrincipalFromContext(ctx); p == nil || p.Subject != in.User {
		return "", fs.ErrNotExist // which becomes "resource not found"
	}
	return loadNote(ctx, in.User, in.ID)
}

func loadNote(_ context.Context, user string, id int) (string, error) {
	return fmt.Sprintf("note %d of %s", id, user), nil
}

func listNotes(ctx context.Context, _ *mcp.ListParams) (*mcp.ListResourcesResult, error) {
	user := mcp.PrincipalFromContext(ctx).Subject
	return &mcp.ListResourcesResult{Resources: []*mcp.Resource{{URI: "notes://" + user + "/1", Name: "note 1"}}}, nil
}

func newResources() *mcp.Mux {
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.Resource("notes://rules", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) {
		return "Be kind.", nil
	}, &mcp.Resource{Description: "The house rules.", MIMEType: "text/plain"}))
	mux.Resource("notes://{user}/{id}", mcp.ResourceFunc(readNote, &mcp.Resource{
		Name:       "note",
		List:       listNotes,
		Completers: map[string]mcp.Completer{"user": mcp.CompleteFrom("ada", "alan")},
	}))
	return mux
}

// TestResources lists, reads and watches as Ada, and as Alan, who is not allowed to.
func TestResources(t *testing.T) {
	mux := newResources()
	ada := &mcptest.Client{Principal: &mcp.Principal{Subject: "ada"}}
	ada.Run(t, mux, func(t *testing.T, conn *mcp.Conn) {
		var uris []string
		for r, err := range conn.Resources(t.Context(), nil) {
			if err != nil {
				t.Fatal(err)
			}
			uris = append(uris, r.URI)
		}
		if want := []string{"notes://rules", "notes://ada/1"}; !slices.Equal(uris, want) {
			t.Errorf("listed %q, want %q", uris, want)
		}
		res, err := conn.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "notes://ada/1"})
		if err != nil || res.Contents[0].Text != "note 1 of ada" {
			t.Errorf("read %+v, %v", res, err)
		}
		changed := make(chan string, 1)
		if _, err := conn.Subscribe(t.Context(), "notes://ada/1", func(uri string) { changed <- uri }); err != nil {
			t.Fatal(err)
		}
		mux.ResourceUpdated("notes://ada/1")
		if uri := <-changed; uri != "notes://ada/1" {
			t.Errorf("%s has changed", uri)
		}
	})
	alan := (&mcptest.Client{Principal: &mcp.Principal{Subject: "alan"}}).Connect(t, mux)
	if _, err := alan.Subscribe(t.Context(), "notes://ada/1", func(string) {}); err == nil {
		t.Error("Alan may watch what he may not read")
	}
}

func TestListen(t *testing.T) {
	mux := newMux()
	mux.Resource("notes://ada/1", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil))
	conn, ctx := mcptest.Connect(t, mux), t.Context()

	sub, err := conn.Listen(ctx, mcp.SubscriptionFilter{
		ToolsListChanged:      true,
		ResourceSubscriptions: []string{"notes://ada/1"},
	}, func(c mcp.Change) {
		log.Println("changed:", c.Method, c.URI) // read or list again
	})
	if err != nil || !sub.Accepted().ToolsListChanged || len(sub.Accepted().ResourceSubscriptions) != 1 {
		t.Errorf("%+v, %v", sub, err)
	}
}

func TestCache(t *testing.T) {
	asked := make(chan string, 10)
	mux := mcp.NewMux("tools", "v1.0.0", &mcp.MuxOptions{ListCache: mcp.CacheFor(time.Hour, mcp.CachePublic)})
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			asked <- req.Method
			return next.ServeMCP(ctx, req)
		})
	})
	conn, ctx := mcptest.Connect(t, mux), t.Context()
	cache := middleware.NewCache(nil)
	conn.Use(cache.Middleware)
	_, err := conn.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, cache.Changed)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := conn.ListTools(ctx, nil); err != nil {
			t.Fatal(err)
		}
	}
	close(asked)
	lists := 0
	for method := range asked {
		if method == mcp.MethodListTools {
			lists++
		}
	}
	if lists != 1 {
		t.Errorf("asked %d times", lists)
	}
}
