// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/tasks"
	"github.com/go-psi/psi/mcphttp"
)

const (
	callTimeout = 40 * time.Second  // never reached: elections and failure detection are faster
	patience    = 120 * time.Second // limit for all attempts together
)

var quiet = slog.New(slog.DiscardHandler)

// A visitor is a client of one revision. Like a careful client, it repeats failed
// operations until they succeed.
type visitor struct {
	number  int
	version string
	url     string
	report  *report
	rng     *rand.Rand
	calls   int
	session string // session ID, once known
	diary   diary

	up   *mcp.Upstream // for the latest revision
	conn *mcp.Conn     // for other revisions
}

func (v *visitor) String() string { return fmt.Sprintf("client %d (%s)", v.number, v.version) }

// run performs one operation after another until ctx is done.
func (v *visitor) run(ctx context.Context) {
	sleep(ctx, time.Duration(v.rng.Int64N(int64(3*time.Second))))
	if !v.connect(ctx) {
		return
	}
	defer v.close()
	l := v.listen(ctx)
	for ctx.Err() == nil {
		v.act(ctx)
		l.check()
		sleep(ctx, time.Duration(v.rng.Int64N(int64(time.Second))))
	}
}

func (v *visitor) connect(ctx context.Context) bool {
	client := mcp.NewClient("chaos", "v1", &mcp.ClientOptions{
		Version: v.version, Logger: quiet, CallTimeout: callTimeout, Extensions: []*mcp.ClientExtension{tasks.Client()},
		Elicit: func(ctx context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			sleep(ctx, 200*time.Millisecond)
			return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: fmt.Appendf(nil, `{"text":"re:%s"}`, p.Message)}, nil
		},
	})
	wire := mcphttp.NewTransport(v.url, &mcphttp.TransportOptions{Client: &http.Client{Transport: &strict{visitor: v, next: &http.Transport{}}}, Logger: quiet})
	if v.version == mcp.LatestVersion {
		v.up = client.Maintain(context.WithoutCancel(ctx), wire, &mcp.UpstreamOptions{Wait: callTimeout})
		return true
	}
	return v.do(ctx, "connect", func(ctx context.Context) (err error) {
		v.conn, err = client.Connect(ctx, wire)
		return err
	})
}

func (v *visitor) close() {
	if v.up != nil {
		_ = v.up.Close()
		return
	}
	_ = v.conn.Close()
}

// connection returns the current connection.
func (v *visitor) connection(ctx context.Context) (*mcp.Conn, error) {
	if v.up != nil {
		return v.up.Conn(ctx)
	}
	return v.conn, nil
}

// strict is a RoundTripper that reports an unknown session as a violation.
type strict struct {
	visitor  *visitor
	next     http.RoundTripper
	requests atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (s *strict) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := s.exchange(r)
	if err == nil && res.StatusCode == http.StatusNotFound && r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") != "" {
		s.visitor.report.wrongf("%v: its session is lost", s.visitor)
	}
	return res, err
}

// act performs one random operation.
func (v *visitor) act(ctx context.Context) {
	v.calls++
	text := fmt.Sprintf("%d-%d.", v.number, v.calls)
	switch n := v.rng.IntN(100); {
	case n < 35:
		v.call(ctx, "echo", in{Text: text}, text)
	case n < 50:
		v.whoami(ctx)
	case n < 70:
		v.call(ctx, "ask", in{Text: text}, "re:"+text+"are:"+text+"b")
	case n < 90:
		v.call(ctx, "work", in{Text: text, Steps: 1 + v.rng.IntN(20)}, text)
	default:
		v.render(ctx, text)
	}
}

var errWrong = errors.New("wrong result")

func (v *visitor) call(ctx context.Context, tool string, in in, want string) {
	v.do(ctx, tool, func(ctx context.Context) error {
		conn, err := v.connection(ctx)
		if err != nil {
			return err
		}
		got, err := mcp.Call[string](mcp.WithProgress(ctx, func(*mcp.ProgressParams) {}), conn, tool, in)
		return check(err, got, want)
	})
}

func check(err error, got, want string) error {
	if err == nil && got != want {
		err = fmt.Errorf("%w %q, want %q", errWrong, got, want)
	}
	return err
}

// whoami checks that the session ID has not changed.
func (v *visitor) whoami(ctx context.Context) {
	v.do(ctx, "whoami", func(ctx context.Context) error {
		conn, err := v.connection(ctx)
		if err != nil {
			return err
		}
		got, err := mcp.Call[string](ctx, conn, "whoami", struct{}{})
		if err == nil && v.session == "" {
			v.session = got
		}
		return check(err, got, v.session)
	})
}

// render runs a task until it completes. Clients of the latest revision keep the task ID
// and ask for the same task again after any failure.
func (v *visitor) render(ctx context.Context, text string) {
	want := text + "012re:" + text + "34"
	if v.up == nil {
		v.call(ctx, "render", in{text, 5}, want)
		return
	}
	id := ""
	v.do(ctx, "render", func(ctx context.Context) error {
		conn, err := v.up.Conn(ctx)
		if err != nil {
			return err
		}
		if id == "" {
			task, _, err := tasks.Start(ctx, conn, &mcp.CallToolParams{Name: "render", Arguments: fmt.Appendf(nil, `{"text":%q,"steps":5}`, text)})
			if err != nil {
				return err
			}
			id = task.ID
		}
		res, err := tasks.Attach(conn, id).Wait(ctx)
		if err != nil {
			return err
		}
		if res.IsError {
			return fmt.Errorf("%w: the task failed: %v", errWrong, res.Content[0])
		}
		return check(nil, res.Content[0].(*mcp.TextContent).Text, want)
	})
}

// do calls step, and repeats it while it fails. It reports whether step succeeded.
func (v *visitor) do(ctx context.Context, kind string, step func(context.Context) error) bool {
	begun := time.Now()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	for {
		attempt := time.Now()
		explain := time.AfterFunc(slow, func() { v.explain(kind) })
		err := step(bounded)
		explain.Stop()
		switch {
		case err == nil:
			v.report.done(kind, time.Since(begun))
			return true
		case errors.Is(err, errWrong):
			v.report.wrongf("%v: %s: %v", v, kind, err)
			return false
		case bounded.Err() != nil:
			v.report.wrongf("%v: %s: lost: %v", v, kind, err)
			return false
		case time.Since(attempt) >= callTimeout:
			v.report.wrongf("%v: %s: hung for %v: %v", v, kind, time.Since(attempt).Round(time.Second), err)
			v.explain(kind)
		}
		v.report.again(kind, err)
		if ctx.Err() != nil {
			return false
		}
		sleep(ctx, 200*time.Millisecond)
	}
}
