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

// counting is a client whose model counts its calls, and how many are made at once.
func counting(opts *mcp.ClientOptions) (counted *mcp.ClientOptions, asked, most *atomic.Int64) {
	var now atomic.Int64
	asked, most = new(atomic.Int64), new(atomic.Int64)
	counted = opts
	counted.Logger = quiet().Logger
	counted.Sample = func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
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

// A server cannot ask its client any number of questions, nor ask about other methods than
// the specification allows.
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
		{mcp.MethodCallTool, 17, mcp.ClientOptions{MaxQuestions: 17, MaxRounds: 2}, 2 * 17},
		{mcp.MethodCallTool, 2, mcp.ClientOptions{MaxQuestions: 1}, 0},
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

// The number of rounds and of questions at once is bounded in the same way in both eras.
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

// When a client cannot answer, the outcome is the same in both eras: a failed tool result
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
				Elicit: func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) { return elicit() }})
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

// An answer that cannot be encoded, such as a nil block of content, fails the question and
// does not crash the client.
func TestFindingCM14TypedNilInAnAnswer(t *testing.T) {
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("t", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		_, err := mcp.Sample(ctx, "k", &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text("hi")}}}})
		return "", err
	}, nil))
	for _, content := range []mcp.Content{(*mcp.TextContent)(nil), nil, (*mcp.UnknownContent)(nil), (*mcp.ToolResultContent)(nil)} {
		for _, version := range bothEras {
			c := connect(t, mux, &mcp.ClientOptions{Version: version, Sample: func(context.Context, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
				return &mcp.CreateMessageResult{Role: mcp.RoleAssistant, Model: "m", Content: mcp.SamplingContent{content}}, nil
			}})
			if res, err := c.CallTool(t.Context(), tool("t", "")); err == nil && !res.IsError {
				t.Errorf("%s: %T: got %+v", version, content, res)
			}
		}
	}
}

// A server can send the user only to web pages, and cannot hide their host.
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
			c := connectTo(t, transport, &mcp.ClientOptions{Version: version, ElicitURL: func(_ context.Context, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
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

// endlessLists returns a server of empty pages, each with a new cursor.
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

// A client stops reading a list whose cursors are always new, with an error. So does a call
// that looks for its tool.
func TestFindingS37W11ListsHaveAnEnd(t *testing.T) {
	var pages atomic.Int64
	for most, want := range map[int]int64{0: 1000, 7: 7} {
		c := connect(t, endlessLists(&pages), &mcp.ClientOptions{Version: mcp.LatestVersion, MaxPages: most})
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
	// The bound can be removed.
	c = connect(t, endlessLists(&pages), &mcp.ClientOptions{Version: mcp.LatestVersion, MaxPages: -1})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Use(func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if pages.Load() == 1500 {
				cancel()
			}
			return next.ServeMCP(ctx, req)
		})
	})
	pages.Store(0)
	if _, err := count(c.Tools(ctx, nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("the list ended with %v after %d pages", err, pages.Load())
	}
}
