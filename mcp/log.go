// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
)

// A LoggingLevel is the severity of a log message (RFC 5424).
//
// Deprecated: the specification has deprecated logging by the protocol. Log to standard error or with
// OpenTelemetry. It works while a supported revision has log messages.
type LoggingLevel string

// The logging levels, in ascending order.
const (
	LoggingLevelDebug     LoggingLevel = "debug"
	LoggingLevelInfo      LoggingLevel = "info"
	LoggingLevelNotice    LoggingLevel = "notice"
	LoggingLevelWarning   LoggingLevel = "warning"
	LoggingLevelError     LoggingLevel = "error"
	LoggingLevelCritical  LoggingLevel = "critical"
	LoggingLevelAlert     LoggingLevel = "alert"
	LoggingLevelEmergency LoggingLevel = "emergency"
)

// The slog levels of the logging levels that slog has no name for.
const (
	LevelNotice    = slog.LevelInfo + 2
	LevelCritical  = slog.LevelError + 4
	LevelAlert     = slog.LevelError + 8
	LevelEmergency = slog.LevelError + 12
)

var loggingLevels = [...]struct {
	name  LoggingLevel
	level slog.Level
}{
	{LoggingLevelDebug, slog.LevelDebug},
	{LoggingLevelInfo, slog.LevelInfo},
	{LoggingLevelNotice, LevelNotice},
	{LoggingLevelWarning, slog.LevelWarn},
	{LoggingLevelError, slog.LevelError},
	{LoggingLevelCritical, LevelCritical},
	{LoggingLevelAlert, LevelAlert},
	{LoggingLevelEmergency, LevelEmergency},
}

var loggingLevelNames = func() string {
	var names []string
	for _, l := range loggingLevels {
		names = append(names, string(l.name))
	}
	return strings.Join(names, ", ")
}()

// parseLoggingLevel parses a logging level from a valid JSON value.
func parseLoggingLevel(raw []byte) (LoggingLevel, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	name := jsonscan.Unquote(raw)
	for _, l := range loggingLevels {
		if string(l.name) == string(name) {
			return l.name, true
		}
	}
	return "", false
}

// Level returns the slog level of l, and whether l is a known level.
func (l LoggingLevel) Level() (slog.Level, bool) {
	for _, known := range loggingLevels {
		if known.name == l {
			return known.level, true
		}
	}
	return 0, false
}

// loggingLevelOf returns the highest logging level that is not above level.
func loggingLevelOf(level slog.Level) LoggingLevel {
	name := LoggingLevelDebug
	for _, known := range loggingLevels {
		if level >= known.level {
			name = known.name
		}
	}
	return name
}

// ClientLogger returns a logger whose messages are sent to the client whose request ctx
// belongs to, if the client asked for log messages. Each record is sent as a
// notifications/message whose data is an object with the attributes and, under "msg", the
// message. Do not log secrets with it.
//
// Deprecated: the specification has deprecated logging by the protocol. Log to standard error
// or with OpenTelemetry, and tell the user of progress with [Progress]. ClientLogger works while
// a supported revision has log messages.
func ClientLogger(ctx context.Context) *slog.Logger {
	req := RequestFromContext(ctx)
	if req == nil {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(&logHandler{req: req})
}

type logHandler struct {
	req    *Request
	groups []string
	attrs  []scopedAttr
}

// scopedAttr is an attribute and the groups that were open when it was added.
type scopedAttr struct {
	groups []string
	attr   slog.Attr
}

func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool {
	least, ok := h.req.LogLevel().Level()
	return ok && level >= least
}

func (h *logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	with := *h
	with.groups = append(slices.Clip(h.groups), name)
	return &with
}

func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *h
	with.attrs = slices.Clip(h.attrs)
	for _, a := range attrs {
		with.attrs = append(with.attrs, scopedAttr{h.groups, a})
	}
	return &with
}

func (h *logHandler) Handle(ctx context.Context, record slog.Record) error {
	data := map[string]any{}
	for _, a := range h.attrs {
		addAttr(data, a.groups, a.attr)
	}
	record.Attrs(func(a slog.Attr) bool {
		addAttr(data, h.groups, a)
		return true
	})
	data["msg"] = record.Message
	return h.send(ctx, record.Level, data)
}

func (h *logHandler) send(ctx context.Context, level slog.Level, data map[string]any) error {
	c := h.req.sharedCall()
	c.mu.Lock()
	defer c.mu.Unlock()
	params := &LoggingMessageParams{Level: loggingLevelOf(level), Data: data}
	h.req.addProgressToken(params)
	raw, err := marshal(params)
	if err != nil {
		return fmt.Errorf("mcp: log message: %w", err)
	}
	return c.notifyLocked(ctx, NotificationMessage, raw)
}

func addAttr(data map[string]any, groups []string, a slog.Attr) {
	value := a.Value.Resolve()
	if a.Key == "" && value.Kind() != slog.KindGroup {
		return
	}
	if value.Kind() == slog.KindGroup {
		if a.Key != "" {
			groups = append(slices.Clip(groups), a.Key)
		}
		for _, inner := range value.Group() {
			addAttr(data, groups, inner)
		}
		return
	}
	for _, g := range groups {
		inner, ok := data[g].(map[string]any)
		if !ok {
			inner = map[string]any{}
			data[g] = inner
		}
		data = inner
	}
	data[a.Key] = logValue(value)
}

// logValue returns the value to send: v itself if it can be encoded as JSON, otherwise its
// text. Like the handlers of package slog, it recovers from panics in the methods of v, for
// example on a nil pointer.
func logValue(v slog.Value) (sent any) {
	defer func() {
		if p := recover(); p != nil {
			sent = fmt.Sprintf("!PANIC: %v", p)
		}
	}()
	switch v.Kind() {
	case slog.KindAny:
		if err, ok := v.Any().(error); ok {
			return err.Error()
		}
		if raw, err := marshal(v.Any()); err == nil {
			return json.RawMessage(raw)
		}
		return fmt.Sprint(v.Any())
	case slog.KindDuration:
		return v.Duration().String()
	case slog.KindTime:
		return v.Time().Format(time.RFC3339Nano)
	case slog.KindFloat64:
		if raw, err := marshal(v.Float64()); err == nil {
			return json.RawMessage(raw)
		}
		return v.String()
	default:
		return v.Any()
	}
}

// loggerOf returns the logger of a handler: that of a Mux, a Conn or an Upstream, and otherwise
// slog.Default. Transports use it by default, so that a server has one logger.
func loggerOf(h Handler) *slog.Logger {
	h, _ = unwrap(h)
	switch h := h.(type) {
	case *Mux:
		if h != nil && h.registry != nil {
			return h.opts.Logger
		}
	case *Conn:
		if h != nil && h.client != nil {
			return h.client.opts.Logger
		}
	case *Upstream:
		if h != nil && h.client != nil {
			return h.opts.Logger
		}
	}
	return slog.Default()
}

// onceEach remembers what has been logged, for problems that would otherwise be logged again
// and again. The zero onceEach is ready to use.
type onceEach struct {
	mu   sync.Mutex
	seen map[[sha256.Size]byte]struct{}
}

// maxOnce is the number of problems that a onceEach remembers. It reports no more than that:
// texts come from peers as well.
const maxOnce = 1000

// first reports whether it is called for the first time with these texts.
func (o *onceEach) first(texts ...string) bool {
	key := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	o.mu.Lock()
	defer o.mu.Unlock()
	_, known := o.seen[key]
	if known || len(o.seen) >= maxOnce {
		return false
	}
	if o.seen == nil {
		o.seen = map[[sha256.Size]byte]struct{}{}
	}
	o.seen[key] = struct{}{}
	return true
}
