// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"embed"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
	"github.com/go-psi/psi/mcp/mcptest"
)

//go:embed poll/poll.html
var pollFiles embed.FS

//go:embed *_test.go
var sourceFiles embed.FS

const pollPage = "ui://lunch/poll"

func newLunch(p *poll) *mcp.Mux {
	mux := mcp.NewMux("lunch", "v1.0.0", nil)
	mux.Use(apps.HideAppTools()) // from clients that show no pages
	mux.Resource(pollPage, apps.Page(pollFiles, "poll/poll.html", nil))
	mux.Tool("poll", mcp.ToolFunc(p.show, apps.Tool(&mcp.Tool{Description: "Ask the user what there should be for lunch."}, pollPage)))
	mux.Tool("vote", mcp.ToolFunc(p.vote, apps.Tool(nil, pollPage, apps.ForApp)))
	return mux
}

type poll struct {
	mu    sync.Mutex
	votes map[string]int
}

type votes struct {
	Votes map[string]int `json:"votes"`
}

func (p *poll) show(_ context.Context, _ struct{}) (mcp.Output[votes], error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return mcp.WithContent(votes{maps.Clone(p.votes)}, mcp.Text("The user sees the poll, and votes in it.")), nil
}

type voteIn struct {
	Dish string `json:"dish"`
}

func (p *poll) vote(_ context.Context, in voteIn) (votes, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.votes[in.Dish]; !ok {
		return votes{}, fmt.Errorf("there is no %s today", in.Dish)
	}
	p.votes[in.Dish]++
	return votes{maps.Clone(p.votes)}, nil
}

// TestPoll is about the server. What the page does is tested in a browser.
func TestPoll(t *testing.T) {
	client := &mcptest.Client{Options: mcp.ClientOptions{Extensions: []*mcp.ClientExtension{apps.Client()}}}
	newHandler := func(*testing.T) mcp.Handler { return newLunch(&poll{votes: map[string]int{"soup": 1, "salad": 0}}) }
	client.RunNew(t, newHandler, func(t *testing.T, conn *mcp.Conn) {
		page, err := apps.Read(t.Context(), conn, pollPage)
		if err != nil || !strings.Contains(page.HTML, "const app = ") {
			t.Errorf("got %+v, %v", page, err)
		}
		shown, err := mcp.Call[votes](t.Context(), conn, "poll", nil)
		if err != nil || shown.Votes["soup"] != 1 {
			t.Errorf("got %+v, %v", shown, err)
		}
		voted, err := mcp.Call[votes](apps.AsApp(t.Context()), conn, "vote", voteIn{"soup"})
		if err != nil || voted.Votes["soup"] != 2 {
			t.Errorf("got %+v, %v", voted, err)
		}
	})
	if err := apps.Check(t.Context(), newHandler(t)); err != nil {
		t.Error(err)
	}
}
