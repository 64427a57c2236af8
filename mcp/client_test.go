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
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// everyVersion returns the versions that a client can be pinned to, and "" for probing.
func everyVersion() []string {
	return slices.Concat([]string{""}, mcp.ModernVersions(), mcp.LegacyVersions())
}

func connect(t *testing.T, h mcp.Handler, opts *mcp.ClientOptions) *mcp.Conn {
	t.Helper()
	c := connectTo(t, memory(t, h), opts)
	if slices.Contains(mcp.LegacyVersions(), c.Version()) {
		_ = c.Ping(t.Context()) // the server has then read notifications/initialized, so no change is missed
	}
	return c
}

func connectTo(t *testing.T, transport transport.Transport, opts *mcp.ClientOptions) *mcp.Conn {
	t.Helper()
	c, err := mcp.NewClient("client", "v1", opts).Connect(t.Context(), transport)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

type namedField struct {
	Name string `json:"name"`
}

// welcoming returns a server with a tool that reports progress and asks twice.
func welcoming() *mcp.Mux {
	mux := mcp.NewMux("asking", "v1", &mcp.MuxOptions{Instructions: "Ask."})
	mux.Tool("greet", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		mcp.Progress(ctx, 1, 3, "first")
		first, err := mcp.Elicit[namedField](ctx, "first", "First name?")
		if err != nil {
			return "", err
		}
		mcp.Progress(ctx, 2, 3, "last")
		last, err := mcp.Elicit[namedField](ctx, "last", "Last name?")
		if err != nil {
			return "", err
		}
		mcp.Progress(ctx, 3, 3, "done")
		return first.Name + " " + last.Name, nil
	}, nil))
	return mux
}

// answering answers both questions of the server that welcoming returns.
func answering(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
	name := "Ada"
	if strings.HasPrefix(p.Message, "Last") {
		name = "Lovelace"
	}
	content, err := json.Marshal(namedField{name})
	return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: content}, err
}

// Servers of all revisions look the same to a client.
func TestClientVersions(t *testing.T) {
	mux := welcoming()
	mux.Prompt("hello", mcp.PromptFunc(func(_ context.Context, in namedField) (string, error) { return "Hello, " + in.Name, nil }, nil))
	mux.Resource("test://doc", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "text", nil }, nil))
	for _, version := range everyVersion() {
		t.Run("version "+version, func(t *testing.T) {
			c := connect(t, mux, &mcp.ClientOptions{Version: version, Elicit: answering})
			if version != "" && c.Version() != version {
				t.Errorf("the connection speaks %s", c.Version())
			}
			if s := c.Server(); s.Instructions != "Ask." || s.Capabilities.Tools == nil || c.ServerInfo().Name != "asking" {
				t.Errorf("the server says %+v, %+v", s, c.ServerInfo())
			}
			var progress []float64
			ctx := mcp.WithProgress(t.Context(), func(p *mcp.ProgressParams) { progress = append(progress, p.Progress) })
			if got, err := mcp.Call[string](ctx, c, "greet", nil); err != nil || got != "Ada Lovelace" {
				t.Errorf("greet: %q, %v", got, err)
			}
			if !slices.Equal(progress, []float64{1, 2, 3}) {
				t.Errorf("progress %v, want 1, 2, 3", progress)
			}
			p, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "hello", Arguments: map[string]string{"name": "Ada"}})
			if err != nil || p.Messages[0].Content.(*mcp.TextContent).Text != "Hello, Ada" {
				t.Errorf("prompt: %+v, %v", p, err)
			}
			r, err := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://doc"})
			if err != nil || r.Contents[0].Text != "text" {
				t.Errorf("resource: %+v, %v", r, err)
			}
			_, err = c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://none"})
			wantCode(t, err, mcp.CodeInvalidParams)
			if err := c.Ping(t.Context()); err != nil {
				t.Errorf("ping: %v", err)
			}
			for _, list := range []func() (int, error){
				func() (int, error) { return count(c.Tools(t.Context(), nil)) },
				func() (int, error) { return count(c.Prompts(t.Context(), nil)) },
				func() (int, error) { return count(c.Resources(t.Context(), nil)) },
			} {
				if n, err := list(); n != 1 || err != nil {
					t.Errorf("a list of %d items, %v", n, err)
				}
			}
		})
	}
}

func count[D any](items func(yield func(*D, error) bool)) (n int, err error) {
	for _, e := range items {
		if err = e; err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// An accepted form is completed with its defaults. An invalid answer is not sent to the
// server.
func TestClientForms(t *testing.T) {
	type form struct {
		Name string `json:"name" jsonschema:"default=Ada"`
		Size string `json:"size" jsonschema:"enum=s,enum=l"`
	}
	mux := mcp.NewMux("forms", "v1", nil)
	mux.Tool("fill", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		f, err := mcp.Elicit[form](ctx, "form", "Fill in.")
		return fmt.Sprint(f), err
	}, nil))
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		answer := &mcp.ElicitResult{}
		c := connect(t, mux, &mcp.ClientOptions{Version: version, Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return answer, nil
		}})
		for _, test := range []struct {
			result mcp.ElicitResult
			want   string
		}{
			{mcp.ElicitResult{Action: "accept", Content: []byte(`{"size":"s"}`)}, "{Ada s}"},
			{mcp.ElicitResult{Action: "accept", Content: []byte(`{"size":"xl"}`)}, "size"},
			{mcp.ElicitResult{Action: "decline"}, "declined"},
			{mcp.ElicitResult{Action: "cancel"}, "cancelled"},
		} {
			*answer = test.result
			res, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "fill"})
			got := fmt.Sprint(err)
			if err == nil {
				got = res.Content[0].(*mcp.TextContent).Text
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("%s: %s %s: %s, want %s", version, test.result.Action, test.result.Content, got, test.want)
			}
		}
	}
}

// Servers request sampling, roots and URL visits in the same way as forms. Without a
// function, the client does not declare the capability.
func TestClientAnswers(t *testing.T) {
	mux := mcp.NewMux("asks", "v1", nil)
	mux.Tool("all", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		var sample mcp.CreateMessageResult
		var roots []mcp.Root
		err := mcp.Ask(ctx,
			mcp.SampleQuestion("sample", &mcp.CreateMessageParams{MaxTokens: 10, Messages: []*mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text("hi")}}}}, &sample),
			mcp.RootsQuestion("roots", &roots),
			mcp.ElicitURLQuestion("link", "Go there.", "https://example.com"))
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%s %s", sample.Model, roots[0].URI), nil
	}, nil))
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		var seen sync.Map
		c := connect(t, mux, &mcp.ClientOptions{
			Version: version,
			Roots:   []mcp.Root{{URI: "file:///a"}},
			Sample: func(_ context.Context, _ *mcp.Conn, p *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
				return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: "m", Content: p.Messages[0].Content}, nil
			},
			ElicitURL: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: mcp.ActionAccept}, nil
			},
			AnswerMiddleware: []mcp.Middleware{func(next mcp.Handler) mcp.Handler {
				return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
					seen.Store(req.Method, true)
					return next.ServeMCP(ctx, req)
				})
			}},
		})
		if got, err := mcp.Call[string](t.Context(), c, "all", nil); err != nil || got != "m file:///a" {
			t.Errorf("%s: %q, %v", version, got, err)
		}
		for _, method := range []string{mcp.MethodElicit, mcp.MethodCreateMessage, mcp.MethodListRoots} {
			if _, ok := seen.Load(method); !ok {
				t.Errorf("%s: the middleware did not see %s", version, method)
			}
		}
		bare := connect(t, mux, &mcp.ClientOptions{Version: version})
		_, err := bare.CallTool(t.Context(), &mcp.CallToolParams{Name: "all"})
		wantCode(t, err, mcp.CodeMissingCapability)
	}
}

// Questions whose capability is declared without a function are returned to the caller.
func TestManualInput(t *testing.T) {
	declared := &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapability{Form: &struct{}{}}}
	c := connect(t, welcoming(), &mcp.ClientOptions{Capabilities: declared, Forward: true}) // the program makes the calls itself
	_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "greet"})
	var asked *mcp.InputRequiredError
	if !errors.As(err, &asked) || asked.Result.InputRequests["first"].Method != mcp.MethodElicit {
		t.Fatalf("the call returned %v", err)
	}
	_, err = c.CallTool(t.Context(), &mcp.CallToolParams{Name: "greet", Resume: mcp.Resume{
		InputResponses: map[string]json.RawMessage{"first": []byte(`{"action":"accept","content":{"name":"Ada"}}`)},
		RequestState:   asked.Result.RequestState,
	}})
	if !errors.As(err, &asked) || asked.Result.InputRequests["last"].Method == "" {
		t.Errorf("the retry returned %v", err)
	}
}

// Middleware on a connection sees each call once, however many requests are sent.
func TestConnUse(t *testing.T) {
	c := connect(t, welcoming(), &mcp.ClientOptions{Elicit: answering})
	var order []string
	trace := func(name string) mcp.Middleware {
		return func(next mcp.Handler) mcp.Handler {
			return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
				order = append(order, name+" "+req.Method)
				return next.ServeMCP(ctx, req)
			})
		}
	}
	c.Use(trace("a"), trace("b"))
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "greet"}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(order, []string{"a tools/call", "b tools/call"}) {
		t.Errorf("the middleware saw %v", order)
	}
}

// Cancelling a call cancels it at the server, with the reason.
func TestClientCancel(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		mux := mcp.NewMux("waits", "v1", nil)
		began, ended := make(chan struct{}), make(chan error, 1)
		mux.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			close(began)
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return "", context.Cause(ctx)
		}, nil))
		c := connect(t, mux, &mcp.ClientOptions{Version: version})
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		go func() { <-began; cancel(enough) }()
		if _, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "wait"}); !errors.Is(err, enough) {
			t.Errorf("%s: the call returned %v", version, err)
		}
		var cancelled *mcp.CancelError
		if err := <-ended; !errors.As(err, &cancelled) || cancelled.Reason != "enough" {
			t.Errorf("%s: the handler's cause is %v", version, err)
		}
	}
}

// Progress restarts the timeout of a call, but does not extend the context's deadline.
func TestClientTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := mcp.NewMux("slow", "v1", nil)
		mux.Tool("slow", mcp.ToolFunc(func(ctx context.Context, in struct {
			Steps int `json:"steps"`
		}) (string, error) {
			for i := range in.Steps {
				<-time.After(time.Second)
				if ctx.Err() != nil {
					return "", ctx.Err()
				}
				mcp.Progress(ctx, float64(i), 0, "")
			}
			<-time.After(time.Second)
			return "done", nil
		}, nil))
		mux.Tool("silent", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}, nil))
		c := connect(t, mux, &mcp.ClientOptions{CallTimeout: 2 * time.Second})
		steps := func(ctx context.Context, n int) error {
			_, err := mcp.Call[string](ctx, c, "slow", map[string]int{"steps": n})
			return err
		}
		if err := steps(t.Context(), 5); err != nil {
			t.Errorf("a call with progress: %v", err)
		}
		start := time.Now()
		_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "silent"})
		var timeout *mcp.TimeoutError
		if !errors.As(err, &timeout) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("a call without: %v after %v", err, time.Since(start))
		}
		start = time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := steps(ctx, 60); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 10*time.Second {
			t.Errorf("a call with too much progress: %v after %v", err, time.Since(start))
		}
		_ = c.Close()
		<-time.After(time.Minute)
	})
}

// Subscriptions receive changes in both eras.
func TestClientListen(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		mux := welcoming()
		mux.Resource("test://doc", mcp.ResourceFunc(func(context.Context, struct{}) (string, error) { return "", nil }, nil))
		c := connect(t, mux, &mcp.ClientOptions{Version: version})
		changes := make(chan mcp.Change, 8)
		s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"test://doc", "test://none"}},
			func(ch mcp.Change) { changes <- ch })
		if err != nil {
			t.Fatal(err)
		}
		if !s.Accepted().ToolsListChanged || !slices.Equal(s.Accepted().ResourceSubscriptions, []string{"test://doc"}) {
			t.Errorf("%s: accepted %+v", version, s.Accepted())
		}
		mux.Tool("new", uncalled)
		if got := <-changes; got.Method != mcp.NotificationToolsListChanged {
			t.Errorf("%s: heard %+v", version, got)
		}
		mux.ResourceUpdated("test://doc")
		if got := <-changes; got.URI != "test://doc" {
			t.Errorf("%s: heard %+v", version, got)
		}
		s.Close()
		<-s.Done()
		if err := s.Err(); err != nil {
			t.Errorf("%s: the subscription ended with %v", version, err)
		}
		if _, err := c.Subscribe(t.Context(), "test://none", func(string) {}); err == nil {
			t.Errorf("%s: a subscription to nothing was agreed to", version)
		}
	}
}

// T40: iterating over an endless list ends with an error.
func TestRepeatedCursor(t *testing.T) {
	again := "again"
	c := connect(t, withLists(welcoming(), &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "x"}}, Page: mcp.Page{NextCursor: &again}}), nil)
	n, err := count(c.Tools(t.Context(), nil))
	if !errors.Is(err, mcp.ErrRepeatedCursor) || n != 2 {
		t.Errorf("%d tools, then %v", n, err)
	}
}

// withLists wraps h to answer tools/list with res.
func withLists(h mcp.Handler, res mcp.Result) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == mcp.MethodListTools {
			return res, nil
		}
		return h.ServeMCP(ctx, req)
	})
}

// fakeServer returns a transport to a server that calls respond for each message and sends
// the answer unless it is "". The server ends when more is false.
func fakeServer(respond func(method, id string) (answer string, more bool)) transport.Transport {
	return transport.FromStream(func(context.Context) (transport.Stream, error) {
		client, server := transport.Pipe()
		go func() {
			defer server.Close()
			for {
				data, err := server.Read(context.Background())
				if err != nil {
					return
				}
				var m struct {
					Method string          `json:"method"`
					ID     json.RawMessage `json:"id"`
				}
				_ = json.Unmarshal(data, &m)
				answer, more := respond(m.Method, string(m.ID))
				if answer != "" {
					_ = server.Write(context.Background(), []byte(answer))
				}
				if !more {
					return
				}
			}
		}()
		return client, nil
	})
}

// T61: however a legacy server reacts to server/discover, the client soon has a session.
func TestProbe(t *testing.T) {
	legacy := func(method, id string) string {
		switch method {
		case "initialize":
			return `{"jsonrpc":"2.0","id":` + id + `,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"old","version":"1"}}}`
		case "ping":
			return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}`
		}
		return ""
	}
	failing := func(code int) func(string) (string, bool) {
		return func(id string) (string, bool) {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no"}}`, id, code), true
		}
	}
	for name, discover := range map[string]func(id string) (string, bool){
		"silent":       func(string) (string, bool) { return "", true },
		"exits":        func(string) (string, bool) { return "", false },
		"prints":       func(string) (string, bool) { return "Unknown method!", true },
		"empty result": func(id string) (string, bool) { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}`, true },
		"-32601":       failing(-32601), "-32600": failing(-32600), "-32602": failing(-32602), "-32000": failing(-32000),
		"discovers itself as old": func(id string) (string, bool) {
			return `{"jsonrpc":"2.0","id":` + id + `,"result":{"resultType":"complete","supportedVersions":["2025-06-18"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}`, true
		},
		"only legacy": func(id string) (string, bool) {
			return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32022,"message":"no","data":{"supported":["2025-06-18"],"requested":"2026-07-28"}}}`, true
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				c, err := mcp.NewClient("c", "v1", nil).Connect(t.Context(), fakeServer(func(method, id string) (string, bool) {
					if method == mcp.MethodDiscover {
						return discover(id)
					}
					return legacy(method, id), true
				}))
				if err != nil {
					t.Fatal(err)
				}
				most := time.Second
				if name == "silent" || name == "prints" {
					most = 6 * time.Second
				}
				if took := time.Since(start); c.Version() != "2025-06-18" || took > most {
					t.Errorf("the connection speaks %s after %v", c.Version(), took)
				}
				if err := c.Ping(t.Context()); err != nil {
					t.Error(err)
				}
				_ = c.Close()
				synctest.Wait()
			})
		})
	}
}

// T6, T39: an invalid response fails only its own call.
func TestBadServer(t *testing.T) {
	discovered := `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}`
	answer := ""
	c := connectTo(t, fakeServer(func(method, id string) (string, bool) {
		result := answer
		if method == mcp.MethodDiscover {
			result = discovered
		}
		if result == "exit" {
			return "", false
		}
		return `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`, true
	}), nil)
	for _, bad := range []string{`null`, `[]`, `7`, `{"tools":7}`, `{"resultType":"unheard-of"}`, `{"resultType":7}`} {
		answer = bad
		if r, err := c.ListTools(t.Context(), nil); err == nil {
			t.Errorf("%s became %+v", bad, r)
		}
	}
	for _, odd := range []string{`{}`, `{"tools":null}`, `{"tools":[null]}`, `{"tools":[],"unknown":{"x":1}}`, `{"tools":[7]}`, `{"tools":[{"name":7}]}`} {
		answer = odd
		if r, err := c.ListTools(t.Context(), nil); err != nil || len(r.Tools) != 0 {
			t.Errorf("%s became %+v, %v", odd, r, err)
		}
	}
	answer = "exit"
	if _, err := c.ListTools(t.Context(), nil); !errors.Is(err, io.EOF) {
		t.Errorf("a call at which the server ended returned %v", err)
	}
	if _, err := c.ListTools(t.Context(), nil); err == nil {
		t.Error("a call after that succeeded")
	}
	<-c.Done()
	if err := c.Err(); !errors.Is(err, io.EOF) {
		t.Errorf("Wait returned %v", err)
	}
}

// T12: a connection can be closed from its own callbacks.
func TestCloseInCallback(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		var c *mcp.Conn
		c = connect(t, welcoming(), &mcp.ClientOptions{Version: version, Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return nil, c.Close()
		}})
		if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "greet"}); err == nil {
			t.Errorf("%s: the call succeeded", version)
		}
		<-c.Done()
		if err := c.Err(); err != nil {
			t.Errorf("%s: Wait returned %v", version, err)
		}
	}
}

// T46: a call made with a handler's context carries nothing of the request being handled.
func TestNothingLeaks(t *testing.T) {
	upstream := mcp.NewMux("upstream", "v1", nil)
	upstream.Tool("see", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		req := mcp.RequestFromContext(ctx)
		return fmt.Sprint(req.Version(), req.LogLevel(), req.ProgressToken(), req.Header, req.Principal, req.ClientInfo().Name, req.ClientCapabilities().Elicitation), nil
	}, nil))
	up := connect(t, upstream, nil)
	front := mcp.NewMux("front", "v1", nil)
	front.Tool("pass", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) { return mcp.Call[string](ctx, up, "see", nil) }, nil))
	c := connect(t, front, &mcp.ClientOptions{Version: "2025-11-25", LogLevel: mcp.LoggingLevelDebug, Elicit: answering})
	got, err := mcp.Call[string](mcp.WithProgress(t.Context(), func(*mcp.ProgressParams) {}), c, "pass", nil)
	if want := fmt.Sprint("2026-07-28", "", mcp.ID{}, map[string][]string(nil), (*mcp.Principal)(nil), "client", (*mcp.ElicitationCapability)(nil)); err != nil || got != want {
		t.Errorf("the upstream saw %q, want %q (%v)", got, want, err)
	}
}

// When a connection ends, open questions of its calls are withdrawn and the calls fail.
func TestEndWhileAQuestionIsOpen(t *testing.T) {
	for _, version := range bothEras {
		for _, how := range []string{"closed", "broken"} {
			t.Run(version+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := &restless{handler: welcoming()}
					asked, withdrawn := make(chan struct{}, 1), make(chan error, 1)
					c := connectTo(t, server.transport(), &mcp.ClientOptions{
						Version: version, Logger: quiet().Logger,
						Elicit: func(ctx context.Context, _ *mcp.Conn, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
							asked <- struct{}{}
							select {
							case <-ctx.Done():
								withdrawn <- context.Cause(ctx)
								return nil, context.Cause(ctx)
							case <-time.After(time.Hour):
								withdrawn <- nil
								return nil, errors.New("the user does not answer")
							}
						},
					})
					failed := make(chan error, 1)
					go func() {
						_, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "greet"})
						failed <- err
					}()
					<-asked
					start := time.Now()
					if how == "closed" {
						_ = c.Close()
					} else {
						server.crash()
					}
					if err := <-failed; err == nil || how == "closed" && !errors.Is(err, mcp.ErrClosed) {
						t.Errorf("the call returned %v", err)
					}
					if cause := <-withdrawn; cause == nil || time.Since(start) > time.Minute {
						t.Errorf("after %v, the question ended with %v", time.Since(start), cause)
					}
					_ = c.Close()
					server.running.Wait()
				})
			})
		}
	}
}

// A server of 2025-11-25 may answer a call with an error that names pages which the user must
// visit first. They become questions: for the functions of the client, and for the callers of
// a gateway, in both eras. The call is then repeated.
func TestFindingZ5URLElicitationRequired(t *testing.T) {
	const page = "https://example.com/connect"
	type asked struct {
		urls  []string
		calls int
	}
	server := func(needs int, seen *asked) *mcp.Mux { // needs that many calls
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("t", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			if seen.calls++; seen.calls < needs {
				return nil, mcp.Errorf(-32042, "URL elicitation required").WithData(map[string]any{"elicitations": []any{
					map[string]string{"mode": "url", "elicitationId": "e1", "url": page, "message": "Connect."},
				}})
			}
			return mcp.TextResult("ran with " + string(req.Arguments())), nil
		}))
		return mux
	}
	visits := func(seen *asked, action string) *mcp.ClientOptions {
		return mcp.LimitQuestions(&mcp.ClientOptions{ElicitURL: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			seen.urls = append(seen.urls, p.URL)
			return &mcp.ElicitResult{Action: action}, nil
		}}, 5, 16)
	}
	reach := map[string]func(*testing.T, mcp.Handler, *mcp.ClientOptions) *mcp.Conn{
		"client": func(t *testing.T, h mcp.Handler, opts *mcp.ClientOptions) *mcp.Conn {
			opts.Version = "2025-11-25"
			return connect(t, h, opts)
		},
	}
	for _, front := range bothEras {
		reach["gateway in "+front] = func(t *testing.T, h mcp.Handler, opts *mcp.ClientOptions) *mcp.Conn {
			opts.Version = front
			return connect(t, connect(t, h, &mcp.ClientOptions{Version: "2025-11-25", Forward: true}), opts)
		}
	}
	for name, reached := range reach {
		t.Run(name, func(t *testing.T) {
			seen := new(asked)
			res, err := reached(t, server(2, seen), visits(seen, mcp.ActionAccept)).CallTool(t.Context(), tool("t", `{"a":1}`))
			if err != nil || textOf(res) != `ran with {"a":1}` || !slices.Equal(seen.urls, []string{page}) || seen.calls != 2 {
				t.Errorf("visited: got %+v, %v, after %+v", res, err, seen)
			}
			seen = new(asked)
			if res, err := reached(t, server(100, seen), visits(seen, mcp.ActionDecline)).CallTool(t.Context(), tool("t", "")); err == nil && !res.IsError || len(seen.urls) != 1 || seen.calls != 2 {
				t.Errorf("declined: got %+v, %v, after %+v", res, err, seen)
			}
			seen = new(asked)
			if res, err := reached(t, server(100, seen), visits(seen, mcp.ActionAccept)).CallTool(t.Context(), tool("t", "")); err == nil && !res.IsError || len(seen.urls) > 32 {
				t.Errorf("without an end: got %+v, %v, after %+v", res, err, seen)
			}
			seen = new(asked)
			if res, err := reached(t, server(100, seen), &mcp.ClientOptions{}).CallTool(t.Context(), tool("t", "")); err == nil && !res.IsError {
				t.Errorf("without the capability: got %+v, %v", res, err)
			}
		})
	}
}
