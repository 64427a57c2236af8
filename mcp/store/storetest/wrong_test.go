// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package storetest_test

import (
	"bytes"
	"os"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/store/storetest"
)

// wrongStores maps faults that an adapter could have to stores with that fault and the
// tests that must detect it.
var wrongStores = map[string]struct {
	refusedBy string
	newStore  func(*store.Memory) store.Store
}{
	"expires values at once":              {"ValuesExpire", func(m *store.Memory) store.Store { return expiresAtOnce{m} }},
	"rounds TTLs down to seconds":         {"ValuesExpire", func(m *store.Memory) store.Store { return roundsDown{m} }},
	"counts versions from one again":      {"ValuesExpire", func(m *store.Memory) store.Store { return &countsVersions{Memory: m} }},
	"expires values when Get sees them":   {"ValuesExpireUnseen", func(m *store.Memory) store.Store { return &expiresLazily{Memory: m} }},
	"refuses large values":                {"ValuesLarge", func(m *store.Memory) store.Store { return refusesLarge{m} }},
	"refuses messages of four kilobytes":  {"TopicsLarge", func(m *store.Memory) store.Store { return refusesLarge{m} }},
	"takes steps with a done context":     {"DoneContext", func(m *store.Memory) store.Store { return ignoresContext{m} }},
	"receives with a done context":        {"TopicsCancel", func(m *store.Memory) store.Store { return receivesFirst{m} }},
	"ends subscriptions with Subscribe":   {"TopicsContextOfSubscribe", func(m *store.Memory) store.Store { return endsWithContext{m} }},
	"cuts names of topics":                {"TopicsNames", func(m *store.Memory) store.Store { return cutsNames{m} }},
	"closes all subscriptions of a topic": {"TopicsCloseOne", func(m *store.Memory) store.Store { return &closesAll{Memory: m} }},
	"delivers after Close":                {"TopicsCloseOne", func(m *store.Memory) store.Store { return deliversLate{m} }},
	"goes deaf and recovers":              {"Disturb", func(m *store.Memory) store.Store { return goesDeaf{m} }},
	"reports lost messages once":          {"TopicsSlowSubscriber", func(m *store.Memory) store.Store { return reportsOnce{m} }},
}

// wrongStore is the environment variable that names the wrong store for a child process to
// test.
const wrongStore = "PSI_WRONG_STORE"

func TestWrongStores(t *testing.T) {
	for name, wrong := range wrongStores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWrongStore$", "-test.timeout=1m")
			child.Env = append(os.Environ(), wrongStore+"="+name)
			out, err := child.CombinedOutput()
			if err == nil || !bytes.Contains(out, []byte("--- FAIL: TestWrongStore/"+wrong.refusedBy+" ")) || bytes.Contains(out, []byte("panic: ")) {
				t.Errorf("the store was not refused by %s: %s", wrong.refusedBy, out)
			}
		})
	}
}

// TestWrongStore tests one wrong store, in a separate process.
func TestWrongStore(t *testing.T) {
	wrong, ok := wrongStores[os.Getenv(wrongStore)]
	if !ok {
		t.Skip("it is for the child processes of TestWrongStores")
	}
	for name, test := range storetest.Tests() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, wrong.newStore(store.NewMemory(nil))) })
		})
	}
	t.Run("Disturb", func(t *testing.T) {
		storetest.Disturb(t, wrong.newStore(store.NewMemory(nil)), func() { <-time.After(50 * time.Millisecond) })
	})
}
