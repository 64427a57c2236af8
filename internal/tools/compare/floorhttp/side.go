// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package floorhttp

import (
	"context"
	"net/http"
	"os"
	"time"

	"github.com/go-psi/psi/internal/tools/compare/floor"
	"github.com/go-psi/psi/internal/tools/compare/side"
)

// Side is the hand-written floor.
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
	var h http.Handler = &sessions{server: s, open: map[string]*session{}}
	if s.o.Modern {
		h = http.HandlerFunc(s.serveModern)
	}
	if s.o.Limits {
		h = limited(h)
	}
	return h
}

// limited adds the limits that psi has: deadlines for reading the request and writing the
// response, and a timer that flushes while the handler runs.
func limited(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.SetReadDeadline(time.Now().Add(time.Minute)) // connections support deadlines
		defer time.AfterFunc(15*time.Second, func() { _ = control.Flush() }).Stop()
		h.ServeHTTP(w, r)
		_ = control.SetWriteDeadline(time.Now().Add(30 * time.Second)) // net/http sends the response when the handler returns
	})
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
