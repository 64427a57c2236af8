// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/internal/tools/compare/side"
	"github.com/go-psi/psi/mcp"
)

// An op is an operation that a child repeats, with a different number each time. It checks
// its answer.
type op func(n int) error

// newOp returns the op of a spec and the number of goroutines that run it.
func newOp(ctx context.Context, s *spec, impl *side.Side) (op, int, error) {
	var run op
	var err error
	parallel := 1
	switch s.Op {
	case "dispatch", "list":
		run, err = dispatchOp(ctx, impl.New(s.Options), s.Op)
	case "handler":
		run = handlerOp(ctx, impl.New(s.Options))
	case "in process", "in process 64 KB":
		var c side.Caller
		if c, err = impl.New(s.Options).Connect(ctx, mcp.LatestVersion); err == nil {
			run = callOp(ctx, c, s.Op != "in process")
		}
	case "over HTTP":
		run, err = overHTTPOp(ctx, impl.New(s.Options))
	case "waiting task":
		run, err = waitingOp(ctx, impl.New(s.Options))
	case "client http":
		var c side.Caller
		parallel = 16
		if c, err = impl.Dial(ctx, s.URL, mcp.LatestVersion); err == nil {
			run = callOp(ctx, c, false)
		}
	case "client stdio":
		var c side.Caller
		if c, err = startOwn(ctx, impl); err == nil {
			run = callOp(ctx, c, false)
		}
	default:
		err = fmt.Errorf("unknown op %q", s.Op)
	}
	return run, parallel, err
}

// startOwn connects a client to the floor over stdio.
func startOwn(ctx context.Context, impl *side.Side) (side.Caller, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	server := spec{Role: "stdio", Side: floorName}
	return impl.Start(ctx, side.Program{Path: self, Env: []string{aloneEnv + "=1", server.env()}}, mcp.LatestVersion)
}

func dispatchOp(ctx context.Context, server side.Server, what string) (op, error) {
	dispatch, err := server.Dispatcher(ctx)
	if err != nil {
		return nil, err
	}
	t, check := modern.add(), checkAdd
	if what == "list" {
		t, check = modern.list(), checkList
	}
	var message []byte
	return func(n int) error {
		message = t.message(message[:0], n)
		answer, err := dispatch(message)
		if err != nil {
			return err
		}
		return check(answer, n)
	}, nil
}

// handlerOp serves HTTP requests without network connections.
func handlerOp(ctx context.Context, server side.Server) op {
	h, t := server.HTTP(), modern.add()
	header := http.Header{}
	for _, line := range modern.headers(mcp.MethodCallTool, "add", acceptBoth) {
		name, value, _ := strings.Cut(line, ": ")
		header[http.CanonicalHeaderKey(name)] = []string{value}
	}
	reader, sink := bytes.NewReader(nil), &sink{header: http.Header{}}
	body := io.NopCloser(reader)
	var message []byte
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/mcp", body)
	return func(n int) error {
		if err != nil {
			return err
		}
		message = t.message(message[:0], n)
		reader.Reset(message)
		r.Header, r.ContentLength, r.Body = header, int64(len(message)), body
		sink.reset()
		h.ServeHTTP(sink, r)
		if sink.status > http.StatusOK {
			return fmt.Errorf("status %d: %s", sink.status, sink.body)
		}
		return checkAdd(sink.body, n)
	}
}

// sink is a response writer that keeps the last body.
type sink struct {
	header http.Header
	status int
	body   []byte
}

func (s *sink) reset()                      { clear(s.header); s.status, s.body = 0, s.body[:0] }
func (s *sink) Header() http.Header         { return s.header }
func (s *sink) WriteHeader(status int)      { s.status = status }
func (s *sink) Write(p []byte) (int, error) { s.body = append(s.body, p...); return len(p), nil }
func (s *sink) Flush()                      {}

// callOp makes calls through a client.
func callOp(ctx context.Context, c side.Caller, echo bool) op {
	if !echo {
		return func(n int) error {
			sum, err := c.Add(ctx, n, addend)
			if err == nil && sum != n+addend {
				err = fmt.Errorf("%d and %d is not %d", n, addend, sum)
			}
			return err
		}
	}
	text := strings.Repeat("0123456789abcdef", 4<<10)
	return func(int) error {
		back, err := c.Echo(ctx, text)
		if err == nil && back != text {
			err = errors.New("the text has changed")
		}
		return err
	}
}

// overHTTPOp makes calls over HTTP with client and server in the same process.
func overHTTPOp(ctx context.Context, server side.Server) (op, error) {
	connector, ok := server.(side.HTTPConnector)
	if !ok {
		return nil, errors.New("this side does not connect to itself over HTTP")
	}
	c, err := connector.ConnectHTTP(ctx)
	return callOp(ctx, c, false), err
}

// waitingOp starts tasks that wait for an answer.
func waitingOp(ctx context.Context, server side.Server) (op, error) {
	c, err := server.Connect(ctx, mcp.LatestVersion)
	if err != nil {
		return nil, err
	}
	starter, ok := c.(side.TaskStarter)
	if !ok {
		return nil, errors.New("this side has no tasks")
	}
	return func(int) error { return starter.StartTask(ctx) }, nil
}

// runParallel repeats an op until the limit is reached, and returns the number of
// operations.
func runParallel(run op, parallel int, l limit) (int, error) {
	start := time.Now()
	var count atomic.Int64
	var failed atomic.Pointer[error]
	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for n := int(count.Load()); failed.Load() == nil && !l.reached(n, start); {
				n = int(count.Add(1))
				if err := run(firstID + n); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	workers.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return int(count.Load()), nil
}
