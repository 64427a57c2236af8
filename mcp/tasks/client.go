// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/callclock"
	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/mcp"
)

// Client returns the client side of the extension, for [mcp.ClientOptions].Extensions. With
// it, [mcp.Conn.CallTool] and [mcp.Call] return the result of a tool that runs in the
// background like the result of any other tool. They poll the task, or listen to it if the
// server pushes its state, answer its questions with the functions of the client, report
// its status messages as progress ([mcp.WithProgress]), and cancel it if they return before
// it has ended, for example because their context is done. The
// limits on the questions about a call apply to those of a task, too. Use [Start] to get the
// task itself.
func Client() *mcp.ClientExtension {
	return &mcp.ClientExtension{ID: Extension, Middleware: followTasks, NewResult: newResult}
}

// followTasks returns the middleware of a connection that turns tasks into their results.
func followTasks(c *mcp.Conn) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		source := newPushSource(next)
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if id, ok := passedOn(c, req); ok {
				return newDriver(c, source, req, Task{ID: id}).resume(ctx)
			}
			counted, rounds := core.CountRounds(ctx)
			res, err := next.ServeMCP(counted, req)
			if err != nil || !isTask(req, res) || ctx.Value(startKey{}) != nil || core.PassesTasks(c, req) {
				return res, err
			}
			task, err := created(c, res)
			if err != nil {
				return nil, err
			}
			d := newDriver(c, source, req, task)
			d.rounds = *rounds
			return d.drive(ctx)
		})
	}
}

func newResult(method, resultType string) mcp.Result {
	switch {
	case method == MethodGet:
		return new(GetResult)
	case method == mcp.MethodCallTool && resultType == ResultTask:
		return new(CreateResult)
	}
	return nil
}

// startKey marks the context of calls that return the task instead of waiting for the
// result.
type startKey struct{}

func isTask(req *mcp.Request, res mcp.Result) bool {
	return req.Method == mcp.MethodCallTool && core.Base(res).ResultType == ResultTask
}

// created returns the task in a server's response to a call.
func created(c *mcp.Conn, res mcp.Result) (Task, error) {
	if r, ok := res.(*CreateResult); ok && r.ID != "" {
		return r.Task, nil
	}
	t, err := newReader(c).read(res)
	if err == nil && (core.Base(res).ResultType != ResultTask || t.ID == "") {
		err = mcp.ErrUnreadable
	}
	if err != nil {
		return Task{}, fmt.Errorf("tasks: the server's answer to %s is neither a result nor a task: %w", mcp.MethodCallTool, err)
	}
	return t.Task, nil
}

// A driver waits for one task to end.
type driver struct {
	conn    *mcp.Conn
	source  *pushSource
	next    mcp.Handler  // sends requests
	req     *mcp.Request // tools/call
	reader  *reader
	task    Task    // as last seen
	polled  bool    // the task has been polled
	pushes  *pushes // nil if not subscribed
	message string  // the last one reported
	reports float64

	asked    map[string]string          // digests of the questions, by key
	answers  map[string]json.RawMessage // by question key
	rounds   int                        // of questions about the call: before the task, and states with new ones
	repeatAt time.Time                  // when to repeat the answers; zero means now
	patience time.Duration              // the pause before repeatAt

	failedPolls, failedUpdates int // consecutive ones
}

func newDriver(c *mcp.Conn, source *pushSource, req *mcp.Request, task Task) *driver {
	return &driver{
		conn: c, source: source, next: onBehalf(req, source.next), req: req, reader: newReader(c), task: task,
		asked: map[string]string{}, answers: map[string]json.RawMessage{},
	}
}

const (
	defaultPoll = time.Second
	// firstPoll is the delay before the first poll of a task that was working when it was
	// created. It is short because many tasks end soon.
	firstPoll = 20 * time.Millisecond
	minPoll   = 20 * time.Millisecond
	maxPoll   = time.Minute
	// maxFailures bounds the consecutive polls, and the consecutive attempts to send
	// answers, that may fail for a reason that may pass.
	maxFailures = 10
	// cancelTime bounds how long a caller that gives up waits for the cancellation to be
	// acknowledged.
	cancelTime = 5 * time.Second
)

// drive follows the task until it has ended. If it stops earlier, for whatever reason, it
// cancels the task.
func (d *driver) drive(ctx context.Context) (mcp.Result, error) {
	defer d.stop()
	for {
		t, err := d.await(ctx)
		if t == nil && err == nil {
			t, err = d.poll(ctx)
		}
		switch {
		case err != nil:
			d.cancel(ctx)
			return nil, err
		case t == nil:
			continue
		}
		d.task = t.Task
		d.report(ctx, t)
		switch t.Status {
		case Completed:
			return mcp.UnmarshalResult(mcp.MethodCallTool, t.Result)
		case Failed:
			return nil, failure(t)
		case Cancelled:
			return nil, mcp.Errorf(mcp.CodeInternalError, "the task was cancelled")
		case InputRequired:
			if res, err := d.answer(ctx, t.InputRequests); res != nil || err != nil {
				return res, err
			}
		}
		d.listen(ctx)
	}
}

// listen subscribes to the task, unless it is already subscribed.
func (d *driver) listen(ctx context.Context) {
	if d.pushes == nil {
		d.pushes = d.source.listen(ctx, d.task.ID, d.reader)
	}
}

// stop ends the subscription started by listen.
func (d *driver) stop() {
	if d.pushes != nil {
		d.pushes.end()
	}
}

// answer answers the questions of the task that are new, or passes them on to the caller. If
// that is not possible, it cancels the task and returns the outcome of the call.
func (d *driver) answer(ctx context.Context, questions map[string]mcp.InputRequest) (mcp.Result, error) {
	if err := d.checkKeys(questions); err != nil {
		d.cancel(ctx)
		return nil, err
	}
	unanswered := maps.Clone(questions)
	maps.DeleteFunc(unanswered, func(key string, _ mcp.InputRequest) bool { return d.answers[key] != nil })
	if len(unanswered) > 0 {
		if err := core.CheckAsked(d.conn, d.req, unanswered, d.rounds); err != nil {
			d.cancel(ctx)
			return nil, err
		}
		d.rounds++
		if core.PassesQuestions(d.conn, d.req, unanswered) {
			return d.passOn(unanswered), nil
		}
		answers, err := core.AnswerAll(ctx, d.conn, unanswered)
		if err != nil {
			d.cancel(ctx)
			return core.Unanswered(ctx, d.req, err)
		}
		maps.Copy(d.answers, answers)
		d.repeatAt, d.patience = time.Time{}, 0
	}
	answers := map[string]json.RawMessage{}
	for key := range questions {
		answers[key] = d.answers[key]
	}
	if err := d.update(ctx, answers); err != nil {
		d.cancel(ctx)
		return nil, err
	}
	return nil, nil
}

// checkKeys returns an error if a server uses the key of an earlier question for another one,
// which would get the answer to the first.
func (d *driver) checkKeys(questions map[string]mcp.InputRequest) error {
	for key, q := range questions {
		digest := core.QuestionDigest(q)
		if before, known := d.asked[key]; known && before != digest {
			return mcp.Errorf(mcp.CodeInternalError, "the task asks two different questions with the key %.80q; keys must be unique", key)
		}
		d.asked[key] = digest
	}
	return nil
}

// failure returns the error of a failed task.
func failure(t *DetailedTask) error {
	switch {
	case t.Error != nil:
		return t.Error
	case t.StatusMessage == "":
		return mcp.Errorf(mcp.CodeInternalError, "the task failed; the server does not say why")
	}
	return mcp.Errorf(mcp.CodeInternalError, "the task failed: %s", t.StatusMessage)
}

// await waits for a new state pushed by the server, and returns nil when it is time to
// poll. The timeout of the call is paused meanwhile, because no request is in flight.
func (d *driver) await(ctx context.Context) (*DetailedTask, error) {
	wait := d.interval()
	if wait == 0 {
		return nil, context.Cause(ctx)
	}
	defer callclock.Pause(ctx)()
	var states <-chan *DetailedTask
	var ended <-chan struct{}
	if d.pushes != nil {
		states = d.pushes.states
		if d.pushes.accepted.Load() {
			ended = d.pushes.ended
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case t := <-states:
			if t.Status != d.task.Status || t.LastUpdatedAt.IsZero() || t.LastUpdatedAt.After(d.task.LastUpdatedAt) {
				return t, nil
			}
		case <-timer.C:
			return nil, nil //nolint:nilnil // it is time to poll
		case <-ended:
			if len(states) > 0 {
				continue // receive the last state that was pushed
			}
			return nil, nil //nolint:nilnil // the state may have changed since then
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// interval returns how long to wait before the next poll. Before the first poll, it is
// firstPoll for a working task and 0 otherwise.
func (d *driver) interval() time.Duration {
	switch {
	case !d.polled && d.task.Status == Working:
		return firstPoll
	case !d.polled:
		return 0
	}
	wait := defaultPoll
	if d.task.PollIntervalMs != nil {
		wait = time.Duration(min(max(*d.task.PollIntervalMs, minPoll.Milliseconds()), maxPoll.Milliseconds())) * time.Millisecond
	}
	if d.pushes != nil && d.pushes.accepted.Load() {
		wait = max(wait, pushPoll)
	}
	return wait
}

// poll returns the state of the task. It returns nil if the request failed and polling
// continues (see isFinal), or if ctx is done, which await detects.
func (d *driver) poll(ctx context.Context) (*DetailedTask, error) {
	t, err := d.reader.get(ctx, d.next, d.task.ID)
	d.polled = true
	switch {
	case err == nil:
		d.failedPolls = 0
		return t, nil
	case ctx.Err() != nil:
		return nil, nil //nolint:nilnil,nilerr // see above
	}
	if d.failedPolls++; d.isFinal(err, d.failedPolls) {
		return nil, err
	}
	return nil, nil //nolint:nilnil // see above
}

// isFinal reports whether the last of several consecutive failed requests about the task
// ends the call. It does not if the request may succeed later, because the connection failed,
// the answer was unreadable, or the server has a problem. An internal error of a poll is
// temporary, ten times in a row. Updates have a counter of their own, or a successful poll
// would reset it and the client would try forever.
func (d *driver) isFinal(err error, failures int) bool {
	if failures > maxFailures || errors.Is(err, mcp.ErrClosed) {
		return true
	}
	select {
	case <-d.conn.Done():
		return true
	default:
	}
	refused, ok := errors.AsType[*mcp.Error](err)
	_, busy := mcp.RetryAfter(err)
	return ok && refused.Code != mcp.CodeInternalError && !busy && !async.IsTransient(err)
}

// report reports a new status message as progress.
func (d *driver) report(ctx context.Context, t *DetailedTask) {
	if t.StatusMessage == d.message || t.Status.IsFinal() {
		return
	}
	d.message = t.StatusMessage
	if fn := core.ProgressOf(ctx, d.req); fn != nil {
		d.reports++
		fn(&mcp.ProgressParams{Progress: d.reports, Message: t.StatusMessage})
	}
}

// update sends answers to open questions. The server may not have received those that were
// sent before, and ignores those that it already has. So it gets them again as long as the
// questions are open: with the next state if it did not acknowledge them, otherwise at
// growing intervals, because it may acknowledge them before it has processed them.
func (d *driver) update(ctx context.Context, answers map[string]json.RawMessage) error {
	if len(answers) == 0 || time.Now().Before(d.repeatAt) {
		return nil
	}
	_, err := send(ctx, d.next, MethodUpdate, &UpdateParams{TaskID: d.task.ID, InputResponses: answers})
	if err != nil {
		if d.failedUpdates++; d.isFinal(err, d.failedUpdates) {
			return err
		}
		return nil
	}
	d.failedUpdates = 0
	d.patience = min(max(2*d.patience, defaultPoll), maxPoll)
	d.repeatAt = time.Now().Add(d.patience)
	return nil
}

// cancel cancels the task on behalf of a caller that no longer waits.
func (d *driver) cancel(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer cancel()
	_, _ = send(ctx, d.next, MethodCancel, &CancelParams{TaskID: d.task.ID}) // the caller has an error already
}

func send(ctx context.Context, h mcp.Handler, method string, params any) (mcp.Result, error) {
	req, err := mcp.NewRequest(method, params)
	if err != nil {
		return nil, err
	}
	return h.ServeMCP(ctx, req)
}

// A Handle is a task of a server, for programs that manage tasks themselves. It must be
// created by [Start] or [Attach] and is safe for concurrent use.
type Handle struct {
	ID   string
	conn *mcp.Conn
}

// Start calls a tool and returns its task without waiting for it. If the server returns a
// result instead, the handle is nil. The client must have the extension; see [Client].
func Start(ctx context.Context, c *mcp.Conn, p *mcp.CallToolParams) (*Handle, *mcp.CallToolResult, error) {
	req, err := mcp.NewRequest(mcp.MethodCallTool, p)
	if err != nil {
		return nil, nil, err
	}
	res, err := c.Do(context.WithValue(ctx, startKey{}, true), req)
	if err != nil {
		return nil, nil, err
	}
	switch r := res.(type) {
	case *mcp.CallToolResult:
		return nil, r, nil
	case *mcp.InputRequired:
		return nil, nil, &mcp.InputRequiredError{Method: mcp.MethodCallTool, Result: r}
	}
	task, err := created(c, res)
	if err != nil {
		return nil, nil, err
	}
	return Attach(c, task.ID), nil, nil
}

// Attach returns a handle for a task that was started before, perhaps by another process of
// the same caller.
func Attach(c *mcp.Conn, id string) *Handle { return &Handle{id, c} }

// mustBeMade panics if the Handle has no connection.
func (h *Handle) mustBeMade() {
	made.Check(h != nil && h.conn != nil, "tasks: a Handle", "Start, or Attach with a connection")
}

// sender sends requests through the middleware of the connection.
func (h *Handle) sender() mcp.Handler {
	return mcp.HandlerFunc(h.conn.Do)
}

// Get returns the state of the task (tasks/get). Members that the server does not need to
// send, and that cannot be read, are left out with a warning: a date is the zero time.
func (h *Handle) Get(ctx context.Context) (*DetailedTask, error) {
	h.mustBeMade()
	return newReader(h.conn).get(ctx, h.sender(), h.ID)
}

// Update answers questions of the task, by their keys in InputRequests (tasks/update).
func (h *Handle) Update(ctx context.Context, answers map[string]json.RawMessage) error {
	h.mustBeMade()
	_, err := send(ctx, h.sender(), MethodUpdate, &UpdateParams{TaskID: h.ID, InputResponses: answers})
	return err
}

// Cancel asks the server to cancel the task (tasks/cancel). The task may still end with
// another status.
func (h *Handle) Cancel(ctx context.Context) error {
	h.mustBeMade()
	_, err := send(ctx, h.sender(), MethodCancel, &CancelParams{TaskID: h.ID})
	return err
}

// Wait waits for the task to end and returns its result. It answers the task's questions
// with the functions of the client. If ctx is done, the task is cancelled.
func (h *Handle) Wait(ctx context.Context) (*mcp.CallToolResult, error) {
	h.mustBeMade()
	req, err := mcp.NewRequest(mcp.MethodCallTool, nil)
	if err != nil {
		return nil, err
	}
	res, err := newDriver(h.conn, newPushSource(h.sender()), req, Task{ID: h.ID}).drive(ctx)
	if err != nil {
		return nil, err
	}
	r, ok := res.(*mcp.CallToolResult)
	if !ok {
		return nil, fmt.Errorf("tasks: the result of the task is a %T: %w", res, mcp.ErrUnreadable)
	}
	return r, nil
}
