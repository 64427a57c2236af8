// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// T49: progress is sent only on request, increases, and ends with the request.
func TestProgress(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	late := make(chan func(), 1)
	mux.Tool("work", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		for _, done := range []float64{1, 1, 0.5, 2, 2, 3} {
			mcp.Progress(ctx, done, 3, "step")
		}
		late <- func() { mcp.Progress(ctx, 4, 3, "late") }
		return "done", nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		var got []float64
		ctx := mcp.WithProgress(t.Context(), func(p *mcp.ProgressParams) {
			if *p.Total != 3 || p.Message != "step" {
				t.Errorf("got %+v", p)
			}
			got = append(got, p.Progress)
		})
		if _, err := c.CallTool(ctx, tool("work", "")); err != nil {
			t.Fatal(err)
		}
		(<-late)()
		if !slices.Equal(got, []float64{1, 2, 3}) {
			t.Errorf("got %v", got)
		}
		mustCall(t, c, "work", "") // mcptest fails the test for progress without a token and for late progress
		(<-late)()
		mustCall(t, c, "work", "")
		<-late
	})
}

// A progress token from the client is returned unchanged.
func TestProgressToken(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("work", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.Progress(ctx, 1, 0, "")
		return "", nil
	}, nil))
	for _, era := range eras { // an mcp.Client would choose its own tokens
		p := newPeer(t, mux, era)
		call := func(token string) string {
			return strings.Replace(era.request("1", mcp.MethodCallTool, `"name":"work"`), `"_meta":{`, `"_meta":{"progressToken":`+token+`,`, 1)
		}
		p.send(strings.Replace(call(`"p-7"`), ",}", "}", 1))
		var got mcp.ProgressParams
		note, err := transport.ParseMessage([]byte(p.receive()))
		if err != nil || requestOf(t, note).Decode(&got) != nil || got.ProgressToken != mcp.StringID("p-7") || got.Total != nil {
			t.Errorf("%s: got %+v, %v", era.name, got, err)
		}
		if r := p.read(); r.Error != nil {
			t.Errorf("%s: %v", era.name, r.Error)
		}
		p.send(strings.Replace(call(`[1]`), ",}", "}", 1))
		wantCode(t, p.read().Error, mcp.CodeInvalidParams)
		p.finish()
	}
}

func TestLogLevels(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("log", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		log := mcp.ClientLogger(ctx)
		for _, level := range []slog.Level{
			slog.LevelDebug, slog.LevelInfo, mcp.LevelNotice, slog.LevelWarn,
			slog.LevelError, mcp.LevelCritical, mcp.LevelAlert, mcp.LevelEmergency,
		} {
			log.Log(ctx, level, "said")
		}
		return "", nil
	}, nil))
	all := []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}
	for i, level := range all {
		logged := make(chan *mcp.LoggingMessageParams, len(all))
		client := &mcptest.Client{Options: mcp.ClientOptions{
			LogLevel: mcp.LoggingLevel(level),
			Log:      func(_ context.Context, _ *mcp.Conn, p *mcp.LoggingMessageParams) { logged <- p },
		}}
		client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
			mustCall(t, c, "log", "")
			var got []string
			for len(got) == 0 || got[len(got)-1] != "emergency" {
				got = append(got, string((<-logged).Level))
			}
			if !slices.Equal(got, all[i:]) {
				t.Errorf("from %s on: got %q", level, got)
			}
		})
	}
	for era, message := range map[*wireEra]string{
		&eras[0]: strings.Replace(eras[0].request("1", mcp.MethodCallTool, `"name":"log"`), `"_meta":{`, `"_meta":{"io.modelcontextprotocol/logLevel":"loud",`, 1),
		&eras[1]: eras[1].request("1", "logging/setLevel", `"level":"loud"`),
	} {
		p := newPeer(t, mux, *era)
		p.send(message)
		wantCode(t, p.read().Error, mcp.CodeInvalidParams)
		p.finish()
	}
}

// Requests of the modern era get no log messages unless they ask for them.
func TestLogSilence(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("log", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.ClientLogger(ctx).Error("never mind")
		return "", nil
	}, nil))
	client := &mcptest.Client{Options: mcp.ClientOptions{Log: func(_ context.Context, _ *mcp.Conn, p *mcp.LoggingMessageParams) { t.Errorf("got %+v", p) }}}
	mustCall(t, client.Connect(t, mux), "log", "") // mcptest fails the test for an unrequested message
}

func TestLogData(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("log", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.ClientLogger(ctx).With("a", 1).WithGroup("g").With("b", errors.New("bad")).
			Info("hello", "c", time.Second, slog.Group("h", "d", true), "f", func() {})
		return "", nil
	}, nil))
	_, rec, err := mcptest.Do(t, mux, (&mcptest.Client{Options: mcp.ClientOptions{LogLevel: mcp.LoggingLevelInfo}}).NewRequest(mcp.MethodCallTool, tool("log", "")))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(rec.Notifications()[0].Params); !strings.Contains(got, `"a":1,"g":{"b":"bad","c":"1s","f":"0x`) ||
		!strings.Contains(got, `"h":{"d":true}},"msg":"hello"`) {
		t.Errorf("got %s", got)
	}
}

// Attributes of every kind are encoded as JSON if possible, otherwise as text.
func TestLogValues(t *testing.T) {
	for want, log := range map[string]func(*slog.Logger){
		`{"k":"2026-01-02T03:04:05.000000006Z","msg":""}`: func(l *slog.Logger) {
			l.Info("", slog.Time("k", time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)))
		},
		`{"k":1.5,"msg":""}`:                       func(l *slog.Logger) { l.Info("", "k", 1.5) },
		`{"k":"NaN","msg":""}`:                     func(l *slog.Logger) { l.Info("", "k", math.NaN()) },
		`{"k":-1,"l":1,"m":true,"msg":"","n":"s"}`: func(l *slog.Logger) { l.Info("", "k", -1, "l", uint(1), "m", true, "n", "s") },
		`{"k":{"A":1},"msg":""}`:                   func(l *slog.Logger) { l.Info("", "k", struct{ A int }{1}) },
		`{"k":"[NaN]","msg":""}`:                   func(l *slog.Logger) { l.Info("", "k", []float64{math.NaN()}) },
		`{"k":"bad","msg":""}`:                     func(l *slog.Logger) { l.Info("", "k", errors.New("bad")) },
		`{"msg":""}`:                               func(l *slog.Logger) { l.Info("", slog.Any("", 1)) },
		`{"k":1,"msg":""}`:                         func(l *slog.Logger) { l.Info("", slog.Group("", "k", 1)) },
		`{"g":{"k":1,"l":2},"k":3,"msg":""}`: func(l *slog.Logger) {
			l.WithGroup("").With("k", 3).WithGroup("g").With("k", 1).Info("", "l", 2)
		},
		`{"g":{"h":{"k":1}},"msg":""}`: func(l *slog.Logger) { l.With("g", 1).WithGroup("g").Info("", slog.Group("h", "k", 1)) },
		`{"k":"!PANIC: runtime error: invalid memory address or nil pointer dereference","msg":""}`: func(l *slog.Logger) {
			l.Info("", "k", (*url.Error)(nil))
		},
		"{\"k\":\"the file \ufffd\",\"l\":[\"\ufffd\"],\"m\":\"\ufffd\",\"msg\":\"is \ufffd\"}": func(l *slog.Logger) {
			l.Info("is \xff", "k", errors.New("the file \xff"), "l", []string{"\xff"}, "m", "\xff")
		},
	} {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("log", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			log(mcp.ClientLogger(ctx))
			return "", nil
		}, nil))
		_, rec, err := mcptest.Do(t, mux, (&mcptest.Client{Options: mcp.ClientOptions{LogLevel: mcp.LoggingLevelInfo}}).NewRequest(mcp.MethodCallTool, tool("log", "")))
		if err != nil || len(rec.Notifications()) != 1 {
			t.Fatalf("%s: %v", want, err)
		}
		var p struct{ Data json.RawMessage }
		if err := json.Unmarshal(rec.Notifications()[0].Params, &p); err != nil || string(p.Data) != want {
			t.Errorf("got %s, %v, want %s", p.Data, err, want)
		}
	}
}

// Progress that JSON cannot represent is not sent. A total that is not positive is omitted.
func TestProgressWithoutNumber(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("work", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.Progress(ctx, math.Inf(-1), 0, "")
		mcp.Progress(ctx, math.NaN(), 0, "")
		mcp.Progress(ctx, 1, math.Inf(1), "")
		for n, total := range []float64{-1, 0, 0.5, 3} { // not all are positive
			mcp.Progress(ctx, float64(n), total, "")
		}
		return "", nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		var got []string
		ctx := mcp.WithProgress(t.Context(), func(p *mcp.ProgressParams) {
			of := "unknown"
			if p.Total != nil {
				of = fmt.Sprint(*p.Total)
			}
			got = append(got, fmt.Sprintf("%v of %s", p.Progress, of))
		})
		if _, err := c.CallTool(ctx, tool("work", "")); err != nil || fmt.Sprint(got) != "[0 of unknown 1 of unknown 2 of 0.5 3 of 3]" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// Progress is sent even if its message is not valid UTF-8, like some file names.
func TestProgressWithInvalidText(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("work", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.Progress(ctx, 1, 0, "the file \xff")
		return "", nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		var got string
		ctx := mcp.WithProgress(t.Context(), func(p *mcp.ProgressParams) { got = p.Message })
		if _, err := c.CallTool(ctx, tool("work", "")); err != nil || got != "the file \ufffd" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// Values that cannot be encoded fail their request, and the error names them.
func TestUnencodable(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("output", mcp.ToolFunc(func(context.Context, none) (struct{ N float64 }, error) { return struct{ N float64 }{math.NaN()}, nil }, nil))
	mux.Resource("file:///resource", mcp.ResourceFunc(func(context.Context, none) (struct{ N float64 }, error) {
		return struct{ N float64 }{math.Inf(1)}, nil
	}, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		_, err := c.CallTool(t.Context(), tool("output", ""))
		if mcp.CodeOf(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), "the tool's output could not be encoded") {
			t.Errorf("a tool: %v", err)
		}
		_, err = c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "file:///resource"})
		if mcp.CodeOf(err) != mcp.CodeInternalError || !strings.Contains(err.Error(), "the resource could not be encoded") {
			t.Errorf("a resource: %v", err)
		}
	})
}

// T16: a notification sent after the handler has returned is dropped, and Notify returns an
// error.
func TestLateNotify(t *testing.T) {
	type late struct {
		ctx context.Context
		req *mcp.Request
	}
	kept, notes := make(chan late, 1), make(chan string, 100)
	var n atomic.Int32
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("keep", mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if err := req.Notify(ctx, "notifications/vendor", map[string]any{"n": n.Add(1)}); err != nil {
			t.Error(err)
		}
		kept <- late{ctx, req}
		return mcp.TextResult(""), nil
	}))
	client := &mcptest.Client{Options: mcp.ClientOptions{
		Notification: func(_ context.Context, _ *mcp.Conn, note *mcp.Request) {
			notes <- note.Method + " " + string(note.Params())
		},
	}}
	client.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		next := func() {
			t.Helper()
			want := fmt.Sprintf(`notifications/vendor {"n":%d}`, n.Load())
			if got := <-notes; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		mustCall(t, c, "keep", "")
		next()
		l := <-kept
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if err := l.req.Notify(l.ctx, "notifications/vendor", nil); !errors.Is(err, mcp.ErrNotDelivered) {
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
		mustCall(t, c, "keep", "") // after a round trip, nothing else has arrived
		<-kept
		next()
	})
}

// notified is a notifier that records notifications.
type notified []string

func (n *notified) Notify(_ context.Context, method string, params json.RawMessage) error {
	*n = append(*n, method+string(params))
	return nil
}

// Middleware can drop notifications about a request. All filters must agree, they apply to
// copies of the request, and a request that is served again starts without filters.
func TestFindingCM18FilterNotifications(t *testing.T) {
	without := func(text string) mcp.Middleware {
		return func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				req.FilterNotifications(func(_ string, params json.RawMessage) bool { return !strings.Contains(string(params), text) })
				return next.ServeMCP(ctx, req.Clone())
			})
		}
	}
	say := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		for _, text := range []string{"a", "b", "c"} {
			if err := req.Notify(ctx, "notifications/x", map[string]string{"": text}); err != nil {
				t.Error(err)
			}
		}
		return &mcp.EmptyResult{}, nil
	})
	req, err := mcp.NewRequest("test/say", nil)
	if err != nil {
		t.Fatal(err)
	}
	for want, h := range map[string]mcp.Handler{
		"c":   mcp.Chain(say, without("a"), without("b")),
		"bc":  mcp.Chain(say, without("a")),
		"abc": say,
	} {
		var got notified
		if _, err := core.Serve(t.Context(), h, req, &got, nil); err != nil {
			t.Fatal(err)
		}
		all := strings.Join(got, "")
		for _, text := range []string{"a", "b", "c"} {
			if strings.Contains(all, `"`+text+`"`) != strings.Contains(want, text) {
				t.Errorf("got %s, want %q", all, want)
			}
		}
	}
}
