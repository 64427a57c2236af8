// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/recording"
	"github.com/go-psi/psi/mcp/transport"
)

// The program's own rules redact further secrets, in addition to those that are always
// redacted.
func TestRedaction(t *testing.T) {
	phone := regexp.MustCompile(`555-\d+`)
	for name, test := range map[string]struct {
		rules  *recording.Redaction
		hidden string // those of the three secrets that are redacted
	}{
		"none": {nil, "hunter2"},
		"name": {&recording.Redaction{Name: func(name string) bool { return name == "text" }}, "hunter2 555-1234"},
		"text": {&recording.Redaction{Text: func(text string) string { return phone.ReplaceAllString(text, "(phone)") }}, "hunter2 555-1234 555-99"},
	} {
		t.Run(name, func(t *testing.T) {
			var file lockedBuffer
			to := recording.NewRecorder(&file, &recording.RecorderOptions{Redaction: test.rules}).Transport(mcp.InProcess(newMux()))
			c, err := mcp.NewClient("call 555-99", "v1", nil).Connect(t.Context(), to)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			arguments := json.RawMessage(`{"text":"call 555-1234","password":"hunter2"}`)
			_, _ = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: arguments}) // may be rejected
			read(t, file.String())
			for _, secret := range []string{"hunter2", "555-1234", "555-99"} {
				if got, want := strings.Contains(file.String(), secret), !strings.Contains(test.hidden, secret); got != want {
					t.Errorf("whether %q is recorded: %t, want %t\n%s", secret, got, want, file.String())
				}
			}
		})
	}
}

// A recording with rules of its own is replayed with the same rules.
func TestReplayRedaction(t *testing.T) {
	rules := &recording.Redaction{Text: func(text string) string { return strings.ReplaceAll(text, "555-1234", "(phone)") }}
	call := func(to transport.Transport, text string) error {
		c, err := mcp.NewClient("c", "v1", nil).Connect(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = mcp.Call[any](t.Context(), c, "echo", map[string]any{"text": text})
		return err
	}
	var file lockedBuffer
	if err := call(recording.NewRecorder(&file, &recording.RecorderOptions{Redaction: rules}).Transport(mcp.InProcess(newMux())), "call 555-1234"); err != nil {
		t.Fatal(err)
	}
	for _, opts := range []*recording.ReplayOptions{{Redaction: rules}, nil} {
		replay := recording.NewReplay(read(t, file.String()), opts)
		if err := call(replay.Transport(), "call 555-1234"); (err == nil) != (opts != nil) {
			t.Errorf("with the options %+v: %v", opts, err)
		}
	}
}
