// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"time"

	"github.com/go-psi/psi/internal/tools/compare/side"
)

// held returns the workloads that keep something open.
func held() []workload {
	return []workload{
		{name: "idle legacy session", begin: holding(legacy, false), rows: []row{{measure: memory, most: 1}}},
		{name: "legacy session and its open stream", begin: holding(legacy, true), rows: []row{{measure: memory, ratio: 1.3}}},
		{name: "modern subscription", begin: holding(modern, true), rows: []row{{measure: memory, ratio: 1.3}}},
	}
}

func holding(e era, streams bool) func(context.Context, string) (session, error) {
	return func(ctx context.Context, sideName string) (session, error) {
		s := spec{Role: "http", Side: sideName, Options: side.Options{Modern: e == modern}}
		return &hold{ctx: ctx, spec: s, era: e, streams: streams}, nil
	}
}

// hold measures the memory of idle open sessions or streams, each time in a new process.
type hold struct {
	ctx     context.Context
	spec    spec
	era     era
	streams bool
	conns   []*httpConn
	profile string // path of the profiles; "" to write none
}

const (
	heldSessions = 4000 // on one connection
	heldStreams  = 1000 // each on its own
)

func (h *hold) sample(limit limit) (s sample, err error) {
	p, err := launch(h.spec)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.close(), p.close()) }()
	count := heldSessions
	if h.streams {
		count = heldStreams
	}
	if limit.Count > 0 {
		count = limit.Count
	}
	if err := h.open(p.addr, count/10+1); err != nil { // one-time costs
		return nil, err
	}
	before, err := p.settled()
	if err != nil {
		return nil, err
	}
	if err := h.open(p.addr, count); err != nil {
		return nil, err
	}
	after, err := p.settled()
	if err != nil {
		return nil, err
	}
	for range 2 {
		if h.profile != "" {
			_, err = p.do(order{Do: "profile", Path: h.profile})
		}
	}
	return sample{memory: float64(after.Resident-before.Resident) / 1000 / float64(count)}, err
}

// settled waits until an idle process has released the memory it no longer needs.
func (p *process) settled() (usage, error) {
	time.Sleep(200 * time.Millisecond) // for background work
	return p.use(true)
}

func (h *hold) open(addr string, count int) error {
	var c *httpConn
	for range count {
		if c == nil || h.streams {
			var err error
			if c, err = dialHTTP(h.ctx, addr); err != nil {
				return err
			}
			h.conns = append(h.conns, c)
		}
		if h.era == legacy {
			c.session = ""
			if err := c.open(); err != nil {
				return err
			}
		}
		if h.streams {
			if _, err := c.events(h.era); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h *hold) close() error {
	for _, c := range h.conns {
		_ = c.Close()
	}
	h.conns = nil
	return nil
}
