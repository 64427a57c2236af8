// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package hints_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/internal/hints"
)

// drain returns the messages from Next until the queue is closed. A loss is written as
// "...".
func drain(t *testing.T, q *hints.Queue) string {
	t.Helper()
	var all []string
	for {
		message, err := q.Next(t.Context())
		switch {
		case errors.Is(err, store.ErrOverflow):
			message = []byte("...")
		case errors.Is(err, store.ErrClosed):
			t.Fatal("the queue was closed before its end")
		case err != nil:
			t.Fatal(err)
		}
		if string(message) == "end" {
			return strings.Join(all, " ")
		}
		all = append(all, string(message))
	}
}

func TestQueueReportsLosses(t *testing.T) {
	for name, test := range map[string]struct {
		deliver string // messages a to e that arrive, and ! for a broken connection
		want    string
	}{
		"all":             {"abcde", "a b c d e"},
		"one is missing":  {"abde", "a b ... d e"},
		"sent again":      {"aabbcab", "a b c"},
		"out of order":    {"acbde", "a ... c d e"},
		"broken":          {"ab!!cde", "a b ... c d e"},
		"broken and lost": {"ab!de", "a b ... d e"},
		"first is later":  {"cd", "c d"},
	} {
		t.Run(name, func(t *testing.T) {
			var publisher hints.Publisher
			sent, q := map[rune][]byte{}, hints.NewQueue(10)
			for _, c := range "abcde" {
				data, err := publisher.Send("topic", []byte(string(c)), func([]byte) error { return nil })
				if err != nil {
					t.Fatal(err)
				}
				sent[c] = data
			}
			for _, c := range test.deliver {
				if c == '!' {
					q.Lose()
				} else {
					q.Put(sent[c])
				}
			}
			end, _ := new(hints.Publisher).Send("topic", []byte("end"), func([]byte) error { return nil })
			q.Put(end)
			if got := drain(t, q); got != test.want {
				t.Errorf("received %q, want %q", got, test.want)
			}
		})
	}
}

func TestQueueOverflows(t *testing.T) {
	var publisher hints.Publisher
	q := hints.NewQueue(2)
	put := func(message string) {
		_, _ = publisher.Send("topic", []byte(message), func(data []byte) error { q.Put(data); return nil })
	}
	put("a")
	put("b")
	put("lost")
	if message, err := q.Next(t.Context()); string(message) != "a" || err != nil {
		t.Fatalf("Next: %q, %v", message, err)
	}
	put("lost, too: the report takes its place")
	_, _ = q.Next(t.Context())
	if _, err := q.Next(t.Context()); !errors.Is(err, store.ErrOverflow) {
		t.Fatalf("Next: %v, want ErrOverflow", err)
	}
	put("c")
	put("end")
	if got := drain(t, q); got != "c" {
		t.Errorf("received %q, want c", got)
	}
	if !q.Close() || q.Close() {
		t.Error("Close must return true once")
	}
	if _, err := q.Next(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Next after Close: %v, want ErrClosed", err)
	}
}
