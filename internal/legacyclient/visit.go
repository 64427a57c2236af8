// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient

import (
	"encoding/json"
	"strconv"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp/transport"
)

// visitsRequired translates the error of 2025-11-25 for a call that needs the user to visit
// pages first: the newest revision has questions for that. The answers have no meaning for
// the server, to which the call is repeated as it was. The error stays an error if there is no
// user to ask, or if the user refused in the previous round. The error says that the call had
// no effect, so the repeated call needs no state. A refusal is not answered with the same
// code, or the next hop would ask again.
func (s *session) visitsRequired(r *transport.Message, m *transport.Outgoing) *transport.Message {
	var data struct {
		Elicitations []json.RawMessage `json:"elicitations"`
	}
	if !s.conn.opts.MayAsk(m.Method) || strictjson.Unmarshal(r.Error.Data, &data) != nil || len(data.Elicitations) == 0 {
		return r
	}
	responses := jsonscan.Member(jsonscan.Member(m.Body, "params"), "inputResponses")
	result := inputRequired{ResultType: "input_required", InputRequests: map[string]inputRequest{}}
	for i, page := range data.Elicitations {
		if !jsonscan.IsObject(page) {
			return r
		}
		params := jsonscan.AppendMembers([]byte(`{"mode":"url"`), page, "mode")
		if !s.conn.opts.Forward && !s.conn.client.Answers(methodElicit, params) {
			return r
		}
		key := "visit" + strconv.Itoa(i)
		if answer := jsonscan.Member(responses, key); answer != nil && text(jsonscan.Member(answer, "action")) != "accept" {
			refused := *r.Error // under another code, or the next hop would ask again
			refused.Code, refused.Message = codeInternalError, "the user refused: "+r.Error.Message
			return &transport.Message{ID: r.ID, Error: &refused}
		}
		result.InputRequests[key] = inputRequest{methodElicit, params}
	}
	return &transport.Message{ID: r.ID, Result: strictjson.MustMarshal(&result)}
}
