// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
	"github.com/go-psi/psi/middleware"
)

// A devServer runs a server that is being written. It is the transport to that server.
type devServer struct {
	serving

	dir      string // in which the server runs
	inspect  bool
	patterns listFlag
	poll     time.Duration

	env    *env
	up     *mcp.Upstream
	tmp    string // for the programs that are built
	builds int    // how many there were

	mu  sync.Mutex // guards what the next connection starts:
	cmd *exec.Cmd
	err error // why there is nothing to start
}

func devCommand() *command {
	d := &devServer{}
	c := &command{
		name: "dev", usage: "-- COMMAND [ARGUMENT ...]", summary: "run a server, and restart it when a file changes", takesCommand: true,
		help: `dev runs the command of a server and restarts it whenever a source file in this directory (or that of
-C) or below changes. The client stays connected, and is told that the lists may have changed. It serves on
standard input and output, for a host that starts it, or with -http at an address.

If the command is "go run", psi builds the program first: while it does not build, the last one that
did keeps running. What the server writes to its standard error is shown.`,
		example: "$ psi dev -http 127.0.0.1:0 -- ./server\n",
		flags: func(f *flag.FlagSet) {
			f.StringVar(&d.addr, "http", "", "serve at http://`address`/mcp instead of standard input and output")
			f.StringVar(&d.dir, "C", ".", "run the command, and look for changes, in this `directory`")
			f.BoolVar(&d.inspect, "inspect", false, "also serve a live page about the server, as psi inspect does")
			f.Var(&d.patterns, "watch", "restart when a file whose name matches this `pattern` changes, such as *.tmpl; may be repeated (default: source files)")
			f.DurationVar(&d.poll, "poll", 500*time.Millisecond, "how often to look for changes")
		},
	}
	c.run = func(ctx context.Context, e *env, words []string) error {
		d.env, d.stdio = e, d.addr == ""
		e.client.timeout = 5 * time.Minute // of calls, as in all subcommands
		switch {
		case len(e.server) == 0:
			return c.wrongWords("which server? give its command after --")
		case len(words) > 0:
			return c.wrongWords("what is %q? the command of the server is after --", words[0])
		case d.poll <= 0:
			return usagef("dev: -poll must be positive")
		}
		if err := checkPatterns(c.name, "-watch", d.patterns); err != nil {
			return err
		}
		if err := d.check(c.name); err != nil {
			return err
		}
		return d.run(ctx)
	}
	return c
}

// run serves until ctx is done or the client on standard input and output has gone.
func (d *devServer) run(ctx context.Context) (err error) {
	if d.tmp, err = os.MkdirTemp("", "psi-dev-"); err != nil {
		return err
	}
	d.env.onClose(func() { _ = os.RemoveAll(d.tmp) })
	w := &watcher{dir: d.dir, patterns: d.patterns}
	if err := w.look(); err != nil {
		return &usageError{err}
	}
	d.build(ctx)
	started := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	// What is in flight at the end needs the server, which therefore does not end with ctx.
	d.up = d.env.newClient(&mcp.ClientOptions{Forward: true}).Maintain(context.WithoutCancel(ctx), d, &mcp.UpstreamOptions{
		MinDelay: 100 * time.Millisecond, MaxDelay: time.Second, MaxDowntime: -1, Wait: 10 * time.Second,
		StateChanged: d.report(started), Logger: slog.New(slog.DiscardHandler),
	})
	d.env.onClose(func() { _ = d.up.Close() })
	// A restart ends what is in flight. What changes nothing is sent again.
	handler := middleware.Retry(&middleware.RetryOptions{Tools: true, Transient: endedWithServer})(d.up)
	var background sync.WaitGroup
	defer background.Wait()
	defer cancel()
	background.Go(func() { d.watch(ctx, w) })
	if d.inspect {
		background.Go(func() { d.servePage(ctx, handler, started) })
	}
	if d.stdio {
		d.env.term.printf("serving on standard input and output\n")
	}
	return d.serve(ctx, d.env, handler)
}

// endedWithServer reports whether a call failed because the server was ended, or has ended by
// itself.
func endedWithServer(err error) bool {
	_, hasExited := errors.AsType[*mcpstdio.ExitError](err)
	return !errors.Is(err, mcp.ErrNotConnected) && (hasExited || errors.Is(err, mcp.ErrClosed))
}

// Connect implements [transport.Transport]. It starts the server.
func (d *devServer) Connect(ctx context.Context, receive transport.Receiver) (transport.Conn, error) {
	d.mu.Lock()
	cmd, err := d.cmd, d.err
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return mcpstdio.NewCommand(cmd, &mcpstdio.CommandOptions{Logger: d.env.log, Stderr: &lineWriter{term: d.env.term}}).Connect(ctx, receive)
}

// build prepares what the next connection starts. It reports whether that is new: if a program
// does not build, the last one that did stays.
func (d *devServer) build(ctx context.Context) bool {
	words := d.env.server
	if build, args, ok := goBuild(words); ok {
		d.builds++
		// The program that runs now is not overwritten.
		program := filepath.Join(d.tmp, fmt.Sprintf("server-%d.exe", d.builds%2))
		start := time.Now()
		cmd := exec.CommandContext(ctx, words[0], append([]string{"build", "-o", program}, build...)...) //nolint:gosec // the user's own words
		cmd.Dir = d.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			d.env.term.printf("the build failed:\n%s%s\n", printable.Text(string(out)), printable.Text(err.Error()))
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.cmd == nil {
				d.err = errors.New("the build of the server failed")
			}
			return false
		}
		d.env.term.printf("built in %v\n", time.Since(start).Round(10*time.Millisecond))
		words = append([]string{program}, args...)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cmd, d.err = serverCommand(words), nil
	d.cmd.Dir = d.dir
	return true
}

// watch restarts the server whenever a file has changed, until ctx is done.
func (d *devServer) watch(ctx context.Context, w *watcher) {
	for w.next(ctx, d.poll) {
		d.env.term.printf("a file has changed\n")
		if !d.build(ctx) {
			continue
		}
		if conn := d.up.State().Conn; conn != nil {
			_ = conn.Close() // the upstream connects again, and so starts the new server
		}
	}
}

// report returns a function that tells the user what has become of the server. It closes
// started when the server runs for the first time.
func (d *devServer) report(started chan<- struct{}) func(mcp.UpstreamState) {
	last := ""
	return func(s mcp.UpstreamState) {
		if s.Conn != nil {
			last = ""
			d.env.term.printf("the server runs: %s, revision %s\n", serverTitle(s.Conn), s.Conn.Version())
			if started != nil {
				close(started)
				started = nil
			}
			return
		}
		if s.Err == nil || errors.Is(s.Err, mcp.ErrClosed) || s.Err.Error() == last {
			return // it is being restarted, or this is known
		}
		last = s.Err.Error()
		d.env.term.printf("the server does not run: %s\n", printable.Text(last))
	}
}

func serverTitle(c *mcp.Conn) string {
	info := c.ServerInfo()
	if info == nil {
		return "a server without a name"
	}
	return printable.Line(info.Name + withSpace(info.Version))
}

// servePage serves a live page about the server once it runs, until ctx is done.
func (d *devServer) servePage(ctx context.Context, h mcp.Handler, started <-chan struct{}) {
	select {
	case <-started:
	case <-ctx.Done():
		return
	}
	d.env.term.printf("a live page about the server: ")
	err := d.env.inspect(ctx, mcp.InProcess(h), "127.0.0.1:0")
	if err != nil && ctx.Err() == nil {
		d.env.log.Warn("there is no page about the server", "error", err)
	}
}

// goBuild returns what to pass to go build in place of a go run command: the flags and the
// package. The others are the arguments of the program.
func goBuild(words []string) (build, args []string, ok bool) {
	if len(words) < 3 || !isGo(words[0]) || words[1] != "run" {
		return nil, nil, false
	}
	rest := words[2:]
	for len(rest) > 0 && len(rest[0]) > 1 && rest[0][0] == '-' {
		n := 1
		switch name := rest[0]; {
		case name == "-exec" || name == "-o" || name == "-C":
			return nil, nil, false // the program runs in another way
		case takesValue[name]:
			n = 2
		}
		if len(rest) < n {
			return nil, nil, false
		}
		build, rest = append(build, rest[:n]...), rest[n:]
	}
	n := 0
	for n < len(rest) && filepath.Ext(rest[n]) == ".go" {
		n++
	}
	if n = max(n, 1); len(rest) < n {
		return nil, nil, false
	}
	return append(build, rest[:n]...), rest[n:], true
}

func isGo(program string) bool {
	return filepath.Base(program) == "go" || filepath.Base(program) == "go.exe"
}

// takesValue are the flags of go run that are followed by their values.
var takesValue = map[string]bool{
	"-p": true, "-tags": true, "-ldflags": true, "-gcflags": true, "-asmflags": true, "-gccgoflags": true, "-mod": true, "-modfile": true,
	"-overlay": true, "-pkgdir": true, "-toolexec": true, "-buildmode": true, "-compiler": true, "-covermode": true, "-coverpkg": true,
	"-installsuffix": true, "-pgo": true,
}
