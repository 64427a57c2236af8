// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/go-psi/psi/internal/replay"
	"github.com/go-psi/psi/mcp"
)

// maxQuestions bounds the number of questions of one task.
const maxQuestions = 512

// ask makes the task wait for answers. digests has the digests of the questions by the
// handler's keys; it is empty if the handler returned the questions itself. If there are no
// questions, the task stays working, because its handler wants to run again later.
func (r *record) ask(asked *mcp.InputRequired, digests map[string]string) {
	if r.Cancelled {
		r.setStatus(Cancelled, "")
		return
	}
	r.Used = slices.AppendSeq(r.Used, maps.Keys(r.Asked))
	r.Asked, r.State = map[string]question{}, asked.RequestState
	for key, q := range asked.InputRequests {
		r.Asked[r.publicKey(key)] = question{Key: key, Digest: digests[key], Request: q}
	}
	switch {
	case len(r.Used)+len(r.Asked) > maxQuestions:
		r.fail(nil, mcp.Errorf(mcp.CodeInternalError, "the task asked more than %d questions", maxQuestions))
	case len(r.Asked) > 0:
		r.setStatus(InputRequired, "")
	}
}

// publicKey returns a key for a question that no other question of the task has had.
func (r *record) publicKey(key string) string {
	public := key
	for n := 2; ; n++ {
		if _, asked := r.Asked[public]; !asked && !slices.Contains(r.Used, public) {
			return public
		}
		public = fmt.Sprintf("%s-%d", key, n)
	}
}

// acceptAll stores the answers to open questions and reports whether there were any. If one
// of them does not fit its question, none is stored. Answers are validated here, because a
// failure in the handler would lose them.
func (r *record) acceptAll(ctx context.Context, answers map[string]json.RawMessage) (accepted bool, err error) {
	for public, answer := range answers {
		if q, ok := r.Asked[public]; ok && q.Answer == nil {
			if err := core.CheckAnswer(ctx, public, q.Request, answer); err != nil {
				return false, mcp.Errorf(mcp.CodeInvalidParams, "params.inputResponses[%q]: %s", public, core.AsError(err).Message)
			}
		}
	}
	for public, answer := range answers {
		accepted = r.accept(public, answer) || accepted
	}
	return accepted, nil
}

// accept stores an answer and reports whether the question was open.
func (r *record) accept(public string, answer json.RawMessage) bool {
	q, ok := r.Asked[public]
	if !ok || q.Answer != nil {
		return false
	}
	q.Answer = answer
	r.Asked[public] = q
	if q.Digest != "" {
		r.remember(replay.Memory{Answers: map[string]replay.Answer{q.Key: {Question: q.Digest, Answer: answer}}})
	}
	return true
}

// isAnswered reports whether all questions are answered.
func (r *record) isAnswered() bool {
	for _, q := range r.Asked {
		if q.Answer == nil {
			return false
		}
	}
	return true
}
