// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
)

// rounds sends a request, and sends it again with the answers as often as the
// server asks: what this client has functions for it answers, the rest is the
// question of whoever sent the request.
func (c *Conn) rounds(ctx context.Context, req *Request) (Result, error) {
	if req.Method == MethodListen {
		return c.era.listen(ctx, req)
	}
	ctx = increasing(ctx)
	for range c.client.opts.MaxRounds {
		res, err := c.era.send(ctx, req)
		asked, ok := res.(*InputRequired)
		if err != nil || !ok || c.client.opts.ManualInput || !c.answersAll(asked) {
			return res, err
		}
		resume := PauseTimeout(ctx)
		answers, err := c.answerAll(ctx, asked)
		resume()
		if err != nil {
			return nil, err
		}
		if req, err = req.answered(answers, asked.RequestState); err != nil {
			return nil, err
		}
	}
	return nil, Errorf(CodeInternalError, "the server asked in %d rounds without coming to an end", c.client.opts.MaxRounds)
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

// answerAll answers the questions at once. A question that cannot be answered
// fails the call: there is no way to tell the server (client/sampling).
func (c *Conn) answerAll(ctx context.Context, asked *InputRequired) (map[string]json.RawMessage, error) {
	if len(asked.InputRequests) == 0 {
		return nil, nil
	}
	var (
		mu      sync.Mutex
		wg      sync.WaitGroup
		answers = map[string]json.RawMessage{}
		failed  error
	)
	for key, q := range asked.InputRequests {
		wg.Go(func() {
			answer, err := c.answer(ctx, q)
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
