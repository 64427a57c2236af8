// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
)

// A call that asks questions can complete while its replica shuts down, because answers are
// still accepted.
func TestShutdownTakesAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(t, tools(), nil)
		s := serve(t, handler)
		h := s.open("2025-11-25")
		asking := read(t, s.post(call(1, "ask"), h))
		first := asking.message()
		ended := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			ended <- handler.Shutdown(ctx)
		}()
		synctest.Wait()
		var question struct{ ID string }
		if err := json.Unmarshal([]byte(first), &question); err != nil {
			t.Fatal(err)
		}
		res := s.post(`{"jsonrpc":"2.0","id":"`+question.ID+`","result":{"action":"decline"}}`, h)
		if res.StatusCode != http.StatusAccepted {
			t.Errorf("the answer to a question is refused with %d", res.StatusCode)
		}
		if err := <-ended; err != nil {
			t.Errorf("Shutdown: %v", err)
		}
	})
}

// While Shutdown waits for a request, only messages that help the request to complete are
// accepted.
func TestShutdownAcceptsHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		h := newHandler(t, mux, nil)
		s := serve(t, h)
		session := s.open("2025-11-25")
		asking := read(t, s.post(call(1, "ask"), session))
		id := questionID(t, asking.message())
		over := make(chan error, 1)
		go func() { over <- h.Shutdown(context.Background()) }()
		synctest.Wait()
		note := func(method string) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"requestId":99,"progressToken":1,"progress":1}}`, method)
		}
		for _, c := range []struct {
			body   string
			header header
			status int
		}{
			{note("notifications/progress"), session, 503},
			{note("notifications/initialized"), session, 503},
			{strings.Replace(note("notifications/cancelled"), `"method"`, `"id":7,"method"`, 1), session, 503},
			{call(2, "hello"), session, 503},
			{`{`, session, 503},
			{note("notifications/cancelled"), nil, 503},
			{note("notifications/cancelled"), with(session, header{"Mcp-Session-Id": "other"}), 503},
			{note("notifications/cancelled"), session, 202},
			{answer(id, `{"action":"decline"}`), session, 202},
		} {
			if got := s.post(c.body, c.header).StatusCode; got != c.status {
				t.Errorf("%s of %v: got %d, want %d", c.body, c.header, got, c.status)
			}
		}
		if err := within(t, time.Minute, "the end of Shutdown", over); err != nil && !errors.Is(err, mcp.ErrClosed) {
			t.Error(err)
		}
		s.close()
	})
}
