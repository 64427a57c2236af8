// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// STDIO-10, CAN-02, PROG-02: nothing is sent about a cancelled request.
func TestCancelledIsSilent(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		<-ctx.Done()
		mcp.Progress(ctx, 1, 2, "late")
		mcp.ClientLogger(ctx).Error("late")
		_, err := mcp.Elicit[yes](ctx, "k", "Late?")
		return "late", err
	}, nil))
	for _, era := range eras {
		t.Run(era.name, func(t *testing.T) {
			era.meta = strings.Replace(era.meta, `"_meta":{`, `"_meta":{"progressToken":"p","io.modelcontextprotocol/logLevel":"debug",`, 1)
			era.meta = strings.Replace(era.meta, ",}", "}", 1)
			p := newPeer(t, mux, era)
			p.send(era.request("1", "tools/call", `"name":"wait"`))
			p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
			if said := p.finish(); len(said) > 0 {
				t.Errorf("it said %q", said)
			}
		})
	}
}

// CACHE-11: all pages of a list have the same scope, whichever handlers created them.
func TestPagesHaveOneScope(t *testing.T) {
	opts := quiet()
	opts.PageSize, opts.ListCache = 1, mcp.CacheFor(time.Minute, mcp.CachePublic)
	outer := mcp.NewMux("outer", "v1", opts)
	outer.Tool("a", says(""))
	outer.Tool("b", says(""))
	inner := mcp.NewMux("inner", "v1", quiet())
	inner.Tool("c", says(""))
	outer.Mount("in_", inner)
	c := mcptest.Connect(t, outer)
	var scopes []string
	for cursor := (*string)(nil); ; {
		res, err := c.ListTools(t.Context(), &mcp.ListParams{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		scopes = append(scopes, res.CacheScope)
		if cursor = res.NextCursor; cursor == nil {
			break
		}
	}
	if !slices.Equal(scopes, []string{mcp.CachePrivate, mcp.CachePrivate, mcp.CachePrivate}) {
		t.Errorf("the scopes are %q", scopes)
	}
}

// STDIO-18, VER-02: a server that supports only another modern version is not treated as a
// legacy server.
func TestOtherModernVersion(t *testing.T) {
	s := &serverScript{reply: func(_, id string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32022,"message":"no","data":{"supported":["2999-01-01"],"requested":"x"}}}`
	}}
	_, err := mcp.NewClient("c", "v1", nil).Connect(t.Context(), s.transport())
	if err == nil || mcp.CodeOf(err) != mcp.CodeUnsupportedVersion || s.count("initialize") != 0 {
		t.Errorf("connecting: %v, after %q", err, s.heard)
	}
}

// SUB-11, LOG-03, PROG-09: notifications about requests are not sent to subscribers.
func TestSubscriptionHearsNoLogs(t *testing.T) {
	mux := everything(quiet())
	mux.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			mcp.ClientLogger(ctx).Error("said")
			mcp.Progress(ctx, 1, 2, "made")
			return next.ServeMCP(ctx, req)
		})
	})
	era := eras[0]
	era.meta = strings.Replace(era.meta, `"_meta":{`, `"_meta":{"progressToken":"p","io.modelcontextprotocol/logLevel":"debug",`, 1)
	p := newPeer(t, mux, era)
	p.send(era.request("1", "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))
	if h := hear(t, p); h.Method != mcp.NotificationAcknowledged {
		t.Errorf("it begins with %+v", h)
	}
	mux.Tool("new", says(""))
	if h := hear(t, p); h.Method != mcp.NotificationToolsListChanged {
		t.Errorf("heard %+v", h)
	}
}

// CAN-08, SUB-08: a server can end a subscription without an error by a result or a
// cancellation.
func TestEndsOfSubscriptions(t *testing.T) {
	ack := `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":%ID}}}`
	result := `{"jsonrpc":"2.0","id":%ID,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":%ID}}}`
	cancelled := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%ID}}`
	for name, ends := range map[string][]string{"result": {result}, "notification": {cancelled}, "both": {result, cancelled}, "both, the other way round": {cancelled, result}} {
		t.Run(name, func(t *testing.T) {
			c := connectTo(t, transport.FromStream(func(context.Context) (transport.Stream, error) {
				near, far := transport.Pipe()
				go func() {
					for {
						data, err := far.Read(context.Background())
						if err != nil {
							return
						}
						m, _ := transport.ParseMessage(data)
						if !m.IsRequest() {
							continue
						}
						id := m.ID.String()
						said := []string{resultFor(id, discovered)}
						if m.Method == mcp.MethodListen {
							said = append([]string{ack}, ends...)
						}
						for _, s := range said {
							_ = far.Write(context.Background(), []byte(strings.ReplaceAll(s, "%ID", id)))
						}
					}
				}()
				return near, nil
			}), nil)
			s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {})
			if err != nil {
				t.Fatal(err)
			}
			select {
			case <-s.Done():
				if s.Err() != nil {
					t.Errorf("it ended with %v", s.Err())
				}
			case <-time.After(3 * time.Second):
				t.Error("it goes on")
			}
			if err := c.Ping(t.Context()); err != nil {
				t.Errorf("after that: %v", err)
			}
		})
	}
}

// ELI-09: content is sent only with an accepted answer.
func TestRefusalHasNoContent(t *testing.T) {
	for _, version := range bothEras {
		for _, action := range []string{mcp.ActionDecline, mcp.ActionCancel} {
			var s spy
			opts := talkative(version)
			opts.Elicit = func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				return &mcp.ElicitResult{Action: action, Content: []byte(`{"ok":true}`)}, nil
			}
			c := connectTo(t, s.on(memory(t, everything(quiet()))), opts)
			_, _ = c.CallTool(t.Context(), tool("ask", ""))
			for _, m := range s.all {
				if text := string(m.Body); strings.Contains(text, `"action":"`+action+`"`) && strings.Contains(text, `"content"`) {
					t.Errorf("%s: sent %s", version, text)
				}
			}
		}
	}
}

// MRTR-02: only tools, prompts and resources can ask questions.
func TestCustomMethodsDoNotAsk(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Handle("vendor/asks", mcp.HandlerFunc(func(context.Context, *mcp.Request) (mcp.Result, error) {
		return &mcp.InputRequired{InputRequests: map[string]mcp.InputRequest{"k": {
			Method: mcp.MethodElicit, Params: json.RawMessage(`{"message":"?","requestedSchema":{"type":"object","properties":{}}}`),
		}}}, nil
	}))
	for _, era := range eras {
		p := newPeer(t, mux, era)
		p.send(era.request("1", "vendor/asks", ""))
		if got := p.receive(); !strings.Contains(got, `"error"`) {
			t.Errorf("%s: %s", era.name, got)
		}
	}
}

// SCH-03: every schema must be valid, including one given by hand.
func TestInvalidSchemaPanics(t *testing.T) {
	wantPanic(t, func() {
		schema := json.RawMessage(`{"type":"object","properties":{"p":{"type":"strin"}}}`)
		mcp.NewMux("m", "v1", quiet()).Tool("t", mcp.WithDescription(says(""), &mcp.Tool{InputSchema: schema}))
	}, "ledger_rules_test.go:")
}

// ELI-04, ELI-05, SAMP-05, SAMP-06, SAMP-13: questions that the revision does not allow are
// not sent.
func TestQuestionsThatMustNotGoOut(t *testing.T) {
	type lists struct {
		C []string `json:"c" jsonschema:"enum=a,enum=b"`
	}
	link := func(url string) mcp.Question { return mcp.ElicitURLQuestion("k", "?", url) }
	sample := func(messages ...*mcp.SamplingMessage) mcp.Question {
		return mcp.SampleQuestion("k", &mcp.CreateMessageParams{MaxTokens: 1, Messages: messages, Tools: nil}, new(mcp.CreateMessageResult))
	}
	says := func(role mcp.Role, content ...mcp.Content) *mcp.SamplingMessage {
		return &mcp.SamplingMessage{Role: role, Content: content}
	}
	use, result := &mcp.ToolUseContent{ID: "1", Name: "t"}, &mcp.ToolResultContent{ToolUseID: "1"}
	for name, test := range map[string]struct {
		version  string
		question mcp.Question
		says     string
	}{
		"no URL":                        {"2026-07-28", link("not a url"), ""},
		"a script":                      {"2026-07-28", link("javascript:alert(1)"), ""},
		"a list of enums in 2025-06-18": {"2025-06-18", mcp.ElicitQuestion("k", "?", new(lists)), `a client of 2025-06-18 cannot be asked for a list, and the form has one: \"c\"`},
		"a result among other blocks":   {"2026-07-28", sample(says(mcp.RoleAssistant, use), says(mcp.RoleUser, mcp.Text("a"), result)), ""},
		"a use without its result":      {"2026-07-28", sample(says(mcp.RoleAssistant, use), says(mcp.RoleUser, mcp.Text("a"))), ""},
		"several blocks in 2025-06-18":  {"2025-06-18", sample(says(mcp.RoleUser, mcp.Text("a"), mcp.Text("b"))), "several blocks"},
		"audio in 2024-11-05":           {"2024-11-05", sample(says(mcp.RoleUser, &mcp.AudioContent{Data: []byte("a"), MIMEType: "audio/wav"})), "with audio"},
	} {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) { return "", mcp.Ask(ctx, test.question) }, nil))
		const caps = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}}}`
		era := eras[0]
		if test.version != mcp.LatestVersion {
			era = eras[1]
			open := strings.Replace(era.open[0], "2025-11-25", test.version, 1)
			era.open = []string{strings.Replace(open, `{"elicitation":{}}`, caps, 1), era.open[1]}
		}
		era.meta = strings.Replace(era.meta, `{"elicitation":{}}`, caps, 1)
		p := newPeer(t, mux, era)
		p.send(era.request("1", "tools/call", `"name":"ask"`))
		if got := p.receive(); !strings.Contains(got, `"error"`) && !strings.Contains(got, `"isError":true`) || !strings.Contains(got, test.says) {
			t.Errorf("%s: sent %s", name, got)
		}
	}
}

// Clients before 2025-11-25 are asked without a list that may be left empty: they have no form
// for it.
func TestOptionalListOfAnOlderClient(t *testing.T) {
	type profile struct {
		Name  string   `json:"name"`
		Likes []string `json:"likes,omitempty" jsonschema:"enum=tea,enum=coffee"`
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		p, err := mcp.Elicit[profile](ctx, "k", "Who are you?")
		return fmt.Sprint(p.Name, p.Likes), err
	}, nil))
	for version, want := range map[string]bool{"2026-07-28": true, "2025-11-25": true, "2025-06-18": false, "2025-03-26": false} {
		var asked string
		c := connect(t, mux, &mcp.ClientOptions{Version: version, Elicit: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			asked = string(p.RequestedSchema)
			return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: json.RawMessage(`{"name":"Ann"}`)}, nil
		}})
		res, err := c.CallTool(t.Context(), tool("ask", ""))
		if err != nil || textOf(res) != "Ann[]" || strings.Contains(asked, `"likes"`) != want || !strings.Contains(asked, `"required":["name"]`) {
			t.Errorf("%s: asked %s, got %v, %v", version, asked, res, err)
		}
	}
}

// ROOT-02: roots are file URIs.
func TestRootsAreFiles(t *testing.T) {
	for _, uri := range []string{"https://example.com/", "x", ""} {
		c, err := mcp.NewClient("c", "v1", &mcp.ClientOptions{Roots: []mcp.Root{{URI: uri}}}).Connect(t.Context(), memory(t, welcoming()))
		if err == nil {
			_ = c.Close()
			t.Errorf("%q was taken", uri)
		}
		own := connect(t, welcoming(), talkative(""))
		if err := own.AddRoots(t.Context(), mcp.Root{URI: uri}); err == nil {
			t.Errorf("%q was added", uri)
		}
	}
}

// T43: a panic in the function of WithProgress stops neither the process nor the call.
func TestTrap43ProgressPanics(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("progress", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) { mcp.Progress(ctx, 1, 2, "made"); return "done", nil }, nil))
	mcptest.Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		ctx := mcp.WithProgress(t.Context(), func(*mcp.ProgressParams) { panic("progress") })
		if got, err := mcp.Call[string](ctx, c, "progress", nil); err != nil || got != "done" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}
