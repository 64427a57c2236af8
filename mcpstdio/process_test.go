// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build unix

package mcpstdio_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcpstdio"
)

// childVariable makes the test binary a server. Its value decides whether the server prints
// something after serving.
const (
	childVariable = "MCPSTDIO_TEST_CHILD"
	talkative     = "talkative"
	silent        = "silent"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		os.Exit(child())
	}
	os.Exit(m.Run())
}

// child serves a tool that prints to standard output and logs.
func child() int {
	mux := server(nil)
	mux.Tool("chatter", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		fmt.Println("a stray print") //nolint:forbidigo // as users do by mistake
		for range 100 {
			slog.Info("a log line")
		}
		return "chattered", nil
	}, nil))
	if err := mcpstdio.Serve(context.Background(), mux, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	if os.Getenv(childVariable) == talkative {
		fmt.Println("serving is over") //nolint:forbidigo // as a program may, afterwards
	}
	return 0
}

// process is a running child.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	raw io.Closer
}

func start(t *testing.T, child string, stderr io.Writer) *process {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), program)}
	p.cmd.Env = append(os.Environ(), childVariable+"="+child)
	p.cmd.Stderr = stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out, p.raw = bufio.NewReader(out), out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// call calls a tool and returns the line with the answer.
func (p *process) call(members string) string {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, request(1, "tools/call", members)); err != nil {
		p.t.Fatal(err)
	}
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	return line
}

// end closes the child's input and returns the rest of its output and its exit error.
func (p *process) end() (string, error) {
	p.t.Helper()
	p.in.Close()
	rest, err := io.ReadAll(p.out)
	if err != nil {
		p.t.Error(err)
	}
	return string(rest), p.cmd.Wait()
}

// A stray print goes to standard error. T8: after serving, the process has its standard
// output back.
func TestStrayPrints(t *testing.T) {
	var stderr strings.Builder
	p := start(t, talkative, &stderr)
	if got := p.call(`"name":"chatter",`); !strings.HasPrefix(got, "{") || !strings.Contains(got, "chattered") {
		t.Errorf("got %s", got)
	}
	rest, err := p.end()
	if err != nil || rest != "serving is over\n" {
		t.Errorf("ended with %q, %v", rest, err)
	}
	if !strings.Contains(stderr.String(), "a stray print") {
		t.Errorf("standard error has %q", stderr.String())
	}
}

// T9b: standard error is no longer read. The server continues.
func TestBrokenStderr(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	p := start(t, talkative, w)
	w.Close()
	for range 3 {
		if got := p.call(`"name":"chatter",`); !strings.Contains(got, "chattered") {
			t.Errorf("got %s", got)
		}
	}
	if rest, err := p.end(); err != nil || rest != "serving is over\n" {
		t.Errorf("ended with %q, %v", rest, err)
	}
}

// Standard output is no longer read while an answer is written. The server ends with its
// input, and is not killed by a signal.
func TestBrokenStdout(t *testing.T) {
	p := start(t, silent, io.Discard)
	if got := p.call(`"name":"echo","arguments":{"text":"hi"},`); !strings.Contains(got, "hi") {
		t.Fatalf("got %s", got)
	}
	p.raw.Close()
	fmt.Fprintln(p.in, request(2, "tools/call", `"name":"echo","arguments":{"text":"unheard"},`))
	p.in.Close()
	err := p.cmd.Wait()
	if state := p.cmd.ProcessState; !state.Exited() {
		t.Errorf("the server was killed: %v, %v", state, err)
	}
}

// T9: requests sent before the server has begun to read are answered.
func TestAtOnce(t *testing.T) {
	p := start(t, talkative, io.Discard)
	if got := p.call(`"name":"echo","arguments":{"text":"at once"},`); !strings.Contains(got, "at once") {
		t.Errorf("got %s", got)
	}
	if _, err := p.end(); err != nil {
		t.Error(err)
	}
}
