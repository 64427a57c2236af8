// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyserver

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// taskResult serves tasks/result: it waits until a task has ended and returns what its call
// would have returned. In the meantime, it sends the task's questions and status changes on
// the stream of the request.
func (s *Session) taskResult(ctx context.Context, req *mcp.Request, out serving.Sender) (mcp.Result, error) {
	var p taskParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	d := &delivery{session: s, req: req, out: out, answered: map[string]bool{}}
	w := s.watch(ctx, req, p.TaskID)
	defer w.stop()
	for {
		t, err := s.getTask(ctx, req)
		if err != nil {
			return nil, err
		}
		if t.isFinal() {
			return outcomeOf(t)
		}
		d.sendStatus(ctx, t)
		if questions := d.open(t); len(questions) > 0 {
			if err := d.askTask(ctx, w, t, questions); err != nil {
				return nil, err
			}
			continue
		}
		if err := w.wait(ctx, t); err != nil {
			return nil, err
		}
	}
}

// outcomeOf returns the outcome of a task that has ended, with related-task metadata.
func outcomeOf(t *task) (mcp.Result, error) {
	switch {
	case t.Status == statusCancelled:
		return nil, mcp.Errorf(mcp.CodeInternalError, "the task was cancelled")
	case t.Status == statusFailed && t.Error != nil:
		return nil, t.Error
	case t.Status == statusFailed && t.StatusMessage == "":
		return nil, mcp.Errorf(mcp.CodeInternalError, "the task failed; the server does not say why")
	case t.Status == statusFailed:
		return nil, mcp.Errorf(mcp.CodeInternalError, "the task failed: %s", t.StatusMessage)
	}
	res, err := core.DecodeResult(mcp.MethodCallTool, t.Result)
	if err != nil {
		return nil, unreadable(err)
	}
	core.Base(res).Meta.Set(revision.MetaRelatedTask, taskParams{t.TaskID})
	return res, nil
}

// A delivery sends the messages of a task on the stream of one tasks/result request.
type delivery struct {
	session  *Session
	req      *mcp.Request // tasks/result
	out      serving.Sender
	answered map[string]bool // answered questions, by key; the task may still list them
	sent     olderTask       // the status sent last
}

// sendStatus sends the status of the task if it has changed.
func (d *delivery) sendStatus(ctx context.Context, t *task) {
	now := t.older()
	if d.out == nil || now.Status == d.sent.Status && now.StatusMessage == d.sent.StatusMessage {
		return
	}
	d.sent = now
	_ = d.out.Send(ctx, transport.AppendNotification(nil, revision.TaskStatus, strictjson.MustMarshal(&now))) // if it fails, the client is gone
}

// open returns the questions of a task that have not been answered here.
func (d *delivery) open(t *task) map[string]mcp.InputRequest {
	open := map[string]mcp.InputRequest{}
	for key, q := range t.InputRequests {
		if !d.answered[key] {
			open[key] = q
		}
	}
	return open
}

// errAnswered is the cancellation cause of questions that another client has answered.
var errAnswered = errors.New("the question was answered elsewhere")

// askTask asks questions of the task and passes the answers to the task. If the client cannot
// answer, the task is cancelled.
func (d *delivery) askTask(ctx context.Context, w *taskWatch, t *task, questions map[string]mcp.InputRequest) error {
	asking, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer w.onChange(t, func(now *task) {
		if !now.asksOneOf(questions) {
			cancel(errAnswered)
		}
	})()
	labelled := map[string]mcp.InputRequest{}
	for key, q := range questions {
		q.Params = withRelatedTask(q.Params, t.TaskID)
		labelled[key] = q
	}
	answers, err := d.session.ask(asking, d.req, &mcp.InputRequired{InputRequests: labelled}, d.out, 0)
	switch {
	case errors.Is(err, errAnswered):
		return nil
	case err != nil && ctx.Err() == nil && !errors.Is(err, mcp.ErrClosed) && !errors.Is(err, mcp.ErrNotDelivered):
		_, _ = d.session.requestTask(ctx, d.req, tasking.MethodCancel, taskParams{t.TaskID}, nil) // the client gets the first error
		return err
	case err != nil:
		return err
	}
	params := map[string]any{"taskId": t.TaskID, "inputResponses": answers}
	_, err = d.session.requestTask(ctx, d.req, tasking.MethodUpdate, params, nil)
	for key := range answers {
		d.answered[key] = true
	}
	return err
}

// withRelatedTask adds related-task metadata to the params of a question.
func withRelatedTask(params json.RawMessage, id string) json.RawMessage {
	if !jsonscan.IsObject(params) {
		params = json.RawMessage("{}")
	}
	meta := append(jsonscan.AppendKey([]byte{'{'}, revision.MetaRelatedTask), strictjson.MustMarshal(taskParams{id})...)
	if given := jsonscan.Member(params, "_meta"); jsonscan.IsObject(given) {
		meta = jsonscan.AppendMembers(meta, given, revision.MetaRelatedTask)
	} else {
		meta = append(meta, '}')
	}
	return jsonscan.AppendMembers(append(jsonscan.AppendKey([]byte{'{'}, "_meta"), meta...), params, "_meta")
}

// A taskWatch waits for changes of one task. It listens to the handler, and also polls the
// task, because not every handler announces changes.
type taskWatch struct {
	id      string
	changed chan struct{} // signals a change; capacity 1
	stop    func()        // ends the subscription and waits for its goroutine

	mu       sync.Mutex
	accepted bool        // the handler announces changes
	latest   *task       // the task announced last, or nil
	hook     func(*task) // called with each change; may be nil
}

// watch starts watching a task on behalf of a request.
func (s *Session) watch(ctx context.Context, req *mcp.Request, id string) *taskWatch {
	w := &taskWatch{id: id, changed: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(ctx)
	var listening sync.WaitGroup
	w.stop = func() {
		cancel()
		listening.Wait()
	}
	filter := map[string]any{"notifications": map[string]any{tasking.TaskIDs: []string{id}}}
	listen, err := s.extended(req, mcp.MethodListen, strictjson.MustMarshal(filter))
	if err == nil {
		listening.Go(func() { _, _ = core.Serve(ctx, s.server.handler, listen, w, s.server.Logger) }) // without it, the task is polled
	}
	return w
}

// Notify implements [serving.Notifier].
func (w *taskWatch) Notify(_ context.Context, method string, params json.RawMessage) error {
	t := new(task)
	var ack mcp.AcknowledgedParams
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case method == mcp.NotificationAcknowledged && strictjson.Unmarshal(params, &ack) == nil:
		_, w.accepted = ack.Notifications.Extra[tasking.TaskIDs]
		return nil
	case method != tasking.NotificationTask || strictjson.Unmarshal(params, t) != nil || t.TaskID != w.id:
		return nil
	}
	w.latest = t
	if w.hook != nil {
		w.hook(t)
	}
	select {
	case w.changed <- struct{}{}:
	default:
	}
	return nil
}

// onChange calls fn with each change of the task after t, until the returned function is
// called. Changes before t may be announced later and are ignored.
func (w *taskWatch) onChange(t *task, fn func(*task)) (remove func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hook = func(now *task) {
		if now.LastUpdatedAt.After(t.LastUpdatedAt) {
			fn(now)
		}
	}
	if w.latest != nil {
		w.hook(w.latest)
	}
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.hook = nil
	}
}

// Polling intervals: the default, the limits for the interval requested by a server, and
// the minimum if changes are announced.
const (
	defaultPoll = time.Second
	minPoll     = 20 * time.Millisecond
	maxPoll     = time.Minute
	seldom      = 15 * time.Second
)

// wait returns when the task may have changed.
func (w *taskWatch) wait(ctx context.Context, t *task) error {
	interval := defaultPoll
	if t.PollIntervalMs != nil {
		interval = time.Duration(min(max(*t.PollIntervalMs, minPoll.Milliseconds()), maxPoll.Milliseconds())) * time.Millisecond
	}
	w.mu.Lock()
	if w.accepted {
		interval = max(interval, seldom)
	}
	w.mu.Unlock()
	select {
	case <-w.changed:
		return nil
	case <-time.After(interval):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
