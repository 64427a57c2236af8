// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/recording"
)

// adder returns a server that adds two integers, and is wrong by wrongBy.
func adder(wrongBy int) *mcp.Mux {
	mux := mcp.NewMux("adder", "v1.0.0", nil)
	mux.Tool("add", mcp.ToolFunc(func(_ context.Context, in struct{ A, B int }) (int, error) { return in.A + in.B + wrongBy, nil }, nil))
	return mux
}

// recordAddition records a call of an adder.
func recordAddition() (*recording.Recording, error) {
	var file bytes.Buffer
	recorder := recording.NewRecorder(&file, nil)
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, recorder.Transport(mcp.InProcess(adder(0))))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if _, err := mcp.Call[int](ctx, conn, "add", map[string]int{"A": 1, "B": 2}); err != nil {
		return nil, err
	}
	return recording.Read(&file)
}

// The messages that pass a transport are written to a file, here in memory.
func ExampleNewRecorder() {
	rec, err := recordAddition()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range rec.Entries() {
		fmt.Println(e.Line, e.Direction, e.Era)
	}
	// Output:
	// 1 to-server modern
	// 2 to-client modern
	// 3 to-server modern
	// 4 to-client modern
}

// A recording answers a client without the server.
func ExampleReplay_Transport() {
	rec, err := recordAddition()
	if err != nil {
		fmt.Println(err)
		return
	}
	replay := recording.NewReplay(rec, nil)
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, replay.Transport())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	fmt.Println(mcp.Call[int](ctx, conn, "add", map[string]int{"A": 1, "B": 2}))
	_, err = mcp.Call[int](ctx, conn, "add", map[string]int{"A": 1, "B": 1})
	fmt.Println(err)
	// Output:
	// 3 <nil>
	// recording: after the last line: the client sends the request "tools/call", which the recording does not have
}

// A recording is replayed against a server without the client, and reports where the server
// answers differently.
func ExampleReplay_Drive() {
	rec, err := recordAddition()
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	fmt.Println(recording.NewReplay(rec, nil).Drive(ctx, mcp.InProcess(adder(0))))
	fmt.Println(recording.NewReplay(rec, nil).Drive(ctx, mcp.InProcess(adder(1))))
	// Output:
	// <nil>
	// recording: line 4: result.content[0].text: got "4", want "3"
}

// A server records the requests that it receives, whichever clients send them.
func ExampleRecorder_Middleware() {
	var file bytes.Buffer
	mux := adder(0)
	mux.Use(recording.NewRecorder(&file, nil).Middleware())
	ctx := context.Background()
	conn, err := mcp.NewClient("host", "v1.0.0", nil).Connect(ctx, mcp.InProcess(mux))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	if _, err := mcp.Call[int](ctx, conn, "add", map[string]any{"A": 1, "B": 2}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.Count(file.String(), "\n"), "lines")
	// Output: 4 lines
}
