// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package psi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/go-psi/psi/internal/seam"

	"github.com/go-psi/psi/internal/tools/compare/side"
	"github.com/go-psi/psi/internal/tools/compare/work"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
	"github.com/go-psi/psi/middleware"
)

// core is the internal API of package mcp used by transports.
var core = mcp.Internal(seam.Key{})

// Side is psi.
var Side = side.Side{Name: "psi", New: newServer, Dial: dial, Start: start}

type server struct {
	mux     *mcp.Mux
	tasks   bool
	changes int
}

func newServer(o side.Options) side.Server {
	mux := mcp.NewMux("psi", "v1", &mcp.MuxOptions{PageSize: o.Tools + 10})
	if o.Middleware {
		log := slog.New(nowhere{})
		plenty := middleware.NewTokenBucket(1_000_000_000, time.Second, nil)
		mux.Use(middleware.Recover(log), middleware.Logger(log), middleware.RateLimit(middleware.ByTool, plenty))
	}
	tools := mux
	if o.Tasks != "" {
		tools = addTasks(mux, o.Tasks)
	}
	tools.Tool("add", mcp.ToolFunc(work.Add, &mcp.Tool{Description: "Add two integers."}))
	mux.Tool("echo", mcp.ToolFunc(work.Repeat, &mcp.Tool{Description: "Say it again."}))
	for i := range o.Tools {
		mux.Tool(fmt.Sprintf("tool%04d", i), mcp.ToolFunc(work.Add, &mcp.Tool{Description: "Add two integers."}))
	}
	return &server{mux: mux, tasks: o.Tasks != ""}
}

// nowhere accepts and discards all records. With [slog.DiscardHandler], records would not
// even be built.
type nowhere struct{}

func (nowhere) Enabled(context.Context, slog.Level) bool  { return true }
func (nowhere) Handle(context.Context, slog.Record) error { return nil }
func (nowhere) WithAttrs([]slog.Attr) slog.Handler        { return nowhere{} }
func (nowhere) WithGroup(string) slog.Handler             { return nowhere{} }

// HTTP raises the limit of sessions per caller, because one client opens all measured
// sessions.
func (s *server) HTTP() http.Handler {
	return mcphttp.NewHandler(s.mux, &mcphttp.Options{Sessions: mcphttp.SessionOptions{MaxPerCaller: 10_000}})
}

func (s *server) Stdio(ctx context.Context) error { return mcpstdio.Serve(ctx, s.mux, nil) }

// Dispatcher does the work of a transport after it has read a message.
func (s *server) Dispatcher(ctx context.Context) (func([]byte) ([]byte, error), error) {
	var dst []byte
	return func(message []byte) ([]byte, error) {
		m, err := transport.ParseMessage(message)
		if err != nil {
			return nil, err
		}
		req, err := core.NewRequest(&m)
		if err != nil {
			return nil, err
		}
		if err := core.CheckMeta(req); err != nil {
			return nil, err
		}
		if err := core.CheckVersion(req); err != nil {
			return nil, err
		}
		res, err := core.Serve(ctx, s.mux, req, nil, nil)
		dst = mcp.AppendResponse(dst[:0], req, res, err)
		return dst, nil
	}, nil
}

func (s *server) Connect(ctx context.Context, version string) (side.Caller, error) {
	return connect(ctx, inMemory(s.mux, version), s.clientOptions(version))
}

// ConnectHTTP implements [side.HTTPConnector]. The server runs until the process exits.
func (s *server) ConnectHTTP(ctx context.Context) (side.Caller, error) {
	server := httptest.NewServer(s.HTTP())
	return connect(ctx, mcphttp.NewTransport(server.URL, nil), s.clientOptions(mcp.LatestVersion))
}

func (s *server) clientOptions(version string) *mcp.ClientOptions {
	opts := &mcp.ClientOptions{Version: version}
	if s.tasks {
		opts.Extensions = []*mcp.ClientExtension{tasks.Client()}
		opts.Capabilities = &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{Form: new(struct{})}}
	}
	return opts
}

func (s *server) Change() {
	s.changes++
	s.mux.Tool(fmt.Sprintf("change%04d", s.changes), mcp.ToolFunc(work.Add, nil))
}

// inMemory returns a transport to a handler in this process: [mcp.InProcess] for the latest
// revision, a pipe for others.
func inMemory(h mcp.Handler, version string) transport.Transport {
	if version == mcp.LatestVersion {
		return mcp.InProcess(h)
	}
	return transport.FromStream(func(context.Context) (transport.Stream, error) {
		near, far := transport.Pipe()
		go func() { _ = mcpstdio.ServeStream(context.Background(), h, far, nil) }() // ends with the pipe
		return near, nil
	})
}
