// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// messages reads all messages of a stream. A rejected message is represented by its error
// code.
func messages(t *testing.T, s transport.Stream) []string {
	t.Helper()
	var all []string
	for {
		m, err := s.Read(t.Context())
		var coded *transport.MessageError
		switch {
		case errors.Is(err, io.EOF):
			return all
		case errors.As(err, &coded):
			all = append(all, fmt.Sprint(coded.Code))
		case err != nil:
			t.Fatal(err)
		default:
			all = append(all, string(m))
		}
	}
}

// T5: byte order marks, carriage returns and blank lines are skipped.
func TestLines(t *testing.T) {
	const text = "\xef\xbb\xbf{\"a\":1}\r\n\n  \r\n\t{\"b\":2} \n{\"c\":3}"
	got := messages(t, mcpstdio.NewStream(strings.NewReader(text), io.Discard, nil))
	if want := `[{"a":1} {"b":2} {"c":3}]`; fmt.Sprint(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	// A mark anywhere else is not a byte order mark.
	got = messages(t, mcpstdio.NewStream(strings.NewReader("1\n\xef\xbb\xbf2\n"), io.Discard, nil))
	if want := "[1 \xef\xbb\xbf2]"; fmt.Sprint(got) != want {
		t.Errorf("got %q, want %q", fmt.Sprint(got), want)
	}
}

// T1: a line may be long. A line that is too long is an error, and the stream continues.
func TestLongLines(t *testing.T) {
	long := `"` + strings.Repeat("x", 10<<20) + `"`
	got := messages(t, mcpstdio.NewStream(strings.NewReader("1\n"+long+"\n2\n"), io.Discard, nil))
	if len(got) != 3 || got[1] != long || got[2] != "2" {
		t.Errorf("got %d messages", len(got))
	}
	endless := &mcpstdio.LineOptions{MaxMessage: -1}
	if got = messages(t, mcpstdio.NewStream(strings.NewReader("1\n"+long+"\n"), io.Discard, endless)); len(got) != 2 || got[1] != long {
		t.Errorf("without a limit: got %d messages", len(got))
	}
	text := "12345678\n123456789\n" + strings.Repeat("y", 1<<20) + "\n\n7\n" + strings.Repeat("z", 100)
	got = messages(t, mcpstdio.NewStream(strings.NewReader(text), io.Discard, &mcpstdio.LineOptions{MaxMessage: 8}))
	if want := "[12345678 -32600 -32600 7 -32600]"; fmt.Sprint(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// T3: messages that are written concurrently do not mix.
func TestConcurrentWrites(t *testing.T) {
	const writers, size = 100, 128 << 10
	r, w := io.Pipe()
	s := mcpstdio.NewStream(strings.NewReader(""), w, nil)
	messages(t, s) // at its end, the reader no longer flushes
	go func() {
		defer w.Close()
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				if err := s.Write(t.Context(), []byte(`"`+strings.Repeat(string(rune('a'+i%26)), size)+`"`)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}()
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 2*size)
	n := 0
	for lines.Scan() {
		n++
		var text string
		if err := json.Unmarshal(lines.Bytes(), &text); err != nil || text != strings.Repeat(text[:1], size) {
			t.Fatalf("line %d is mixed: %v", n, err)
		}
	}
	if n != writers {
		t.Errorf("got %d lines, %v", n, lines.Err())
	}
}

// writes records each Write.
type writes struct {
	mu  sync.Mutex
	all []string
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, string(p))
	return len(p), nil
}

func (w *writes) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("%q", w.all)
}

// Answers are buffered while another line waits, and written immediately otherwise. C-L11:
// in the bubble no time passes, so the flush timer does not fire.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out writes
		s := mcpstdio.NewStream(strings.NewReader("1\n2\n3\n"), &out, nil)
		for i := range 3 {
			if got := out.String(); got != "[]" {
				t.Errorf("written early: %s", got)
			}
			if _, err := s.Read(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.Write(t.Context(), fmt.Append(nil, i)); err != nil {
				t.Fatal(err)
			}
		}
		messages(t, s)
		if err := s.Write(t.Context(), []byte("last")); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != `["0\n1\n2\n" "last\n"]` {
			t.Errorf("wrote %s", got)
		}
	})
}

// Messages buffered until a line is answered are written even if there is no answer.
func TestFlushWithoutAnswer(t *testing.T) {
	in, feed := io.Pipe()
	got, out := io.Pipe()
	s := mcpstdio.NewStream(in, out, nil)
	go feed.Write([]byte("1\n2\n"))
	s.Read(t.Context())
	if err := s.Write(t.Context(), []byte("held back")); err != nil {
		t.Fatal(err)
	}
	s.Read(t.Context()) // for example a notification
	go s.Read(t.Context())
	if line, err := bufio.NewReader(got).ReadString('\n'); err != nil || line != "held back\n" {
		t.Errorf("got %q, %v", line, err)
	}
	feed.Close()
}

// Raw JSON that is passed on may contain line breaks; a message may not.
func TestNoLineBreaks(t *testing.T) {
	var out writes
	s := mcpstdio.NewStream(strings.NewReader(""), &out, nil)
	if err := s.Write(t.Context(), []byte("{\n\r\n\"a\":\n1}")); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(out.all, ""); got != "{   \"a\": 1}\n" {
		t.Errorf("got %q", got)
	}
}

// Two peers that write to each other concurrently, without buffers in between, do not block
// each other.
func TestBothWaysAtOnce(t *testing.T) {
	in1, out1 := io.Pipe()
	in2, out2 := io.Pipe()
	peers := []transport.Stream{mcpstdio.NewStream(in1, out2, nil), mcpstdio.NewStream(in2, out1, nil)}
	const writers, each = 4, 50
	message := []byte(`"` + strings.Repeat("x", 5000) + `"`)
	var wg sync.WaitGroup
	for _, p := range peers {
		for range writers {
			wg.Go(func() {
				for range each {
					if err := p.Write(t.Context(), message); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Go(func() {
			for range writers * each {
				if m, err := p.Read(t.Context()); err != nil || len(m) != len(message) {
					t.Errorf("got %d bytes, %v", len(m), err)
				}
			}
		})
	}
	wg.Wait()
}

func TestClose(t *testing.T) {
	var out writes
	closed := 0
	s := mcpstdio.NewStream(strings.NewReader("1\n2\n"), &out, &mcpstdio.LineOptions{Close: func() error { closed++; return io.ErrClosedPipe }})
	if _, err := s.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Write(t.Context(), []byte("held back"))
	if err := s.Close(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
	if err := s.Close(); err != nil || closed != 1 {
		t.Errorf("closed %d times, %v", closed, err)
	}
	if fmt.Sprint(out.all) != "[held back\n]" {
		t.Errorf("wrote %q", out.all)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// A write error is final, and is returned to every later writer.
func TestBrokenWriter(t *testing.T) {
	s := mcpstdio.NewStream(strings.NewReader(""), brokenWriter{}, nil)
	messages(t, s)
	for range 2 {
		if err := s.Write(t.Context(), []byte("x")); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("got %v", err)
		}
	}
}

func request(id int, method, members string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, id, method, members)
}

// server returns a server with a tool that echoes, and one that waits for release.
func server(release <-chan struct{}) *mcp.Mux {
	mux := mcp.NewMux("m", "v1", nil)
	mux.Tool("echo", mcp.ToolFunc(func(_ context.Context, in struct {
		Text string `json:"text"`
	}) (string, error) {
		return in.Text, nil
	}, nil))
	mux.Tool("wait", mcp.ToolFunc(func(context.Context, struct{}) (string, error) { <-release; return "waited", nil }, nil))
	return mux
}

// T4: requests before the end of the input are answered.
func TestServeDrains(t *testing.T) {
	const n = 20
	release := make(chan struct{})
	var in, out bytes.Buffer
	for i := range n {
		fmt.Fprintln(&in, request(i, "tools/call", `"name":"wait",`))
	}
	go func() {
		for range n {
			release <- struct{}{}
		}
	}()
	opts := &mcpstdio.Options{In: &in, Out: &out}
	if err := mcpstdio.Serve(t.Context(), server(release), opts); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "waited"); got != n {
		t.Errorf("got %d answers of %d", got, n)
	}
}

// T1: long messages pass in both directions, and one that is too long is answered.
func TestServeLongMessages(t *testing.T) {
	long := strings.Repeat("x", 10<<20)
	var in, out bytes.Buffer
	fmt.Fprintln(&in, request(1, "tools/call", `"name":"echo","arguments":{"text":"`+long+`"},`))
	fmt.Fprintln(&in, request(2, "tools/call", `"name":"echo","arguments":{"text":"`+long+long+`"},`))
	fmt.Fprintln(&in, request(3, "tools/call", `"name":"echo","arguments":{"text":"short"},`))
	opts := &mcpstdio.Options{In: &in, Out: &out, MaxMessage: 11 << 20}
	if err := mcpstdio.Serve(t.Context(), server(nil), opts); err != nil {
		t.Fatal(err)
	}
	var long1, refused, short bool
	for line := range strings.Lines(out.String()) {
		long1 = long1 || strings.Contains(line, long)
		refused = refused || strings.Contains(line, `"code":-32600`)
		short = short || strings.Contains(line, `"short"`)
	}
	if !long1 || !refused || !short {
		t.Errorf("long %t, refused %t, short %t", long1, refused, short)
	}
}

// A message that is too long fails the call that it answers, wherever its ID is. If it is a
// request, it is rejected with its ID. The stream continues.
func TestFindingW2TooLong(t *testing.T) {
	long := strings.Repeat(`x\"id\":1}`, 1<<14)
	for _, answer := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{"a":"` + long + `"}}`,
		`{"result":{"a":"` + long + `"},"jsonrpc":"2.0","id":7}`,
		`{"jsonrpc":"2.0","id":7.0,"error":{"code":1,"message":"` + long + `"}}`,
	} {
		fromServer, toClient := io.Pipe()
		fromClient, toServer := io.Pipe()
		stream := mcpstdio.NewStream(fromServer, toServer, &mcpstdio.LineOptions{MaxMessage: 64 << 10, Close: func() error {
			return errors.Join(fromServer.Close(), toServer.Close())
		}})
		wire := transport.NewConn(stream, func(*transport.Message) {})
		go func() {
			if _, err := bufio.NewReader(fromClient).ReadString('\n'); err == nil {
				_, _ = fmt.Fprintln(toClient, answer)
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		r, err := wire.Call(ctx, &transport.Outgoing{ID: mcp.IntID(7), Method: "tools/call", Body: []byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call"}`)})
		if !errors.Is(err, mcp.ErrUnreadable) || !strings.Contains(err.Error(), "65536 bytes") {
			t.Errorf("%.40s: %+v, %v", answer, r, err)
		}
		cancel()
		_ = wire.Close()
	}
}

func TestFindingW2W5TooLongRequest(t *testing.T) {
	long := strings.Repeat("x", 128<<10)
	fromServer, out := io.Pipe()
	in := strings.NewReader(`{"method":"tools/call","params":{"name":"` + long + `"},"jsonrpc":"2.0","id":"a"}` + "\n")
	go func() {
		opts := &mcpstdio.StreamOptions{Logger: slog.New(slog.DiscardHandler)}
		_ = mcpstdio.ServeStream(t.Context(), mcp.NewMux("m", "v1", nil), mcpstdio.NewStream(in, out, &mcpstdio.LineOptions{MaxMessage: 64 << 10}), opts)
		_ = out.Close()
	}()
	said, err := io.ReadAll(fromServer)
	m, parseErr := transport.ParseMessage(said)
	if err != nil || parseErr != nil || m.ID != mcp.StringID("a") || m.Error == nil {
		t.Errorf("it was answered with %s (%v, %v)", said, err, parseErr)
	}
}
