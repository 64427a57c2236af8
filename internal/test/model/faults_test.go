// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package model_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// faults decides which faults occur between a client and the server. The fate of a message
// depends only on the seed, the kind of the message, and the number of such messages before
// it.
type faults struct {
	client *client

	mu   sync.Mutex
	seen map[string]int
}

// pick returns a random fault for a message, or "".
func (f *faults) pick(key string, choices ...string) (fault string, size int) {
	w := f.client.w
	if len(choices) == 0 || w.isCalm() || w.isDown() {
		return "", 0
	}
	f.mu.Lock()
	f.seen[key]++
	n := f.seen[key]
	f.mu.Unlock()
	rng := w.rng(fmt.Sprint("faults ", f.client.name, key, n))
	if rng.Float64() >= w.rate {
		return "", 0
	}
	return choices[rng.IntN(len(choices))], rng.IntN(5000)
}

// hit records a fault for the call that the message belongs to. If the message is part of a
// handshake, the fault affects all calls of the client.
func (f *faults) hit(fault, tag, what string) {
	w := f.client.w
	c := w.callOf(tag)
	switch {
	case c == nil && fault != "delay" && (strings.Contains(what, "initialize") || what == "resources/subscribe" || what == "logging/setLevel"):
		f.client.disturb(fault + " of " + what)
		return
	case c == nil:
		f.client.irritate(fault + " of " + what)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c.faults = append(c.faults, fault)
	w.logLockedf("%s: %s of %s", c, fault, what)
}

// onWire picks a fault for a whole message, on any transport.
func (f *faults) onWire(_ int, m *transport.Outgoing) mcptest.Fault {
	tag := tagOf(m.Body)
	choices := []string{"delay"}
	switch {
	case m.Method == mcp.MethodCallTool && f.client.way.sessions:
		choices = []string{"delay", "delay", "drop", "duplicate", "cut", "lose session"}
	case m.Method == mcp.MethodCallTool:
		choices = []string{"delay", "delay", "drop", "duplicate", "cut"}
	case tag != "":
		choices = []string{"delay", "drop"}
	}
	fault, size := f.pick("wire "+m.Method+tag, choices...)
	if fault == "" {
		return mcptest.Fault{}
	}
	f.hit(fault, tag, "a message "+m.Method)
	switch fault {
	case "drop":
		return mcptest.Fault{Drop: true}
	case "duplicate":
		return mcptest.Fault{Duplicate: true}
	case "lose session":
		f.client.disturb("a session seems lost")
		return mcptest.Fault{Err: mcp.ErrSessionLost}
	case "cut":
		f.client.dies("its wire is cut")
		return mcptest.Fault{Cut: true}
	}
	return mcptest.Fault{Delay: time.Duration(size) * time.Millisecond}
}

// cutter makes HTTP requests fail: before the server receives them, afterwards, or in the
// middle of the response.
type cutter struct {
	next   http.RoundTripper
	faults *faults
	accept string // replaces the Accept header unless it is ""
	sent   atomic.Int64
}

var errBroken = errors.New("the network is broken")

var methodPattern = regexp.MustCompile(`"method":"([^"]+)"`)

// RoundTrip implements http.RoundTripper.
func (c *cutter) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
		r.Body.Close()
	}
	ctx, cancel := context.WithCancel(r.Context())
	r = r.Clone(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.Header.Set(userHeader, c.faults.client.principal.Subject)
	if c.accept != "" && r.Method == http.MethodPost {
		r.Header.Set("Accept", c.accept)
	}
	what := r.Method
	if m := methodPattern.FindSubmatch(body); m != nil {
		what = string(m[1])
	}
	c.steal(r, body)
	tag := tagOf(body)
	choices := []string{"refuse", "lose the answer", "cut the answer", "cut the answer later"}
	fault, size := c.faults.pick("http "+what+tag, choices...)
	if fault != "" {
		c.hit(r, fault, tag, what)
	}
	if fault == "refuse" {
		cancel()
		return nil, errBroken
	}
	res, err := c.next.RoundTrip(r)
	if err != nil {
		cancel()
		return nil, err
	}
	b := &brokenBody{ReadCloser: res.Body, cancel: cancel, left: math.MaxInt}
	res.Body = b
	switch fault {
	case "lose the answer":
		b.cut()
		res.Body.Close()
		return nil, errBroken
	case "cut the answer":
		b.left = size / 20
	case "cut the answer later":
		b.timer = time.AfterFunc(time.Duration(size)*time.Millisecond, b.cut)
	}
	return res, nil
}

// hit records a fault of an HTTP request. Clients resume a session's own stream and the
// answers to calls; with HTTP+SSE, the connection ends with its stream.
func (c *cutter) hit(r *http.Request, fault, tag, what string) {
	switch {
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/sse"):
		c.faults.client.dies(fault + " of its stream")
	case r.Method == http.MethodPost:
		c.faults.hit(fault, tag, what)
	default:
		c.faults.client.irritate(fault + " of " + what + " " + r.Header.Get("Last-Event-ID"))
	}
}

// brokenBody is a body that ends after some bytes, or when it is cut.
type brokenBody struct {
	io.ReadCloser
	cancel context.CancelFunc
	left   int
	timer  *time.Timer
	broken atomic.Bool
}

func (b *brokenBody) cut() {
	b.broken.Store(true)
	b.cancel()
}

// Read implements io.Reader.
func (b *brokenBody) Read(p []byte) (int, error) {
	if b.left == 0 {
		b.cut()
	}
	if b.broken.Load() {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	if err != nil && b.broken.Load() {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Close implements io.Closer.
func (b *brokenBody) Close() error {
	if b.timer != nil {
		b.timer.Stop()
	}
	b.cancel()
	return b.ReadCloser.Close()
}

// stuttering returns a function that opens streams on which answers of the server are
// sometimes duplicated. Clients must ignore duplicates.
func stuttering(f *faults, open func(ctx context.Context) (transport.Stream, error)) func(ctx context.Context) (transport.Stream, error) {
	return func(ctx context.Context) (transport.Stream, error) {
		s, err := open(ctx)
		return &stutter{Stream: s, faults: f}, err
	}
}

type stutter struct {
	transport.Stream
	faults *faults
	again  []byte
}

// Read implements transport.Stream.
func (s *stutter) Read(ctx context.Context) ([]byte, error) {
	if data := s.again; data != nil {
		s.again = nil
		return data, nil
	}
	data, err := s.Stream.Read(ctx)
	if err == nil && !methodPattern.Match(data) {
		if fault, _ := s.faults.pick("answer", "twice"); fault != "" {
			s.again = bytes.Clone(data)
		}
	}
	return data, err
}
