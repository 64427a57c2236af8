// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/tasks"
)

// patience is how long any operation may take. Two thousand clients share the machine.
const patience = 30 * time.Second

// visitor is a client that connects, performs operations, disconnects, and repeats.
type visitor struct {
	server *server
	report *report
	rng    *rand.Rand
	think  time.Duration
	number int
	way    way
	calls  int

	conn      *mcp.Conn
	link      *link
	connected time.Time

	mu    sync.Mutex
	heard time.Time // when the subscription last reported a change
	since time.Time // when the subscription started
}

// visit opens a connection, performs operations and closes it.
func (v *visitor) visit(ctx context.Context) {
	defer pause(ctx, upTo(v.rng, v.think)+1) // even after failures
	if v.rng.IntN(40) == 0 {
		v.readSlowly(ctx)
		return
	}
	if !v.connect(ctx) {
		return
	}
	defer v.leave()
	subscription := v.subscribe(ctx)
	for range 5 + v.rng.IntN(20) {
		pause(ctx, upTo(v.rng, 2*v.think)+1)
		if ctx.Err() != nil || !v.act() {
			break
		}
		if subscription != nil && v.endedByServer(subscription) {
			subscription = v.subscribe(ctx)
		}
	}
	if subscription == nil || v.link.wasCut() || v.endedByServer(subscription) {
		return
	}
	v.checkHeard()
	subscription.Close()
	select {
	case <-subscription.Done():
	case <-time.After(patience):
		v.report.wrongf("%s: a subscription does not end", v)
	}
}

func (v *visitor) String() string { return fmt.Sprintf("client %d (%s)", v.number, v.way.name) }

func (v *visitor) connect(ctx context.Context) bool {
	begun := time.Now()
	v.connected = begun
	connecting, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	v.link = &link{}
	opts := &mcp.ClientOptions{Version: v.way.version, Elicit: v.elicit, Logger: quiet, ConnectTimeout: patience, Extensions: []*mcp.ClientExtension{tasks.Client()}}
	conn, err := mcp.NewClient("soak", "v1", opts).Connect(connecting, v.way.to(v))
	if err != nil {
		v.failed("connect", begun, err)
		return false
	}
	v.conn = conn
	v.report.note("connect", done, time.Since(begun))
	return true
}

// leave closes the connection, cleanly or abruptly.
func (v *visitor) leave() {
	if v.rng.IntN(10) == 0 {
		v.link.cut()
	}
	v.link.leave()
	begun := time.Now()
	if err := v.conn.Close(); err != nil && !v.link.wasCut() {
		v.failed("close", begun, err)
		return
	}
	v.report.note("close", done, time.Since(begun))
}

// failed records a failure. It is a violation unless the balancer's cuts or a removed
// replica may have caused it.
func (v *visitor) failed(kind string, begun time.Time, err error) {
	if v.wasHurt(begun) {
		v.report.note(kind, failed, time.Since(begun))
		return
	}
	v.report.wrongf("%s: %s: %v after %v", v, kind, err, time.Since(begun))
}

// wasHurt reports whether an operation started at begun may have failed. If the connection
// is the session, this includes everything that came after an earlier fault.
func (v *visitor) wasHurt(begun time.Time) bool {
	if v.way.single {
		begun = v.connected
	}
	return v.server.hurtSince(v.number, begun)
}

func (v *visitor) elicit(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: fmt.Appendf(nil, `{"text":"re:%s"}`, p.Message)}, nil
}

// subscribe subscribes to tool list changes; some clients do not.
func (v *visitor) subscribe(ctx context.Context) *mcp.Subscription {
	if v.rng.IntN(10) == 0 {
		return nil
	}
	begun := time.Now()
	s, err := v.conn.Listen(context.WithoutCancel(ctx), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.heard = time.Now()
	})
	if err != nil || !s.Accepted().ToolsListChanged {
		v.failed("subscribe", begun, fmt.Errorf("it is not accepted: %w", err))
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.since, v.heard = time.Now(), time.Time{}
	v.report.note("subscribe", done, time.Since(begun))
	return s
}

// endedByServer reports whether a subscription ended because a replica was shut down.
func (v *visitor) endedByServer(s *mcp.Subscription) bool {
	select {
	case <-s.Done():
		return v.wasHurt(v.connected)
	default:
		return false
	}
}

// soon is how long the notification of a change may take.
const soon = 10 * time.Second

// checkHeard checks that the subscription reported the last change that is at least soon
// old.
func (v *visitor) checkHeard() {
	v.mu.Lock()
	since, heard := v.since, v.heard
	v.mu.Unlock()
	last, ok := v.server.changedBetween(since, time.Now().Add(-soon))
	switch {
	case !ok:
	case heard.Before(last):
		v.report.wrongf("%s has not heard of a change %v ago: it heard at %v, since %v", v, time.Since(last), heard, since)
	default:
		v.report.note("hear of changes", done, 0)
	}
}

// attempts is the number of times a client tries an operation that fails because of the
// network.
const attempts = 5

// act performs one operation, and reports whether the connection is still usable.
func (v *visitor) act() bool {
	n := v.rng.IntN(100)
	for range attempts {
		begun := time.Now()
		kind, o, err := v.try(n)
		if err == nil {
			v.report.note(kind, o, time.Since(begun))
			return o != broken
		}
		v.failed(kind, begun, err)
		if o == broken || v.way.single || !v.wasHurt(begun) {
			return o != broken && !v.way.single
		}
	}
	return true
}

func (v *visitor) try(n int) (string, outcome, error) {
	v.calls++
	text := fmt.Sprintf("%d-%d.", v.number, v.calls)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return v.do(ctx, n, text)
}

// do performs operation n, which is below 100. An error is a violation.
func (v *visitor) do(ctx context.Context, n int, text string) (string, outcome, error) {
	switch {
	case n < 8:
		return "task", done, v.expect(ctx, "task", arguments{text, v.rng.IntN(50)}, "re:"+text+"a")
	case n < 40:
		return "echo", done, v.expect(ctx, "echo", arguments{Text: text}, text)
	case n < 45:
		long := text + blanks[:v.rng.IntN(len(blanks))]
		return "long echo", done, v.expect(ctx, "echo", arguments{Text: long}, long)
	case n < 57:
		return v.work(ctx, text)
	case n < 70:
		return "ask", done, v.expect(ctx, "ask", arguments{Text: text}, "re:"+text+"are:"+text+"b")
	case n < 78:
		return v.list(ctx)
	case n < 84:
		return v.fail(ctx, text)
	case n < 92:
		return v.cancel(ctx, text)
	case n < 96:
		return v.sendTooMuch(ctx, text)
	default:
		return v.cut(ctx, text)
	}
}

// expect calls a tool and checks the answer.
func (v *visitor) expect(ctx context.Context, tool string, in arguments, want string) error {
	got, err := mcp.Call[string](ctx, v.conn, tool, in)
	if err == nil && got != want {
		err = fmt.Errorf("the answer is %.60q, not %.60q", got, want)
	}
	return err
}

// work makes a call with progress.
func (v *visitor) work(ctx context.Context, text string) (string, outcome, error) {
	var problem error
	last := 0.0
	watching := mcp.WithProgress(ctx, func(p *mcp.ProgressParams) {
		if p.Message != "" && p.Message != text || p.Progress <= last {
			problem = fmt.Errorf("the progress %v of %q after %v", p.Progress, p.Message, last)
		}
		last = p.Progress
	})
	err := v.expect(watching, "work", arguments{text, v.rng.IntN(50)}, text)
	switch {
	case err != nil:
		return "work", done, err
	case problem == nil && last != steps:
		problem = fmt.Errorf("the progress ended at %v", last)
	}
	return "work", done, problem
}

func (v *visitor) list(ctx context.Context) (string, outcome, error) {
	n := 0
	for _, err := range v.conn.Tools(ctx, nil) {
		if err != nil {
			return "list", done, err
		}
		n++
	}
	if n != 7 && n != 8 {
		return "list", done, fmt.Errorf("there are %d tools", n)
	}
	return "list", done, nil
}

func (v *visitor) fail(ctx context.Context, text string) (string, outcome, error) {
	_, err := mcp.Call[string](ctx, v.conn, "fail", arguments{Text: text})
	var failure *mcp.ToolError
	if !errors.As(err, &failure) || failure.Result.Content[0].(*mcp.TextContent).Text != "failed "+text {
		return "fail", refused, fmt.Errorf("the error is %w", err)
	}
	return "fail", refused, nil
}

// errMind is the cause of cancellations.
var errMind = errors.New("a change of mind")

func (v *visitor) cancel(ctx context.Context, text string) (string, outcome, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(upTo(v.rng, 300*time.Millisecond), func() { cancel(errMind) }).Stop()
	if _, err := mcp.Call[string](ctx, v.conn, "block", arguments{Text: text}); !errors.Is(err, errMind) {
		return "cancel", refused, fmt.Errorf("the error is %w", err)
	}
	return "cancel", refused, nil
}

// sendTooMuch sends a message that exceeds the server's limit. Over HTTP, it is rejected.
// On a stream, the server cannot tell which request it was, and the call remains
// unanswered.
func (v *visitor) sendTooMuch(ctx context.Context, text string) (string, outcome, error) {
	impatient, cancel := context.WithTimeoutCause(ctx, time.Second, errMind)
	defer cancel()
	_, err := mcp.Call[string](impatient, v.conn, "echo", arguments{Text: text + blanks + blanks})
	if err == nil {
		return "too much", refused, errors.New("it was answered")
	}
	if err := v.expect(ctx, "echo", arguments{Text: text}, text); err != nil {
		return "too much", refused, fmt.Errorf("what came after it: %w", err)
	}
	return "too much", refused, nil
}

// cut cuts all network connections of the client during a call. The call must return, and
// its answer, if any, must be correct.
func (v *visitor) cut(ctx context.Context, text string) (string, outcome, error) {
	defer time.AfterFunc(upTo(v.rng, 200*time.Millisecond), v.link.cut).Stop()
	tool := "echo"
	if v.rng.IntN(2) == 0 {
		tool = "block"
	}
	got, err := mcp.Call[string](ctx, v.conn, tool, arguments{Text: text, Pause: v.rng.IntN(300)})
	v.link.cut()
	switch {
	case err == nil && got != text:
		return "cut", broken, fmt.Errorf("the answer is %.60q, not %.60q", got, text)
	case ctx.Err() != nil:
		return "cut", broken, fmt.Errorf("the call hung: %w", err)
	}
	return "cut", broken, nil
}
