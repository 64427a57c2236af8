// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// A serverScript is a scripted server that counts the requests it receives.
type serverScript struct {
	mu    sync.Mutex
	heard []string
	reply func(method, id string) string
}

func (s *serverScript) transport() transport.Transport {
	return fakeServer(func(method, id string) (string, bool) {
		s.mu.Lock()
		s.heard = append(s.heard, method)
		s.mu.Unlock()
		return s.reply(method, id), true
	})
}

func (s *serverScript) count(method string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.heard {
		if m == method {
			n++
		}
	}
	return n
}

func resultFor(id, result string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`
}

// INIT-09, INIT-14: a client disconnects from a server without a common version.
func TestUnknownVersionOfServer(t *testing.T) {
	s := &serverScript{reply: func(_, id string) string {
		return resultFor(id, `{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"old","version":"1"}}`)
	}}
	_, err := mcp.NewClient("c", "v1", &mcp.ClientOptions{Version: "2025-11-25"}).Connect(t.Context(), s.transport())
	if err == nil || !strings.Contains(err.Error(), "1999-01-01") || s.count("notifications/initialized") != 0 {
		t.Errorf("connecting: %v, after %q", err, s.heard)
	}
}

// INIT-11: a handshake that times out is abandoned, not cancelled.
func TestHandshakeIsNotCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &serverScript{reply: func(string, string) string { return "" }}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := mcp.NewClient("c", "v1", &mcp.ClientOptions{Version: "2025-11-25"}).Connect(ctx, s.transport()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("connecting: %v", err)
		}
		synctest.Wait()
		if n := s.count("notifications/cancelled"); n != 0 {
			t.Errorf("%d cancellations", n)
		}
	})
}

const discovered = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{"subscribe":true}},"ttlMs":0,"cacheScope":"private"}`

// CAN-04, CAN-05, CAN-09: the late response to a cancelled request is ignored.
func TestLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		called := ""
		s := &serverScript{reply: func(method, id string) string {
			switch method {
			case mcp.MethodDiscover:
				return resultFor(id, discovered)
			case mcp.MethodCallTool:
				called = id
				return ""
			case mcp.NotificationCancelled:
				return resultFor(called, `{"resultType":"complete","content":[]}`)
			}
			return resultFor(id, `{"resultType":"complete","tools":[]}`)
		}}
		c := connectTo(t, s.transport(), nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.CallTool(ctx, tool("x", "")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the call: %v", err)
		}
		synctest.Wait()
		if _, err := c.ListTools(t.Context(), nil); err != nil || s.count(mcp.NotificationCancelled) != 1 {
			t.Errorf("after that: %v", err)
		}
		_ = c.Close()
		synctest.Wait()
	})
}

// PAGE-01, PAGE-03, PAGE-04: a cursor is returned unchanged. In the newest revision, that
// includes the empty one. See [TestEmptyCursorOfAnOlderServer].
func TestCursorsAreOpaque(t *testing.T) {
	var cursors, got []string
	n := 0
	h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		var p mcp.ListParams
		if req.Method != mcp.MethodListTools {
			return welcoming().ServeMCP(ctx, req)
		}
		if err := req.Decode(&p); err != nil {
			return nil, err
		}
		if p.Cursor != nil {
			got = append(got, *p.Cursor)
		}
		res := &mcp.ListToolsResult{Tools: []*mcp.Tool{}}
		if n < len(cursors) {
			res.NextCursor = &cursors[n]
		}
		n++
		return res, nil
	})
	for _, version := range bothEras {
		cursors, got, n = []string{"?a=b&c d", "größe", `"\`, "bm90IG91cnM="}, nil, 0
		if version == mcp.LatestVersion {
			cursors = append(cursors, "", "last")
		}
		if _, err := count(connect(t, h, &mcp.ClientOptions{Version: version}).Tools(t.Context(), nil)); err != nil || !slices.Equal(got, cursors) {
			t.Errorf("%s: sent %q, %v", version, got, err)
		}
	}
}

// asks returns a server of the legacy era that sends said after the handshake, and passes
// on the answers.
func asks(said string, heard chan<- string) transport.Transport {
	opened := `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`
	return transport.FromStream(func(context.Context) (transport.Stream, error) {
		near, far := transport.Pipe()
		go func() {
			for {
				data, err := far.Read(context.Background())
				m, _ := transport.ParseMessage(data)
				switch {
				case err != nil:
					return
				case m.Method == "":
					heard <- string(data)
				case m.IsNotification():
					_ = far.Write(context.Background(), []byte(said))
				default:
					_ = far.Write(context.Background(), []byte(resultFor(m.ID.String(), opened)))
				}
			}
		}()
		return near, nil
	})
}

// PING-01, ROOT-04, SAMP-02, ELI-02: a client of the legacy era answers what it supports,
// and rejects everything else.
func TestWhatClientsAnswer(t *testing.T) {
	full := talkative("2025-11-25")
	full.AnswerAnytime = true
	bare := &mcp.ClientOptions{Version: "2025-11-25", Logger: full.Logger}
	for _, test := range []struct {
		opts                 *mcp.ClientOptions
		method, params, want string
	}{
		{bare, "ping", `{}`, `"result":{}`},
		{bare, mcp.MethodListRoots, `{}`, `"code":-32601`},
		{bare, mcp.MethodElicit, `{"message":"?","requestedSchema":{"type":"object","properties":{}}}`, `"code":-32601`},
		{full, mcp.MethodElicit, `{"mode":"url","message":"?","url":"https://example.com/","elicitationId":"1"}`, `"error"`},
		{full, mcp.MethodCreateMessage, `{"messages":[],"maxTokens":1,"tools":[]}`, `"code":-32602`},
		{full, mcp.MethodListRoots, `{}`, `"roots":[{"uri":"file:///home"}]`},
		{full, "vendor/unknown", `{}`, `"code":-32601`},
	} {
		heard := make(chan string, 1)
		connectTo(t, asks(`{"jsonrpc":"2.0","id":"q","method":"`+test.method+`","params":`+test.params+`}`, heard), test.opts)
		if got := <-heard; !strings.Contains(got, `"id":"q"`) || !strings.Contains(got, test.want) {
			t.Errorf("%s %s: answered %s, want %s", test.method, test.params, got, test.want)
		}
	}
}

// ELI-21, SAMP-12, MRTR-11: a client stops answering a server that keeps asking, or keeps
// requesting a retry.
func TestEndlessServer(t *testing.T) {
	state, calls := "s", 0
	question := map[string]mcp.InputRequest{"k": {Method: mcp.MethodElicit, Params: json.RawMessage(`{"message":"?","requestedSchema":{"type":"object","properties":{}}}`)}}
	for name, asked := range map[string]mcp.InputRequired{"question": {InputRequests: question}, "state": {RequestState: &state}} {
		h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != mcp.MethodCallTool {
				return welcoming().ServeMCP(ctx, req)
			}
			calls++
			res := asked
			res.ResultType = mcp.ResultInputRequired
			return &res, nil
		})
		calls = 0
		opts := mcp.LimitQuestions(talkative(""), 3, 16)
		if res, err := connect(t, h, opts).CallTool(t.Context(), tool("t", "")); err == nil || calls < 2 || calls > 4 {
			t.Errorf("%s: %+v, %v after %d calls", name, res, err, calls)
		}
	}
}

// SAMP-03: the context of servers is included only if the client declared that capability.
func TestContextNeedsItsCapability(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("sample", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Sample(ctx, "k", &mcp.CreateMessageParams{MaxTokens: 1, IncludeContext: "thisServer"})
		return "", err
	}, nil))
	for _, able := range []bool{false, true} {
		caps := &mcp.SamplingCapability{}
		if able {
			caps.Context = &struct{}{}
		}
		cl := &mcptest.Client{Options: mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{Sampling: caps}}}
		res, _, err := mcptest.Do(t, mux, cl.NewRequest(mcp.MethodCallTool, tool("sample", "")))
		if _, asked := res.(*mcp.InputRequired); asked != able || (mcp.CodeOf(err) == mcp.CodeMissingCapability) == able {
			t.Errorf("able %t: %+v, %v", able, res, err)
		}
	}
}

// SUB-06, SUB-07, STDIO-08: each of several subscriptions gets only its own changes.
func TestSubscriptionsAreToldApart(t *testing.T) {
	mux := everything(quiet())
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		toolChanges, updates := make(chan mcp.Change, 100), make(chan mcp.Change, 100)
		one, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(ch mcp.Change) { toolChanges <- ch })
		if err != nil {
			t.Fatal(err)
		}
		other, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ResourceSubscriptions: []string{"r:r"}}, func(ch mcp.Change) { updates <- ch })
		if err != nil {
			t.Fatal(err)
		}
		mux.Tool("new", says(""))
		mux.ResourceUpdated("r:r")
		if got := <-toolChanges; got.Method != mcp.NotificationToolsListChanged {
			t.Errorf("the one heard %+v", got)
		}
		if got := <-updates; got.URI != "r:r" {
			t.Errorf("the other heard %+v", got)
		}
		one.Close()
		<-one.Done()
		mux.ResourceUpdated("r:r")
		if got := <-updates; got.URI != "r:r" {
			t.Errorf("alone, the other heard %+v", got)
		}
		other.Close()
		<-other.Done()
		mux.RemoveTool("new")
		for len(toolChanges) > 0 {
			if got := <-toolChanges; got.Method != mcp.NotificationToolsListChanged {
				t.Errorf("the one heard %+v", got)
			}
		}
	})
}

// HDR-06, HDR-07, HDR-11, HDR-12: a client mirrors the arguments that the list annotates,
// drops tools with invalid annotations, and lists again if a call is rejected.
func TestMirroredArguments(t *testing.T) {
	name, refusals := "Old", 0
	var s spy
	h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		switch req.Method {
		case mcp.MethodListTools:
			return &mcp.ListToolsResult{Tools: []*mcp.Tool{
				{Name: "route", InputSchema: json.RawMessage(`{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"` + name + `"},` +
					`"n":{"type":"integer","x-mcp-header":"N"},"b":{"type":"boolean","x-mcp-header":"B"},"z":{"type":"string","x-mcp-header":"Z"},"e":{"type":"string","x-mcp-header":"E"}}}`)},
				{Name: "wrong", InputSchema: json.RawMessage(`{"type":"object","properties":{"r":{"type":"number","x-mcp-header":"R"}}}`)},
			}}, nil
		case mcp.MethodCallTool:
			if name == "New" && refusals == 0 {
				refusals++
				return nil, mcp.Errorf(mcp.CodeHeaderMismatch, "header Mcp-Param-New: the header is missing")
			}
			return mcp.TextResult("ok"), nil
		}
		return welcoming().ServeMCP(ctx, req)
	})
	c := connectTo(t, s.on(memory(t, h)), &mcp.ClientOptions{Logger: quiet().Logger})
	if res, err := c.ListTools(t.Context(), nil); err != nil || len(res.Tools) != 1 {
		t.Fatalf("listed %+v, %v", res, err)
	}
	for _, name = range []string{"Old", "New"} {
		if _, err := c.CallTool(t.Context(), tool("route", `{"r":"eu","n":42,"b":false,"z":null,"e":""}`)); err != nil {
			t.Error(err)
		}
		calls := s.sent(mcp.MethodCallTool)
		want := []transport.HeaderParam{{Key: "Mcp-Param-B", Value: "false"}, {Key: "Mcp-Param-E", Value: ""}, {Key: "Mcp-Param-N", Value: "42"}, {Key: "Mcp-Param-" + name, Value: "eu"}}
		if got := calls[len(calls)-1].Headers; !slices.Equal(got, want) {
			t.Errorf("mirrored %v, want %v", got, want)
		}
	}
	if n := len(s.sent(mcp.MethodCallTool)); n != 3 {
		t.Errorf("%d calls were sent, want 3", n)
	}
}

// TOOL-13: structured content that does not match its schema is an error.
func TestOutputIsChecked(t *testing.T) {
	for content, fine := range map[string]bool{`{"n":1}`: true, `{"n":"x"}`: false} {
		h := withLists(mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodCallTool {
				return &mcp.CallToolResult{StructuredContent: json.RawMessage(content)}, nil
			}
			return welcoming().ServeMCP(ctx, req)
		}), &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "t", OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`)}}})
		for _, version := range bothEras {
			c := connect(t, h, &mcp.ClientOptions{Version: version})
			if _, err := c.ListTools(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if _, err := c.CallTool(t.Context(), tool("t", "")); (err == nil) != fine {
				t.Errorf("%s: %s: %v", version, content, err)
			}
		}
	}
}

// MRTR-18, SAMP-10, SAMP-02, ELI-02: if a client does not answer a question, it does not
// retry the call.
func TestUnansweredIsNotRetried(t *testing.T) {
	for params, method := range map[string]string{
		`{"messages":[],"maxTokens":1}`:                                         mcp.MethodCreateMessage,
		`{"message":"?","requestedSchema":{"type":"object","properties":{}}}`:   mcp.MethodElicit,
		`{"mode":"url","message":"?","url":"https://example.com"}`:              mcp.MethodElicit,
		`{"messages":[],"maxTokens":1,"tools":[{"name":"t","inputSchema":{}}]}`: mcp.MethodCreateMessage,
	} {
		calls := 0
		h := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != mcp.MethodCallTool {
				return welcoming().ServeMCP(ctx, req)
			}
			calls++
			asked := &mcp.InputRequired{InputRequests: map[string]mcp.InputRequest{"k": {Method: method, Params: json.RawMessage(params)}}}
			asked.ResultType = mcp.ResultInputRequired
			return asked, nil
		})
		opts := talkative("")
		opts.Elicit = func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return nil, errors.New("nobody is there")
		}
		if res, err := connect(t, h, opts).CallTool(t.Context(), tool("t", "")); err == nil && !res.IsError || calls != 1 {
			t.Errorf("%s: %+v, %v after %d calls", params, res, err, calls)
		}
	}
}

// ROOT-03: changes of roots are announced only in the era that has a notification for it.
func TestRootsChange(t *testing.T) {
	for version, want := range map[string]int{"2026-07-28": 0, "2025-11-25": 2} {
		var s spy
		c := connectTo(t, s.on(memory(t, welcoming())), talkative(version))
		if err := errors.Join(c.AddRoots(t.Context(), mcp.Root{URI: "file:///b"}), c.RemoveRoots(t.Context(), "file:///home")); err != nil {
			t.Error(err)
		}
		if n := len(s.sent(mcp.NotificationRootsListChanged)); n != want || len(c.Roots()) != 1 || c.Roots()[0].URI != "file:///b" {
			t.Errorf("%s: told %d times, the roots are %v", version, n, c.Roots())
		}
	}
}
