// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"io/fs"
	"strconv"

	"github.com/go-psi/psi/mcp"
)

// Listen calls a function for each change of a list or a resource.
func ExampleConn_Listen() {
	mux := mcp.NewMux("shop", "v1.0.0", nil)
	door := mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "open", nil }, nil)
	mux.Resource("shop://door", door)
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	changes := make(chan mcp.Change, 10)
	sub, err := conn.Listen(ctx, mcp.SubscriptionFilter{
		ResourcesListChanged:  true,
		ResourceSubscriptions: []string{"shop://door"},
	}, func(c mcp.Change) { changes <- c })
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sub.Close()

	mux.ResourceUpdated("shop://door")
	fmt.Println(<-changes)
	mux.Resource("shop://window", door)
	fmt.Println(<-changes)
	// Output:
	// {notifications/resources/updated shop://door}
	// {notifications/resources/list_changed }
}

// Tools yields the tools of all pages. Stop at the first error.
func ExampleConn_Tools() {
	mux := mcp.NewMux("shop", "v1.0.0", &mcp.MuxOptions{PageSize: 1})
	open := mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", nil }, &mcp.Tool{Description: "Open the shop."})
	mux.Tool("open", open)
	mux.Tool("close", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { return "", nil }, &mcp.Tool{Description: "Close the shop."}))
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()

	for tool, err := range conn.Tools(ctx, nil) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(tool.Name+":", tool.Description)
	}
	// Output:
	// close: Close the shop.
	// open: Open the shop.
}

// List returns the resources that a template matches, here in pages of two. The cursor is
// the one of the previous page, or arbitrary text from the client.
func ExampleResource() {
	notes := []string{"milk", "bread", "tea"}
	read := func(_ context.Context, in struct {
		ID int `json:"id"`
	}) (string, error) {
		if in.ID < 0 || in.ID >= len(notes) {
			return "", fs.ErrNotExist
		}
		return notes[in.ID], nil
	}
	list := func(_ context.Context, p *mcp.ListParams) (*mcp.ListResourcesResult, error) {
		first := 0
		if p.Cursor != nil {
			var err error
			if first, err = strconv.Atoi(*p.Cursor); err != nil || first < 0 || first > len(notes) {
				return nil, mcp.Errorf(mcp.CodeInvalidParams, "the cursor is not valid")
			}
		}
		res, end := &mcp.ListResourcesResult{}, min(first+2, len(notes))
		for id := first; id < end; id++ {
			res.Resources = append(res.Resources, &mcp.Resource{URI: fmt.Sprintf("notes://%d", id), Name: notes[id]})
		}
		if end < len(notes) {
			next := strconv.Itoa(end)
			res.NextCursor = &next
		}
		return res, nil
	}
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.Resource("notes://{id}", mcp.ResourceFunc(read, &mcp.Resource{List: list}))
	printResources(mux)
	// Output:
	// notes://0 milk
	// notes://1 bread
	// notes://2 tea
}

// printResources connects to a server and prints the resources it lists.
func printResources(h mcp.Handler) {
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(h))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	for r, err := range conn.Resources(ctx, nil) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.URI, r.Name)
	}
}
