// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package guide_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

var (
	errNoNote = errors.New("no such note")
	errBusy   = errors.New("busy")
	errSecret = errors.New("dial tcp 10.0.0.7:5432: password authentication failed")
)

type readIn struct {
	ID int `json:"id"`
}

func load(_ context.Context, id int) (string, error) {
	return "", []error{errNoNote, errBusy, errSecret}[id]
}

func readText(ctx context.Context, in readIn) (string, error) {
	text, err := load(ctx, in.ID)
	switch {
	case errors.Is(err, errNoNote):
		return "", fmt.Errorf("there is no note %d; list_notes has all of them", in.ID)
	case errors.Is(err, errBusy):
		return "", mcp.NewRateLimitedError(time.Second, "too many readers")
	case err != nil:
		return "", &mcp.PrivateError{Public: "the notes cannot be loaded now", Err: err}
	}
	return text, nil
}

// causes is a middleware.Meter that notes the causes.
type causes struct{ strings.Builder }

func (c *causes) Count(_ context.Context, name string, labels []middleware.Label, _ uint64) {
	for _, l := range labels {
		if name == middleware.MetricRequests && l.Name == "cause" && l.Value != "" {
			c.WriteString(l.Value + " ")
		}
	}
}

func (*causes) Gauge(context.Context, string, []middleware.Label, int64)     {}
func (*causes) Observe(context.Context, string, []middleware.Label, float64) {}

// TestErrors checks what the model, the client and the operator see.
func TestErrors(t *testing.T) {
	var logged strings.Builder
	var reported []string
	reportError := func(_ context.Context, tool string, err error) { reported = append(reported, tool+": "+err.Error()) }
	logger, meter := slog.New(slog.NewTextHandler(&logged, nil)), &causes{}
	mux := mcp.NewMux("notes", "v1.0.0", nil)
	mux.Use(middleware.Logger(logger), middleware.Metrics(meter, &middleware.MetricsOptions{
		Cause: func(err error) string {
			if errors.Is(err, context.DeadlineExceeded) {
				return "timeout"
			}
			return "other"
		},
	}))
	report := func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			res, err := next.ServeMCP(ctx, req)
			if r, ok := res.(*mcp.CallToolResult); ok && r.Err() != nil {
				reportError(ctx, req.Name(), r.Err())
			}
			return res, err
		})
	}
	mux.Use(report)
	mux.Tool("read", mcp.ToolFunc(readText, nil))
	conn := mcptest.Connect(t, mux)
	for id, want := range []string{"there is no note 0; list_notes has all of them", "too many readers", "the notes cannot be loaded now"} {
		_, err := mcp.Call[string](t.Context(), conn, "read", readIn{id})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "10.0.0.7") {
			t.Errorf("%d: %v, want %q", id, err, want)
		}
		if after, ok := mcp.RetryAfter(err); ok != (id == 1) || ok && after != time.Second {
			t.Errorf("%d: retry after %v, %v", id, after, ok)
		}
	}
	if len(reported) != 2 || reported[1] != "read: "+errSecret.Error() {
		t.Errorf("reported %q", reported)
	}
	if !strings.Contains(logged.String(), "outcome=isError") || !strings.Contains(logged.String(), "10.0.0.7") {
		t.Errorf("logged %s", &logged)
	}
	if meter.Len() == 0 {
		t.Error("no causes were counted")
	}
}

func TestPublicError(t *testing.T) {
	opts := &mcp.MuxOptions{
		PublicError: func(ctx context.Context, err error) error {
			if errors.Is(err, errNoNote) {
				return err // the model can act on it
			}
			return &mcp.PrivateError{Public: "the tool failed", Err: err}
		},
	}
	mux := mcp.NewMux("notes", "v1.0.0", opts)
	mux.Tool("read", mcp.ToolFunc(func(ctx context.Context, in readIn) (string, error) { return load(ctx, in.ID) }, nil))
	conn := mcptest.Connect(t, mux)
	for id, want := range map[int]string{0: "no such note", 2: "the tool failed"} {
		if _, err := mcp.Call[string](t.Context(), conn, "read", readIn{id}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v, want %q", id, err, want)
		}
	}
}
