// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"fmt"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/tasks"
)

type film struct {
	Frames int `json:"frames"`
}

// renderFilm has steps that are not repeated when it is started again.
func renderFilm(ctx context.Context, in film) (string, error) {
	for i := range in.Frames {
		_, err := mcp.Once(ctx, fmt.Sprint("frame ", i), func(context.Context) (bool, error) { return true, nil }) // render the frame here
		if err != nil {
			return "", err
		}
		mcp.Progress(ctx, float64(i+1), float64(in.Frames), "rendering")
	}
	return fmt.Sprint(in.Frames, " frames"), nil
}

func ExampleNew() {
	mux := mcp.NewMux("farm", "1.0.0", nil)
	manager := tasks.New("farm", nil) // in production, give it a store
	defer manager.Shutdown(context.Background())
	manager.Register(mux)
	mux.With(manager.Background(nil)).Tool("render", mcp.ToolFunc(renderFilm, nil))

	ctx := context.Background()
	client := mcp.NewClient("example", "1.0.0", &mcp.ClientOptions{Extensions: []*mcp.ClientExtension{tasks.Client()}})
	conn, err := client.Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		panic(err)
	}
	defer conn.Close()

	// The call is answered with a task, which the client follows to its end.
	result, err := mcp.Call[string](ctx, conn, "render", film{Frames: 24})
	fmt.Println(result, err)

	// A program can have the task itself, and come back to it later by its ID.
	task, _, err := tasks.Start(ctx, conn, &mcp.CallToolParams{Name: "render", Arguments: []byte(`{"frames":2}`)})
	if err != nil {
		panic(err)
	}
	outcome, err := tasks.Attach(conn, task.ID).Wait(ctx)
	if err != nil {
		panic(err)
	}
	fmt.Println(outcome.Content[0].(*mcp.TextContent).Text)
	// Output:
	// 24 frames <nil>
	// 2 frames
}
