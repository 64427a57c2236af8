// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/async"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// maxRounds is how often the handler may ask a client during one request.
const maxRounds = 32

// replay serves a request of the newest revision. If the handler asks questions, replay
// sends them to the client as requests and calls the handler again with the answers, as a
// client of the newest revision would. One process seals, encodes and opens its own state
// here. That is the price of one mechanism: a handler tested in one revision is tested in
// all.
func (s *Session) replay(c *Call) (mcp.Result, error) {
	ctx, req := c.ctx, c.req
	current := req
	for round := range maxRounds {
		res, err := core.Serve(ctx, s.server.handler, current, c, s.server.Logger)
		asked, ok := res.(*mcp.InputRequired)
		if err != nil || !ok {
			return res, err
		}
		answers, err := s.ask(ctx, req, asked, c.out, round)
		if err != nil {
			core.Abandon(asked)
			return core.Unanswered(ctx, req, err)
		}
		if current, err = core.WithAnswers(req, answers, asked.RequestState); err != nil {
			return nil, err
		}
	}
	return nil, mcp.Errorf(mcp.CodeInternalError, "the handler asked in %d rounds without coming to an end", maxRounds)
}

// ask asks all questions concurrently, or none if the client cannot be asked one of them.
// If there are no questions, it waits, because the handler wants to be called again later.
func (s *Session) ask(ctx context.Context, req *mcp.Request, asked *mcp.InputRequired, out Sender, round int) (map[string]json.RawMessage, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if s.server.AskTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.server.AskTimeout, mcp.Errorf(mcp.CodeInternalError, "no answer within %v", s.server.AskTimeout))
		defer cancel()
	}
	if len(asked.InputRequests) == 0 {
		return nil, async.Sleep(ctx, async.Backoff(10*time.Millisecond, time.Second, round))
	}
	if err := core.CheckQuestions(req, asked.InputRequests); err != nil {
		return nil, err
	}
	return s.askAll(ctx, req, asked.InputRequests, out)
}

// askAll asks each question in its own goroutine and waits for all of them. If several
// fail, it returns the error with the smallest key.
func (s *Session) askAll(ctx context.Context, req *mcp.Request, questions map[string]mcp.InputRequest, out Sender) (map[string]json.RawMessage, error) {
	var (
		mu       sync.Mutex
		wg       sync.WaitGroup
		answers  = map[string]json.RawMessage{}
		problems = map[string]error{}
	)
	for key, q := range questions {
		wg.Go(func() {
			answer, err := s.askSafely(ctx, req, out, q)
			mu.Lock()
			defer mu.Unlock()
			answers[key] = answer
			if err != nil {
				problems[key] = err
			}
		})
	}
	wg.Wait()
	if len(problems) > 0 {
		return nil, problems[slices.Min(slices.Collect(maps.Keys(problems)))]
	}
	return answers, nil
}

// askSafely is like askOne, and recovers from a panic of out, which may write to what belongs
// to the application.
func (s *Session) askSafely(ctx context.Context, req *mcp.Request, out Sender, q mcp.InputRequest) (answer json.RawMessage, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = core.Panicked(ctx, req, v, s.server.Logger)
		}
	}()
	return s.askOne(ctx, out, q)
}

func (s *Session) askOne(ctx context.Context, out Sender, q mcp.InputRequest) (json.RawMessage, error) {
	s.mu.Lock()
	t := translation{s.rev}
	s.asked++
	id := fmt.Sprintf("elicitation-%d", s.asked)
	s.mu.Unlock()
	q, err := t.question(q, id)
	if err != nil {
		return nil, err
	}
	return s.roundTrip(ctx, out, q.Method, q.Params)
}

// Ping sends a ping on the standalone stream. It returns nil if the client responds, even
// with an error.
func (s *Session) Ping(ctx context.Context) error {
	out := s.standaloneSender()
	if out == nil {
		return mcp.ErrNotDelivered
	}
	_, err := s.roundTrip(ctx, out, revision.Ping, nil)
	if _, refused := errors.AsType[*mcp.Error](err); refused {
		return nil
	}
	return err
}

// roundTrip sends a request to the client and waits for the response. If the client
// responds with an error, roundTrip returns it as an [*mcp.Error].
func (s *Session) roundTrip(ctx context.Context, out Sender, method string, params json.RawMessage) (json.RawMessage, error) {
	if out == nil {
		return nil, mcp.ErrNotDelivered
	}
	id, answer := s.registerQuestion()
	defer s.forget(id)
	if err := out.Send(ctx, transport.AppendRequest(nil, id, method, params)); err != nil {
		return nil, err
	}
	select {
	case m, ok := <-answer:
		if !ok {
			return nil, mcp.ErrClosed
		}
		if m.Error != nil {
			return nil, &mcp.Error{Code: m.Error.Code, Message: m.Error.Message, Data: m.Error.Data}
		}
		return m.Result, nil
	case <-ctx.Done():
		s.withdraw(ctx, out, id)
		return nil, context.Cause(ctx)
	case <-s.Done():
		return nil, mcp.ErrClosed
	}
}

// withdrawTime limits how long a client that does not read can delay the end of a request.
const withdrawTime = time.Second

// withdraw tells the client that its answer is no longer needed. It ignores errors, because
// the client may be gone.
func (s *Session) withdraw(ctx context.Context, out Sender, id mcp.ID) {
	params := strictjson.MustMarshal(&mcp.CancelledParams{RequestID: id, Reason: "the request that asked has ended"})
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTime)
	defer cancel()
	_ = out.Send(ctx, transport.AppendNotification(nil, mcp.NotificationCancelled, params))
}

// registerQuestion returns a new question id and the channel that receives the response. The channel
// is closed if there will be no response.
func (s *Session) registerQuestion() (mcp.ID, chan transport.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	id := mcp.StringID(fmt.Sprintf("%s%d", cmp.Or(s.details.QuestionPrefix, "psi-"), s.asked))
	answer := make(chan transport.Message, 1)
	if s.hungUp {
		close(answer)
		return id, answer
	}
	if s.questions == nil {
		s.questions = map[mcp.ID]chan transport.Message{}
	}
	s.questions[id] = answer
	return id, answer
}

func (s *Session) forget(id mcp.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.questions, id)
}

// handleAnswer handles the response to a question. Late and unknown responses are dropped.
func (s *Session) handleAnswer(m *transport.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer := s.questions[m.ID]; answer != nil {
		delete(s.questions, m.ID)
		answer <- *m
	}
}
