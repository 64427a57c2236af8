// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/strictjson"
)

// WithLogging wraps a transport and logs every message at debug level: its direction, ID,
// method and raw JSON, and for a response how long it took. A nil logger means
// slog.Default.
//
// The values of members whose names indicate secrets are redacted, whatever their type, also
// in strings that contain JSON: requestState, authorization, cookies, and names that end in
// password, passphrase, secret, token, credentials, or API, access, private or secret key,
// regardless of case, separators and plural. Other secrets are logged: those under other
// names, and those in strings that are not JSON, such as URIs, error messages and the output
// of tools. Protect the log as you protect the messages.
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
	conn, err := t.next.Connect(ctx, func(m Message, about ID) {
		if m.Method != "" {
			t.log(context.Background(), "received", m.ID, m.Method, m.Params, slog.String("about", about.String()))
		}
		receive(m, about)
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
	attrs := append([]slog.Attr{slog.String("id", id.String()), slog.String("method", method), slog.String("json", string(redacted(raw)))}, more...)
	t.logger.LogAttrs(ctx, slog.LevelDebug, "mcp: "+direction, attrs...)
}

type loggingConn struct {
	Conn
	transport loggingTransport
}

// Unwrap returns the wrapped connection; see [Conn].
func (c *loggingConn) Unwrap() Conn { return c.Conn }

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

// secretNames are names of secrets, and secretEnds are ends of such names, in lower case,
// without separators and in the singular.
var (
	secretNames = []string{"requeststate", "authorization", "cookie", "clientassertion", "codeverifier", "bearer", "jwt", "pwd", "pin", "otp"}
	secretEnds  = []string{"password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "privatekey", "secretkey", "credential", "cookie", "authorization"}
)

// isSecret reports whether a member is to be redacted. Kind is the first byte of its value.
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
	case string(plain) == "progresstoken": // defined by MCP, not a secret
		return false
	case !isText && bytes.HasSuffix(plain, []byte("tokens")): // a number, such as maxTokens
		return false
	}
	plain = bytes.TrimSuffix(plain, []byte("s"))
	return slices.Contains(secretNames, string(plain)) ||
		slices.ContainsFunc(secretEnds, func(end string) bool { return bytes.HasSuffix(plain, []byte(end)) })
}

// redacted returns JSON without the values of secrets.
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

// appendRedactedText appends a string. It redacts the string if it contains a JSON object or
// array. The recursion is not deep, because escaping doubles the length with each level.
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
		return append(dst, value...) // not JSON as a whole
	}
	return jsonscan.AppendString(dst, inner)
}
