// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"sync"
	"time"

	"github.com/tmaxmax/go-sse"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// What a client accepts as an answer over HTTP.
const (
	acceptBoth   = typeJSON + ", " + typeStream
	acceptStream = typeStream

	typeJSON   = "application/json"
	typeStream = "text/event-stream"
)

// httpWire is a connection over streamable HTTP.
type httpWire struct {
	client *Client
	url    string
	accept string
	http   http.Client
	conn   *Conn
	stop   context.CancelFunc
	ctx    context.Context // of all requests but the last

	mu      sync.Mutex
	session string
}

func newHTTPWire(cl *Client, url, accept string) *httpWire {
	return &httpWire{client: cl, url: url, accept: accept, http: http.Client{Transport: &http.Transport{}}}
}

func (w *httpWire) start(c *Conn) {
	w.conn = c
	w.ctx, w.stop = context.WithCancel(c.ctx)
}

// aborts is how the modern era cancels over HTTP.
func (w *httpWire) aborts() bool { return !w.client.isLegacy() }

// send posts a message and takes what comes back until the answer is complete.
func (w *httpWire) send(ctx context.Context, m *message) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	req, err := w.newRequest(ctx, http.MethodPost, m.data)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", typeJSON)
	req.Header.Set("Accept", w.accept)
	w.addModernHeaders(req.Header, m)
	res, err := w.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		w.setSession(id)
	}
	return w.receive(res, m.id)
}

func (w *httpWire) newRequest(ctx context.Context, method string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, w.client.Header)
	if id := w.sessionID(); id != "" {
		req.Header.Set("Mcp-Session-Id", id)
		req.Header.Set("Mcp-Protocol-Version", w.conn.Version())
	}
	return req, nil
}

// addModernHeaders says in the header what routers in between want to know.
func (w *httpWire) addModernHeaders(h http.Header, m *message) {
	if w.client.isLegacy() {
		return
	}
	h.Set("Mcp-Protocol-Version", w.conn.Version())
	h.Set("Mcp-Method", m.method)
	switch m.method {
	case mcp.MethodCallTool, mcp.MethodGetPrompt, mcp.MethodReadResource:
		h.Set("Mcp-Name", transport.EncodeHeaderValue(m.name))
	}
}

// receive takes the answer to a post. A request must be answered by a response, in
// JSON or as the last event of a stream.
func (w *httpWire) receive(res *http.Response, id mcp.ID) error {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case kind == typeStream:
		if err := w.receiveEvents(res.Body, id); err != nil {
			return err
		}
	case kind == typeJSON:
		body, err := io.ReadAll(res.Body)
		if err != nil {
			return err
		}
		w.conn.receive(body, id)
	case id.IsZero() && res.StatusCode == http.StatusAccepted:
		return nil
	}
	if id.IsZero() && res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("mcptest: the server answered %s", res.Status)
	}
	if w.conn.isOpen(id) {
		return fmt.Errorf("mcptest: the server answered %s, without a response in it", res.Status)
	}
	return nil
}

// maxEvent bounds the size of one event.
const maxEvent = 64 << 20

func (w *httpWire) receiveEvents(body io.Reader, id mcp.ID) error {
	for event, err := range sse.Read(body, &sse.ReadConfig{MaxEventSize: maxEvent}) {
		if err != nil {
			return err
		}
		if event.Data != "" && (event.Type == "" || event.Type == "message") {
			w.conn.receive([]byte(event.Data), id)
		}
	}
	return nil
}

// listen opens the stream of a session for what belongs to no request.
func (w *httpWire) listen(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	context.AfterFunc(w.ctx, cancel)
	req, err := w.newRequest(ctx, http.MethodGet, nil)
	if err != nil {
		cancel()
		return err
	}
	req.Header.Set("Accept", typeStream)
	res, err := w.http.Do(req)
	if err != nil {
		cancel()
		return err
	}
	if res.StatusCode != http.StatusOK {
		cancel()
		res.Body.Close()
		return fmt.Errorf("mcptest: the server answered %s to GET", res.Status)
	}
	w.conn.work.Go(func() {
		defer cancel()
		defer res.Body.Close()
		_ = w.receiveEvents(res.Body, mcp.ID{}) // how it ends shows elsewhere
	})
	return nil
}

func (w *httpWire) sessionID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.session
}

func (w *httpWire) setSession(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.session = id
}

// closeTimeout bounds the end of a session.
const closeTimeout = 10 * time.Second

// close aborts what is under way and ends the session, if there is one.
func (w *httpWire) close(ctx context.Context) {
	defer w.http.CloseIdleConnections()
	w.stop()
	if w.sessionID() == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	req, err := w.newRequest(ctx, http.MethodDelete, nil)
	if err != nil {
		return
	}
	if res, err := w.http.Do(req); err == nil {
		res.Body.Close()
	}
}
