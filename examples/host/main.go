// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command host connects to the servers of a configuration file, in the format of Claude
// Desktop and other hosts, and offers all their tools.
//
//	go run ./examples/host -config servers.json tools
//	go run ./examples/host -config servers.json call files_list_directory '{"path":"/tmp"}'
//
// A configuration file:
//
//	{"mcpServers": {
//		"files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"]},
//		"notes": {"url": "https://notes.example.com/mcp", "headers": {"Authorization": "Bearer ${NOTES_TOKEN}"}}
//	}}
//
// A host passes the tools to a model and calls the tools that the model chooses. Here, you
// are the model.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"slices"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/config"
)

func main() {
	path := flag.String("config", "servers.json", "the configuration `file`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *path, flag.Args(), os.Stdout)
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

// run connects, runs the command in words, and disconnects.
func run(ctx context.Context, path string, words []string, out io.Writer) error {
	file, err := config.Load(path)
	if err != nil {
		return err
	}
	h, err := connect(ctx, file, slog.Default())
	if err != nil {
		return err
	}
	words = slices.Concat(words, []string{"", "", ""}) // missing words are empty
	switch words[0] {
	case "", "tools":
		err = printTools(ctx, h, out)
	case "call":
		err = call(ctx, h, words[1], json.RawMessage(cmp.Or(words[2], "{}")), out)
	default:
		err = fmt.Errorf("host: %q is no command; expected tools, or call and the name of a tool", words[0])
	}
	return errors.Join(err, h.close())
}

func printTools(ctx context.Context, h *host, out io.Writer) error {
	tools, err := h.tools(ctx)
	for _, t := range tools {
		fmt.Fprintf(out, "%q: %q\n", t.name, t.tool.Description) // quoted: terminals obey control characters
	}
	return err
}

// call calls a tool and prints what a model would read.
func call(ctx context.Context, h *host, name string, arguments json.RawMessage, out io.Writer) error {
	res, err := h.call(ctx, name, arguments)
	if err != nil {
		return err
	}
	for _, block := range res.Content {
		if text, ok := block.(*mcp.TextContent); ok {
			fmt.Fprintf(out, "%q\n", text.Text)
			continue
		}
		fmt.Fprintf(out, "(%T)\n", block) // a model may accept images as well
	}
	if res.IsError {
		return fmt.Errorf("host: the tool %s failed", name)
	}
	return nil
}
