// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package otelmcp

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// A session is a session or a connection whose duration is measured.
type session struct {
	t     *telemetry
	attrs []attribute.KeyValue
	start time.Time
}

// startSession starts measuring a session, with attrs in addition to the attributes of the
// options.
func (t *telemetry) startSession(attrs ...attribute.KeyValue) *session {
	return &session{t: t, attrs: append(attrs, t.opts.Attributes...), start: time.Now()}
}

// record records the duration. kind is the error.type of a session that failed, or "".
func (s *session) record(kind string) {
	if kind != "" {
		s.attrs = append(s.attrs, keyErrorType.String(kind))
	}
	s.t.sessions.Record(context.Background(), time.Since(s.start).Seconds(), metric.WithAttributes(s.attrs...))
}
