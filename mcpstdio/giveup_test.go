// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// answerInHalves answers "vendor/m" with long lines. It writes the second half of a line
// only after another message has arrived. It calls tell when the client has begun to read
// the first half, which no pipe or socket can buffer, and when "vendor/silence" has arrived,
// which it does not answer.
func answerInHalves(in io.Reader, out io.Writer, tell func()) {
	lines := bufio.NewReader(in)
	text := strings.Repeat("x", 2<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		m, err := transport.ParseMessage(line)
		if err != nil || !m.IsRequest() {
			continue
		}
		switch m.Method {
		case "vendor/quick":
			fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.ID)
			continue
		case "vendor/silence":
			tell()
			continue
		}
		fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"text":"%s`, m.ID, text)
		tell()
		if _, err := lines.ReadBytes('\n'); err != nil {
			return
		}
		fmt.Fprintf(out, `%s"}}`+"\n", text)
	}
}

// halting is a program that runs answerInHalves, and reports on its standard error.
func halting() int {
	answerInHalves(os.Stdin, os.Stdout, func() { fmt.Fprintln(os.Stderr, "so far") })
	return 0
}

// signals is a writer that sends a value for each write.
type signals chan struct{}

func (s signals) Write(b []byte) (int, error) {
	s <- struct{}{}
	return len(b), nil
}

// haltingServers returns transports to servers that run answerInHalves.
func haltingServers(t *testing.T, told signals) map[string]transport.Transport {
	l, address := listen(t)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		answerInHalves(conn, conn, func() { told <- struct{}{} })
	}()
	opts := quietly()
	opts.Stderr = told
	return map[string]transport.Transport{
		"command": mcpstdio.NewCommand(program("halting"), opts),
		"socket":  mcpstdio.NewSocket("unix", address),
	}
}

// A call that is cancelled while a line is being read returns immediately, and other calls
// get their answers.
func TestGiveUpWithinALine(t *testing.T) {
	mcptest.NoLeaks(t)
	told := make(signals, 10)
	for name, to := range haltingServers(t, told) {
		t.Run(name, func(t *testing.T) {
			wire, err := to.Connect(t.Context(), func(*transport.Message) {})
			if err != nil {
				t.Fatal(err)
			}
			defer wire.Close()
			for i := range int64(5) {
				for j := range int64(3) {
					if err := soon(t, startCall(t.Context(), wire, 100*i+j, "vendor/quick"), "a quick answer"); err != nil {
						t.Fatal(err)
					}
				}
				cause := errors.New("enough")
				ctx, giveUp := context.WithCancelCause(t.Context())
				gaveUp := startCall(ctx, wire, 100*i+98, "vendor/silence")
				soon(t, told, "the first call")
				answered := startCall(t.Context(), wire, 100*i+99, "vendor/m")
				soon(t, told, "half a line")
				giveUp(cause) // the notification about it makes the server continue
				if err := soon(t, gaveUp, "giving up"); !errors.Is(err, cause) {
					t.Errorf("the call ended with %v", err)
				}
				if err := soon(t, answered, "the answer"); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func startCall(ctx context.Context, wire transport.Conn, id int64, method string) <-chan error {
	ended := make(chan error, 1)
	go func() {
		body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q}`, id, method)
		r, err := wire.Call(ctx, &transport.Outgoing{ID: mcp.IntID(id), Method: method, Version: mcp.LatestVersion, Body: body})
		if err == nil && r.ID != mcp.IntID(id) {
			err = fmt.Errorf("got the answer to %v", r.ID)
		}
		ended <- err
	}()
	return ended
}

// Calls get their own answers, even if others are cancelled at any time.
func TestGiveUpRandomly(t *testing.T) {
	address, _ := listenAndServe(t, server(nil), nil)
	for name, transport := range map[string]transport.Transport{
		"command": mcpstdio.NewCommand(program("serve"), quietly()),
		"socket":  mcpstdio.NewSocket("unix", address),
	} {
		t.Run(name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			conn, err := client().Connect(t.Context(), transport)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			var calls sync.WaitGroup
			for c := range 8 {
				calls.Go(func() {
					for i := range 5 * (c + 1) { // the last call is alone
						ctx, cancel := context.WithTimeout(t.Context(), rand.N(2*time.Millisecond))
						text := fmt.Sprint(c, i, strings.Repeat("x", rand.N(100_000)))
						got, err := mcp.Call[string](ctx, conn, "echo", echo{text})
						if err == nil && got != text || err != nil && !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("got %.20q, %v; want %.20q", got, err, text)
						}
						cancel()
					}
				})
			}
			calls.Wait()
			echoes(t, conn, "still here")
		})
	}
}

// If the server exits, pending calls and the connection end.
func TestExitBetweenCalls(t *testing.T) {
	mcptest.NoLeaks(t)
	for i := range 5 {
		conn := connect(t, program("serve"), quietly())
		pid, err := mcp.Call[int](t.Context(), conn, "pid", nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			echoes(t, conn, "quick")
		}
		ended := make(chan error, 1)
		if i%2 == 0 {
			go func() {
				_, err := mcp.Call[string](t.Context(), conn, "wait", nil)
				ended <- err
			}()
		} else {
			go func() { ended <- reasonOfEnd(conn) }()
		}
		process, err := os.FindProcess(pid)
		if err != nil {
			t.Fatal(err)
		}
		_ = process.Kill()
		var exit *mcpstdio.ExitError
		var status *exec.ExitError
		if err := soon(t, ended, "the end"); !errors.As(err, &exit) || !errors.As(err, &status) {
			t.Errorf("it ended with %v", err)
		}
	}
}

// Close ends pending calls, even if some of them are cancelled at that moment.
func TestCloseWhileGivingUp(t *testing.T) {
	mcptest.NoLeaks(t)
	for range 2 {
		conn := connect(t, program("serve"), quietly())
		for range 3 {
			echoes(t, conn, "quick")
		}
		ctx, giveUp := context.WithCancel(t.Context())
		ended := make(chan error, 4)
		for i := range cap(ended) {
			ctx := ctx
			if i%2 == 1 {
				ctx = t.Context()
			}
			go func() {
				_, err := mcp.Call[string](ctx, conn, "wait", nil)
				ended <- err
			}()
		}
		echoes(t, conn, "all the same")
		go giveUp()
		if err := errors.Join(conn.Close(), reasonOfEnd(conn)); err != nil {
			t.Error(err)
		}
		for range cap(ended) {
			if err := soon(t, ended, "a call"); !errors.Is(err, mcp.ErrClosed) && !errors.Is(err, context.Canceled) {
				t.Errorf("a call ended with %v", err)
			}
		}
	}
}
