// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command client talks to an MCP server of any revision: it lists what the server
// has, calls tools, reads resources and gets prompts, and asks at the terminal what
// the server wants to know.
//
//	go run ./examples/client http://127.0.0.1:8080/mcp list
//	go run ./examples/client http://127.0.0.1:8080/mcp call add '{"a":2,"b":3}'
//	go run ./examples/client -legacy 2025-06-18 http://127.0.0.1:8080/mcp prompt explain topic=monads
//	go run ./examples/client -login https://mcp.example.com/mcp call notes
//	go run ./examples/client call order '{"pizza":"funghi"}' -- go run ./examples/quickstart
//
// What follows a -- is the command of a server on standard input and output.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"

	"github.com/go-psi/psi/mcp"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "client:", clean(err.Error()))
		os.Exit(1)
	}
}

// run does what the arguments say. Results go to out; questions, progress and logs
// go to errOut, and their answers come from in.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) error {
	set, err := parse(args, errOut)
	if err != nil {
		return err
	}
	do, err := parseCommand(set.rest, out)
	if err != nil {
		return err
	}
	term := &terminal{in: in, out: errOut}
	logger := slog.New(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: slog.LevelWarn}))
	transport, end, err := set.transport(term, logger)
	if err != nil {
		return err
	}
	defer end()
	client := mcp.NewClient("psi-example-client", "v1.0.0", &mcp.ClientOptions{
		Elicit:    term.elicit,
		ElicitURL: term.elicitURL,
		Version:   set.version,
		Logger:    logger,
	})
	conn, err := client.Connect(ctx, transport)
	if errors.Is(err, mcp.ErrUnauthorized) && !set.login {
		return fmt.Errorf("%w (with -login you can log in)", err)
	}
	if err != nil {
		return err
	}
	err = do(mcp.WithProgress(ctx, term.progress), conn)
	term.endProgress()
	return errors.Join(err, conn.Close())
}
