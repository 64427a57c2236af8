// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
)

// LogTransport wraps a transport so that every message is logged: its direction,
// id, method and raw JSON, and with a response how long it took. The values of
// members that are secrets or seals, such as requestState, are left out. It logs at
// the level debug; a nil logger means slog.Default.
func LogTransport(t Transport, logger *slog.Logger) Transport {
	if logger == nil {
		logger = slog.Default()
	}
	return logTransport{t, logger}
}

type logTransport struct {
	next   Transport
	logger *slog.Logger
}

func (t logTransport) Connect(ctx context.Context, receive Receiver) (Wire, error) {
	start := time.Now()
	wire, err := t.next.Connect(ctx, func(m Message, about ID) {
		if m.Request != nil {
			t.log(context.Background(), "received", m.Request.ID, m.Request.Method, m.Request.Params(), slog.String("about", about.String()))
		}
		receive(m, about)
	})
	if err != nil {
		t.logger.DebugContext(ctx, "mcp: not connected", "duration", time.Since(start), "error", err)
		return nil, err
	}
	return &logWire{wire, t}, nil
}

func (t logTransport) log(ctx context.Context, direction string, id ID, method string, raw []byte, more ...slog.Attr) {
	if !t.logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	attrs := append([]slog.Attr{slog.String("id", id.String()), slog.String("method", method), slog.String("json", string(redacted(raw)))}, more...)
	t.logger.LogAttrs(ctx, slog.LevelDebug, "mcp: "+direction, attrs...)
}

type logWire struct {
	Wire
	transport logTransport
}

// Unwrap is what [Wire] says of it.
func (w *logWire) Unwrap() Wire { return w.Wire }

func (w *logWire) Call(ctx context.Context, m *Envelope) (*Response, error) {
	w.transport.log(ctx, "sent", m.ID, m.Method, m.Body)
	start := time.Now()
	r, err := w.Wire.Call(ctx, m)
	took := slog.Duration("duration", time.Since(start))
	switch {
	case err != nil:
		w.transport.log(ctx, "failed", m.ID, m.Method, nil, took, slog.String("error", err.Error()))
	case r.Error != nil:
		w.transport.log(ctx, "answered", m.ID, m.Method, mustMarshal(r.Error), took)
	default:
		w.transport.log(ctx, "answered", m.ID, m.Method, r.Result, took)
	}
	return r, err
}

func (w *logWire) Send(ctx context.Context, m *Envelope) error {
	w.transport.log(ctx, "sent", m.ID, m.Method, m.Body)
	return w.Wire.Send(ctx, m)
}

// secrets are the members whose values nobody may read in a log.
var secrets = map[string]bool{
	"requestState": true, "authorization": true, "Authorization": true, "access_token": true, "refresh_token": true,
	"client_secret": true, "password": true, "token": true,
}

// redacted is JSON without the values of secrets.
func redacted(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return raw
	}
	s := jsonscan.Get(raw, 0)
	defer s.Release()
	out := appendRedacted(make([]byte, 0, len(raw)), s)
	if s.End() != nil {
		return json.RawMessage(`"(malformed)"`)
	}
	return out
}

func appendRedacted(dst []byte, s *jsonscan.Scanner) []byte {
	switch s.Kind() {
	case '{':
		dst = append(dst, '{')
		s.Object()
		for s.Member() {
			secret := secrets[string(s.Name())]
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(jsonscan.AppendString(dst, s.Name()), ':')
			if secret && s.Kind() == '"' {
				s.Skip()
				dst = append(dst, `"(redacted)"`...)
				continue
			}
			dst = appendRedacted(dst, s)
		}
		return append(dst, '}')
	case '[':
		dst = append(dst, '[')
		s.Array()
		for first := true; s.Element(); first = false {
			if !first {
				dst = append(dst, ',')
			}
			dst = appendRedacted(dst, s)
		}
		return append(dst, ']')
	default:
		return append(dst, s.Value()...)
	}
}
