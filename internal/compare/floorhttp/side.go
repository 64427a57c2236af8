// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package floorhttp

import (
	"context"
	"net/http"
	"os"

	"github.com/go-psi/psi/internal/compare/floor"
	"github.com/go-psi/psi/internal/compare/side"
)

// Side is the floor.
var Side = side.Side{Name: "raw", New: newServer, Dial: dial, Start: start}

type server struct {
	*floor.Server
	streams streams
	o       side.Options
}

func newServer(o side.Options) side.Server {
	return &server{Server: floor.NewServer(o.Tools), o: o, streams: streams{open: map[chan []byte]bool{}}}
}

func (s *server) HTTP() http.Handler {
	if s.o.Modern {
		return http.HandlerFunc(s.serveModern)
	}
	return &sessions{server: s, open: map[string]*session{}}
}

func (s *server) Stdio(ctx context.Context) error { return s.Serve(ctx, os.Stdin, os.Stdout) }

func (s *server) Dispatcher(ctx context.Context) (func([]byte) ([]byte, error), error) {
	return func(message []byte) ([]byte, error) { return s.Dispatch(ctx, message) }, nil
}

func (s *server) Connect(_ context.Context, version string) (side.Caller, error) {
	return &caller{Client: floor.Client{Version: version, Send: func(ctx context.Context, _ string, message []byte) ([]byte, error) {
		return s.Dispatch(ctx, message)
	}}}, nil
}

func (s *server) Change() {
	s.streams.tell([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`))
}
