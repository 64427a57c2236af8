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
	"math/rand/v2"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/test/memnet"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// listen listens on a socket in a directory of the test.
func listen(t *testing.T) (l net.Listener, address string) {
	t.Helper()
	address = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, address
}

// listenAndServe serves on a socket until stop is called with a cause. Stop returns the
// result of ServeListener.
func listenAndServe(t *testing.T, h mcp.Handler, opts *mcpstdio.ListenerOptions) (address string, stop func(error) error) {
	t.Helper()
	l, address := listen(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mcpstdio.ServeListener(ctx, h, l, opts) }()
	stop = func(cause error) error {
		cancel(cause)
		err := soon(t, ended, "ServeListener")
		ended <- err
		return err
	}
	t.Cleanup(func() { stop(nil) })
	return address, stop
}

func TestSocket(t *testing.T) {
	t.Run("defaults", func(t *testing.T) { testSocket(t, nil) })
	t.Run("negative options", func(t *testing.T) {
		testSocket(t, &mcpstdio.ListenerOptions{MaxConns: -1, MaxMessage: -1})
	})
}

func testSocket(t *testing.T, opts *mcpstdio.ListenerOptions) {
	mcptest.NoLeaks(t)
	address, stop := listenAndServe(t, server(nil), opts)
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			conn, err := client().Connect(t.Context(), mcpstdio.NewSocket("unix", address))
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			for range 10 {
				echoes(t, conn, strings.Repeat(string(rune('A'+i)), 100_000))
			}
			if err := errors.Join(conn.Close(), reasonOfEnd(conn)); err != nil {
				t.Error(err)
			}
		})
	}
	clients.Wait()
	reason := errors.New("enough")
	if err := stop(reason); !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
	if _, err := client().Connect(t.Context(), mcpstdio.NewSocket("unix", address)); err == nil {
		t.Error("connected after the end")
	}
}

// Requests in flight when ctx is done are answered.
func TestListenerDrains(t *testing.T) {
	mcptest.NoLeaks(t)
	started, release := make(chan struct{}), make(chan struct{})
	mux := mcp.NewMux("m", "v1", nil)
	mux.Tool("slow", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		close(started)
		<-release
		return "done", nil
	}, nil))
	address, stop := listenAndServe(t, mux, nil)
	conn, err := client().Connect(t.Context(), mcpstdio.NewSocket("unix", address))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	answered := make(chan error, 1)
	go func() {
		got, err := mcp.Call[string](t.Context(), conn, "slow", nil)
		if got != "done" {
			err = fmt.Errorf("got %q, %w", got, err)
		}
		answered <- err
	}()
	soon(t, started, "the call")
	go func() {
		defer close(release)
		for { // until new clients are rejected
			other, err := net.Dial("unix", address)
			if err != nil {
				return
			}
			other.Close()
		}
	}()
	stop(nil)
	if err := soon(t, answered, "the answer"); err != nil {
		t.Error(err)
	}
	if err := reasonOfEnd(conn); !errors.Is(err, io.EOF) {
		t.Errorf("the connection ended with %v", err)
	}
}

// A client beyond the limit is served once another one has disconnected.
func TestListenerBound(t *testing.T) {
	mcptest.NoLeaks(t)
	address, _ := listenAndServe(t, server(nil), &mcpstdio.ListenerOptions{MaxConns: 1})
	first, err := client().Connect(t.Context(), mcpstdio.NewSocket("unix", address))
	if err != nil {
		t.Fatal(err)
	}
	hasty := mcp.NewClient("test", "v1", &mcp.ClientOptions{Version: mcp.LatestVersion, ConnectTimeout: 30 * time.Millisecond})
	if _, err := hasty.Connect(t.Context(), mcpstdio.NewSocket("unix", address)); err == nil {
		t.Error("a second client was served")
	}
	echoes(t, first, "still here")
	first.Close()
	second, err := client().Connect(t.Context(), mcpstdio.NewSocket("unix", address))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	echoes(t, second, "my turn")
}

// A client that does not read its responses is disconnected.
func TestListenerSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- mcpstdio.ServeListener(ctx, server(nil), l, &mcpstdio.ListenerOptions{
				InsecureTCP: true, Stream: &mcpstdio.StreamOptions{Logger: slog.New(slog.DiscardHandler), DrainTimeout: -1},
			})
		}()
		conn, err := l.Dial(ctx)
		if err != nil {
			t.Fatal(err)
		}
		ask := request(1, "tools/call", `"name":"echo","arguments":{"text":"`+strings.Repeat("x", 1<<20)+`"},`) + "\n"
		if _, err := io.WriteString(conn, ask); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for !errors.Is(err, io.ErrClosedPipe) && time.Since(begin) < time.Minute {
			<-time.After(time.Second / 2)
			_ = conn.SetWriteDeadline(time.Now().Add(time.Second / 2))
			_, err = io.WriteString(conn, "\n")
		}
		if lasted := time.Since(begin); lasted < 10*time.Second || lasted > 11*time.Second {
			t.Errorf("the connection lasted %v: %v", lasted, err)
		}
		conn.Close()
		stop()
		<-ended
	})
}

// flakyListener first returns errors from Accept.
type flakyListener struct {
	net.Listener
	errs []error
}

func (l *flakyListener) Accept() (net.Conn, error) {
	if len(l.errs) > 0 {
		err := l.errs[0]
		l.errs = l.errs[1:]
		return nil, err
	}
	return l.Listener.Accept()
}

// Accept is retried after a temporary error, but not after any other.
func TestListenerErrors(t *testing.T) {
	mcptest.NoLeaks(t)
	broken := errors.New("broken")
	l, _ := listen(t)
	flaky := &flakyListener{l, []error{syscall.EMFILE, syscall.EMFILE, broken}}
	opts := &mcpstdio.ListenerOptions{Stream: &mcpstdio.StreamOptions{Logger: slog.New(slog.DiscardHandler)}}
	if err := mcpstdio.ServeListener(t.Context(), server(nil), flaky, opts); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if len(flaky.errs) != 0 {
		t.Errorf("gave up before %v", flaky.errs)
	}
}

// A message whose sending was cancelled does not mix with the next one. Line breaks are
// removed.
func TestSocketSendInterrupted(t *testing.T) {
	mcptest.NoLeaks(t)
	l, address := listen(t)
	wire, err := mcpstdio.NewSocket("unix", address).Connect(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer wire.Close()
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	envelope := func(i int) *transport.Outgoing {
		text := strings.Repeat(fmt.Sprint(i), 2<<20)
		return &transport.Outgoing{Body: []byte("{\n" + `"jsonrpc":"2.0","method":"n` + fmt.Sprint(i) + `","params":{"text":"` + text + `"}}`)}
	}
	lines := bufio.NewReader(peer)
	sent := make(chan error, 1)
	ctx, giveUp := context.WithCancel(t.Context())
	go func() { sent <- wire.Send(ctx, envelope(0)) }()
	if _, err := lines.Peek(1); err != nil { // a part of it has been sent
		t.Fatal(err)
	}
	giveUp()
	if err := soon(t, sent, "giving up"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	for i := range 2 { // none of these is sent
		if err := wire.Send(ctx, envelope(i+1)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	go func() { sent <- wire.Send(t.Context(), envelope(3)) }()
	for _, want := range []string{"n0", "n3"} {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		var got struct{ Method string }
		if err := json.Unmarshal(line, &got); err != nil || got.Method != want {
			t.Errorf("got %q, %v; want %q", got.Method, err, want)
		}
	}
	if err := soon(t, sent, "sending"); err != nil {
		t.Error(err)
	}
}

// deleter returns a server with a tool that web pages must not reach, and the number of its
// calls.
func deleter() (*mcp.Mux, *atomic.Int32) {
	mux, calls := mcp.NewMux("m", "v1", nil), new(atomic.Int32)
	mux.Tool("delete", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
		calls.Add(1)
		return "deleted", nil
	}, nil))
	return mux, calls
}

func quietStream() *mcpstdio.StreamOptions {
	return &mcpstdio.StreamOptions{Logger: slog.New(slog.DiscardHandler)}
}

// attack returns a message that calls the tool of deleter.
func attack() string { return request(1, "tools/call", `"name":"delete",`) + "\n" }

// A web page can make its browser send any body to any port, after a request head that the
// page cannot change. The lines of the body are not served, on any network.
func TestFindingS1WebPage(t *testing.T) {
	mcptest.NoLeaks(t)
	mux, calls := deleter()
	address, _ := listenAndServe(t, mux, &mcpstdio.ListenerOptions{Stream: quietStream()})
	browser := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", address)
		},
	}}
	for _, body := range []string{attack(), "\n" + attack(), " \r\n\r\n" + attack()} {
		resp, err := browser.Post("http://127.0.0.1:7000/", "text/plain;charset=UTF-8", strings.NewReader(body))
		if err == nil {
			answer, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			t.Errorf("the page got %s, %q", resp.Status, answer)
		}
	}
	if n := calls.Load(); n > 0 {
		t.Errorf("the tool was called %d times", n)
	}
}

// A connection that begins with anything but a message is closed without an answer, at the
// first byte that shows it.
func TestFindingS1OtherProtocols(t *testing.T) {
	beginnings := map[string]string{
		"HTTP/1":                 "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"WebSocket":              "GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\n",
		"one byte":               "P",
		"HTTP/2":                 "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"TLS":                    "\x16\x03\x01\x02\x00\x01\x00",
		"STUN":                   "\x00\x01\x00\x00\x21\x12\xa4\x42",
		"white space before":     " \t\r\n\n\nGET",
		"byte order mark before": "\xef\xbb\xbfGET",
		"nothing JSON has":       "\x00",
		"a string":               `"GET"`,
		"a list of its own":      "[general]\n",
		"an object of its own":   "{% raw %}\n",
	}
	for name, first := range beginnings {
		t.Run(name, func(t *testing.T) {
			mcptest.NoLeaks(t)
			mux, calls := deleter()
			address, _ := listenAndServe(t, mux, &mcpstdio.ListenerOptions{Stream: quietStream()})
			conn, err := net.Dial("unix", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, first); err != nil {
				t.Fatal(err)
			}
			ended := make(chan string, 1)
			go func() {
				said, _ := io.ReadAll(conn)
				ended <- string(said)
			}()
			said := soon(t, ended, "the end of the connection")
			if strings.HasSuffix(first, "]\n") || strings.HasSuffix(first, "}\n") { // these get an error
				said = strings.Replace(said, `"code":-32700`, "", 1)
			} else if said != "" {
				t.Errorf("it was answered %q", said)
			}
			io.WriteString(conn, "\n"+attack())
			if calls.Load() > 0 || strings.Contains(said, "deleted") {
				t.Errorf("the tool was called; it was answered %q", said)
			}
		})
	}
}

// Clients that write their first message slowly, or with a byte order mark, are served.
func TestFindingS1SlowClients(t *testing.T) {
	mcptest.NoLeaks(t)
	mux, _ := deleter()
	address, _ := listenAndServe(t, mux, nil)
	conn, err := net.Dial("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, b := range []byte("\xef\xbb\xbf\r\n \n" + attack()) {
		if _, err := conn.Write([]byte{b}); err != nil {
			t.Fatal(err)
		}
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "deleted") {
		t.Errorf("got %q, %v", line, err)
	}
}

// A program on standard input and output may be behind a socket, too, for example of inetd
// or socat. If the input begins like the request of a web page, serving ends.
func TestFindingS1WebPageToServer(t *testing.T) {
	page := "POST / HTTP/1.1\r\nHost: 127.0.0.1:7000\r\nContent-Type: text/plain\r\n\r\n" + attack()
	for name, first := range map[string]string{
		"page": "", "a long first line": "GET /" + strings.Repeat("x", 2000) + " HTTP/1.1\r\n", "blank lines first": "\r\n \n",
	} {
		t.Run(name, func(t *testing.T) {
			mux, calls := deleter()
			var out bytes.Buffer
			opts := &mcpstdio.Options{In: strings.NewReader(first + page), Out: &out, MaxMessage: 1 << 10, Stream: quietStream()}
			if err := mcpstdio.Serve(t.Context(), mux, opts); err == nil || !strings.Contains(err.Error(), "first line") {
				t.Errorf("served to the end: %v", err)
			}
			if calls.Load() > 0 || strings.Contains(out.String(), "deleted") {
				t.Errorf("the tool was called; the page got %q", out.String())
			}
			if got := strings.Count(out.String(), "\n"); got != 1 || !strings.Contains(out.String(), `"error"`) {
				t.Errorf("got %q, want one error", out.String())
			}
		})
	}
}

// A message is served only if the first line was JSON, whatever comes before the message.
func TestFindingS1RandomBeginnings(t *testing.T) {
	parts := []string{
		"{", "}", "[", "]", `"`, "\n", "\r", `\`, " ", "\t", "a", "POST / HTTP/1.1", "Host: x", "\x00", "\xef\xbb\xbf", ":", ",", "1", "null", "\xff",
	}
	random := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		var beginning strings.Builder
		for range random.IntN(12) {
			beginning.WriteString(parts[random.IntN(len(parts))])
		}
		mux, calls := deleter()
		opts := &mcpstdio.Options{In: strings.NewReader(beginning.String() + "\r\n" + attack()), Out: io.Discard, Stream: quietStream()}
		_ = mcpstdio.Serve(t.Context(), mux, opts)
		text := strings.TrimSpace(strings.TrimPrefix(beginning.String(), "\xef\xbb\xbf"))
		first, _, _ := strings.Cut(text, "\n")
		if calls.Load() > 0 && first != "" && !json.Valid([]byte(first)) {
			t.Errorf("served after %q", beginning.String())
		}
	}
}

// TCP reaches further than users expect, and is served only with InsecureTCP.
func TestFindingS1TCP(t *testing.T) {
	mcptest.NoLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	err = mcpstdio.ServeListener(t.Context(), server(nil), l, nil)
	if err == nil || !strings.Contains(err.Error(), "InsecureTCP") || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("got %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is open: %v", err)
	}

	l, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- mcpstdio.ServeListener(ctx, server(nil), l, &mcpstdio.ListenerOptions{InsecureTCP: true})
	}()
	conn, err := client().Connect(t.Context(), mcpstdio.NewSocket("tcp", l.Addr().String()))
	if err != nil {
		t.Fatal(err)
	}
	echoes(t, conn, "over TCP")
	conn.Close()
	stop()
	soon(t, ended, "ServeListener")
}

// Connections without a first message, or with an incomplete one, are closed and make room
// for others. After its first message, a connection may be silent.
func TestFindingW18Silence(t *testing.T) {
	for name, first := range map[string]string{"silent": "", "blank": "\n\n", "begun": `{"jsonrpc"`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := memnet.Listen()
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() {
					ended <- mcpstdio.ServeListener(ctx, server(nil), l, &mcpstdio.ListenerOptions{InsecureTCP: true, MaxConns: 2, Stream: quietStream()})
				}()
				served, err := l.Dial(ctx)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintln(served, request(1, "tools/call", `"name":"echo","arguments":{"text":"hi"},`))
				lines := bufio.NewReader(served)
				lines.ReadString('\n')

				silent, err := l.Dial(ctx)
				if err != nil {
					t.Fatal(err)
				}
				go io.WriteString(silent, first)
				begin := time.Now()
				if _, err := io.ReadAll(silent); err != nil {
					t.Error(err)
				}
				if waited := time.Since(begin); waited != 10*time.Second {
					t.Errorf("it was let go after %v", waited)
				}

				<-time.After(24 * time.Hour)
				fmt.Fprintln(served, request(2, "tools/call", `"name":"echo","arguments":{"text":"still here"},`))
				if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "still here") {
					t.Errorf("got %q, %v", line, err)
				}
				served.Close()
				stop()
				<-ended
			})
		})
	}
}

// drain serves a connection with one request, which is served by slow, and stops the server
// during that request. The result of ServeListener is sent on ended.
func drain(t *testing.T, slow func(ctx context.Context)) (conn net.Conn, ended <-chan error) {
	t.Helper()
	entered, returned := make(chan struct{}), make(chan error, 1)
	mux := mcp.NewMux("slow", "v1", nil)
	mux.Tool("slow", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		close(entered)
		slow(ctx)
		return "done", nil
	}, nil))
	l := memnet.Listen()
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		stream := &mcpstdio.StreamOptions{Logger: quietStream().Logger, DrainTimeout: time.Hour}
		returned <- mcpstdio.ServeListener(ctx, mux, l, &mcpstdio.ListenerOptions{InsecureTCP: true, Stream: stream})
	}()
	conn, err := l.Dial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(conn, request(1, "tools/call", `"name":"slow","arguments":{},`))
	<-entered
	stop()
	synctest.Wait()
	return conn, returned
}

// ServeListener returns only after everything it started has ended, so a program may close
// what its handlers use.
func TestServeListenerWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		conn, ended := drain(t, func(context.Context) { <-release })
		select {
		case err := <-ended:
			t.Errorf("it returned %v before its handler", err)
		default:
		}
		close(release)
		soon(t, ended, "ServeListener")
		conn.Close()
	})
}

// A request can still be cancelled while the server waits for it to end.
func TestCancelledWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := make(chan error, 1)
		conn, ended := drain(t, func(ctx context.Context) {
			<-ctx.Done()
			cause <- context.Cause(ctx)
		})
		began := time.Now()
		fmt.Fprintln(conn, `{"jsonrpc":"2.0","method":"notifications/other","params":{"requestId":1,"reason":"none"}}`)
		fmt.Fprintln(conn, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"enough"}}`)
		cancelled, ok := errors.AsType[*mcp.CancelError](<-cause)
		if !ok || cancelled.Reason != "enough" || time.Since(began) > time.Second {
			t.Errorf("the handler ended after %v: %v", time.Since(began), cancelled)
		}
		soon(t, ended, "ServeListener")
		conn.Close()
	})
}

// A request that arrives while the server drains is rejected immediately: a peer need not
// wait for the end of the stream, and knows that the request was not served.
func TestRefusedWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		conn, ended := drain(t, func(context.Context) { <-release })
		lines, began := bufio.NewReader(conn), time.Now()
		for _, late := range []string{
			request(2, "tools/call", `"name":"slow","arguments":{},`),
			`{"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		} {
			fmt.Fprintln(conn, late)
			if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, `"id":2,"error":{"code":-32603,"message":"the server is shutting down"}`) {
				t.Errorf("got %q, %v", line, err)
			}
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the refusals took %v", took)
		}
		close(release)
		if line, err := lines.ReadString('\n'); err != nil || !strings.Contains(line, "done") {
			t.Errorf("got %q, %v", line, err)
		}
		soon(t, ended, "ServeListener")
		conn.Close()
	})
}
