// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/middleware"
)

// counter counts events by name.
type counter struct {
	mu     sync.Mutex
	counts map[string]uint64
}

func (c *counter) Count(_ context.Context, name string, _ []middleware.Label, delta uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[name] += delta
}

func (*counter) Gauge(context.Context, string, []middleware.Label, int64)     {}
func (*counter) Observe(context.Context, string, []middleware.Label, float64) {}

// A lenient mux accepts common mistakes of hosts and counts them. Other muxes reject them.
func TestFindingU17Lenient(t *testing.T) {
	type args struct {
		N    int            `json:"n,omitzero" jsonschema:"maximum=9"`
		On   bool           `json:"on,omitzero"`
		L    []int          `json:"l,omitempty"`
		M    map[string]int `json:"m,omitempty"`
		Text string         `json:"text,omitempty"`
	}
	for given, want := range map[string]struct {
		got    string // "" if every mux rejects it
		mended []string
	}{
		`{"n":7}`:                    {"{7 false [] map[] }", nil},
		`{"n":"7"}`:                  {"{7 false [] map[] }", []string{"/n"}},
		`{"n":"7","on":"true"}`:      {"{7 true [] map[] }", []string{"/n", "/on"}},
		`{"l":"[1,\"2\"]"}`:          {"{0 false [1 2] map[] }", []string{"/l", "/l/1"}},
		`{"m":"{\"a\":1}","x":1}`:    {"{0 false [] map[a:1] }", []string{"/m", "/x"}},
		`{"text":"7","unknown":[1]}`: {"{0 false [] map[] 7}", []string{"/unknown"}},
		`{"n":"77"}`:                 {},
		`{"n":"seven"}`:              {},
		`{"text":7}`:                 {},
	} {
		for _, isLenient := range []bool{false, true} {
			var log bytes.Buffer
			counts := &counter{counts: map[string]uint64{}}
			var mended []string
			mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Lenient: isLenient, Logger: quiet().Logger})
			mux.Use(middleware.Logger(slog.New(slog.NewTextHandler(&log, nil))), middleware.Metrics(counts, nil), func(next mcp.Handler) mcp.Handler {
				return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
					res, err := next.ServeMCP(ctx, req)
					if tool, ok := res.(*mcp.CallToolResult); ok {
						mended = tool.Mended()
					}
					return res, err
				})
			})
			mux.Tool("t", mcp.ToolFunc(func(_ context.Context, in args) (string, error) { return fmt.Sprint(in), nil }, nil))
			res, _, err := mcptest.Do(t, mux, mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "t", Arguments: json.RawMessage(given)}))
			if err != nil {
				t.Fatal(err)
			}
			tool := res.(*mcp.CallToolResult)
			if refused := want.got == "" || want.mended != nil && !isLenient; refused {
				if !tool.IsError || !strings.Contains(textOf(tool), "invalid arguments") || mended != nil {
					t.Errorf("%s, lenient %t: got %s", given, isLenient, textOf(tool))
				}
				continue
			}
			n := uint64(len(want.mended))
			if tool.IsError || textOf(tool) != want.got || !slices.Equal(mended, want.mended) || counts.counts[middleware.MetricMended] != n {
				t.Errorf("%s, lenient %t: got %s, %v, %v", given, isLenient, textOf(tool), mended, counts.counts)
			}
			if logged := strings.Contains(log.String(), fmt.Sprint("mended=", n)); logged != (n > 0) {
				t.Errorf("%s: the log is %s", given, &log)
			}
		}
	}
}

// Warnings about schemas can be disabled. An output that may be null causes one.
func TestFindingI10NullableOutputs(t *testing.T) {
	for _, off := range []bool{false, true} {
		var log bytes.Buffer
		mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{NoLint: off, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		mux.Tool("t", mcp.ToolFunc(func(context.Context, none) (out struct {
			Note  *string   `json:"note"`
			Notes []*string `json:"notes"`
		}, err error) {
			return out, nil
		}, nil))
		for _, at := range []string{"/properties/note/type", "/properties/notes/items/type"} {
			want := `schema=OutputSchema profile=inspector at=` + at + ` finding="a type that allows null; add omitzero to the field, so that nil is left out, or list values instead of pointers"`
			if warned := strings.Contains(log.String(), want); warned == off {
				t.Errorf("NoLint is %t, and the log is %q", off, &log)
			}
		}
	}
}

// Arguments are repaired before the header check and before the middleware of the tool, so
// that none of them is passed by with an object that is sent as a string.
func TestFindingX10RepairedArgumentsAreChecked(t *testing.T) {
	type where struct {
		Region string `json:"region"`
	}
	type args struct {
		Where where `json:"where"`
	}
	schema := json.RawMessage(`{"type":"object","properties":{"where":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"],"additionalProperties":false}},"required":["where"],"additionalProperties":false}`)
	var seen []string
	see := func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			seen = append(seen, string(req.Arguments()), string(mcp.RequestFromContext(ctx).Arguments()))
			return next.ServeMCP(ctx, req)
		})
	}
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Lenient: true, Logger: quiet().Logger})
	mux.With(see).Tool("t", mcp.ToolFunc(func(_ context.Context, in args) (string, error) { return "in " + in.Where.Region, nil }, &mcp.Tool{InputSchema: schema}))
	const sent, repaired = `{"where":"{\"region\":\"us\"}"}`, `{"where":{"region":"us"}}`
	for header, runs := range map[string]bool{"": false, "eu": false, "us": true} {
		for _, arguments := range []string{sent, repaired} {
			seen = nil
			req := mcptest.NewRequest(mcp.MethodCallTool, tool("t", arguments))
			req.Header = map[string][]string{}
			if header != "" {
				req.Header["Mcp-Param-Region"] = []string{header}
			}
			res, err := mux.ServeMCP(t.Context(), req)
			if ran, _ := res.(*mcp.CallToolResult); runs != (err == nil && textOf(ran) == "in us") || !runs && mcp.CodeOf(err) != mcp.CodeHeaderMismatch {
				t.Errorf("%s with the header %q: %+v, %v", arguments, header, res, err)
			} else if runs && (len(ran.Mended()) > 0) != (arguments == sent) {
				t.Errorf("%s: mended %q", arguments, ran.Mended())
			}
			if !slices.Equal(seen, []string{repaired, repaired}) {
				t.Errorf("%s: the middleware saw %q", arguments, seen)
			}
		}
	}
}
