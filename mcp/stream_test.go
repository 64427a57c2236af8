// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

func hello() *mcp.Mux {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("hello", says("hi"))
	return mux
}

// T9: messages sent before the server starts reading are answered.
func TestFirstMicrosecond(t *testing.T) {
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			near, far := transport.Pipe()
			messages := append(slices.Clone(era.open), era.request("7", "tools/call", `"name":"hello"`))
			for _, m := range messages {
				if err := near.Write(t.Context(), []byte(m)); err != nil {
					t.Fatal(err)
				}
			}
			go mcpstdio.ServeStream(t.Context(), hello(), far, nil)
			defer near.Close()
			for {
				data, err := near.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(data), `"id":7`) {
					break
				}
			}
		})
	}
}

// T4: requests sent before the end of the stream are answered.
func TestDrain(t *testing.T) {
	release := make(chan struct{})
	mux := hello()
	mux.Tool("slow", mcp.ToolFunc(func(context.Context, none) (string, error) { <-release; return "slow", nil }, nil))
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			p := newPeer(t, mux, era)
			for i := range 50 {
				p.send(era.request(fmt.Sprint(i), "tools/call", `"name":"slow"`))
			}
			go func() {
				for range 50 {
					release <- struct{}{}
				}
			}()
			if said := p.finish(); len(said) != 50 {
				t.Errorf("got %d answers of 50", len(said))
			}
		})
	}
}

// T4: draining has a timeout, after which remaining requests are cancelled.
func TestDrainIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		causes := make(chan error, 1)
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("forever", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return "", nil
		}, nil))
		p := servePeer(t, mux, eras[0], &mcpstdio.StreamOptions{DrainTimeout: time.Minute})
		p.send(eras[0].request("1", "tools/call", `"name":"forever"`))
		synctest.Wait()
		start := time.Now()
		p.finish()
		if took := time.Since(start).Round(time.Second); took != time.Minute {
			t.Errorf("drained for %v", took)
		}
		if cause := <-causes; !errors.Is(cause, mcp.ErrClosed) {
			t.Errorf("the cause is %v", cause)
		}
	})
}

// A request can be cancelled while the server drains.
func TestCancelWhileDraining(t *testing.T) {
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				mux := mcp.NewMux("m", "v1", quiet())
				mux.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
					<-ctx.Done()
					return "", nil
				}, nil))
				stream, served := newScripted(), make(chan error, 1)
				ctx, stop := context.WithCancel(t.Context())
				go func() { served <- mcpstdio.ServeStream(ctx, mux, stream, nil) }()
				for _, m := range append(slices.Clone(era.open), era.request("1", "tools/call", `"name":"wait"`)) {
					stream.in <- []byte(m)
					synctest.Wait()
				}
				stop()
				synctest.Wait()
				start := time.Now()
				stream.in <- []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
				if err := <-served; !errors.Is(err, context.Canceled) {
					t.Errorf("serving ended with %v", err)
				}
				if took := time.Since(start).Round(time.Second); took > 0 {
					t.Errorf("drained for %v", took)
				}
			})
		})
	}
}

// T12: a handler that stops its own server does not deadlock.
func TestCloseFromAHandler(t *testing.T) {
	for _, name := range []string{"stop", "close"} {
		t.Run(name, func(t *testing.T) {
			near, far := transport.Pipe()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			mux := mcp.NewMux("m", "v1", quiet())
			mux.Tool("stop", mcp.ToolFunc(func(context.Context, none) (string, error) {
				stop()
				return "stopping", nil
			}, nil))
			mux.Tool("close", mcp.ToolFunc(func(context.Context, none) (string, error) { return "", far.Close() }, nil))
			served := make(chan error, 1)
			go func() { served <- mcpstdio.ServeStream(ctx, mux, far, nil) }()
			if err := near.Write(t.Context(), []byte(eras[0].request("1", "tools/call", `"name":"`+name+`"`))); err != nil {
				t.Fatal(err)
			}
			<-served
		})
	}
}

// T12: a handler can close its own session of the legacy era.
func TestSessionCloseFromAHandler(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("leave", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.SessionFromContext(ctx).Close()
		<-ctx.Done()
		return "", context.Cause(ctx)
	}, nil))
	(&mcptest.Client{Options: mcp.ClientOptions{Version: "2025-11-25"}}).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		if !slices.Contains(mcp.LegacyVersions(), c.Version()) {
			t.Skip("no sessions")
		}
		if res, err := c.CallTool(t.Context(), tool("leave", "")); err == nil && !res.IsError {
			t.Errorf("got %+v", res)
		}
	})
}

// T15: writing and closing concurrently does not panic.
func TestCloseWhileWriting(t *testing.T) {
	for range 2000 {
		a, b := transport.Pipe()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for a.Write(t.Context(), []byte("{}")) == nil {
				}
			})
		}
		wg.Go(func() { _, _ = b.Read(t.Context()) })
		wg.Go(func() { b.Close() })
		wg.Go(func() { a.Close() })
		wg.Wait()
		if err := a.Write(t.Context(), []byte("{}")); !errors.Is(err, io.ErrClosedPipe) {
			t.Fatalf("writing to a closed pipe: %v", err)
		}
	}
}

func TestPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := transport.Pipe()
		message := []byte("one")
		if err := a.Write(t.Context(), message); err != nil {
			t.Fatal(err)
		}
		message[0] = 'x' // Write must not retain it
		a.Write(t.Context(), []byte("two"))
		a.Close()
		for _, want := range []string{"one", "two"} {
			if got, err := b.Read(t.Context()); err != nil || string(got) != want {
				t.Errorf("got %q, %v", got, err)
			}
		}
		if _, err := b.Read(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("after the end got %v", err)
		}
		c, d := transport.Pipe()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := d.Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("reading nothing: %v", err)
		}
		for c.Write(ctx, []byte("x")) == nil { // the peer does not read: the buffer fills, then ctx expires
		}
	})
}

// T34: names are case-sensitive, members are unique, and nothing is guessed. T37, T39: a
// malformed message results in one error.
func TestMalformedMessages(t *testing.T) {
	meta := eras[0].meta
	for _, test := range []struct {
		message, id string
		code        int
	}{
		{`{"jsonrpc":"2.0","id":1,"Method":"tools/list","params":{` + meta + `}}`, "1", mcp.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"METHOD":"tools/list","params":{` + meta + `}}`, "1", mcp.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method\u0000":"tools/list","params":{` + meta + `}}`, "1", mcp.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call","params":{` + meta + `}}`, "1", mcp.CodeParseError},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","m\u0065thod":"tools/call","params":{` + meta + `}}`, "1", mcp.CodeParseError},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","name":"other",` + meta + `}}`, "1", mcp.CodeParseError},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","Name":"other",` + meta + `}}`, "1", mcp.CodeInvalidParams},
		{`{"jsonrpc":"2.0","id":1,"method":"","params":{` + meta + `}}`, "1", mcp.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":7,"params":{` + meta + `}}`, "1", mcp.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"params":{` + meta + `}}`, "1", mcp.CodeInvalidRequest},
		{`{"jsonrpc":"1.0","id":1,"method":"tools/list","params":{` + meta + `}}`, "1", mcp.CodeInvalidRequest},
		{`{"id":1,"method":"tools/list","params":{` + meta + `}}`, "1", mcp.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1.5,"method":"tools/list","params":{` + meta + `}}`, "", mcp.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":null,"method":"tools/list","params":{` + meta + `}}`, "", mcp.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":{},"method":"tools/list","params":{` + meta + `}}`, "", mcp.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}`, "1", mcp.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1,` + meta + `}}`, "1", mcp.CodeInvalidParams},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","arguments":"x",` + meta + `}}`, "1", mcp.CodeInvalidParams},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":[]}}`, "1", mcp.CodeInvalidParams},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"`, "1", mcp.CodeParseError},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"} x`, "1", mcp.CodeParseError},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", "1", mcp.CodeParseError},
		{`[]`, "", mcp.CodeInvalidRequest},
		{`7`, "", mcp.CodeInvalidRequest},
		{`null`, "", mcp.CodeInvalidRequest},
		{`tools/list`, "", mcp.CodeParseError},
		{strings.Repeat(`[`, 100_000), "", mcp.CodeInvalidRequest},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","arguments":` + strings.Repeat(`{"a":`, 100_000) + `1` + strings.Repeat(`}`, 100_000) + `}}`, "1", mcp.CodeParseError},
	} {
		name := test.message[:min(len(test.message), 80)]
		p := newPeer(t, hello(), eras[0])
		p.send(test.message)
		got := p.read()
		if got.ID.String() != test.id || (got.Error == nil) != (test.code == 0) || got.Error != nil && got.Error.Code != test.code {
			t.Errorf("%s: got id %s, %s, %v", name, got.ID, got.Result, got.Error)
		}
		p.send(eras[0].request("2", "tools/call", `"name":"hello"`))
		if got := p.read(); got.ID != mcp.IntID(2) || got.Error != nil {
			t.Errorf("after %s: got %s, %v", name, got.ID, got.Error)
		}
	}
}

// Unexpected responses and malformed notifications are dropped.
func TestDroppedMessages(t *testing.T) {
	for _, era := range eras {
		p := newPeer(t, hello(), era)
		for _, m := range []string{
			`{"jsonrpc":"2.0","id":"psi-99","result":{}}`,
			`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`,
			`{"jsonrpc":"2.0","method":"notifications/unheard","params":{"_meta":{}}}`,
			`{"jsonrpc":"2.0","method":"notifications/unheard","params":[]}`,
		} {
			p.send(m)
		}
		if said := p.finish(); len(said) > 0 {
			t.Errorf("%s: got %q", era.name, said)
		}
	}
}

// T35: an ID is echoed as written, and belongs to one request at a time.
func TestIDs(t *testing.T) {
	release := make(chan struct{})
	mux := hello()
	mux.Tool("slow", mcp.ToolFunc(func(context.Context, none) (string, error) { <-release; return "slow", nil }, nil))
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			p := newPeer(t, mux, era)
			for _, id := range []string{`1`, `"1"`, `1.0`, `-7`, `9223372036854775808`, `""`, `"a\"b"`, `0`} {
				p.send(era.request(id, "tools/call", `"name":"hello"`))
				if got := p.receive(); !strings.Contains(got, `"id":`+id+`,`) || !strings.Contains(got, "hi") {
					t.Errorf("%s: got %s", id, got)
				}
			}
			p.send(era.request(`5`, "tools/call", `"name":"slow"`))
			p.send(era.request(`5`, "tools/call", `"name":"hello"`))
			if got := p.read(); got.ID != mcp.IntID(5) || got.Error == nil || got.Error.Code != mcp.CodeInvalidRequest {
				t.Errorf("the second request got %s, %v", got.Result, got.Error)
			}
			release <- struct{}{}
			if got := p.read(); got.ID != mcp.IntID(5) || !strings.Contains(string(got.Result), "slow") {
				t.Errorf("the first request got %s, %v", got.Result, got.Error)
			}
			p.send(era.request(`5`, "tools/call", `"name":"hello"`))
			if got := p.read(); got.Error != nil {
				t.Errorf("once it is free again: %v", got.Error)
			}
		})
	}
}

// T36: a question of the server may have the same ID as a request of the client.
func TestSameIDBothWays(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Elicit[yes](ctx, "k", "Sure?")
		return "done", err
	}, nil))
	p := newPeer(t, mux, eras[1])
	p.send(eras[1].request(`"psi-1"`, "tools/call", `"name":"ask"`))
	question, err := transport.ParseMessage([]byte(p.receive()))
	if err != nil || question.Method == "" {
		t.Fatalf("got %+v, %v", question, err)
	}
	p.send(eras[1].request(question.ID.String()+" ", "ping", ""))
	p.send(`{"jsonrpc":"2.0","id":` + question.ID.String() + `,"result":{"action":"accept","content":{"ok":true}}}`)
	var got []string
	for range 2 {
		r := p.read()
		got = append(got, r.ID.String())
		if r.Error != nil && r.Error.Code != mcp.CodeInvalidRequest {
			t.Errorf("got %v", r.Error)
		}
	}
	if !slices.Contains(got, `"psi-1"`) {
		t.Errorf("got answers to %q", got)
	}
}

// T37: in the legacy era, initialize comes first, and only once.
func TestInitialize(t *testing.T) {
	legacy := eras[1]
	unopened := wireEra{"unopened", nil, legacy.meta}
	p := newPeer(t, hello(), unopened)
	for _, method := range []string{"tools/list", "resources/subscribe", "logging/setLevel", "server/discover"} {
		p.send(legacy.request("1", method, ""))
		if got := p.read(); got.Error == nil {
			t.Errorf("%s before initialize: got %s", method, got.Result)
		}
	}
	p.send(legacy.request("1", "ping", ""))
	if got := p.read(); got.Error != nil {
		t.Errorf("ping before initialize: %v", got.Error)
	}
	p.send(legacy.open[0])
	if got := p.read(); got.Error != nil {
		t.Fatalf("initialize: %v", got.Error)
	}
	p.send(legacy.open[0])
	if got := p.read(); got.Error == nil || got.Error.Code != mcp.CodeInvalidRequest {
		t.Errorf("a second initialize: %s, %v", got.Result, got.Error)
	}
	p.send(legacy.request("2", "tools/call", `"name":"hello"`))
	if got := p.read(); got.Error != nil {
		t.Errorf("after that: %v", got.Error)
	}
	// Both eras can share a connection.
	p.send(eras[0].request("3", "server/discover", ""))
	if got := p.read(); !strings.Contains(string(got.Result), "supportedVersions") {
		t.Errorf("a modern request: %s, %v", got.Result, got.Error)
	}
}

func TestVersionNegotiation(t *testing.T) {
	for asked, want := range map[string]string{
		"2024-11-05": "2024-11-05", "2025-03-26": "2025-03-26",
		"2025-06-18": "2025-06-18", "2025-11-25": "2025-11-25",
		"2023-01-01": "2025-11-25", "2026-07-28": "2025-11-25",
	} {
		p := newPeer(t, hello(), wireEra{})
		p.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + asked + `","capabilities":{},"clientInfo":{"name":"p","version":"v1"}}}`)
		if got := p.read(); !strings.Contains(string(got.Result), `"protocolVersion":"`+want+`"`) {
			t.Errorf("%s: got %s, %v", asked, got.Result, got.Error)
		}
	}
	p := newPeer(t, hello(), wireEra{})
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2027-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if got := p.read(); got.Error == nil || got.Error.Code != mcp.CodeUnsupportedVersion || !strings.Contains(string(got.Error.Data), mcp.LatestVersion) {
		t.Errorf("got %s, %v", got.Result, got.Error)
	}
	p.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
	if got := p.read(); got.Error == nil || got.Error.Code != mcp.CodeInvalidParams {
		t.Errorf("without capabilities: got %s, %v", got.Result, got.Error)
	}
}

// Only revision 2025-03-26 has batches.
func TestBatches(t *testing.T) {
	march := wireEra{"march", []string{strings.Replace(eras[1].open[0], "2025-11-25", "2025-03-26", 1), eras[1].open[1]}, eras[1].meta}
	p := newPeer(t, hello(), march)
	p.send(`[` + march.request("1", "tools/call", `"name":"hello"`) + `,{"jsonrpc":"2.0","method":"notifications/x"},` + march.request("2", "ping", "") + `,7]`)
	got := p.receive()
	items, err := transport.SplitBatch([]byte(got))
	if err != nil || len(items) != 3 || !strings.Contains(got, `"id":1`) || !strings.Contains(got, `"id":2`) || !strings.Contains(got, `-32600`) {
		t.Errorf("got %s, %v", got, err)
	}
	p.send(`[]`)
	if got := p.read(); got.Error == nil || got.Error.Code != mcp.CodeInvalidRequest {
		t.Errorf("an empty batch: %s, %v", got.Result, got.Error)
	}
	for _, era := range eras {
		p := newPeer(t, hello(), era)
		p.send(`[` + era.request("1", "tools/call", `"name":"hello"`) + `]`)
		if got := p.read(); got.Error == nil || got.Error.Code != mcp.CodeInvalidRequest {
			t.Errorf("%s: got %s, %v", era.name, got.Result, got.Error)
		}
	}
}

// Requests beyond the limit are rejected, and the others continue.
func TestMaxInFlight(t *testing.T) {
	release := make(chan struct{})
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("slow", mcp.ToolFunc(func(context.Context, none) (string, error) { <-release; return "slow", nil }, nil))
	p := servePeer(t, mux, eras[0], &mcpstdio.StreamOptions{MaxInFlight: 2})
	for i := range 3 {
		p.send(eras[0].request(fmt.Sprint(i), "tools/call", `"name":"slow"`))
	}
	if got := p.read(); got.Error == nil || got.Error.Code != mcp.CodeInternalError {
		t.Errorf("got %s, %v", got.Result, got.Error)
	}
	close(release)
	for range 2 {
		if got := p.read(); got.Error != nil {
			t.Errorf("got %v", got.Error)
		}
	}
}

// hasty is a stream whose peer sends the next request when it receives a response, before
// the server knows that it was written.
type hasty struct {
	next     chan []byte
	requests []string
	answers  []string
}

func (h *hasty) Read(context.Context) ([]byte, error) {
	message, ok := <-h.next
	if !ok {
		return nil, io.EOF
	}
	return message, nil
}

func (h *hasty) Write(_ context.Context, message []byte) error {
	h.answers = append(h.answers, string(message))
	if len(h.answers) < len(h.requests) {
		h.next <- []byte(h.requests[len(h.answers)]) // returns once it is read
		return nil
	}
	close(h.next)
	return nil
}

func (h *hasty) Close() error { return nil }

// Mutation 21: a client may reuse an ID once it has received the response.
func TestFindingM21IDAfterItsAnswer(t *testing.T) {
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hasty{next: make(chan []byte)}
				h.requests = append(h.requests, era.open[:min(1, len(era.open))]...) // only the request; the notification has no response
				for range 3 {
					h.requests = append(h.requests, era.request("5", "tools/call", `"name":"hello"`))
				}
				go func() { h.next <- []byte(h.requests[0]) }()
				if err := mcpstdio.ServeStream(t.Context(), hello(), h, nil); err != nil {
					t.Error(err)
				}
				for _, answer := range h.answers {
					if strings.Contains(answer, `"error"`) {
						t.Errorf("got %s", answer)
					}
				}
			})
		})
	}
}

// Mutation 23: after a client has stopped sending, it answers no more questions. A handler
// waiting for an answer does not delay the end.
func TestFindingM23QuestionAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			_, err := mcp.Elicit[yes](ctx, "k", "Sure?")
			return "done", err
		}, nil))
		p := newPeer(t, mux, eras[1])
		p.send(eras[1].request("1", "tools/call", `"name":"ask"`))
		if question := p.receive(); !strings.Contains(question, mcp.MethodElicit) {
			t.Fatalf("got %s", question)
		}
		begin := time.Now()
		said := p.finish()
		if took := time.Since(begin); took > time.Second {
			t.Errorf("the end took %v", took)
		}
		if len(said) == 0 || !strings.Contains(fmt.Sprint(said), `"id":1`) {
			t.Errorf("the call was not answered: %q", said)
		}
	})
}
