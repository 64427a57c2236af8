// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-psi/psi/mcp"
)

// httpLoad makes calls over HTTP on several connections concurrently. In the legacy era,
// each connection has a session.
type httpLoad struct {
	conns   []*httpConn
	heads   []string
	message template
	check   func(answer []byte, n int) error
	free    chan int // idle connections
}

func newHTTPLoad(ctx context.Context, addr string, e era, conns int, accept, tool string, message template, check func([]byte, int) error) (*httpLoad, error) {
	l := &httpLoad{message: message, check: check, free: make(chan int, conns)}
	for i := range conns {
		c, err := dialHTTP(ctx, addr)
		if err != nil {
			return nil, errors.Join(err, l.close())
		}
		l.conns = append(l.conns, c)
		if e == legacy {
			if err := c.open(); err != nil {
				return nil, errors.Join(err, l.close())
			}
		}
		l.heads = append(l.heads, c.head(http.MethodPost, e.headers(mcp.MethodCallTool, tool, accept)))
		l.free <- i
	}
	return l, nil
}

func (l *httpLoad) run(limit limit) (int, error) {
	buffers := make([][]byte, len(l.conns))
	return runParallel(func(n int) error {
		i := <-l.free
		defer func() { l.free <- i }()
		buffers[i] = l.message.message(buffers[i][:0], n)
		answer, _, status, err := l.conns[i].exchange(l.heads[i], buffers[i])
		if err != nil {
			return err
		}
		if status != http.StatusOK {
			return fmt.Errorf("status %d: %.300s", status, answer)
		}
		return l.check(answer, n)
	}, len(l.conns), limit)
}

func (l *httpLoad) close() error {
	var errs []error
	for _, c := range l.conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
