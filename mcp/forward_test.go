// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcpstdio"
)

// oldMessage is a message received by a server of the legacy era.
type oldMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string `json:"name"`
		Level     string `json:"level"`
		RequestID any    `json:"requestId"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *mcp.Error      `json:"error"`
}

// oldServer is a server of the legacy era on a stream, where its messages do not name a
// call. It answers the handshake and passes everything else to take.
type oldServer struct {
	stream transport.Stream
	take   func(s *oldServer, m oldMessage)
}

func newOldServer(take func(s *oldServer, m oldMessage)) transport.Transport {
	return transport.FromStream(func(context.Context) (transport.Stream, error) {
		client, server := transport.Pipe()
		s := &oldServer{server, take}
		go s.run()
		return client, nil
	})
}

func (s *oldServer) run() {
	for {
		data, err := s.stream.Read(context.Background())
		if err != nil {
			return
		}
		var m oldMessage
		if json.Unmarshal(data, &m) != nil {
			continue
		}
		switch m.Method {
		case "initialize":
			s.sayf(`"id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"old","version":"1"}}`, m.ID)
		case "notifications/initialized":
		default:
			s.take(s, m)
		}
	}
}

func (s *oldServer) sayf(format string, args ...any) {
	_ = s.stream.Write(context.Background(), fmt.Appendf(nil, `{"jsonrpc":"2.0",`+format+`}`, args...))
}

// ask sends a form that asks for a confirmation.
func (s *oldServer) ask(id, message string) {
	s.sayf(`"id":%q,"method":"elicitation/create","params":{"message":%q,"requestedSchema":{"type":"object","properties":{}}}`, id, message)
}

func (s *oldServer) answer(id json.RawMessage, text string) {
	s.sayf(`"id":%s,"result":{"content":[{"type":"text","text":%q}]}`, id, text)
}

// throughGateway mounts an old server, and returns a function that calls its tools as a
// given caller.
func throughGateway(t *testing.T, transport transport.Transport) (gw *mcp.Mux, call func(ctx context.Context, who, name string) (mcp.Result, error)) {
	t.Helper()
	gw = mcp.NewMux("gateway", "v1", quiet())
	gw.Mount("b_", connectTo(t, transport, &mcp.ClientOptions{Version: "2025-11-25", Forward: true, Logger: quiet().Logger}))
	return gw, func(ctx context.Context, who, name string) (mcp.Result, error) {
		req := receivedFrom(t, who, name)
		return core.Serve(ctx, gw, req, nil, quiet().Logger)
	}
}

// receivedFrom returns a tool call as a server receives it from who, or from an
// unauthenticated caller if who is empty.
func receivedFrom(t *testing.T, who, name string) *mcp.Request {
	t.Helper()
	m, err := transport.ParseMessage([]byte(eras[0].request("7", mcp.MethodCallTool, fmt.Sprintf(`"name":%q`, name))))
	if err != nil {
		t.Fatal(err)
	}
	req := requestOf(t, m)
	if who != "" {
		req.Principal = &mcp.Principal{Issuer: "i", Subject: who}
	}
	return req
}

// On a stream that does not relate questions to calls, a question of a server behind a
// gateway never reaches the wrong caller, neither after its own caller has given up nor
// while other calls wait. The server is told why it was rejected.
func TestFindingS5I6QuestionsNeverGoToAnotherCaller(t *testing.T) {
	for _, callers := range [][2]string{{"alice", "bob"}, {"", ""}, {"alice", ""}, {"", "bob"}} {
		t.Run(fmt.Sprintf("%q, %q", callers[0], callers[1]), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				replies := make(chan oldMessage, 8)
				var calls []json.RawMessage
				_, call := throughGateway(t, newOldServer(func(s *oldServer, m oldMessage) {
					switch {
					case m.Method == mcp.MethodCallTool && m.Params.Name == "forgets":
						calls = append(calls, m.ID) // ignores the cancellation of the call
					case m.Method == mcp.MethodCallTool:
						calls = append(calls, m.ID)
						s.ask("q1", "Transfer all of Alice's money?")
					case m.Method == "":
						replies <- m
						s.answer(calls[len(calls)-1], "done")
					}
				}))
				ctx, leave := context.WithTimeout(t.Context(), time.Second)
				defer leave()
				if _, err := call(ctx, callers[0], "b_forgets"); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("the first call ended with %v", err)
				}
				synctest.Wait()
				res, err := call(t.Context(), callers[1], "b_asks")
				if got, ok := res.(*mcp.CallToolResult); err != nil || !ok || textOf(got) != "done" {
					t.Errorf("the second caller got %+v, %v", res, err)
				}
				if m := <-replies; m.Error == nil || !strings.Contains(m.Error.Message, "another caller has given up") {
					t.Errorf("the server got %s, %v", m.Result, m.Error)
				}
				// After a while, nothing can refer to that call anymore.
				<-time.After(11 * time.Minute)
				if res, err = call(t.Context(), callers[1], "b_asks"); err != nil {
					t.Error(err)
				} else if _, asked := res.(*mcp.InputRequired); !asked {
					t.Errorf("later, the second caller got %+v", res)
				}
			})
		})
	}
}

// If there is only one caller, questions continue even after it has given up other calls.
func TestFindingS5SameCallerIsStillAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, call := throughGateway(t, newOldServer(func(s *oldServer, m oldMessage) {
			if m.Method == mcp.MethodCallTool && m.Params.Name == "asks" {
				s.ask("q1", "Sure?")
			}
		}))
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		_, _ = call(ctx, "alice", "b_forgets")
		synctest.Wait()
		if res, err := call(t.Context(), "alice", "b_asks"); err != nil {
			t.Error(err)
		} else if _, asked := res.(*mcp.InputRequired); !asked {
			t.Errorf("alice got %+v", res)
		}
	})
}

// While several calls wait, or the gateway itself calls, questions are rejected. The error
// gives this reason, rather than a missing method.
func TestFindingI6QuestionsOfSeveralCallsAreRefusedWithTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		replies := make(chan oldMessage, 8)
		var calls []json.RawMessage
		gw, call := throughGateway(t, newOldServer(func(s *oldServer, m oldMessage) {
			switch m.Method {
			case mcp.MethodCallTool:
				if calls = append(calls, m.ID); m.Params.Name == "asks" {
					s.ask("q1", "Sure?")
				}
			case "":
				replies <- m
				for _, id := range calls {
					s.answer(id, "done")
				}
			}
		}))
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = call(t.Context(), "alice", "b_waits") })
		synctest.Wait()
		if res, err := call(t.Context(), "alice", "b_asks"); err != nil || textOf(res.(*mcp.CallToolResult)) != "done" {
			t.Errorf("got %+v, %v", res, err)
		}
		wg.Wait()
		if m := <-replies; m.Error == nil || m.Error.Code == mcp.CodeMethodNotFound || !strings.Contains(m.Error.Message, "several calls") {
			t.Errorf("the server got %s, %v", m.Result, m.Error)
		}
		// A caller without the capability is not asked.
		req := receivedFrom(t, "alice", "b_asks")
		bare, err := req.WithParams(json.RawMessage(`{"name":"b_asks","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`))
		if err != nil {
			t.Fatal(err)
		}
		if res, err := core.Serve(t.Context(), gw, bare, nil, nil); err != nil || textOf(res.(*mcp.CallToolResult)) != "done" {
			t.Errorf("got %+v, %v", res, err)
		}
		if m := <-replies; m.Error == nil || !strings.Contains(m.Error.Message, "capability") {
			t.Errorf("the server got %s, %v", m.Result, m.Error)
		}
	})
}

// If a proxy repeats a retry, the second one does not hang. If the first is given up, the
// call continues for the second.
func TestFindingCM15RepeatedRetries(t *testing.T) {
	for _, gone := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var id json.RawMessage
			finish := make(chan struct{})
			gw, call := throughGateway(t, newOldServer(func(s *oldServer, m oldMessage) {
				switch m.Method {
				case mcp.MethodCallTool:
					id = m.ID
					s.ask("q1", "Sure?")
				case "":
					go func() { <-finish; s.answer(id, "done") }()
				}
			}))
			res, err := call(t.Context(), "alice", "b_asks")
			asked, ok := res.(*mcp.InputRequired)
			if err != nil || !ok {
				t.Fatalf("got %+v, %v", res, err)
			}
			p := tool("b_asks", "")
			p.RequestState, p.InputResponses = asked.RequestState, map[string]json.RawMessage{}
			for key := range asked.InputRequests {
				p.InputResponses[key] = json.RawMessage(`{"action":"accept"}`)
			}
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			outcomes := make(chan error, 2)
			for _, ctx := range []context.Context{ctx, t.Context()} {
				req, err := receivedFrom(t, "alice", "b_asks").WithParams(withMeta(t, p))
				if err != nil {
					t.Fatal(err)
				}
				go func() {
					res, err := core.Serve(ctx, gw, req, nil, nil)
					if err == nil && textOf(res.(*mcp.CallToolResult)) != "done" {
						err = fmt.Errorf("got %+v", res)
					}
					outcomes <- err
				}()
				synctest.Wait()
			}
			if gone {
				leave()
				if err := <-outcomes; !errors.Is(err, context.Canceled) {
					t.Errorf("the first retry ended with %v", err)
				}
			}
			close(finish)
			for range 2 {
				if gone {
					gone = false
					continue
				}
				select {
				case err := <-outcomes:
					if err != nil {
						t.Error(err)
					}
				case <-time.After(time.Minute):
					t.Error("a retry waits for ever")
				}
			}
		})
	}
}

// withMeta adds the metadata of a modern request to p.
func withMeta(t *testing.T, p *mcp.CallToolParams) *mcp.CallToolParams {
	t.Helper()
	c := *p
	if err := json.Unmarshal([]byte("{"+eras[0].meta+"}"), &struct {
		Meta *mcp.Meta `json:"_meta"`
	}{&c.Meta}); err != nil {
		t.Fatal(err)
	}
	return &c
}

// The progress that a gateway forwards always increases, even when the server's handler
// starts over.
func TestFindingCM12ProgressOfAGatewayIncreases(t *testing.T) {
	for _, back := range bothEras {
		for _, front := range bothEras {
			for _, own := range []bool{true, false} {
				opts := &mcp.ClientOptions{Version: back, Forward: !own}
				if own {
					opts.Elicit = answering
				}
				gw := mcp.NewMux("gateway", "v1", quiet())
				gw.Mount("b_", connect(t, welcoming(), opts))
				p := newPeer(t, gw, eras[slices.Index(bothEras, front)])
				var told []float64
				greet := strings.Replace(eras[slices.Index(bothEras, front)].request("1", mcp.MethodCallTool, `"name":"b_greet"`), `"_meta":{`, `"_meta":{"progressToken":"p",`, 1)
				p.send(strings.Replace(greet, `,}`, `}`, 1))
				for answered := false; !answered; {
					var m struct {
						ID     any
						Method string
						Params struct{ Progress float64 }
					}
					said := p.receive()
					if err := json.Unmarshal([]byte(said), &m); err != nil {
						t.Fatal(err)
					}
					switch m.Method {
					case "":
						answered = true
					case mcp.NotificationProgress:
						told = append(told, m.Params.Progress)
					case mcp.MethodElicit:
						p.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"result":{"action":"accept","content":{"name":"Ada"}}}`, m.ID))
					}
				}
				if len(told) == 0 || !slices.IsSorted(told) || len(slices.Compact(slices.Clone(told))) != len(told) {
					t.Errorf("%s in front of %s, the gateway answers %t: told %v", front, back, own, told)
				}
			}
		}
	}
}

// If an answer could not be sent to the older server that asked, the caller gets an error
// and can send it again.
func TestForwardedAnswerNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := transport.Pipe()
		served := make(chan error, 1)
		go func() { served <- mcpstdio.ServeStream(t.Context(), welcoming(), far, nil) }()
		var lossy atomic.Bool // whether answers to questions are lost
		faulty := mcptest.Faulty(transport.FromStream(func(context.Context) (transport.Stream, error) { return near, nil }), func(_ int, m *transport.Outgoing) mcptest.Fault {
			if m.Method == "" && lossy.Load() {
				return mcptest.Fault{Err: errors.New("the network is down")}
			}
			return mcptest.Fault{}
		})
		c := connectTo(t, faulty, &mcp.ClientOptions{Version: "2025-11-25", Forward: true, Logger: quiet().Logger})
		call := func(params map[string]any) (mcp.Result, error) {
			res, _, err := mcptest.Do(t, c, mcptest.NewRequest(mcp.MethodCallTool, params))
			return res, err
		}
		res, err := call(map[string]any{"name": "greet"})
		asked, ok := res.(*mcp.InputRequired)
		if !ok || len(asked.InputRequests) != 1 {
			t.Fatalf("got %+v, %v", res, err)
		}
		answers := map[string]any{}
		for key := range asked.InputRequests {
			answers[key] = json.RawMessage(`{"action":"accept","content":{"name":"Ada"}}`)
		}
		again := map[string]any{"name": "greet", "requestState": asked.RequestState, "inputResponses": answers}
		lossy.Store(true)
		if res, err := call(again); mcp.CodeOf(err) != mcp.CodeInternalError {
			t.Errorf("the answer was not sent: got %+v, %v", res, err)
		}
		lossy.Store(false)
		res, err = call(again)
		if next, ok := res.(*mcp.InputRequired); !ok || len(next.InputRequests) != 1 {
			t.Errorf("the answer was sent again: got %+v, %v", res, err)
		}
		_ = c.Close()
		<-served
	})
}

// A call that ended without the answer to its question has a result, even if the answer can
// no longer be sent.
func TestForwardedAnswerTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := transport.Pipe()
		served := make(chan error, 1)
		go func() {
			served <- mcpstdio.ServeStream(t.Context(), welcoming(), far, &mcpstdio.StreamOptions{AskTimeout: time.Minute})
		}()
		faulty := mcptest.Faulty(transport.FromStream(func(context.Context) (transport.Stream, error) { return near, nil }), func(_ int, m *transport.Outgoing) mcptest.Fault {
			if m.Method == "" {
				return mcptest.Fault{Err: errors.New("the server waits for no answer")}
			}
			return mcptest.Fault{}
		})
		c := connectTo(t, faulty, &mcp.ClientOptions{Version: "2025-11-25", Forward: true, Logger: quiet().Logger})
		res, _, err := mcptest.Do(t, c, mcptest.NewRequest(mcp.MethodCallTool, map[string]any{"name": "greet"}))
		asked, ok := res.(*mcp.InputRequired)
		if !ok {
			t.Fatalf("got %+v, %v", res, err)
		}
		<-time.After(2 * time.Minute)
		began := time.Now()
		res, _, err = mcptest.Do(t, c, mcptest.NewRequest(mcp.MethodCallTool, map[string]any{"name": "greet", "requestState": asked.RequestState}))
		if result, ok := res.(*mcp.CallToolResult); !ok || !result.IsError {
			t.Errorf("got %+v, %v", res, err)
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("it took %v", waited)
		}
		_ = c.Close()
		<-served
	})
}

// listenThrough subscribes through a connection to a server that runs script for each
// subscription, and returns what arrives. The subscriber reads nothing until script is
// done.
func listenThrough(t *testing.T, script func(notify func(method string, params map[string]any))) (arrived []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Use(func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				if req.Method != mcp.MethodListen {
					return next.ServeMCP(ctx, req)
				}
				script(func(method string, params map[string]any) {
					if params["_meta"] == nil {
						params["_meta"] = map[string]any{mcp.MetaSubscriptionID: req.ID}
					}
					_ = req.Notify(ctx, method, params)
				})
				<-ctx.Done()
				return nil, context.Cause(ctx)
			})
		})
		c := connect(t, mux, quietClient(mcp.LatestVersion))
		req, err := mcp.NewRequest(mcp.MethodListen, json.RawMessage(`{"notifications":{"taskIds":["a"],"resourceSubscriptions":["r:a"]}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.ID = mcp.IntID(1)
		ctx, cancel := context.WithCancel(t.Context())
		reads, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = core.Serve(ctx, c, req, notifier(func(method string, params json.RawMessage) {
				if len(params) > 1000 {
					params = params[:1000]
				}
				arrived = append(arrived, fmt.Sprintf("%s %s", strings.TrimPrefix(method, "notifications/"), params))
				<-reads
			}), quiet().Logger)
		}()
		<-time.After(time.Minute)
		close(reads)
		synctest.Wait()
		cancel()
		<-ended
		_ = c.Close()
	})
	return arrived
}

// Notifications of an extension arrive if they belong to the subscription and the server
// has accepted the extension's part of it.
func TestForwardedExtensions(t *testing.T) {
	accept := map[string]any{"taskIds": []string{"a"}}
	type object = map[string]any
	for name, c := range map[string]struct {
		accepted, note object
		want           int // notifications after the acknowledgement
	}{
		"accepted":     {accept, object{"taskId": "a"}, 1},
		"of no one":    {accept, object{"_meta": object{}}, 0},
		"not accepted": {object{"resourceSubscriptions": []string{"r:a"}}, object{}, 0},
	} {
		got := listenThrough(t, func(notify func(string, object)) {
			notify("notifications/tasks", maps.Clone(c.note)) // too early
			notify(mcp.NotificationAcknowledged, object{"notifications": c.accepted})
			notify("notifications/tasks", maps.Clone(c.note))
		})
		if len(got) != c.want+1 || !strings.HasPrefix(got[0], "subscriptions/acknowledged") {
			t.Errorf("%s: %q arrived", name, got)
		}
	}
}

// While the subscriber does not read, notifications of an extension are queued up to the
// limits for changes: 1024 notifications and 16 MiB.
func TestForwardedExtensionBounds(t *testing.T) {
	for size, want := range map[int]int{0: 1024, 1 << 20: 15} {
		got := listenThrough(t, func(notify func(string, map[string]any)) {
			notify(mcp.NotificationAcknowledged, map[string]any{"notifications": map[string]any{"taskIds": []string{"a"}}})
			<-time.After(time.Second) // the subscriber starts reading the acknowledgement
			for i := range 1100 {
				if size == 0 || i < 20 {
					notify("notifications/tasks", map[string]any{"taskId": fmt.Sprint(i), "x": strings.Repeat("x", size)})
				}
			}
		})
		if n := len(slices.DeleteFunc(got, func(s string) bool { return !strings.HasPrefix(s, "tasks") })); n != want {
			t.Errorf("of notifications with %d bytes, %d arrived, want %d", size, n, want)
		}
	}
}

// A modern client cannot say that a question will not be answered, for example because its user
// has closed the dialog. The unanswered call does not keep its caller from being asked about
// later ones. Others are told why they are not asked.
func TestFindingY3UnansweredQuestionBlocksNobodyButOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		replies := make(chan oldMessage, 8)
		_, call := throughGateway(t, newOldServer(func(s *oldServer, m oldMessage) {
			switch m.Method {
			case mcp.MethodCallTool:
				asked++
				s.ask(fmt.Sprint("q", asked), "Sure?")
				if m.Params.Name == "refused" {
					s.answer(m.ID, "done")
				}
			case "":
				replies <- m
			}
		}))
		for range 3 {
			if res, err := call(t.Context(), "alice", "b_asks"); err != nil {
				t.Fatal(err)
			} else if _, isAsked := res.(*mcp.InputRequired); !isAsked {
				t.Errorf("alice got %+v", res)
			}
		}
		for _, other := range []string{"bob", ""} {
			if res, err := call(t.Context(), other, "b_refused"); err != nil || textOf(res.(*mcp.CallToolResult)) != "done" {
				t.Errorf("%q got %+v, %v", other, res, err)
			}
			if m := <-replies; m.Error == nil || !strings.Contains(m.Error.Message, "a call of another caller, who has been asked and has not answered") {
				t.Errorf("%q: the server got %s, %v", other, m.Result, m.Error)
			}
		}
	})
}

// If a client of an older revision in front of a gateway refuses a question, or gives up its
// call, the server behind it is told at once, and the next caller is asked.
func TestFindingY3RefusedQuestionIsPassedOn(t *testing.T) {
	for _, version := range mcp.LegacyVersions() {
		for name, givesUp := range map[string]bool{"an error": false, "a call given up": true} {
			t.Run(version+" "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					asked, refused := 0, make(chan oldMessage, 8)
					var calls []json.RawMessage
					gw, call := throughGateway(t, newOldServer(func(s *oldServer, m oldMessage) {
						switch m.Method {
						case mcp.MethodCallTool:
							asked++
							calls = append(calls, m.ID)
							s.ask(fmt.Sprint("q", asked), "Sure?")
						case "":
							refused <- m
							s.answer(calls[0], "not done")
						default:
							if m.ID != nil {
								s.sayf(`"id":%s,"result":{"tools":[]}`, m.ID)
							}
						}
					}))
					opts := &mcp.ClientOptions{Version: version, Elicit: func(ctx context.Context, _ *mcp.Conn, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
						if givesUp {
							<-ctx.Done()
						}
						return nil, errors.New("closed")
					}}
					c := connect(t, gw, opts)
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					_, _ = c.CallTool(ctx, tool("b_asks", ""))
					start := time.Now()
					if m := <-refused; m.Error == nil || time.Since(start) > time.Second {
						t.Errorf("after %v, the server got %s, %v", time.Since(start), m.Result, m.Error)
					}
					synctest.Wait()
					if res, err := call(t.Context(), "bob", "b_asks"); err != nil {
						t.Error(err)
					} else if _, isAsked := res.(*mcp.InputRequired); !isAsked {
						t.Errorf("bob got %s", textOf(res.(*mcp.CallToolResult)))
					}
					_ = c.Close()
				})
			})
		}
	}
}
