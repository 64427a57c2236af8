// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

var _ = flag.Bool("update", false, "rewrite the golden files")

// recordGreeting records a call of the tool greet.
func recordGreeting(t *testing.T, name string) []byte {
	t.Helper()
	mux := mcp.NewMux("greeter", "v1.0.0", nil)
	mux.Tool("greet", mcp.ToolFunc(greet, nil))
	var recorded bytes.Buffer
	c := mcptest.Dial(t, mcptest.Record(mcp.InProcess(mux), &recorded), nil)
	if _, err := mcp.Call[string](t.Context(), c, "greet", map[string]string{"name": name}); err != nil {
		t.Error(err)
	}
	return recorded.Bytes()
}

// A failedTest is a testing.TB that collects error messages.
type failedTest struct {
	testing.TB
	errors []string
}

func (f *failedTest) Errorf(format string, args ...any) {
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

// setUpdate sets the flag -update until the test ends.
func setUpdate(t *testing.T, value string) {
	t.Helper()
	before := flag.Lookup("update").Value.String()
	t.Cleanup(func() { _ = flag.Set("update", before) })
	if err := flag.Set("update", value); err != nil {
		t.Fatal(err)
	}
}

// A golden file is written with -update and compared without it. With -update, it is
// rewritten only if there is a difference.
func TestGolden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "testdata", "greet.jsonl")
	golden := func(recorded []byte) string {
		failed := &failedTest{TB: t}
		mcptest.Golden(failed, file, recorded, nil)
		return strings.Join(failed.errors, "\n")
	}
	ada, bob := recordGreeting(t, "Ada"), recordGreeting(t, "Bob")
	setUpdate(t, "false")
	if got := golden(ada); !strings.Contains(got, "run the test with -update to write the file") {
		t.Errorf("without a file: %q", got)
	}
	setUpdate(t, "true")
	if got := golden(ada); got != "" {
		t.Error(got)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	again := recordGreeting(t, "Ada")
	if got := golden(again); got != "" {
		t.Error(got)
	}
	if unchanged, err := os.ReadFile(file); err != nil || !bytes.Equal(unchanged, written) {
		t.Errorf("a file was written again in which only times differ (%v)", err)
	}
	setUpdate(t, "false")
	if got := golden(again); got != "" {
		t.Error(got)
	}
	if got := golden(bob); !strings.Contains(got, `line 3 and 3: message.params.arguments.name: got "Bob", want "Ada"`) {
		t.Errorf("another conversation: %q", got)
	}
}
