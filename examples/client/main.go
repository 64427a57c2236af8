// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Command client talks to an MCP server of any revision: it lists what the server
// has, calls tools, reads resources and gets prompts, and asks at the terminal what
// the server wants to know.
//
//	go run ./examples/client http://127.0.0.1:8080/mcp list
//	go run ./examples/client http://127.0.0.1:8080/mcp call add '{"a":2,"b":3}'
//	go run ./examples/client -version 2025-06-18 http://127.0.0.1:8080/mcp prompt explain '{"topic":"monads"}'
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
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"slices"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

const usage = `usage: client [flags] URL [subcommand]
       client [flags] [subcommand] -- command [argument ...]

subcommands:
  list                 what the server has; this is the default
  call TOOL [JSON]     with the arguments as an object
  prompt NAME [JSON]   likewise, all of them strings
  read URI

flags:
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "client:", clean(err.Error()))
		os.Exit(1)
	}
}

// run does what the arguments say. Results go to out; questions and progress go to
// errOut, and answers come from in.
func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) error {
	var command []string
	if i := slices.Index(args, "--"); i >= 0 { // before package flag sees it, which would drop it
		args, command = args[:i], args[i+1:]
	}
	flags := flag.NewFlagSet("client", flag.ContinueOnError)
	flags.SetOutput(errOut)
	flags.Usage = func() {
		fmt.Fprint(errOut, usage)
		flags.PrintDefaults()
	}
	version := flags.String("version", "", "speak this `revision` of the protocol, without finding out which one the server does")
	login := flags.Bool("login", false, "log in with a browser if the server at the URL wants it, and remember that")
	if err := flags.Parse(args); err != nil {
		return err
	}
	words, term := flags.Args(), newTerminal(in, errOut)
	if len(command) > 0 {
		cmd := exec.Command(command[0], command[1:]...) //nolint:gosec,noctx // the user's own words; Close ends it
		cmd.Env = os.Environ()                          // as their shell would start it
		return talk(ctx, mcpstdio.NewCommand(cmd, &mcpstdio.CommandOptions{Stderr: errOut}), *version, words, term, out)
	}
	if len(words) == 0 {
		flags.Usage()
		return flag.ErrHelp
	}
	opts := &mcphttp.TransportOptions{}
	if *login {
		auth, err := term.authorized(words[0])
		if err != nil {
			return err
		}
		defer auth.Close()
		opts.Client = &http.Client{Transport: auth}
	}
	err := talk(ctx, mcphttp.NewTransport(words[0], opts), *version, words[1:], term, out)
	if errors.Is(err, mcp.ErrUnauthorized) && !*login {
		return fmt.Errorf("%w (with -login you can log in)", err)
	}
	return err
}
