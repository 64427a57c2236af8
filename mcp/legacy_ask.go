// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/pause"
)

// senderNotifier sends notifications as messages.
type senderNotifier struct{ out Sender }

func (n *senderNotifier) Notify(ctx context.Context, method string, params json.RawMessage) error {
	return n.out.Send(ctx, AppendNotification(nil, method, params))
}

// replay serves a request of the core. When the handler asks, the questions go
// to the client as requests, and the handler is called again with the answers,
// as the client of the modern era would call it.
func (l *Legacy) replay(ctx context.Context, req *Request, out Sender) (Result, error) {
	req.call.sender.out = out
	req.call.begin(ctx, &req.call.sender, false)
	defer req.call.finish()
	current := req
	for round := range l.opts.MaxRounds {
		res, err := serveSafely(ctx, l.handler, current, l.opts.Logger)
		asked, ok := res.(*InputRequired)
		if err != nil || !ok {
			return res, err
		}
		answers, err := l.ask(ctx, req, asked, out, round)
		if err != nil {
			return unanswered(ctx, req, err)
		}
		if current, err = req.answered(answers, asked.RequestState); err != nil {
			return nil, err
		}
	}
	return nil, Errorf(CodeInternalError, "the handler asked in %d rounds without coming to an end", l.opts.MaxRounds)
}

// unanswered is the outcome of a call whose question the client could not answer:
// for a tool, something that the model is told.
func unanswered(ctx context.Context, req *Request, err error) (Result, error) {
	if req.Method == MethodCallTool && ctx.Err() == nil {
		return ErrorResult("the client did not answer a question: " + asError(err).Message), nil
	}
	return nil, err
}

// answered is the request again, with what a client of the modern era adds when
// it repeats one.
func (r *Request) answered(answers map[string]json.RawMessage, state *string) (*Request, error) {
	raw := append([]byte{}, '{')
	raw = append(appendKey(raw, "inputResponses"), mustMarshal(answers)...)
	if state != nil {
		raw = append(appendKey(raw, "requestState"), mustMarshal(*state)...)
	}
	params := r.params.raw
	if params == nil {
		params = json.RawMessage("{}")
	}
	raw = appendMembersBut(raw, params, []string{"inputResponses", "requestState"})
	c := r.Clone()
	err := c.setParams(raw)
	return c, err
}

// ask asks all questions at once, or none if there is one that the client cannot be
// asked. Without a question, only time can help.
func (l *Legacy) ask(ctx context.Context, req *Request, asked *InputRequired, out Sender, round int) (map[string]json.RawMessage, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if l.opts.AskTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, l.opts.AskTimeout, Errorf(CodeInternalError, "no answer within %v", l.opts.AskTimeout))
		defer cancel()
	}
	if len(asked.InputRequests) == 0 {
		return nil, pause.For(ctx, min(10*time.Millisecond<<min(round, 7), time.Second))
	}
	if err := checkQuestions(req, asked.InputRequests); err != nil {
		return nil, err
	}
	return l.askAll(ctx, asked.InputRequests, out)
}

func (l *Legacy) askAll(ctx context.Context, questions map[string]InputRequest, out Sender) (map[string]json.RawMessage, error) {
	var (
		mu       sync.Mutex
		wg       sync.WaitGroup
		answers  = map[string]json.RawMessage{}
		problems = map[string]error{}
	)
	for key, q := range questions {
		wg.Go(func() {
			answer, err := l.askOne(ctx, out, q)
			mu.Lock()
			defer mu.Unlock()
			answers[key] = answer
			if err != nil {
				problems[key] = err
			}
		})
	}
	wg.Wait()
	for _, key := range slices.Sorted(maps.Keys(problems)) {
		return nil, problems[key]
	}
	return answers, nil
}

func (l *Legacy) askOne(ctx context.Context, out Sender, q InputRequest) (json.RawMessage, error) {
	l.mu.Lock()
	era := l.era
	l.asked++
	id := fmt.Sprintf("elicitation-%d", l.asked)
	l.mu.Unlock()
	q, err := era.question(q, id)
	if err != nil {
		return nil, err
	}
	return l.roundTrip(ctx, out, q.Method, q.Params)
}

// roundTrip sends a request to the client and waits for its answer. The error is
// an [*Error] if it comes from the client.
func (l *Legacy) roundTrip(ctx context.Context, out Sender, method string, params json.RawMessage) (json.RawMessage, error) {
	id, answer := l.expect()
	defer l.forget(id)
	if err := out.Send(ctx, encodeRequest(id, method, params)); err != nil {
		return nil, err
	}
	select {
	case r := <-answer:
		if r.Error != nil {
			return nil, r.Error
		}
		return r.Result, nil
	case <-ctx.Done():
		l.withdraw(ctx, out, id)
		return nil, context.Cause(ctx)
	case <-l.Context().Done():
		return nil, ErrClosed
	case <-l.gone:
		return nil, ErrClosed
	}
}

// withdraw tells the client, if it can be told, that its answer is of no use any
// more.
func (l *Legacy) withdraw(ctx context.Context, out Sender, id ID) {
	params := mustMarshal(&CancelledParams{RequestID: id, Reason: "the request that asked has ended"})
	_ = out.Send(context.WithoutCancel(ctx), AppendNotification(nil, NotificationCancelled, params))
}

func (l *Legacy) expect() (ID, chan *Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	// A part of the session's id keeps an answer that comes late from answering what
	// another session asks.
	id := StringID(fmt.Sprintf("psi-%s%d", l.opts.ID[:min(len(l.opts.ID), 10)], l.asked))
	answer := make(chan *Response, 1)
	if l.questions == nil {
		l.questions = map[ID]chan *Response{}
	}
	l.questions[id] = answer
	return id, answer
}

func (l *Legacy) forget(id ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.questions, id)
}

// answered takes a response to a question; late and unknown ones are dropped.
func (l *Legacy) answered(r *Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if answer := l.questions[r.ID]; answer != nil {
		delete(l.questions, r.ID)
		answer <- r
	}
}
