// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// childProgram is a server on a byte stream, such as a command: it takes time to start and
// handles one message at a time. respond returns its answer, or "" for none, and whether it
// keeps running.
type childProgram struct {
	start   time.Duration // before it reads
	exit    time.Duration // duration of Close
	respond func(start int, method, id string) (answer string, more bool)

	mu    sync.Mutex
	heard []string // methods in order, including "start"
}

// slowStream is a stream whose Close takes time, like that of a command.
type slowStream struct {
	transport.Stream
	exit time.Duration
}

func (s slowStream) Close() error {
	err := s.Stream.Close()
	<-time.After(s.exit)
	return err
}

func (p *childProgram) transport() transport.Transport {
	return transport.FromStream(func(context.Context) (transport.Stream, error) {
		client, server := transport.Pipe()
		n := p.note("start")
		go func() {
			defer server.Close()
			<-time.After(p.start)
			for {
				data, err := server.Read(context.Background())
				if err != nil {
					return
				}
				m, err := transport.ParseMessage(data)
				if err != nil || m.Method == "" {
					continue
				}
				p.note(m.Method)
				answer, more := p.respond(n, m.Method, m.ID.String())
				if answer != "" && server.Write(context.Background(), []byte(answer)) != nil || !more {
					return
				}
			}
		}()
		return slowStream{client, p.exit}, nil
	})
}

// note records a message and returns how many times the program was started.
func (p *childProgram) note(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = append(p.heard, method)
	return p.countLocked("start")
}

func (p *childProgram) count(method string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.countLocked(method)
}

func (p *childProgram) countLocked(method string) (n int) {
	for _, m := range p.heard {
		if m == method {
			n++
		}
	}
	return n
}

const openedLegacy = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`

func refusalFor(id string, code int, data string) string {
	if data != "" {
		data = `,"data":` + data
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no"%s}}`, id, code, data)
}

// speaksModern, speaksBoth and speaksLegacy answer the requests of a connecting client.
func speaksModern(_ int, method, id string) (string, bool) {
	switch method {
	case mcp.MethodDiscover:
		return resultFor(id, discovered), true
	case "initialize":
		return refusalFor(id, -32022, `{"supported":["2026-07-28"]}`), true
	}
	return "", true
}

func speaksBoth(_ int, method, id string) (string, bool) {
	if method == "initialize" {
		return resultFor(id, openedLegacy), true
	}
	return speaksModern(0, method, id)
}

func speaksLegacy(_ int, method, id string) (string, bool) {
	switch method {
	case "notifications/initialized":
		return "", true
	case "initialize":
		return resultFor(id, openedLegacy), true
	}
	return refusalFor(id, -32601, ""), true
}

// A client detects the era of a server from its answers, however long they take, and
// restarts a program only if necessary.
func TestFindingI1I8EraIsFoundOut(t *testing.T) {
	silentAbout := func(silent string, respond func(int, string, string) (string, bool)) func(int, string, string) (string, bool) {
		return func(start int, method, id string) (string, bool) {
			if method == silent {
				return "", true
			}
			return respond(start, method, id)
		}
	}
	for _, test := range []struct {
		name    string
		program *childProgram
		version string
		starts  int
		took    time.Duration
	}{
		{"modern", &childProgram{respond: speaksModern}, "2026-07-28", 1, 0},
		{"modern, slow", &childProgram{respond: speaksModern, start: 3 * time.Second}, "2026-07-28", 1, 3 * time.Second},
		{"modern, downloaded first", &childProgram{respond: speaksModern, start: time.Minute}, "2026-07-28", 1, time.Minute},
		{"both", &childProgram{respond: speaksBoth}, "2026-07-28", 1, 0},
		{"both, slow", &childProgram{respond: speaksBoth, start: 3 * time.Second}, "2026-07-28", 1, 3 * time.Second},
		{"both, downloaded first", &childProgram{respond: speaksBoth, start: time.Minute}, "2026-07-28", 1, time.Minute},
		{"legacy", &childProgram{respond: speaksLegacy}, "2025-11-25", 1, 0},
		{"legacy, slow", &childProgram{respond: speaksLegacy, start: 3 * time.Second}, "2025-11-25", 1, 3 * time.Second},
		{"legacy, downloaded first", &childProgram{respond: speaksLegacy, start: time.Minute}, "2025-11-25", 1, time.Minute},
		{"legacy and silent", &childProgram{respond: silentAbout(mcp.MethodDiscover, speaksLegacy)}, "2025-11-25", 1, 6 * time.Second},
		{"legacy, exits", &childProgram{respond: func(_ int, method, id string) (string, bool) {
			answer, _ := speaksLegacy(0, method, id)
			return answer, method != mcp.MethodDiscover
		}}, "2025-11-25", 2, 0},
		{"legacy, takes the first message for the handshake", &childProgram{exit: time.Second, respond: func(start int, method, id string) (string, bool) {
			if start == 1 {
				return refusalFor(id, -32600, ""), true
			}
			return speaksLegacy(0, method, id)
		}}, "2025-11-25", 2, 0},
		{"modern, with a bad start", &childProgram{respond: func() func(int, string, string) (string, bool) {
			bad := true
			return func(_ int, method, id string) (string, bool) {
				if bad && method == mcp.MethodDiscover {
					bad = false
					return refusalFor(id, -32603, ""), true
				}
				return speaksModern(0, method, id)
			}
		}()}, "2026-07-28", 1, 0},
		{"both, answers the second question first", &childProgram{start: 10 * time.Second, respond: func() func(int, string, string) (string, bool) {
			first := ""
			return func(_ int, method, id string) (string, bool) {
				if method == mcp.MethodDiscover {
					first = resultFor(id, discovered)
					return "", true
				}
				return `[` + resultFor(id, openedLegacy) + `,` + first + `]`, true
			}
		}()}, "2026-07-28", 1, 10 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				c, err := mcp.NewClient("c", "v1", quietClient("")).Connect(t.Context(), test.program.transport())
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); c.Version() != test.version || took != test.took {
					t.Errorf("after %v it speaks %s", took, c.Version())
				}
				if n := test.program.count("start"); n != test.starts {
					t.Errorf("it was started %d times", n)
				}
				_ = c.Close()
				if test.starts > 1 && time.Since(start) < test.program.exit {
					t.Error("a program that was given up is left behind")
				}
			})
		})
	}
}

// A guessed era is probed again. An era that the server has stated is remembered.
func TestFindingI1GuessIsNotRemembered(t *testing.T) {
	for name, test := range map[string]struct {
		respond   func(int, string, string) (string, bool)
		discovers int // for two connections
	}{
		"said": {speaksLegacy, 1},
		"guessed": {func(_ int, method, id string) (string, bool) {
			if method == mcp.MethodDiscover {
				return "", true
			}
			return speaksLegacy(0, method, id)
		}, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &childProgram{respond: test.respond}
			client, transport := mcp.NewClient("c", "v1", quietClient("")), p.transport()
			for range 2 {
				c, err := client.Connect(t.Context(), transport)
				if err != nil {
					t.Fatal(err)
				}
				_ = c.Close()
			}
			if n := p.count(mcp.MethodDiscover); n != test.discovers {
				t.Errorf("%s: it was asked %d times", name, n)
			}
		})
	}
}

// Connecting to a server that never answers fails with an error that says so.
func TestFindingW18SilentServer(t *testing.T) {
	for _, version := range []string{"", "2026-07-28", "2025-11-25"} {
		synctest.Test(t, func(t *testing.T) {
			p := &childProgram{respond: func(int, string, string) (string, bool) { return "", true }}
			start := time.Now()
			_, err := mcp.NewClient("c", "v1", quietClient(version)).Connect(context.Background(), p.transport())
			if timeout, ok := errors.AsType[*mcp.TimeoutError](err); !ok || timeout.After != 2*time.Minute || time.Since(start) != 2*time.Minute {
				t.Errorf("%s: after %v: %v", version, time.Since(start), err)
			}
		})
	}
}

// Connecting fails even if the transport does not return from Connect before its context is
// done. The error says what was tried and for how long.
func TestSilentTransport(t *testing.T) {
	blocks := transport.FromStream(func(ctx context.Context) (transport.Stream, error) {
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
	for _, version := range []string{"", "2026-07-28", "2025-11-25"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := mcp.NewClient("c", "v1", quietClient(version)).Connect(ctx, blocks)
			if !errors.Is(err, context.DeadlineExceeded) || !strings.HasSuffix(err.Error(), "no answer to server/discover or initialize in 1s from the server") {
				t.Errorf("%s: %v", version, err)
			}
		})
	}
}

// A connection error contains each reason once, as the server stated it.
func TestFindingU14PlainErrors(t *testing.T) {
	exits := &childProgram{respond: func(int, string, string) (string, bool) { return "", false }}
	refuses := &childProgram{respond: func(_ int, method, id string) (string, bool) {
		return strings.Replace(refusalFor(id, -32601, ""), `"no"`, `"`+method+`?"`, 1), true
	}}
	for _, test := range []struct {
		transport transport.Transport
		is        error
		text      string
	}{
		{exits.transport(), io.EOF, "EOF"},
		{refuses.transport(), nil, "mcp: the server refuses to begin: initialize? (code -32601); server/discover: server/discover? (code -32601)"},
		{failingTransport{io.ErrNoProgress}, io.ErrNoProgress, io.ErrNoProgress.Error()},
	} {
		_, err := mcp.NewClient("c", "v1", quietClient("")).Connect(t.Context(), test.transport)
		if err == nil || err.Error() != test.text || test.is != nil && !errors.Is(err, test.is) {
			t.Errorf("%v, want %s", err, test.text)
		}
	}
}

type failingTransport struct{ err error }

func (f failingTransport) Connect(context.Context, transport.Receiver) (transport.Conn, error) {
	return nil, f.err
}

// earlyTransport is a transport that delivers messages before Connect returns, in the
// goroutine of Connect and in another.
type earlyTransport struct {
	transport.Transport
	said []string
}

func (h earlyTransport) Connect(ctx context.Context, receive transport.Receiver) (transport.Conn, error) {
	say := func() {
		for _, s := range h.said {
			if m, err := transport.ParseMessage([]byte(s)); err == nil {
				receive(&m)
			}
		}
	}
	say()
	var wg sync.WaitGroup
	wg.Go(say)
	wg.Wait()
	return h.Transport.Connect(ctx, receive)
}

// Messages that arrive before Transport.Connect returns are handled once the connection is
// established. Nothing crashes, and no message is lost.
func TestFindingCH1EarlyMessages(t *testing.T) {
	for _, version := range []string{"", "2025-11-25"} {
		answered := make(chan string, 8)
		server := transport.FromStream(func(context.Context) (transport.Stream, error) {
			near, far := transport.Pipe()
			go func() {
				for {
					data, err := far.Read(context.Background())
					if err != nil {
						return
					}
					m, _ := transport.ParseMessage(data)
					if m.Method == "" {
						answered <- string(data)
						continue
					}
					if answer, _ := speaksLegacy(0, m.Method, m.ID.String()); answer != "" {
						_ = far.Write(context.Background(), []byte(answer))
					}
				}
			}()
			return near, nil
		})
		opts := quietClient(version)
		servers := make(chan *mcp.DiscoverResult, 8)
		opts.Notification = func(_ context.Context, c *mcp.Conn, _ *mcp.Request) {
			_ = c.Version()
			servers <- c.Server()
		}
		c := connectTo(t, earlyTransport{server, []string{
			`{"jsonrpc":"2.0","id":"p","method":"ping"}`,
			`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
		}}, opts)
		for range 2 {
			if got := <-answered; got != `{"jsonrpc":"2.0","id":"p","result":{}}` {
				t.Errorf("the ping was answered with %s", got)
			}
			if s := <-servers; s == nil {
				t.Error("a function was called with half a connection")
			}
		}
		_ = c.Close()
	}
}

// A client does not answer questions before the handshake.
func TestFindingCH1NoQuestionsBeforeTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		opts := quietClient("")
		opts.Elicit = func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			asked.Add(1)
			return &mcp.ElicitResult{Action: mcp.ActionDecline}, nil
		}
		p := &childProgram{respond: speaksModern}
		question := fmt.Sprintf(aQuestion, 1)
		c := connectTo(t, earlyTransport{p.transport(), []string{question}}, opts)
		synctest.Wait()
		if n := asked.Load(); n != 0 {
			t.Errorf("the user was asked %d times", n)
		}
		_ = c.Close()
		if i := slices.Index(p.heard, ""); i >= 0 {
			t.Errorf("heard %q", p.heard)
		}
	})
}

// If a server rejects every version but its own as invalid, instead of answering with its
// own, the client tries the other versions (INIT-13). If none is accepted, it returns the
// first rejection.
func TestServerOfOneVersion(t *testing.T) {
	for _, only := range append(mcp.LegacyVersions(), "2024-10-07") {
		t.Run(only, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				to := transport.FromStream(func(context.Context) (transport.Stream, error) {
					near, far := transport.Pipe()
					go serveVersion(far, only)
					return near, nil
				})
				c, err := mcp.NewClient("c", "v1", quietClient("")).Connect(t.Context(), to)
				switch {
				case only == "2024-10-07":
					wantCode(t, err, mcp.CodeInvalidParams)
				case err != nil:
					t.Fatal(err)
				case c.Version() != only:
					t.Errorf("it speaks %s", c.Version())
				}
				if err == nil {
					_ = c.Close()
				}
			})
		})
	}
}

// serveVersion serves the handshake of one version until its client closes the stream.
func serveVersion(stream transport.Stream, only string) {
	for {
		data, err := stream.Read(context.Background())
		if err != nil {
			return
		}
		m, _ := transport.ParseMessage(data)
		if !m.IsRequest() {
			continue
		}
		answer := resultFor(m.ID.String(), strings.Replace(openedLegacy, "2025-11-25", only, 1))
		switch {
		case m.Method == mcp.MethodDiscover:
			answer = refusalFor(m.ID.String(), -32601, "")
		case !strings.Contains(string(m.Params), only):
			answer = refusalFor(m.ID.String(), -32602, fmt.Sprintf(`{"supported":[%q]}`, only))
		}
		_ = stream.Write(context.Background(), []byte(answer))
	}
}

func streamTo(s transport.Stream) transport.Transport {
	return transport.FromStream(func(context.Context) (transport.Stream, error) { return s, nil })
}

func idOf(message []byte) string {
	var m struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(message, &m)
	return string(m.ID)
}

// The code of an error from server/discover determines whether the client opens a legacy
// session or returns the error.
func TestVerdictByCode(t *testing.T) {
	for code, older := range map[int]bool{
		mcp.CodeMethodNotFound: true, mcp.CodeInvalidRequest: true, mcp.CodeInvalidParams: true, mcp.CodeInternalError: true, -32000: true, 1: true,
		400: true, 404: true, 405: true, 500: true,
		401: false, 403: false, 407: false, 429: false, // HTTP status codes that reject the caller
		mcp.CodeHeaderMismatch: false, mcp.CodeMissingCapability: false,
	} {
		var mu sync.Mutex
		var asked []string
		server := fakeServer(func(method, id string) (string, bool) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, method)
			switch method {
			case "initialize":
				return resultFor(id, `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`), true
			case mcp.MethodDiscover:
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no"}}`, id, code), true
			}
			return "", true
		})
		c, err := mcp.NewClient("c", "v1", nil).Connect(t.Context(), server)
		if err == nil {
			_ = c.Close()
		}
		mu.Lock()
		if (err == nil) != older || slices.Contains(asked, "initialize") != older || !older && mcp.CodeOf(err) != code {
			t.Errorf("%d: asked %q, then %v", code, asked, err)
		}
		mu.Unlock()
	}
}

// The result of server/discover must be of the type that discovery has.
func TestDiscoveryOfAnotherType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := mcp.NewClient("c", "v1", &mcp.ClientOptions{Version: mcp.LatestVersion}).Connect(t.Context(), fakeServer(func(_, id string) (string, bool) {
			return `{"jsonrpc":"2.0","id":` + id + `,"result":{"resultType":"other"}}`, true
		}))
		if !errors.Is(err, mcp.ErrUnreadable) || !strings.HasSuffix(err.Error(), "has an unknown resultType") {
			t.Errorf("got %v", err)
		}
	})
}

// plain wraps the connections of a transport as a program would do it.
type plain struct{ transport.Transport }

func (p plain) Connect(ctx context.Context, receive transport.Receiver) (transport.Conn, error) {
	c, err := p.Transport.Connect(ctx, receive)
	return struct{ transport.Conn }{c}, err
}

// A wrapper that embeds a connection is still a byte stream: a server that ignores what comes
// before initialize is asked again, on the same connection.
func TestWrapperIsDescribedAsWhatItWraps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		program := &childProgram{respond: func(_ int, method, id string) (string, bool) {
			if method == mcp.MethodDiscover {
				return "", true
			}
			return speaksLegacy(0, method, id)
		}}
		c, err := mcp.NewClient("c", "v1", quietClient("")).Connect(t.Context(), plain{program.transport()})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if c.Version() != "2025-11-25" || program.count("start") != 1 {
			t.Errorf("speaks %s after %d starts", c.Version(), program.count("start"))
		}
	})
}
