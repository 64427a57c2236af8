// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// pendingAnswers fails the test if the server sends a second response to a request, or a
// response without a request. Clients ignore such responses, so [Check] does not see them.
// Therefore, the streams and HTTP exchanges of [Paths] are checked one level below.
type pendingAnswers struct {
	tb testing.TB

	mu  sync.Mutex
	ids map[mcp.ID]bool
}

func newPendingAnswers(tb testing.TB) *pendingAnswers {
	return &pendingAnswers{tb: tb, ids: map[mcp.ID]bool{}}
}

// sent records the id of a request sent by the client.
func (p *pendingAnswers) sent(message []byte) {
	if m, err := transport.ParseMessage(message); err == nil && m.IsRequest() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ids[m.ID] = true
	}
}

// received checks the responses in data, which the server sent.
func (p *pendingAnswers) received(data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for m := range transport.Messages(data) {
		if !m.IsResponse() || m.ID.IsZero() {
			continue
		}
		if !p.ids[m.ID] {
			p.tb.Errorf("mcptest: no request waits for this response: the server sent %.400s", data)
		}
		delete(p.ids, m.ID)
	}
}

// A checkedStream is the client's end of a stream whose responses are checked.
type checkedStream struct {
	transport.Stream
	pending *pendingAnswers
}

func (s *checkedStream) Write(ctx context.Context, message []byte) error {
	s.pending.sent(message)
	return s.Stream.Write(ctx, message)
}

func (s *checkedStream) Read(ctx context.Context) ([]byte, error) {
	data, err := s.Stream.Read(ctx)
	if err == nil {
		s.pending.received(data)
	}
	return data, err
}

// checkedHTTP checks the responses to a POST request. If accept is not empty, it also
// replaces the Accept header.
type checkedHTTP struct {
	tb     testing.TB
	next   http.RoundTripper
	accept string
}

func (c *checkedHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost {
		return c.next.RoundTrip(r)
	}
	message, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	_ = r.Body.Close()
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(message))
	if c.accept != "" {
		r.Header.Set("Accept", c.accept)
	}
	res, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	pending := newPendingAnswers(c.tb)
	pending.sent(message)
	res.Body = &checkedBody{ReadCloser: res.Body, isStream: strings.HasPrefix(res.Header.Get("Content-Type"), typeStream), pending: pending}
	return res, nil
}

// A checkedBody checks the responses in an HTTP body. The body is one message or, if isStream
// is true, a stream of events with one message each.
type checkedBody struct {
	io.ReadCloser
	isStream bool
	pending  *pendingAnswers
	unread   []byte // the start of the next line or, for JSON, everything read so far
}

func (b *checkedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.unread = append(b.unread, p[:n]...)
	for b.isStream {
		line, rest, ok := bytes.Cut(b.unread, []byte("\n"))
		if !ok {
			break
		}
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			b.pending.received(bytes.Clone(data))
		}
		b.unread = rest
	}
	if errors.Is(err, io.EOF) && !b.isStream && len(b.unread) > 0 {
		b.pending.received(b.unread)
	}
	return n, err
}
