// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
)

// Bounds on questions about one request, in both eras and on both sides: how often, how
// many at once, and how many are put to the user or the model at the same time.
const (
	maxRounds    = 32
	maxQuestions = 16
	maxAsking    = 4
)

// rounds sends a request, and sends it again with the answers as often as the
// server asks: what this client has functions for it answers, the rest is the
// question of whoever sent the request.
func (c *Conn) rounds(ctx context.Context, req *Request) (Result, error) {
	if req.Method == MethodListen {
		return c.era.listen(ctx, req)
	}
	ctx = withIncreasingProgress(ctx)
	for range c.client.opts.MaxRounds {
		res, err := c.era.send(ctx, req)
		asked, ok := res.(*InputRequired)
		if err != nil || !ok {
			return res, err
		}
		if err := c.checkAsked(req, asked); err != nil {
			return nil, err
		}
		if c.client.opts.ManualInput || !c.answersAll(asked) {
			return asked, nil
		}
		resume := PauseTimeout(ctx)
		answers, err := c.answerAll(ctx, asked)
		resume()
		if err != nil {
			return c.unanswered(ctx, req, err)
		}
		if req, err = req.answered(answers, asked.RequestState); err != nil {
			return nil, err
		}
	}
	return nil, Errorf(CodeInternalError, "the server asked in %d rounds without coming to an end", c.client.opts.MaxRounds)
}

// checkAsked checks what a server asks: neither too much at once nor, if the request
// was received, what its sender did not declare.
func (c *Conn) checkAsked(req *Request, asked *InputRequired) error {
	if n, most := len(asked.InputRequests), c.client.opts.MaxQuestions; n > most {
		return Errorf(CodeInternalError, "the server asked %d questions at once; ClientOptions.MaxQuestions is %d", n, most)
	}
	if req.peer.caps == nil || !c.client.opts.Forward || c.answersAll(asked) {
		return nil
	}
	for _, key := range sortedKeys(asked.InputRequests) {
		if err := checkCapability(req, asked.InputRequests[key]); err != nil {
			return err
		}
	}
	return nil
}

// answersAll reports whether there is a function for every question.
func (c *Conn) answersAll(asked *InputRequired) bool {
	for _, q := range asked.InputRequests {
		if !c.client.answers(q) {
			return false
		}
	}
	return true
}

// answerAll answers the questions, a few at the same time. A question that cannot be
// answered fails the call, and those that were not begun are not put any more: there is
// no way to tell the server (client/sampling).
func (c *Conn) answerAll(ctx context.Context, asked *InputRequired) (map[string]json.RawMessage, error) {
	var (
		mu      sync.Mutex
		wg      sync.WaitGroup
		answers = map[string]json.RawMessage{}
		failed  error
		free    = make(chan struct{}, maxAsking)
	)
	for _, key := range sortedKeys(asked.InputRequests) {
		free <- struct{}{}
		mu.Lock()
		enough := failed != nil
		mu.Unlock()
		if enough {
			break
		}
		wg.Go(func() {
			defer func() { <-free }()
			answer, err := c.answer(ctx, asked.InputRequests[key])
			mu.Lock()
			defer mu.Unlock()
			answers[key] = answer
			if err != nil && failed == nil {
				failed = err
			}
		})
	}
	wg.Wait()
	return answers, failed
}

// unanswered is the outcome of a call whose question this client could not answer. It
// is that of the legacy era, where the server learns of it and makes a failed result of
// a tool. A question that is a mistake of the server's is an error.
func (c *Conn) unanswered(ctx context.Context, req *Request, err error) (Result, error) {
	if c.ctx.Err() != nil {
		return nil, context.Cause(c.ctx)
	}
	if _, bad := errors.AsType[badQuestionError](err); bad {
		return nil, err
	}
	return unanswered(ctx, req, err)
}

// unavailable is what the sender of a request is told that this connection passed on,
// if it failed for another reason than an error of the server.
func unavailable(ctx context.Context, err error) error {
	if _, coded := errors.AsType[*Error](err); coded {
		return err
	}
	if cause := context.Cause(ctx); cause != nil && errors.Is(err, cause) {
		return cause // the sender is gone, or this program does not wait any longer
	}
	hidden := &Error{Code: CodeInternalError, Message: "the server behind this one is not available", Cause: err}
	if _, timeout := errors.AsType[*TimeoutError](err); timeout {
		hidden.Message = "the server behind this one did not answer in time"
	}
	return hidden
}
