// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcphttp"
)

// replica stands for one process: a mux, served over HTTP on a loopback port.
type replica struct {
	number int
	mux    *mcp.Mux
	tasks  *tasks.Manager
	mcp    *mcphttp.Handler
	sse    *mcphttp.SSEHandler
	http   *http.Server
	url    *url.URL
	ended  chan struct{}
}

// startReplica starts a replica, which receives all later changes.
func (s *server) startReplica() (*replica, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mux, manager := s.newMux()
	p := &replica{mux: mux, tasks: manager, url: &url.URL{Scheme: "http", Host: l.Addr().String()}, ended: make(chan struct{})}
	opts := s.options
	if s.values != nil {
		opts.Sessions.Shared = &mcphttp.SharedSessions{
			Values: s.values, URL: p.url.JoinPath("peers").String(), Keys: s.keys,
			Transport: &http.Transport{IdleConnTimeout: time.Second}, // so that idle connections end before they are counted
		}
	}
	p.mcp, p.sse = mcphttp.NewHandler(p.mux, &opts), mcphttp.NewSSEHandler(p.mux, &opts)
	routes := http.NewServeMux()
	routes.Handle("/mcp", p.mcp)
	routes.Handle("/peers", p.mcp.PeerHandler())
	routes.Handle("/sse", p.sse)
	p.http = listenOn(routes)
	go func() {
		defer close(p.ended)
		_ = p.http.Serve(l) // until it is closed
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started++
	p.number = s.started
	s.updateLocked(p.mux)
	s.replicas = append(s.replicas, p)
	return p, nil
}

func listenOn(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
}

// shutdown ends a replica like an orchestrator: gracefully at first, and then by force.
func (p *replica) shutdown(grace time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	err := errors.Join(shutdownTasks(p.tasks), p.mcp.Shutdown(ctx), p.sse.Shutdown(ctx))
	if err == nil {
		err = p.http.Shutdown(ctx)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil // some calls take longer than that
	}
	err = errors.Join(err, p.http.Close())
	<-p.ended
	late, stop := context.WithTimeout(context.Background(), grace)
	defer stop()
	_ = p.sse.Shutdown(late) // handlers end once their connections are closed
	if n := p.sessions(); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d sessions are left", n))
	}
	return err
}

// sessions returns the number of HTTP sessions.
func (p *replica) sessions() (n int) {
	for range p.mcp.Sessions() {
		n++
	}
	for range p.sse.Sessions() {
		n++
	}
	return n
}

// endSessions ends all sessions, as an operator may.
func (p *replica) endSessions() {
	for session := range p.mcp.Sessions() {
		session.Close()
	}
	for session := range p.sse.Sessions() {
		session.Close()
	}
}
