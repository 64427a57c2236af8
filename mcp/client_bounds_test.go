// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

const aQuestion = `{"jsonrpc":"2.0","id":"q%d","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}`

// A question that the server withdraws immediately is cancelled.
func TestQuestionWithdrawnAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		causes := make(chan error, 1)
		said := `[` + fmt.Sprintf(aQuestion, 1) + `,{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q1"}}]`
		c := connectTo(t, asks(said, make(chan string, 8)), &mcp.ClientOptions{
			Version: "2025-11-25", AnswerAnytime: true,
			Elicit: func(ctx context.Context, _ *mcp.Conn, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return nil, ctx.Err()
			},
		})
		select {
		case cause := <-causes:
			if _, ok := errors.AsType[*mcp.CancelError](cause); !ok {
				t.Errorf("it ended with %v", cause)
			}
		case <-time.After(time.Minute):
			t.Error("it goes on")
		}
		_ = c.Close()
	})
}

// Questions beyond the limit are rejected, as long as the server reads the rejections.
func TestTooManyQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const asked = 3000
		var all []string
		for i := range asked {
			all = append(all, fmt.Sprintf(aQuestion, i))
		}
		var open atomic.Int64
		heard := make(chan string, asked)
		c := connectTo(t, asks(`[`+strings.Join(all, ",")+`]`, heard), &mcp.ClientOptions{
			Version: "2025-11-25", Logger: quiet().Logger, AnswerAnytime: true,
			Elicit: func(ctx context.Context, _ *mcp.Conn, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				open.Add(1)
				<-ctx.Done()
				return nil, ctx.Err()
			},
		})
		synctest.Wait()
		if n := open.Load(); n == 0 || n > asked/2 || len(heard) == 0 {
			t.Errorf("%d questions wait for the user, and %d were refused", n, len(heard))
		}
		_ = c.Close()
		synctest.Wait()
	})
}

// Calls that are cancelled through a gateway no longer count against its limit.
func TestGatewayForgetsCancelledCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := hello()
		server.Tool("wait", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}, nil))
		c := connect(t, gateway(t, server, "2025-11-25"), nil)
		for range 1100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_, err := c.CallTool(ctx, tool("b_wait", ""))
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("a call ended with %v", err)
			}
		}
		synctest.Wait()
		if got, err := mcp.Call[string](t.Context(), c, "b_hello", nil); err != nil || got != "hi" {
			t.Errorf("after that: %q, %v", got, err)
		}
	})
}

// A forwarded subscription ends without an error when the client closes it.
func TestForwardedSubscriptionEnds(t *testing.T) {
	for _, version := range bothEras {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer(t, connect(t, hello(), &mcp.ClientOptions{Version: version}), eras[0])
			p.send(eras[0].request("1", mcp.MethodListen, `"notifications":{"toolsListChanged":true}`))
			if got := p.receive(); !strings.Contains(got, mcp.NotificationAcknowledged) {
				t.Fatalf("got %s", got)
			}
			said := p.finish()
			if len(said) == 0 || !strings.Contains(said[0], `"resultType":"complete"`) {
				t.Errorf("%s: the subscription ended with %q", version, said)
			}
		})
	}
}

// watchedContext counts the functions registered to run when it is done.
type watchedContext struct {
	context.Context
	done    chan struct{}
	waiting atomic.Int64
}

func (c *watchedContext) Done() <-chan struct{} { return c.done }

// AfterFunc is called by package context when a context is derived.
func (c *watchedContext) AfterFunc(func()) func() bool {
	c.waiting.Add(1)
	return func() bool { c.waiting.Add(-1); return true }
}

// When the server ends a subscription, the subscription releases what it registered with
// its context, which may live as long as the program.
func TestEndedSubscriptionLetsGoOfItsContext(t *testing.T) {
	server := fakeServer(func(method, id string) (string, bool) {
		answer := `{"jsonrpc":"2.0","id":` + id + `,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}`
		if method == mcp.MethodListen {
			answer = `[{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{},"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}},` + answer + `]`
		}
		return answer, true
	})
	c := connectTo(t, server, nil)
	ctx := &watchedContext{Context: context.Background(), done: make(chan struct{})}
	s, err := c.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {})
	if err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	if n := ctx.waiting.Load(); s.Err() != nil || n != 0 {
		t.Errorf("the subscription ended with %v, and %d wait for its context", s.Err(), n)
	}
}

// asksFor returns a modern server that answers every request of a method with n questions.
func asksFor(method string, n int) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method != method {
			return hello().ServeMCP(ctx, req)
		}
		res := &mcp.InputRequired{ResultBase: mcp.ResultBase{ResultType: mcp.ResultInputRequired}, InputRequests: map[string]mcp.InputRequest{}}
		for i := range n {
			res.InputRequests[fmt.Sprint("q", i)] = mcp.InputRequest{Method: mcp.MethodCreateMessage, Params: json.RawMessage(`{"messages":[],"maxTokens":1}`)}
		}
		return res, nil
	})
}

// counting returns client options whose Sample function counts all calls and the most
// concurrent ones.
func counting(opts *mcp.ClientOptions) (counted *mcp.ClientOptions, asked, most *atomic.Int64) {
	var now atomic.Int64
	asked, most = new(atomic.Int64), new(atomic.Int64)
	counted = opts
	counted.Logger = quiet().Logger
	counted.Sample = func(context.Context, *mcp.Conn, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
		asked.Add(1)
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		<-time.After(time.Second)
		return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: "m", Content: mcp.SamplingContent{mcp.Text("yes")}}, nil
	}
	return counted, asked, most
}

// A server can ask only a limited number of questions, and only in methods for which the
// specification allows them.
func TestFindingS14QuestionsAreBounded(t *testing.T) {
	for _, test := range []struct {
		method    string
		questions int
		opts      mcp.ClientOptions
		want      int64 // questions that are asked
	}{
		{mcp.MethodCallTool, 20_000, mcp.ClientOptions{}, 0},
		{mcp.MethodCallTool, 17, mcp.ClientOptions{}, 0},
		{mcp.MethodCallTool, 16, mcp.ClientOptions{}, 32 * 16},
		{mcp.MethodCallTool, 17, *mcp.LimitQuestions(new(mcp.ClientOptions), 2, 17), 2 * 17},
		{mcp.MethodCallTool, 2, *mcp.LimitQuestions(new(mcp.ClientOptions), 32, 1), 0},
		{mcp.MethodListTools, 1, mcp.ClientOptions{}, 0},
		{mcp.MethodComplete, 1, mcp.ClientOptions{}, 0},
		{"vendor/method", 1, mcp.ClientOptions{}, 0},
	} {
		t.Run(fmt.Sprint(test.method, test.questions), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts, asked, most := counting(&test.opts)
				opts.Version = mcp.LatestVersion
				c := connect(t, asksFor(test.method, test.questions), opts)
				req, err := mcp.NewRequest(test.method, json.RawMessage(`{"name":"hello"}`))
				if err != nil {
					t.Fatal(err)
				}
				if res, err := c.ServeMCP(t.Context(), req); err == nil {
					t.Errorf("got %+v", res)
				}
				if asked.Load() != test.want || most.Load() > 4 {
					t.Errorf("the model was asked %d times, %d at once; want %d, 4", asked.Load(), most.Load(), test.want)
				}
				c.Close()
			})
		})
	}
}

// The limits on rounds and on concurrent questions are the same in both eras.
func TestFindingW10BoundsOfBothErasAgree(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("often", mcp.ToolFunc(func(ctx context.Context, in struct{ N int }) (string, error) {
		for i := range in.N {
			if _, err := mcp.Elicit[namedField](ctx, fmt.Sprint("q", i), fmt.Sprint("Number ", i, "?")); err != nil {
				return "", err
			}
		}
		return "done", nil
	}, nil))
	mux.Tool("much", mcp.ToolFunc(func(ctx context.Context, in struct{ N int }) (string, error) {
		answers, questions := make([]namedField, in.N), []mcp.Question{}
		for i := range answers {
			questions = append(questions, mcp.ElicitQuestion(fmt.Sprint("q", i), fmt.Sprint("Number ", i, "?"), &answers[i]))
		}
		return "done", mcp.Ask(ctx, questions...)
	}, nil))
	for _, test := range []struct {
		tool string
		n    int
		fine bool
	}{
		{"often", 15, true}, {"often", 17, true}, {"often", 31, true}, {"often", 32, false},
		{"much", 16, true}, {"much", 17, false}, {"much", 100, false},
	} {
		for _, version := range bothEras {
			c := connect(t, mux, &mcp.ClientOptions{Version: version, Elicit: answering, Logger: quiet().Logger})
			got, err := mcp.Call[string](t.Context(), c, test.tool, map[string]int{"N": test.n})
			if (err == nil && got == "done") != test.fine {
				t.Errorf("%s: %d questions, %s: %q, %v", version, test.n, test.tool, got, err)
			}
		}
	}
}

// If a client cannot answer, the outcome is the same in both eras: a failed tool result
// with the reason, or an error for other methods.
func TestFindingW10OutcomesOfUnansweredQuestions(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	ask := func(ctx context.Context) (string, error) {
		answer, err := mcp.Elicit[struct {
			Size string `json:"size" jsonschema:"enum=s,enum=l"`
		}](ctx, "size", "Which size?")
		return answer.Size, err
	}
	mux.Tool("t", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) { return ask(ctx) }, nil))
	mux.Prompt("p", mcp.PromptFunc(func(ctx context.Context, _ none) (string, error) { return ask(ctx) }, nil))
	for name, elicit := range map[string]func() (*mcp.ElicitResult, error){
		"error":   func() (*mcp.ElicitResult, error) { return nil, errors.New("nobody is there") },
		"coded":   func() (*mcp.ElicitResult, error) { return nil, mcp.Errorf(-1, "nobody is there") },
		"nothing": func() (*mcp.ElicitResult, error) { return nil, nil },
		"panic":   func() (*mcp.ElicitResult, error) { panic("at the disco") },
		"misfit": func() (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: mcp.ActionAccept, Content: []byte(`{"size":"xl"}`)}, nil
		},
	} {
		var texts []string
		for _, version := range bothEras {
			c := connect(t, mux, &mcp.ClientOptions{Version: version, Logger: quiet().Logger,
				Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) { return elicit() }})
			res, err := c.CallTool(t.Context(), tool("t", ""))
			if err != nil || !res.IsError || !strings.HasPrefix(textOf(res), "the client did not answer a question: ") {
				t.Errorf("%s, %s: the call returned %+v, %v", version, name, res, err)
				continue
			}
			texts = append(texts, textOf(res))
			if res, err := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"}); err == nil {
				t.Errorf("%s, %s: the prompt is %+v", version, name, res)
			}
		}
		if len(slices.Compact(texts)) != 1 {
			t.Errorf("%s: the texts are %q", name, texts)
		}
	}
}

// An answer that cannot be encoded, such as a nil content block, fails the question and
// does not crash the client.
func TestFindingCM14TypedNilInAnAnswer(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Sample(ctx, "k", &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text("hi")}}}})
		return "", err
	}, nil))
	for _, content := range []mcp.Content{(*mcp.TextContent)(nil), nil, (*mcp.UnknownContent)(nil), (*mcp.ToolResultContent)(nil)} {
		for _, version := range bothEras {
			c := connect(t, mux, &mcp.ClientOptions{Version: version, Sample: func(context.Context, *mcp.Conn, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
				return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: "m", Content: mcp.SamplingContent{content}}, nil
			}})
			if res, err := c.CallTool(t.Context(), tool("t", "")); err == nil && !res.IsError {
				t.Errorf("%s: %T: got %+v", version, content, res)
			}
		}
	}
}

// A server can send the user only to web pages and cannot disguise their host.
func TestFindingS26URLsOfQuestions(t *testing.T) {
	for url, fine := range map[string]bool{
		"https://example.com/a?b=c":        true,
		"HTTPS://example.com":              true,
		"http://127.0.0.1:8080/x":          true,
		"http://[::1]/x":                   true,
		"http://localhost/x":               true,
		"http://example.com":               false,
		"http://localhost.example.com":     false,
		"javascript:alert(1)":              false,
		"file:///etc/passwd":               false,
		"data:text/html,x":                 false,
		"ms-msdt:/id":                      false,
		"https://bank.com@evil.com/":       false,
		"https://user:pw@evil.com/":        false,
		"https:///path":                    false,
		"https:example.com":                false,
		"//example.com":                    false,
		"/path":                            false,
		"":                                 false,
		"https://example.com/\u202emoc":    false,
		"https://example.com/\nX: y":       false,
		" https://example.com":             false,
		"https://example.com:port/":        false,
		"vbscript:https://example.com/":    false,
		"view-source:https://example.com/": false,
	} {
		params, err := json.Marshal(map[string]string{"mode": "url", "message": "Go there.", "url": url, "elicitationId": "1"})
		if err != nil {
			t.Fatal(err)
		}
		modern := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method == mcp.MethodCallTool && !strings.Contains(string(req.Params()), "inputResponses") {
				return &mcp.InputRequired{ResultBase: mcp.ResultBase{ResultType: mcp.ResultInputRequired},
					InputRequests: map[string]mcp.InputRequest{"k": {Method: mcp.MethodElicit, Params: params}}}, nil
			}
			return hello().ServeMCP(ctx, req)
		})
		var call json.RawMessage
		legacy := newOldServer(func(s *oldServer, m oldMessage) {
			switch m.Method {
			case mcp.MethodCallTool:
				call = m.ID
				s.sayf(`"id":"q","method":"elicitation/create","params":%s`, params)
			case "":
				s.answer(call, "done")
			}
		})
		for version, transport := range map[string]transport.Transport{mcp.LatestVersion: memory(t, modern), "2025-11-25": legacy} {
			seen := ""
			c := connectTo(t, transport, &mcp.ClientOptions{Version: version, ElicitURL: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				seen = "seen " + p.URL
				return &mcp.ElicitResult{Action: mcp.ActionAccept}, nil
			}})
			_, err := c.CallTool(t.Context(), tool("hello", ""))
			if (seen == "seen "+url) != fine || !fine && seen != "" {
				t.Errorf("%s: %q: the user saw %q (%v)", version, url, seen, err)
			}
			if version == mcp.LatestVersion && (err == nil) != fine {
				t.Errorf("%q: the call ended with %v", url, err)
			}
		}
	}
}

// endlessLists returns a server whose lists have empty pages, each with a new cursor.
func endlessLists(pages *atomic.Int64) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		switch req.Method {
		case mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates:
			next := fmt.Sprint(pages.Add(1))
			return &mcp.EmptyResult{ResultBase: mcp.ResultBase{Extra: mcp.Extra{
				"tools": []byte("[]"), "prompts": []byte("[]"), "resources": []byte("[]"), "resourceTemplates": []byte("[]"), "nextCursor": []byte(`"` + next + `"`)}}}, nil
		case mcp.MethodCallTool:
			return nil, mcp.Errorf(mcp.CodeHeaderMismatch, "the headers are wrong")
		}
		return hello().ServeMCP(ctx, req)
	})
}

// A client stops reading a list that never repeats a cursor, and returns an error. So does
// a call that looks up its tool.
func TestFindingS37W11ListsHaveAnEnd(t *testing.T) {
	var pages atomic.Int64
	for most, want := range map[int]int64{0: 1000, 7: 7} {
		c := connect(t, endlessLists(&pages), mcp.LimitLists(&mcp.ClientOptions{Version: mcp.LatestVersion}, most))
		for name, list := range map[string]func() (int, error){
			"tools":     func() (int, error) { return count(c.Tools(t.Context(), nil)) },
			"prompts":   func() (int, error) { return count(c.Prompts(t.Context(), nil)) },
			"resources": func() (int, error) { return count(c.Resources(t.Context(), nil)) },
			"templates": func() (int, error) { return count(c.ResourceTemplates(t.Context(), nil)) },
		} {
			pages.Store(0)
			if n, err := list(); n != 0 || !errors.Is(err, mcp.ErrTooManyPages) || pages.Load() != want {
				t.Errorf("%s: %d items, %v after %d pages, want %d", name, n, err, pages.Load(), want)
			}
		}
	}
	c := connect(t, endlessLists(&pages), &mcp.ClientOptions{Version: mcp.LatestVersion})
	pages.Store(0)
	if _, err := c.CallTool(t.Context(), tool("hello", "")); !errors.Is(err, mcp.ErrTooManyPages) || pages.Load() > 100 {
		t.Errorf("the call ended with %v after %d pages", err, pages.Load())
	}
}

// A client declares exactly the capabilities that it has functions for or sets explicitly.
func TestDeclaredCapabilities(t *testing.T) {
	elicit := func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) { return nil, nil }
	sample := func(context.Context, *mcp.Conn, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
		return nil, nil
	}
	for want, opts := range map[string]*mcp.ClientOptions{
		`{}`:                                      {},
		`{"elicitation":{"form":{}}}`:             {Elicit: elicit},
		`{"elicitation":{"url":{}}}`:              {ElicitURL: elicit},
		`{"elicitation":{"form":{},"url":{}}}`:    {Elicit: elicit, ElicitURL: elicit},
		`{"sampling":{}}`:                         {Sample: sample},
		`{"sampling":{"tools":{}}}`:               {Sample: sample, Capabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapability{Tools: &struct{}{}}}},
		`{"sampling":{"context":{}}}`:             {Sample: sample, Capabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapability{Context: &struct{}{}}}},
		`{"roots":{}}`:                            {Roots: []mcp.Root{}},
		`{"experimental":{"a":{}},"sampling":{}}`: {Sample: sample, Capabilities: &mcp.ClientCapabilities{Experimental: map[string]json.RawMessage{"a": json.RawMessage(`{}`)}}},
	} {
		for _, version := range bothEras {
			o := *opts
			o.Version = version
			mux := mcp.NewMux("m", "v1", quiet())
			mux.Tool("caps", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
				text, err := json.Marshal(req.ClientCapabilities())
				return mcp.TextResult(string(text)), err
			}))
			got := mustCall(t, connect(t, mux, &o), "caps", "")
			got = strings.NewReplacer(`{"listChanged":true}`, `{}`, `,"Extra":null`, "", `"Extra":null`, "").Replace(got) // package json does not omit it
			if got != want {
				t.Errorf("%s: got %s, want %s", version, got, want)
			}
		}
	}
}

// A gateway declares its own extensions beside what its client declares.
func TestForwardedCapabilities(t *testing.T) {
	elicit := func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) { return nil, nil }
	for name, extensions := range map[string][]*mcp.ClientExtension{"one": {{ID: "example.com/x"}}, "none": nil} {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("caps", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
			caps := req.ClientCapabilities()
			return mcp.TextResult(fmt.Sprint(caps.Elicitation != nil, caps.HasExtension("example.com/x"))), nil
		}))
		gw := connect(t, mux, &mcp.ClientOptions{Version: mcp.LatestVersion, Forward: true, Extensions: extensions})
		got := mustCall(t, connect(t, gw, &mcp.ClientOptions{Version: mcp.LatestVersion, Elicit: elicit}), "caps", "")
		if want := fmt.Sprint(true, extensions != nil); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

// A server may have 16 questions open for each call, of which four are being answered. While it
// does not read the rejections, 2048 questions are kept and those beyond are dropped.
func TestQuestionBounds(t *testing.T) {
	for asked, want := range map[int][2]int{3: {3, 0}, 16: {4, 0}, 17: {4, 1}, 2048: {4, 2032}, 2100: {4, 2032}} {
		synctest.Test(t, func(t *testing.T) {
			var all []string
			for i := range asked {
				all = append(all, fmt.Sprintf(aQuestion, i))
			}
			near, far := newScripted(), make(chan string)
			opened := `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}`
			began := make(chan struct{}, asked)
			stream := &unreadStream{scripted: near, unread: far}
			go func() {
				m, _ := transport.ParseMessage([]byte(<-far))
				near.in <- []byte(resultFor(m.ID.String(), opened))
				<-far // notifications/initialized
				near.in <- []byte("[" + strings.Join(all, ",") + "]")
			}()
			c := connectTo(t, transport.FromStream(func(context.Context) (transport.Stream, error) { return stream, nil }), &mcp.ClientOptions{
				Version: "2025-11-25", Logger: quiet().Logger, AnswerAnytime: true,
				Elicit: func(ctx context.Context, _ *mcp.Conn, _ *mcp.ElicitParams) (*mcp.ElicitResult, error) {
					began <- struct{}{}
					<-ctx.Done()
					return nil, ctx.Err()
				},
			})
			synctest.Wait()
			open := len(began)
			refused := 0
			for synctest.Wait(); ; synctest.Wait() {
				select {
				case answer := <-far:
					if strings.Contains(answer, `"error"`) {
						refused++
					}
					continue
				default:
				}
				break
			}
			if open != want[0] || refused != want[1] {
				t.Errorf("of %d questions, %d are open and %d were refused, want %v", asked, open, refused, want)
			}
			go func() {
				for range far { // so that the client can close
				}
			}()
			_ = c.Close()
			synctest.Wait()
			close(far)
		})
	}
}

// unreadStream is a stream whose peer reads one message at a time.
type unreadStream struct {
	*scripted
	unread chan string
}

func (s *unreadStream) Write(ctx context.Context, message []byte) error {
	select {
	case s.unread <- string(message):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.closed:
		return mcp.ErrClosed
	}
}
