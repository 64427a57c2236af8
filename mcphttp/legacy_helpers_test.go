// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// pass lets time pass.
func pass(d time.Duration) { <-time.After(d) }

func messages(r *reader) <-chan string {
	next := make(chan string, 1)
	go func() { next <- r.message() }()
	return next
}

func questionID(t *testing.T, message string) string {
	t.Helper()
	var question struct{ ID string }
	if err := json.Unmarshal([]byte(message), &question); err != nil {
		t.Fatal(err)
	}
	return question.ID
}

func answer(id, result string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":%s}`, id, result)
}

func subscribe(uri string) string {
	return `{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"` + uri + `"}}`
}

func answersHello(t *testing.T, s *site, h header) int {
	t.Helper()
	res := whole(t, s.post(call(1, "hello"), h))
	if res.status == 200 && !strings.Contains(res.body, "hello") {
		t.Errorf("the answer is %s", res.body)
	}
	return res.status
}
