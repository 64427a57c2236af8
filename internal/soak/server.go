// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

const (
	// maxMessage is more than any good client sends.
	maxMessage = 256 << 10
	// replayTime is how long events are kept for clients that come back.
	replayTime = 5 * time.Second
	// sessionIdle is how long sessions live that nobody uses.
	sessionIdle = 15 * time.Second
)

// server is what the clients meet: one mux, over HTTP on a loopback port, and over
// pipes, as if each client had started it.
type server struct {
	mux   *mcp.Mux
	mcp   *mcphttp.Handler
	sse   *mcphttp.SSEHandler
	http  *http.Server
	url   string
	addr  string
	pipes sync.WaitGroup
	ended chan struct{}

	handlers atomic.Int64 // that run
	idle     []*http.Transport

	mu      sync.Mutex
	changes []time.Time // of the tools
	floods  map[string]chan struct{}
}

func newServer(writeTimeout time.Duration) (*server, error) {
	s := &server{mux: mcp.NewMux("soak", "v1", &mcp.MuxOptions{Logger: quiet}), ended: make(chan struct{}), floods: map[string]chan struct{}{}}
	s.register()
	opts := &mcphttp.Options{
		MaxBody: maxMessage, WriteTimeout: writeTimeout, SessionIdle: sessionIdle, Heartbeat: time.Second,
		MaxSessions: 100_000, Logger: quiet, Replay: store.Retention{Records: 256, Bytes: 1 << 20, TTL: replayTime},
	}
	s.mcp, s.sse = mcphttp.NewHandler(s.mux, opts), mcphttp.NewSSEHandler(s.mux, opts)
	routes := http.NewServeMux()
	routes.Handle("/mcp", s.mcp)
	routes.Handle("/sse", s.sse)
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.addr = l.Addr().String()
	s.url = "http://" + s.addr
	s.http = &http.Server{Handler: routes, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(l) // until it is closed
	}()
	for range transports {
		s.idle = append(s.idle, &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 10 * time.Second})
	}
	return s, nil
}

// transports is over how many pools of connections the clients of HTTP are spread.
const transports = 32

func (s *server) close() {
	s.endSessions()
	_ = s.http.Close()
	s.closeIdle()
	<-s.ended
	s.pipes.Wait()
}

func (s *server) closeIdle() {
	for _, t := range s.idle {
		t.CloseIdleConnections()
	}
}

// sessions counts the sessions of HTTP.
func (s *server) sessions() (n int) {
	for range s.mcp.Sessions() {
		n++
	}
	for range s.sse.Sessions() {
		n++
	}
	return n
}

// endSessions ends all sessions, as an operator may.
func (s *server) endSessions() {
	for session := range s.mcp.Sessions() {
		session.Close()
	}
	for session := range s.sse.Sessions() {
		session.Close()
	}
}

// pipe starts the server on a pair of pipes and returns the other ends.
func (s *server) pipe(ctx context.Context) (fromServer, toServer *os.File, err error) {
	in, toServer, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	fromServer, out, err := os.Pipe()
	if err != nil {
		_ = in.Close()
		_ = toServer.Close()
		return nil, nil, err
	}
	s.pipes.Go(func() {
		defer in.Close()
		defer out.Close()
		opts := &mcp.StreamOptions{DrainTimeout: time.Second, Logger: quiet, Legacy: &mcp.LegacyOptions{Logger: quiet}}
		server := &mcpstdio.Server{Handler: s.mux, In: in, Out: out, MaxMessage: maxMessage, Options: opts}
		_ = server.Serve(context.WithoutCancel(ctx)) // until the client closes its end
	})
	return fromServer, toServer, nil
}

// arguments are those of all tools.
type arguments struct {
	Text  string `json:"text"`
	Pause int    `json:"pause"` // milliseconds
}

type answer struct {
	Text string `json:"text"`
}

func (s *server) register() {
	for name, fn := range map[string]func(context.Context, arguments) (string, error){
		"echo": echo, "work": work, "ask": ask, "fail": fail, "block": block, "flood": s.flood,
	} {
		s.mux.Tool(name, s.counted(fn))
	}
}

func (s *server) counted(fn func(context.Context, arguments) (string, error)) mcp.Handler {
	return mcp.ToolFunc(func(ctx context.Context, in arguments) (string, error) {
		s.handlers.Add(1)
		defer s.handlers.Add(-1)
		return fn(ctx, in)
	}, nil)
}

func echo(ctx context.Context, in arguments) (string, error) {
	if in.Pause > 0 {
		pause(ctx, time.Duration(in.Pause)*time.Millisecond)
	}
	return in.Text, context.Cause(ctx)
}

// steps is how often work says how far it is.
const steps = 5

func work(ctx context.Context, in arguments) (string, error) {
	for i := range steps {
		mcp.Progress(ctx, float64(i+1), steps, in.Text)
		pause(ctx, time.Duration(in.Pause)*time.Millisecond)
	}
	return in.Text, context.Cause(ctx)
}

func ask(ctx context.Context, in arguments) (string, error) {
	a, err := mcp.Elicit[answer](ctx, "a", in.Text+"a")
	if err != nil {
		return "", err
	}
	b, err := mcp.Elicit[answer](ctx, "b", in.Text+"b")
	if err != nil {
		return "", err
	}
	return a.Text + b.Text, nil
}

func fail(_ context.Context, in arguments) (string, error) {
	return "", errors.New("failed " + in.Text)
}

// block waits until it is cancelled, but not for ever: who goes without a word does
// not cancel in the legacy era.
func block(ctx context.Context, _ arguments) (string, error) {
	pause(ctx, 10*time.Second)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return "", errors.New("nobody cancelled")
}

// flood says more than a connection holds. Who has called it and does not read
// is told by a channel when it has ended.
func (s *server) flood(ctx context.Context, in arguments) (string, error) {
	defer s.flooded(in.Text)
	text := strings.Repeat("x", 64<<10)
	for i := range 512 {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		p := &mcp.ProgressParams{ProgressToken: mcp.RequestFrom(ctx).ProgressToken(), Progress: float64(i + 1), Message: text}
		if err := mcp.RequestFrom(ctx).Notify(ctx, mcp.NotificationProgress, p); err != nil {
			return "", err
		}
	}
	return "all of it", nil
}

// expectFlood returns what is closed when the flood of that text has ended.
func (s *server) expectFlood(text string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended := make(chan struct{})
	s.floods[text] = ended
	return ended
}

func (s *server) flooded(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ended := s.floods[text]; ended != nil {
		close(ended)
		delete(s.floods, text)
	}
}

// change changes the list of tools every second.
func (s *server) change(ctx context.Context) {
	for i := 0; ctx.Err() == nil; i++ {
		s.mu.Lock()
		s.changes = append(s.changes, time.Now())
		s.mu.Unlock()
		if i%2 == 0 {
			s.mux.Tool("extra", s.counted(echo))
		} else {
			s.mux.RemoveTool("extra")
		}
		pause(ctx, time.Second)
	}
	s.mux.RemoveTool("extra")
}

// changedBetween reports the last change between two times.
func (s *server) changedBetween(from, to time.Time) (last time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range s.changes {
		if at.After(from) && at.Before(to) {
			last, ok = at, true
		}
	}
	return last, ok
}
