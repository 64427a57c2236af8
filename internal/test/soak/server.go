// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/mcpstdio"
)

const (
	// maxMessage exceeds any message of well-behaved clients.
	maxMessage = 256 << 10
	// replayTime is how long events are kept for reconnecting clients.
	replayTime = 5 * time.Second
	// sessionIdle is how long idle sessions live.
	sessionIdle = 15 * time.Second
)

// server is the server under test: a mux over HTTP on a loopback port, or several replicas
// of it behind a balancer, and a mux over pipes, as if each client had started it.
type server struct {
	options  mcphttp.Options
	values   store.Values // nil if there is one replica
	keys     [][]byte     // shared by the replicas
	local    *mcp.Mux     // serves pipes
	tasks    store.Store
	manager  *tasks.Manager // of local
	balancer *balancer      // nil for a single replica
	url      string
	addr     string
	pipes    sync.WaitGroup
	logged   tally

	handlers atomic.Int64 // number of running handlers
	idle     []*http.Transport

	mu       sync.Mutex
	replicas []*replica
	started  int
	changes  []time.Time // times of changes of the tools
	extra    bool        // the extra tool is registered
	floods   map[string]chan struct{}
}

func newServer(c config) (*server, error) {
	s := &server{floods: map[string]chan struct{}{}, logged: tally{counts: map[string]int{}}}
	s.options = mcphttp.Options{
		MaxBody: maxMessage, WriteTimeout: c.write, Heartbeat: time.Second, Logger: slog.New(&s.logged), Sessions: mcphttp.SessionOptions{Idle: sessionIdle, Max: 100_000, MaxPerCaller: 100_000, Replay: 64 << 20},
	}
	if c.replicas > 1 {
		s.keys = [][]byte{[]byte(rand.Text() + rand.Text())[:32]}
		s.values = store.NewMemory(&store.MemoryOptions{MaxBytes: 256 << 20})
	}
	s.tasks = store.NewMemory(&store.MemoryOptions{MaxBytes: 256 << 20})
	s.local, s.manager = s.newMux()
	for range max(c.replicas, 1) {
		if _, err := s.startReplica(); err != nil {
			s.close()
			return nil, err
		}
	}
	s.addr = s.replicas[0].url.Host
	if c.replicas > 1 {
		l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
		if err != nil {
			s.close()
			return nil, err
		}
		s.balancer, s.addr = newBalancer(c, l), l.Addr().String()
		for _, p := range s.replicas {
			s.balancer.add(p)
		}
	}
	s.url = "http://" + s.addr
	for range transports {
		s.idle = append(s.idle, &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 10 * time.Second})
	}
	return s, nil
}

// transports is the number of connection pools shared by the HTTP clients.
const transports = 32

func (s *server) close() {
	s.endSessions()
	if s.balancer != nil {
		s.balancer.close()
	}
	for _, p := range s.all() {
		_ = p.http.Close()
		<-p.ended
		_ = shutdownTasks(p.tasks)
	}
	s.closeIdle()
	s.pipes.Wait()
	_ = shutdownTasks(s.manager) // nothing is running
}

func (s *server) closeIdle() {
	for _, t := range s.idle {
		t.CloseIdleConnections()
	}
	if s.balancer != nil {
		s.balancer.pool.CloseIdleConnections()
	}
}

// all returns the current replicas.
func (s *server) all() []*replica {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.replicas)
}

func (s *server) sessions() (n int) {
	for _, p := range s.all() {
		n += p.sessions()
	}
	return n
}

func (s *server) endSessions() {
	for _, p := range s.all() {
		p.endSessions()
	}
}

// hurtSince reports whether a cut connection or a removed replica may have failed a request
// of the client after a time.
func (s *server) hurtSince(client int, at time.Time) bool {
	return s.balancer != nil && s.balancer.hurtSince(strconv.Itoa(client), at)
}

// pipe starts the server on a pair of pipes and returns the client's ends.
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
		stream := &mcpstdio.StreamOptions{DrainTimeout: time.Second, Logger: quiet}
		opts := &mcpstdio.Options{In: in, Out: out, MaxMessage: maxMessage, Stream: stream}
		_ = mcpstdio.Serve(context.WithoutCancel(ctx), s.local, opts) // until the client closes its end
	})
	return fromServer, toServer, nil
}

// arguments are the arguments of all tools.
type arguments struct {
	Text  string `json:"text"`
	Pause int    `json:"pause"` // milliseconds
}

type answer struct {
	Text string `json:"text"`
}

// newMux returns the mux of a replica with the current tools.
func (s *server) newMux() (*mcp.Mux, *tasks.Manager) {
	mux := mcp.NewMux("soak", "v1", &mcp.MuxOptions{Logger: quiet, StateKeys: s.keys})
	for name, fn := range map[string]func(context.Context, arguments) (string, error){
		"echo": echo, "work": work, "ask": ask, "fail": fail, "block": block, "flood": s.flood,
	} {
		mux.Tool(name, s.counted(fn))
	}
	return mux, s.addTasks(mux)
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

// steps is the number of progress notifications sent by work.
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

// block waits until it is cancelled, but not forever: in the legacy era, a client that
// disconnects does not cancel.
func block(ctx context.Context, _ arguments) (string, error) {
	pause(ctx, 10*time.Second)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	return "", errors.New("nobody cancelled")
}

// flood sends more than the buffers of a connection hold. A channel reports its end to
// callers that do not read.
func (s *server) flood(ctx context.Context, in arguments) (string, error) {
	defer s.flooded(in.Text)
	text := strings.Repeat("x", 64<<10)
	for i := range 512 {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		p := &mcp.ProgressParams{ProgressToken: mcp.RequestFromContext(ctx).ProgressToken(), Progress: float64(i + 1), Message: text}
		if err := mcp.RequestFromContext(ctx).Notify(ctx, mcp.NotificationProgress, p); err != nil {
			return "", err
		}
	}
	return "all of it", nil
}

// expectFlood returns a channel that is closed when the flood with the given text has
// ended.
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
