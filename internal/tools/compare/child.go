// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"time"

	"github.com/go-psi/psi/internal/tools/compare/side"
)

// childEnv is the environment variable that makes this program one of the measured
// processes.
const childEnv = "PSI_COMPARE_CHILD"

// A spec describes a child.
type spec struct {
	Role    string // "http", "stdio", "ops" or "client"
	Side    string
	Options side.Options
	Op      string // operation to repeat, for roles "ops" and "client"
	URL     string // of a client's server; "" to start one
}

// An order is a command to a child, sent on its file descriptor 3.
type order struct {
	Do    string // "use", "settle", "change", "profile" or "run"
	Limit limit
	Path  string
}

// A report is a child's response to an order, sent on its file descriptor 4.
type report struct {
	Use   usage
	Addr  string // of an HTTP server, in its first report
	Count int    // number of calls, after "run"
	Err   string
}

// A limit ends a run: after Count calls if Count is not 0, otherwise after the duration
// For.
type limit struct {
	Count int
	For   time.Duration
}

func (l limit) reached(done int, since time.Time) bool {
	if l.Count > 0 {
		return done >= l.Count
	}
	return time.Since(since) >= l.For
}

// runChild runs this process as a child, if it is one, and then exits.
func runChild() {
	text := os.Getenv(childEnv)
	if text == "" {
		return
	}
	var s spec
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = s.run(context.Background())
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "compare: %s as %s: %v\n", s.Side, s.Role, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (s *spec) run(ctx context.Context) error {
	impl := sideOf(s.Side)
	if impl == nil {
		return errors.New("unknown side")
	}
	if os.Getenv(aloneEnv) != "" {
		return impl.New(s.Options).Stdio(ctx)
	}
	first := report{}
	c := &child{}
	switch s.Role {
	case "http":
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		server := impl.New(s.Options)
		c.change, first.Addr = server.Change, l.Addr().String()
		go serveHTTP(l, server.HTTP())
	case "stdio":
		server := impl.New(s.Options)
		go func() {
			err := server.Stdio(ctx)
			if err != nil {
				fmt.Fprintln(os.Stderr, "compare:", err)
			}
		}()
	default:
		op, parallel, err := newOp(ctx, s, impl)
		if err != nil {
			return err
		}
		c.op, c.parallel = op, parallel
	}
	return c.obey(os.NewFile(3, "orders"), os.NewFile(4, "reports"), first)
}

func serveHTTP(l net.Listener, h http.Handler) {
	server := http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	fmt.Fprintln(os.Stderr, "compare:", server.Serve(l))
}

// A child is a measured process.
type child struct {
	change   func()
	op       op
	parallel int
	profile  *os.File
}

// obey executes orders until there are no more.
func (c *child) obey(in io.Reader, out io.Writer, first report) error {
	orders, reports := json.NewDecoder(in), json.NewEncoder(out)
	if err := reports.Encode(first); err != nil {
		return err
	}
	for {
		var o order
		if err := orders.Decode(&o); err != nil {
			return nil //nolint:nilerr // who gives the orders has gone
		}
		r, err := c.do(o)
		if err != nil {
			r.Err = err.Error()
		}
		if err := reports.Encode(r); err != nil {
			return err
		}
	}
}

func (c *child) do(o order) (r report, err error) {
	switch o.Do {
	case "use":
	case "settle":
		debug.FreeOSMemory()
		debug.FreeOSMemory()
	case "change":
		c.change()
	case "profile":
		return r, c.toggleProfile(o.Path)
	case "run":
		r.Count, err = runParallel(c.op, c.parallel, o.Limit)
		return r, err
	default:
		return r, fmt.Errorf("unknown order %q", o.Do)
	}
	r.Use, err = used()
	return r, err
}

// toggleProfile starts a CPU profile. The next call stops it and also writes the allocation
// profile.
func (c *child) toggleProfile(path string) (err error) {
	if c.profile == nil {
		if c.profile, err = os.Create(path + ".cpu.prof"); err != nil { //nolint:gosec // the path comes from the command line
			return err
		}
		return pprof.StartCPUProfile(c.profile)
	}
	pprof.StopCPUProfile()
	if err := c.profile.Close(); err != nil {
		return err
	}
	f, err := os.Create(path + ".alloc.prof") //nolint:gosec // as above
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
