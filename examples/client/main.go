// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command client is a small client to start from. It connects to a server of any revision,
// lists its tools or calls one, shows progress, and answers questions in the terminal.
//
//	go run ./examples/client http://127.0.0.1:8080/mcp
//	go run ./examples/client http://127.0.0.1:8080/mcp countdown '{"from":3}'
//	go run ./examples/client http://127.0.0.1:8080/mcp order '{"pizza":"funghi"}'
//
// For everyday use, see the command psi.
package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"sync"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
)

func main() {
	if len(os.Args) < 2 {
		log.Fatal("usage: client URL [TOOL [JSON]]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	t := mcphttp.NewTransport(os.Args[1], nil) // or mcpstdio.NewCommand for a program
	err := run(ctx, t, os.Args[2:], &user{in: bufio.NewScanner(os.Stdin), out: os.Stdout})
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// run connects, lists the tools or calls the one named by words, and disconnects.
func run(ctx context.Context, t transport.Transport, words []string, u *user) error {
	client := mcp.NewClient("example", "v1.0.0", &mcp.ClientOptions{Elicit: u.elicit})
	conn, err := client.Connect(ctx, t)
	if err != nil {
		return err
	}
	defer conn.Close()
	if len(words) == 0 {
		return list(ctx, conn, u)
	}
	words = slices.Concat(words, []string{""}) // a missing word is empty
	ctx = mcp.WithProgress(ctx, func(p *mcp.ProgressParams) { u.printf("%g %q\n", p.Progress, p.Message) })
	res, err := conn.CallTool(ctx, &mcp.CallToolParams{Name: words[0], Arguments: json.RawMessage(cmp.Or(words[1], "{}"))})
	if err != nil {
		return err
	}
	if res.IsError {
		return &mcp.ToolError{Tool: words[0], Result: res}
	}
	for _, block := range res.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			u.printf("%q\n", text.Text) // quoted: terminals obey control characters
			continue
		}
		u.printf("(%T)\n", block)
	}
	return nil
}

func list(ctx context.Context, conn *mcp.Conn, u *user) error {
	for tool, err := range conn.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		u.printf("%q: %q\n", tool.Name, tool.Description)
	}
	return nil
}

// A user reads output and answers questions. Progress and questions may arrive
// concurrently.
type user struct {
	mu  sync.Mutex
	in  *bufio.Scanner
	out io.Writer
}

func (u *user) printf(format string, args ...any) {
	u.mu.Lock()
	defer u.mu.Unlock()
	fmt.Fprintf(u.out, format, args...)
}

// elicit shows the schema of a form, and reads the answer as JSON. An empty line declines.
func (u *user) elicit(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	fmt.Fprintf(u.out, "The server asks: %q\nThe answer is a JSON object: %q\n", p.Message, p.RequestedSchema)
	if !u.in.Scan() || u.in.Text() == "" {
		return &mcp.ElicitResult{Action: mcp.ActionDecline}, u.in.Err()
	}
	return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: []byte(u.in.Text())}, nil // the client validates it
}
