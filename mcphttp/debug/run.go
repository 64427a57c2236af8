// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-psi/psi/mcp"
)

// Limits on the calls made from the page.
const (
	maxCalls    = 16               // in flight: a person looks at no more
	callTimeout = 10 * time.Minute // of one call, including the time that the user needs to answer its questions
	maxRuns     = 64               // runs that are remembered
	maxLogs     = 200              // log messages of one run
	maxResult   = 8 << 20          // bytes of one result
)

// A run is a call made from the page.
type run struct {
	id, method, name string
	params           json.RawMessage
	start            time.Time
	changed          func() // announces a change of the run
	cancel           context.CancelCauseFunc
	done             chan struct{}

	mu        sync.Mutex
	progress  *mcp.ProgressParams
	logs      []string
	questions []*question // that are waiting for an answer
	asked     int         // so far
	duration  time.Duration
	result    mcp.Result
	err       error
}

// A question is a request of the handler for user input during a run.
type question struct {
	number  int
	method  string
	message string // for sampling, the params as JSON
	url     string
	fields  []field
	schema  json.RawMessage
	answer  chan answer // with capacity 1
}

// An answer is the answer of the page's user to a question.
type answer struct {
	action  string
	content json.RawMessage
	text    string // for sampling
}

// runs are the calls made from the page. If there are more than maxRuns, the oldest completed run
// is dropped.
type runs struct {
	mu    sync.Mutex
	byID  map[string]*run
	order []*run
}

// add adds a run. It returns an error if too many runs are in flight.
func (rs *runs) add(r *run) error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	underWay := 0
	for _, other := range rs.order {
		if !other.isDone() {
			underWay++
		}
	}
	if underWay >= maxCalls {
		return failure{429, fmt.Sprintf("%d calls of this page are under way; cancel one first", underWay)}
	}
	rs.byID[r.id] = r
	rs.order = append(rs.order, r)
	for i := 0; len(rs.order) > maxRuns && i < len(rs.order); i++ {
		if old := rs.order[i]; old.isDone() {
			delete(rs.byID, old.id)
			rs.order = append(rs.order[:i:i], rs.order[i+1:]...)
			break
		}
	}
	return nil
}

func (rs *runs) find(id string) (*run, error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.byID[id]; r != nil {
		return r, nil
	}
	return nil, failure{404, "this call is unknown or no longer kept: the server was restarted, or there were many others"}
}

// all returns the runs, most recent first.
func (rs *runs) all() []*run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	all := make([]*run, 0, len(rs.order))
	for _, r := range slices.Backward(rs.order) {
		all = append(all, r)
	}
	return all
}

func (r *run) isDone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// start starts a call, which continues after the request for the page has ended.
func (p *page) start(caller *mcp.Principal, method, name string, params any) (*run, error) {
	raw, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	r := &run{
		id: rand.Text(), method: method, name: name, params: raw, start: time.Now(), cancel: cancel, done: make(chan struct{}),
		changed: func() { p.attention.announce(eventRuns) },
	}
	if err := p.runs.add(r); err != nil {
		cancel(nil)
		return nil, err
	}
	go r.serve(ctx, p, caller) // until it is done or cancelled, or CallTimeout has passed
	return r, nil
}

// serve makes the call.
func (r *run) serve(ctx context.Context, p *page, caller *mcp.Principal) {
	defer r.cancel(nil)
	ctx, stop := context.WithTimeoutCause(ctx, callTimeout, fmt.Errorf("the call took longer than %v", callTimeout))
	defer stop()
	res, err := r.call(ctx, p, caller)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if size := sizeOf(res); size > maxResult {
		res, err = nil, fmt.Errorf("the call succeeded, but its result has %d bytes; the page shows %d at most", size, maxResult)
	}
	r.mu.Lock()
	r.result, r.err, r.duration, r.questions = res, err, time.Since(r.start), nil
	r.mu.Unlock()
	close(r.done)
	r.changed()
}

// sizeOf returns the size of a result as JSON, or 0 if there is none.
func sizeOf(res mcp.Result) int {
	if res == nil {
		return 0
	}
	raw, err := mcp.MarshalResult(res)
	if err != nil {
		return 0 // it is not shown
	}
	return len(raw)
}

func (r *run) call(ctx context.Context, p *page, caller *mcp.Principal) (mcp.Result, error) {
	conn, err := p.connect(ctx, caller, false, r)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	req, err := mcp.NewRequest(r.method, r.params)
	if err != nil {
		return nil, err
	}
	return conn.Do(mcp.WithLog(mcp.WithProgress(ctx, r.report), mcp.LoggingLevelDebug, r.log), req)
}

// report records progress.
func (r *run) report(p *mcp.ProgressParams) {
	r.mu.Lock()
	r.progress = p
	r.mu.Unlock()
	r.changed()
}

// answerBy lets the user of the page answer the questions of the handler.
func (r *run) answerBy(o *mcp.ClientOptions) {
	o.Elicit, o.ElicitURL = r.elicit, r.elicit
	o.Sample = r.sample
}

// log records a log message.
func (r *run) log(p *mcp.LoggingMessageParams) {
	data, err := json.Marshal(p.Data)
	if err != nil {
		return
	}
	r.mu.Lock()
	if len(r.logs) < maxLogs {
		r.logs = append(r.logs, clip(string(p.Level)+" "+textOf(data), maxError))
	}
	r.mu.Unlock()
	r.changed()
}

func (r *run) elicit(ctx context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	q := &question{method: mcp.MethodElicit, message: p.Message, url: p.URL, schema: p.RequestedSchema, fields: questionOf(p.RequestedSchema)}
	a, err := r.ask(ctx, q)
	if err != nil {
		return nil, err
	}
	return &mcp.ElicitResult{Action: a.action, Content: a.content}, nil
}

// sample lets the user of the page answer in place of a model.
func (r *run) sample(ctx context.Context, _ *mcp.Conn, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
	raw, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	a, err := r.ask(ctx, &question{method: mcp.MethodCreateMessage, message: string(raw)})
	switch {
	case err != nil:
		return nil, err
	case a.action != "accept":
		return nil, errors.New("the user of the debug page declined to answer for the model")
	}
	return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Content: mcp.SamplingContent{mcp.Text(a.text)}, Model: "the user of the debug page", StopReason: "endTurn"}, nil
}

// ask waits for the answer to a question.
func (r *run) ask(ctx context.Context, q *question) (answer, error) {
	q.answer = make(chan answer, 1)
	r.mu.Lock()
	r.asked++
	q.number = r.asked
	r.questions = append(r.questions, q)
	r.mu.Unlock()
	r.changed()
	select {
	case a := <-q.answer:
		return a, nil
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
}

// reply answers a pending question and removes it. It returns an error if the question is no
// longer pending.
func (r *run) reply(number int, a func(*question) (answer, error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, q := range r.questions {
		if q.number != number {
			continue
		}
		given, err := a(q)
		if err != nil {
			return err
		}
		q.answer <- given
		r.questions = append(r.questions[:i:i], r.questions[i+1:]...)
		return nil
	}
	return failure{409, "this question no longer waits for an answer"}
}
