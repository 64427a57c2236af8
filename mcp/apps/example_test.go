// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package apps_test

import (
	"context"
	"fmt"
	"log"
	"testing/fstest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
)

// A server offers a tool with a page. The tool that only the page calls is hidden from
// clients that cannot show pages. A host reads the page.
func Example() {
	files := fstest.MapFS{ // an embed.FS in a program
		"seats.html": {Data: []byte("<!doctype html>\n<title>Seats</title>\n<script src=seats.js></script>\n")},
		"seats.js":   {Data: []byte("/* … */")},
	}
	mux := mcp.NewMux("airline", "v1.0.0", nil)
	mux.Use(apps.HideAppTools())
	mux.Resource("ui://airline/seats", apps.Page(files, "seats.html", nil))
	seatMap := func(context.Context, struct{}) (string, error) { return "12A is free.", nil }
	mux.Tool("seat_map", mcp.ToolFunc(seatMap, apps.Tool(&mcp.Tool{Description: "Shows free seats."}, "ui://airline/seats")))
	reserve := func(context.Context, struct{}) (string, error) { return "It is yours.", nil }
	mux.Tool("reserve_seat", mcp.ToolFunc(reserve, apps.Tool(nil, "ui://airline/seats", apps.ForApp)))

	ctx := context.Background()
	client := mcp.NewClient("host", "v1.0.0", &mcp.ClientOptions{Extensions: []*mcp.ClientExtension{apps.Client()}})
	conn, err := client.Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		log.Fatal(err)
	}
	for tool, err := range conn.Tools(ctx, nil) { // for the model
		if err != nil {
			log.Fatal(err)
		}
		meta, err := apps.MetaOf(tool)
		fmt.Println(tool.Name, meta.ResourceURI, err)
	}
	page, err := apps.Read(ctx, conn, "ui://airline/seats")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(page.HTML)
	fmt.Println(mcp.Call[string](ctx, conn, "reserve_seat", nil))
	fmt.Println(mcp.Call[string](apps.AsApp(ctx), conn, "reserve_seat", nil))
	conn.Close()
	// Output:
	// seat_map ui://airline/seats <nil>
	// <!doctype html>
	// <title>Seats</title>
	// <script>/* … */</script>
	//  apps: the tool "reserve_seat" is for the app only, and the model has called it
	// It is yours. <nil>
}
