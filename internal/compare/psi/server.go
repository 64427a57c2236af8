// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package psi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-psi/psi/internal/compare/side"
	"github.com/go-psi/psi/internal/compare/work"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
	"github.com/go-psi/psi/middleware"
)

// Side is psi.
var Side = side.Side{Name: "psi", New: newServer, Dial: dial, Start: start}

type server struct {
	mux     *mcp.Mux
	changes int
}

func newServer(o side.Options) side.Server {
	mux := mcp.NewMux("psi", "v1", &mcp.MuxOptions{PageSize: o.Tools + 10})
	if o.Middleware {
		log := slog.New(nowhere{})
		plenty := middleware.NewTokenBucket(1_000_000_000, time.Second, nil)
		mux.Use(middleware.Recover(log), middleware.Logger(log), middleware.RateLimit(middleware.ByTool, plenty))
	}
	mux.Tool("add", mcp.ToolFunc(work.Add, &mcp.Tool{Description: "Add two integers."}))
	mux.Tool("echo", mcp.ToolFunc(work.Repeat, &mcp.Tool{Description: "Say it again."}))
	for i := range o.Tools {
		mux.Tool(fmt.Sprintf("tool%04d", i), mcp.ToolFunc(work.Add, &mcp.Tool{Description: "Add two integers."}))
	}
	return &server{mux: mux}
}

// nowhere takes all records, unlike [slog.DiscardHandler], which none are made for.
type nowhere struct{}

func (nowhere) Enabled(context.Context, slog.Level) bool  { return true }
func (nowhere) Handle(context.Context, slog.Record) error { return nil }
func (nowhere) WithAttrs([]slog.Attr) slog.Handler        { return nowhere{} }
func (nowhere) WithGroup(string) slog.Handler             { return nowhere{} }

// HTTP may have as many sessions of one client as are measured.
func (s *server) HTTP() http.Handler {
	return mcphttp.NewHandler(s.mux, &mcphttp.Options{MaxSessionsPerCaller: 10_000})
}

func (s *server) Stdio(ctx context.Context) error { return mcpstdio.Serve(ctx, s.mux) }

// Dispatcher does what a transport does with a message that it has read.
func (s *server) Dispatcher(ctx context.Context) (func([]byte) ([]byte, error), error) {
	var dst []byte
	return func(message []byte) ([]byte, error) {
		m, err := mcp.ParseMessage(message)
		if err != nil {
			return nil, err
		}
		if err := m.Request.CheckMeta(); err != nil {
			return nil, err
		}
		if err := m.Request.CheckVersion(); err != nil {
			return nil, err
		}
		res, err := mcp.Serve(ctx, s.mux, m.Request, nil, nil)
		dst = mcp.AppendResponse(dst[:0], m.Request, res, err)
		return dst, nil
	}, nil
}

func (s *server) Connect(ctx context.Context, version string) (side.Caller, error) {
	return connect(ctx, mcp.InProcess(s.mux), version)
}

func (s *server) Change() {
	s.changes++
	s.mux.Tool(fmt.Sprintf("change%04d", s.changes), mcp.ToolFunc(work.Add, nil))
}
