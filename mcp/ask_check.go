// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"errors"
)

// checkAnswer returns an error if answer cannot be the answer to q, whose key is given. The
// error says what is wrong. Declining is an answer.
func checkAnswer(ctx context.Context, key string, q InputRequest, answer json.RawMessage) error {
	switch q.Method {
	case MethodCreateMessage:
		return decodeAnswer(key, answer, new(CreateMessageResult))
	case MethodListRoots:
		return decodeAnswer(key, answer, new(ListRootsResult))
	case MethodElicit:
		return checkForm(ctx, key, q.Params, answer)
	}
	return nil
}

func checkForm(ctx context.Context, key string, params, answer json.RawMessage) error {
	given, err := acceptElicit(key, answer)
	if errors.Is(err, ErrDeclined) || errors.Is(err, ErrCancelled) {
		return nil
	}
	var p ElicitParams
	if err != nil || decode(params, &p) != nil {
		return err
	}
	form, err := compileForm(&p)
	if form == nil || err != nil {
		return nil //nolint:nilerr // the handler has made the form: it knows what it accepts
	}
	_, err = fillForm(ctx, form, given.Content)
	return err
}
