// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
)

// LogTransport wraps a transport so that every message is logged: its direction,
// id, method and raw JSON, and with a response how long it took. It logs at the level
// debug; a nil logger means slog.Default.
//
// The values of members whose names say that they are secrets are left out, of whatever
// type they are, also in texts that are JSON themselves: requestState, authorization,
// cookies, and names that end in password, passphrase, secret, token, credentials, or API,
// access, private or secret key, regardless of case, separators and number. Secrets
// elsewhere are logged: under other names, and in texts that are not JSON, such as URIs,
// error messages and what a tool returns. Protect the log as you protect the messages.
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

// secretNames and secretEnds are names of secrets, and what names of secrets end with, in
// lower case, without separators and in the singular.
var (
	secretNames = []string{"requeststate", "authorization", "cookie", "clientassertion", "codeverifier", "bearer", "jwt", "pwd", "pin", "otp"}
	secretEnds  = []string{"password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "privatekey", "secretkey", "credential", "cookie", "authorization"}
)

// isSecret reports whether the value of a member, of some kind, must not stand in a log.
func isSecret(name []byte, kind byte) bool {
	if kind == 'n' {
		return false
	}
	plain := make([]byte, 0, len(name))
	for _, c := range bytes.ToLower(name) {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			plain = append(plain, c)
		}
	}
	switch isText := kind == '"' || kind == '[' || kind == '{'; {
	case string(plain) == "progresstoken": // of MCP, and no secret
		return false
	case !isText && bytes.HasSuffix(plain, []byte("tokens")): // how many there are, such as maxTokens
		return false
	}
	plain = bytes.TrimSuffix(plain, []byte("s"))
	return slices.Contains(secretNames, string(plain)) ||
		slices.ContainsFunc(secretEnds, func(end string) bool { return bytes.HasSuffix(plain, []byte(end)) })
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
		return appendRedactedObject(dst, s)
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
	case '"':
		return appendRedactedText(dst, s.Value())
	default:
		return append(dst, s.Value()...)
	}
}

func appendRedactedObject(dst []byte, s *jsonscan.Scanner) []byte {
	dst = append(dst, '{')
	s.Object()
	for s.Member() {
		secret := isSecret(s.Name(), s.Kind())
		if dst[len(dst)-1] != '{' {
			dst = append(dst, ',')
		}
		dst = append(jsonscan.AppendString(dst, s.Name()), ':')
		if secret {
			s.Skip()
			dst = append(dst, `"(redacted)"`...)
			continue
		}
		dst = appendRedacted(dst, s)
	}
	return append(dst, '}')
}

// appendRedactedText appends a string, redacted if it is an object or an array in JSON.
// Each quote of a text within texts is twice as long as outside, so that they do not nest
// deeply.
func appendRedactedText(dst []byte, value json.RawMessage) []byte {
	if len(value) < len(`"{}"`) {
		return append(dst, value...)
	}
	text := bytes.TrimSpace(jsonscan.Unquote(value))
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return append(dst, value...)
	}
	s := jsonscan.Get(text, 0)
	defer s.Release()
	inner := appendRedacted(make([]byte, 0, len(text)), s)
	if s.End() != nil {
		return append(dst, value...) // it only begins like JSON
	}
	return jsonscan.AppendString(dst, inner)
}
