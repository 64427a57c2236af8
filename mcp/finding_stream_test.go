// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcpstdio"
)

// hasty is a stream whose peer sends its next request when it has the answer to the one
// before, which is before the server knows that it was written.
type hasty struct {
	next     chan []byte
	requests []string
	answers  []string
}

func (h *hasty) Read(context.Context) ([]byte, error) {
	message, ok := <-h.next
	if !ok {
		return nil, io.EOF
	}
	return message, nil
}

func (h *hasty) Write(_ context.Context, message []byte) error {
	h.answers = append(h.answers, string(message))
	if len(h.answers) < len(h.requests) {
		h.next <- []byte(h.requests[len(h.answers)]) // returns when it is read
		return nil
	}
	close(h.next)
	return nil
}

func (h *hasty) Close() error { return nil }

// Mutation 21: a client that has an answer may use its id again.
func TestFindingM21IDAfterItsAnswer(t *testing.T) {
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hasty{next: make(chan []byte)}
				h.requests = append(h.requests, era.open[:min(1, len(era.open))]...) // the handshake has no answer to its end
				for range 3 {
					h.requests = append(h.requests, era.request("5", "tools/call", `"name":"hello"`))
				}
				go func() { h.next <- []byte(h.requests[0]) }()
				if err := mcpstdio.ServeStream(t.Context(), hello(), h, nil); err != nil {
					t.Error(err)
				}
				for _, answer := range h.answers {
					if strings.Contains(answer, `"error"`) {
						t.Errorf("got %s", answer)
					}
				}
			})
		})
	}
}

// Mutation 23: a client that has no more to say answers no question. Who waits for that
// does not hold up the end.
func TestFindingM23QuestionAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			_, err := mcp.Elicit[yes](ctx, "k", "Sure?")
			return "done", err
		}, nil))
		p := newPeer(t, mux, eras[1])
		p.send(eras[1].request("1", "tools/call", `"name":"ask"`))
		if question := p.receive(); !strings.Contains(question, mcp.MethodElicit) {
			t.Fatalf("got %s", question)
		}
		begin := time.Now()
		said := p.finish()
		if took := time.Since(begin); took > time.Second {
			t.Errorf("the end took %v", took)
		}
		if len(said) == 0 || !strings.Contains(fmt.Sprint(said), `"id":1`) {
			t.Errorf("the call was not answered: %q", said)
		}
	})
}
