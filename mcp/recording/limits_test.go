// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/recording"
	"github.com/go-psi/psi/mcp/transport"
)

const line = `{"time":"2026-11-23T00:00:00Z","direction":"to-server","era":"modern","session":"1","message":{"jsonrpc":"2.0","id":1,"method":"ping"}}` + "\n"

// Invalid recordings, and ones that exceed the limits, are rejected with the line number.
func TestReadErrors(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want string
	}{
		"no JSON":            {line + "hello\n", "recording: line 2: it is not an entry of a recording"},
		"cut off":            {line + line[:60], "recording: line 2: it is not an entry of a recording"},
		"another type":       {`{"time":"2026-11-23T00:00:00Z","direction":7}`, "recording: line 1: it is not an entry of a recording: /direction must not be a JSON number"},
		"no direction":       {`{"time":"2026-11-23T00:00:00Z","message":{"jsonrpc":"2.0","method":"x"}}`, `recording: line 1: the direction is "", not "to-server" or "to-client"`},
		"no message":         {strings.Replace(line, "message", "massage", 1), "recording: line 1: it must have either a message or a failure"},
		"an invalid message": {strings.Replace(line, "2.0", "3.0", 1), "recording: line 1: "},
		"a long line":        {strings.Repeat("x", 32<<20+1), "recording: line 1: it is longer than 33554432 bytes"},
	} {
		if _, err := recording.Read(strings.NewReader(test.text)); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
	const large = "recording: line 4: the recording is larger than"
	if _, err := recording.ReadUpTo(strings.NewReader(line+"\n"+line+line), 2*len(line)); err == nil || !strings.HasPrefix(err.Error(), large) {
		t.Errorf("many lines: got %v, want %s", err, large)
	}
	rec, err := recording.ReadUpTo(strings.NewReader("\n"+line+"\n"), len(line))
	if err != nil || len(rec.Entries()) != 1 || rec.Entries()[0].Line != 2 {
		t.Errorf("a recording within the limits: %v, %v", rec, err)
	}
}

// A message that exceeds the limit is omitted, and a replay that reaches it reports that.
func TestMaxMessage(t *testing.T) {
	var file lockedBuffer
	recorder := recording.LimitMessages(recording.NewRecorder(&file, nil), 1000)
	echo := func(to transport.Transport, text string) error {
		c, err := mcp.NewClient("c", "v1", nil).Connect(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = mcp.Call[map[string]any](t.Context(), c, "echo", map[string]any{"text": text})
		return err
	}
	long := strings.Repeat("long ", 1000)
	if err := echo(recorder.Transport(mcp.InProcess(newMux())), long); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(file.String(), "long") {
		t.Error("a message over the limit is in the recording")
	}
	want := "line 3: the message was too long to be recorded"
	rec := read(t, file.String())
	if err := echo(recording.NewReplay(rec, nil).Transport(), long); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("as a server: got %v", err)
	}
	if err := recording.NewReplay(rec, nil).Drive(t.Context(), mcp.InProcess(newMux())); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("as a client: got %v", err)
	}
}

// A failingWriter fails every write and counts the writes.
type failingWriter struct{ calls int }

func (w *failingWriter) Write([]byte) (int, error) {
	w.calls++
	return 0, io.ErrShortWrite
}

// A write error ends the recording, but not the conversation.
func TestWriterFails(t *testing.T) {
	w := new(failingWriter)
	recorder := recording.NewRecorder(w, nil)
	c := mcptest.Dial(t, recorder.Transport(mcp.InProcess(newMux())), nil)
	if _, err := c.ListTools(t.Context(), nil); err != nil || !errors.Is(recorder.Err(), io.ErrShortWrite) || w.calls != 1 {
		t.Errorf("got %v, %v, %d writes", err, recorder.Err(), w.calls)
	}
}

// If a client departs from the recording, it gets an error that says where, in either mode.
// The replay reports the same error.
func TestClientDeparts(t *testing.T) {
	recorded, _ := record(t, mcptest.Paths()[0], mcp.LatestVersion)
	for _, test := range []struct {
		anyOrder bool
		do       func(ctx context.Context, c *mcp.Conn) error
		want     string
	}{
		{false, func(ctx context.Context, c *mcp.Conn) error { _, err := c.ListPrompts(ctx, nil); return err }, `line 3: method: got "prompts/list", want "tools/list"`},
		{true, func(ctx context.Context, c *mcp.Conn) error { _, err := c.ListPrompts(ctx, nil); return err }, `the client sends the request "prompts/list", which the recording does not have`},
		{true, func(ctx context.Context, c *mcp.Conn) error {
			_, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: []byte(`{"text":"other","password":"x"}`)})
			return err
		}, `: params.`},
	} {
		replay := recording.NewReplay(read(t, recorded), &recording.ReplayOptions{AnyOrder: test.anyOrder})
		opts := ada(mcp.LatestVersion)
		c, err := mcp.NewClient("ada", "v1", &opts).Connect(t.Context(), replay.Transport())
		if err != nil {
			t.Fatal(err)
		}
		err = test.do(t.Context(), c)
		if err == nil || !strings.Contains(err.Error(), test.want) || replay.Err() == nil || !strings.Contains(replay.Err().Error(), test.want) {
			t.Errorf("got %v and %v, want %s", err, replay.Err(), test.want)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	replay := recording.NewReplay(read(t, recorded), nil)
	for _, want := range []string{"", "recording: the client connects 2 times, and only 1 times in the recording"} {
		_, err := replay.Transport().Connect(t.Context(), func(*transport.Message) {})
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// Members that may differ are ignored.
func TestIgnore(t *testing.T) {
	recorded, _ := record(t, mcptest.Paths()[0], mcp.LatestVersion)
	other := strings.ReplaceAll(recorded, "Hello, Ada", "Goodbye, Ada")
	ignore := func(path string) bool { return strings.HasSuffix(path, ".content[0].text") }
	if err := recording.Compare(read(t, recorded), read(t, other), &recording.CompareOptions{Ignore: ignore}); err != nil {
		t.Error(err)
	}
	if recording.Compare(read(t, recorded), read(t, other), nil) == nil {
		t.Error("the difference is not found")
	}
	if err := recording.NewReplay(read(t, other), &recording.ReplayOptions{Ignore: ignore}).Drive(t.Context(), mcp.InProcess(newMux())); err != nil {
		t.Error(err)
	}
	shorter := strings.Join(strings.SplitAfter(recorded, "\n")[:4], "")
	for _, test := range [][3]string{
		{recorded, shorter, `recording: line 5: the other recording ends before the request "tools/list"`},
		{shorter, recorded, `recording: after the last line: the other recording continues with line 5, the request "tools/list"`},
	} {
		if err := recording.Compare(read(t, test[0]), read(t, test[1]), nil); err == nil || err.Error() != test[2] {
			t.Errorf("got %v, want %s", err, test[2])
		}
	}
}

// A message that is nested too deeply to be redacted is omitted, like one that is too long.
// The rest of the recording can be read.
func TestTooDeepMessage(t *testing.T) {
	var file lockedBuffer
	to := recording.NewRecorder(&file, nil).Transport(mcp.InProcess(newMux()))
	c, err := mcp.NewClient("c", "v1", nil).Connect(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	deep := json.RawMessage(`{"text":` + strings.Repeat("[", 126) + strings.Repeat("]", 126) + `}`)
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "echo", Arguments: deep}); err == nil {
		t.Fatal("a call whose arguments are too deep succeeds")
	}
	entries := read(t, file.String()).Entries()
	if sent := entries[len(entries)-2]; sent.Omitted < len(deep) {
		t.Errorf("the call is recorded as %s", sent.Message)
	}
}
