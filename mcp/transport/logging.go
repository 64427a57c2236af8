// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package transport

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/internal/strictjson"
)

// WithLogging returns a Transport that logs every message of t at debug level: its direction,
// ID, method and raw JSON, and for a response the duration of the call. A nil logger means
// slog.Default.
//
// The values of members whose names indicate secrets are redacted, including members in
// strings that contain JSON: strings become "(redacted)", numbers 0 and booleans false, at any
// depth. Such names are requestState, authorization, cookies, and names that end in
// password, passphrase, secret, token, credentials, or API, access, private or secret key,
// regardless of case, separators and plural. Other secrets are logged: members with other
// names, and secrets in strings that are not JSON, such as URIs, error messages and the output
// of tools. Protect the log like the messages.
func WithLogging(t Transport, logger *slog.Logger) Transport {
	if t == nil {
		panic("transport: WithLogging: the transport is nil")
	}
	if logger == nil {
		logger = slog.Default()
	}
	return loggingTransport{t, logger}
}

type loggingTransport struct {
	next   Transport
	logger *slog.Logger
}

func (t loggingTransport) Connect(ctx context.Context, receive Receiver) (Conn, error) {
	start := time.Now()
	conn, err := t.next.Connect(ctx, func(m *Message) {
		if m.Method != "" {
			t.log(context.Background(), "received", m.ID, m.Method, m.Params, slog.String("about", m.About.String()))
		}
		receive(m)
	})
	if err != nil {
		t.logger.DebugContext(ctx, "mcp: not connected", "duration", time.Since(start), "error", err)
		return nil, err
	}
	return &loggingConn{conn, t}, nil
}

func (t loggingTransport) log(ctx context.Context, direction string, id ID, method string, raw []byte, more ...slog.Attr) {
	if !t.logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	attrs := append([]slog.Attr{slog.String("id", id.String()), slog.String("method", method), slog.String("json", string(redact.JSON(raw, nil)))}, more...)
	t.logger.LogAttrs(ctx, slog.LevelDebug, "mcp: "+direction, attrs...)
}

type loggingConn struct {
	Conn
	transport loggingTransport
}

func (c *loggingConn) Call(ctx context.Context, m *Outgoing) (*Message, error) {
	c.transport.log(ctx, "sent", m.ID, m.Method, m.Body)
	start := time.Now()
	r, err := c.Conn.Call(ctx, m)
	took := slog.Duration("duration", time.Since(start))
	switch {
	case err != nil:
		c.transport.log(ctx, "failed", m.ID, m.Method, nil, took, slog.String("error", err.Error()))
	case r.Error != nil:
		c.transport.log(ctx, "answered", m.ID, m.Method, strictjson.MustMarshal(r.Error), took)
	default:
		c.transport.log(ctx, "answered", m.ID, m.Method, r.Result, took)
	}
	return r, err
}

func (c *loggingConn) Send(ctx context.Context, m *Outgoing) error {
	c.transport.log(ctx, "sent", m.ID, m.Method, m.Body)
	return c.Conn.Send(ctx, m)
}
