// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"sync"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/mcp/transport"
)

// InProcess returns a Transport to a handler in this process. It speaks only the newest
// revision: a client that pins another [ClientOptions].Version cannot connect. Requests are
// served concurrently. Closing the connection cancels the requests in flight. InProcess panics
// if h is nil.
func InProcess(h Handler) transport.Transport {
	// Package mcp does not import the servers for older revisions; mcpstdio serves a stream
	// in all of them.
	mustBeHandler("InProcess", h)
	return &inProcess{h}
}

type inProcess struct{ handler Handler }

func (t *inProcess) Connect(_ context.Context, receive transport.Receiver) (transport.Conn, error) {
	c := &inProcessConn{handler: t.handler, receive: receive}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	return c, nil
}

// inProcessConn serves the messages of one client. Like a stream, it passes encoded messages,
// so that client and server share no memory.
type inProcessConn struct {
	handler Handler
	ctx     context.Context //nolint:containedctx // it is the lifetime of the connection
	cancel  context.CancelCauseFunc

	receiving sync.Mutex // held while receive runs, which must not be called concurrently
	receive   transport.Receiver
}

// Call implements [transport.Conn]. It returns when ctx is done, even if the handler has not
// returned.
func (c *inProcessConn) Call(ctx context.Context, m *transport.Outgoing) (*transport.Message, error) {
	if c.ctx.Err() != nil {
		return nil, ErrClosed
	}
	request, err := transport.ParseMessage(bytes.Clone(m.Body))
	if err != nil {
		return nil, err
	}
	serving, cancel := context.WithCancelCause(c.ctx) // without the values of ctx
	response := make(chan []byte, 1)
	go func() {
		defer cancel(nil)
		response <- c.serve(serving, &request)
	}()
	select {
	case data := <-response:
		m, err := transport.ParseMessage(data)
		return &m, err
	case <-ctx.Done():
		cancel(&CancelError{Reason: context.Cause(ctx).Error()})
		return nil, context.Cause(ctx)
	case <-c.ctx.Done():
		return nil, ErrClosed
	}
}

// serve returns the response to a request.
func (c *inProcessConn) serve(ctx context.Context, m *transport.Message) []byte {
	req, err := ParseRequest(m)
	if err != nil && jsonscan.IsObject(m.Params) && jsonscan.Member(jsonscan.Member(m.Params, "_meta"), MetaProtocolVersion) == nil { // from a client that pins an older version
		err = Errorf(CodeInvalidParams, "InProcess speaks only %s, in which params._meta must have the member %q", LatestVersion, MetaProtocolVersion)
	}
	var res Result
	if err == nil {
		res, err = serve(ctx, c.handler, req, &inProcessStream{c, req.ID}, loggerOf(c.handler))
	}
	return appendResponse(make([]byte, 0, 512), req, res, err)
}

// Send implements [transport.Conn]. It returns when the notification has been handled. Clients
// of the newest revision send no responses.
func (c *inProcessConn) Send(_ context.Context, m *transport.Outgoing) error {
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	note, err := transport.ParseMessage(bytes.Clone(m.Body))
	if err != nil || !note.IsNotification() {
		return err
	}
	req, err := requestOf(&note)
	if err != nil {
		return err
	}
	_, _ = serve(c.ctx, c.handler, req, nil, loggerOf(c.handler)) // a notification has no response
	return nil
}

// Close implements [transport.Conn].
func (c *inProcessConn) Close() error {
	c.cancel(ErrClosed)
	return nil
}

// Done implements [transport.Conn].
func (c *inProcessConn) Done() <-chan struct{} { return c.ctx.Done() }

// Err implements [transport.Conn].
func (c *inProcessConn) Err() error { return context.Cause(c.ctx) }

// Info implements [transport.Conn].
func (*inProcessConn) Info() transport.Info { return transport.Info{} }

// inProcessStream sends the notifications about one request.
type inProcessStream struct {
	conn *inProcessConn
	id   ID
}

// Notify implements [notifier].
func (s *inProcessStream) Notify(_ context.Context, method string, params json.RawMessage) error {
	if s.conn.ctx.Err() != nil {
		return ErrClosed
	}
	m, err := transport.ParseMessage(transport.AppendNotification(nil, method, params))
	if err != nil {
		return err
	}
	s.conn.receiving.Lock()
	defer s.conn.receiving.Unlock()
	m.About = s.id
	s.conn.receive(&m)
	return nil
}
