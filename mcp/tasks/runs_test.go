// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/store"
	"github.com/go-psi/psi/mcp/tasks"
)

// A task is a call that takes longer: whatever its handler does, wherever Background stands,
// and in whatever process each of its runs takes place, its outcome is that of the call.
func TestOutcomeEqualsTheCall(t *testing.T) {
	for kind, handler := range kinds {
		for place, serve := range places {
			for way, next := range handovers {
				t.Run(strings.Join([]string{kind, place, way}, "/"), func(t *testing.T) {
					inBubble(t, func(t *testing.T) { checkOutcome(t, handler, serve, next) })
				})
			}
		}
	}
}

// checkOutcome checks that a task ends like a call of a client without tasks.
func checkOutcome(t *testing.T, handler func(*ledger) mcp.Handler, serve func(*testing.T, *site, *replica) string, next func(*testing.T, *site)) {
	t.Helper()
	s := &site{shared: store.NewMemory(nil), steps: new(ledger), serve: serve}
	s.handler = handler(s.steps)
	s.open(t)
	plain := s.connect(t, nil)
	want, err := mcp.Call[string](t.Context(), plain, s.tool, struct{}{})
	if err != nil {
		t.Fatal("the call:", err)
	}
	s.steps.mu.Lock()
	s.steps.runs = nil
	s.steps.mu.Unlock()
	if got := s.run(t, next); got != want {
		t.Errorf("the task ends with %q, the call with %q", got, want)
	}
	if again := s.steps.repeated(); again != nil && s.remote == nil { // a call of another server is one step
		t.Error("run again:", again)
	}
}

// checkEverywhere checks the outcome of a call in every revision and over every transport.
func checkEverywhere(t *testing.T, kind, place, want string) {
	t.Helper()
	everywhere(t, func(t *testing.T, path mcptest.Path, version string) {
		o := &tasks.Options{PollInterval: 10 * time.Millisecond, Lease: 10 * time.Second}
		s := &site{shared: store.NewMemory(nil), options: o, steps: new(ledger), serve: places[place]}
		s.handler = kinds[kind](s.steps)
		s.open(t)
		opts := clientOptions([]*mcp.ClientExtension{tasks.Client()})
		opts.Version = version
		got, err := mcp.Call[string](t.Context(), mcptest.Dial(t, path.Serve(t, s.replica.mux), opts), s.tool, struct{}{})
		if got != want || err != nil {
			t.Errorf("the call ends with %q, %v; want %q", got, err, want)
		}
	})
}

// A handler need not have a state to ask: the answers are all that it needs.
func TestFindingK1QuestionsWithoutAStateAreAnswered(t *testing.T) {
	checkEverywhere(t, "own questions without a state", "around the tool", `1 `+h265+` for no one`)
}

// If a handler asks by itself again, it gets the answers to its latest questions only, like the
// handler of a call.
func TestFindingK1AnswersOfTheLatestRound(t *testing.T) {
	checkEverywhere(t, "own questions with a state", "around the tool", `xx `+h265+` for no one`)
}

// A handler that returns a state without a question runs again soon.
func TestFindingK2StateWithoutAQuestion(t *testing.T) {
	checkEverywhere(t, "a state without questions", "around the tool", "xxx0 for no one")
}

// While a handler pauses that wants to run again later, its task is working, has no slot, and
// can be cancelled.
func TestFindingK2TheTaskWorksWhileItsHandlerPauses(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, runs := newReplica(t, store.NewMemory(nil), &tasks.Options{MaxRunning: 1}, nil), new(ledger)
		r.background.Tool("later", asksItself(func(in retry) (mcp.Result, string) {
			runs.run("later")
			return &mcp.InputRequired{RequestState: new(in.State + "x")}, ""
		}))
		r.tool("quick", func(context.Context) (string, error) { return "done", nil })
		c := r.connect(t)
		h := start(t, c, "later")
		synctest.Wait()
		before := runs.count("later")
		until(t, start(t, c, "quick"), tasks.Completed)
		if n := runs.count("later"); n != before {
			t.Errorf("the handler ran %d times without a pause", n)
		}
		<-time.After(10 * time.Second)
		if d := state(t, h); d.Status != tasks.Working || runs.count("later") < 5 || runs.count("later") > 20 {
			t.Errorf("after ten seconds and %d runs, the task is %s", runs.count("later"), d.Status)
		}
		if err := h.Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
		until(t, h, tasks.Cancelled)
		ended := runs.count("later")
		<-time.After(10 * time.Second)
		if n := runs.count("later"); n != ended {
			t.Errorf("the handler ran %d times after the task was cancelled", n-ended)
		}
	})
}

// Background around a mount makes tasks of the mux, not of the mounted server.
func TestFindingK3BackgroundAroundAMount(t *testing.T) {
	for _, place := range []string{"around a mount", "around a mount of a server with tasks", "around a connection", "around a connection to a server with tasks"} {
		t.Run(place, func(t *testing.T) {
			checkEverywhere(t, "Elicit", place, "av1 for no one")
		})
	}
}

// Of several Background around a tool, the outermost one runs it.
func TestFindingK3BackgroundTwice(t *testing.T) {
	checkEverywhere(t, "Elicit", "around the mux and the tool", "av1 for no one")
}

// A task cannot be the result of a task. A handler that answers with one gets an error that says
// what to do.
func TestFindingK3TaskAsAResult(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := newReplica(t, store.NewMemory(nil), nil, nil)
		r.tool("inner", func(context.Context) (string, error) { return "done", nil })
		r.background.Tool("outer", mcp.WithDescription(mcp.HandlerFunc(func(ctx context.Context, _ *mcp.Request) (mcp.Result, error) {
			return r.mux.ServeMCP(ctx, sender(nil, true).NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "inner"}))
		}), &mcp.Tool{}))
		d := until(t, start(t, r.connect(t), "outer"), tasks.Failed)
		if want := `the tool "outer" was answered with a task`; !strings.Contains(d.Error.Message, want) {
			t.Errorf("the error is %q, want one with %q", d.Error.Message, want)
		}
	})
}

// Middleware around the mux that calls a background tool when a task runs again gets the answer
// of an ordinary call, and the task continues with its own tool.
func TestFindingK6MiddlewareThatCallsABackgroundTool(t *testing.T) {
	checkEverywhere(t, "Elicit", "inside middleware that calls a background tool", "av1 for no one")
}

// A site is a server of which at most one replica can run tasks at a time.
type site struct {
	shared  store.Store
	options *tasks.Options // nil means short intervals
	steps   *ledger
	handler mcp.Handler
	serve   func(t *testing.T, s *site, r *replica) (tool string)

	replica *replica
	tool    string   // the name of the tool
	remote  *mcp.Mux // a server behind all replicas; nil before a place needs it
}

// open starts a replica and makes it the current one.
func (s *site) open(t *testing.T) {
	t.Helper()
	s.replica = newReplica(t, s.shared, s.options, nil)
	s.tool = s.serve(t, s, s.replica)
}

// connect connects a client that answers questions, with the given extensions.
func (s *site) connect(t *testing.T, extensions []*mcp.ClientExtension) *mcp.Conn {
	t.Helper()
	return (&mcptest.Client{Principal: ada(), Options: *clientOptions(extensions)}).Connect(t, s.replica.mux)
}

// clientOptions returns the options of a client that answers questions.
func clientOptions(extensions []*mcp.ClientExtension) *mcp.ClientOptions {
	return &mcp.ClientOptions{
		Extensions: extensions,
		Elicit: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			r := new(mcp.ElicitResult)
			return r, json.Unmarshal(reply(p.Message), r)
		},
		Sample: func(context.Context, *mcp.Conn, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			r := new(mcp.CreateMessageResult)
			return r, json.Unmarshal([]byte(sampled), r)
		},
	}
}

// ada returns a caller with a claim of every type that a token can have.
func ada() *mcp.Principal {
	return &mcp.Principal{Issuer: "i", Subject: "ada", Scopes: []string{"films"}, Claims: map[string]any{
		"name": "Ada", "admin": true, "level": 1.5, "tenant": 7.0, "roles": []any{"a", "b"}, "address": map[string]any{"city": "London"}, "none": nil,
	}}
}

// Answers to questions.
const (
	h265    = `{"action":"accept","content":{"codec":"h265"}}`
	sampled = `{"role":"assistant","model":"m","content":{"type":"text","text":"a poem"}}`
)

// reply returns the user's answer to a question, which depends on the round.
func reply(message string) json.RawMessage {
	if strings.HasSuffix(message, " 2") {
		return json.RawMessage(h265)
	}
	return json.RawMessage(av1)
}

// run runs the tool as a task and returns its text. Before each round of answers, and once
// while the task works, next may replace the process that runs it.
func (s *site) run(t *testing.T, next func(t *testing.T, s *site)) string {
	t.Helper()
	h := start(t, s.connect(t, []*mcp.ClientExtension{tasks.Client()}), s.tool)
	moved := false
	move := func() {
		next(t, s)
		moved = true
		h = tasks.Attach(s.connect(t, []*mcp.ClientExtension{tasks.Client()}), h.ID)
	}
	for range 200 {
		d := state(t, h)
		switch {
		case d.Status.IsFinal():
			if d.Status != tasks.Completed {
				t.Fatalf("the task is %s: %v", d.Status, d.Error)
			}
			return text(t, d)
		case d.Status == tasks.InputRequired:
			if len(d.InputRequests) == 0 {
				t.Fatal("the task waits for input without a question")
			}
			move()
			answers := map[string]json.RawMessage{}
			for key, q := range d.InputRequests {
				var p mcp.ElicitParams
				if answers[key] = json.RawMessage(sampled); q.Method == mcp.MethodElicit && json.Unmarshal(q.Params, &p) == nil {
					answers[key] = reply(p.Message)
				}
			}
			if err := h.Update(t.Context(), answers); err != nil {
				t.Fatal("tasks/update:", err)
			}
			synctest.Wait()
		case !moved:
			move()
		}
		<-time.After(100 * time.Millisecond)
	}
	t.Fatalf("the task does not end: it is %s", state(t, h).Status)
	return ""
}

// handovers are the ways in which the next run comes to its process.
var handovers = map[string]func(t *testing.T, s *site){
	"in one process": func(*testing.T, *site) {},
	"handed over": func(t *testing.T, s *site) {
		s.replica.shutdown(t)
		s.open(t)
	},
	"taken over": func(t *testing.T, s *site) {
		s.replica.link.cut()
		s.open(t)
	},
}

// kinds are kinds of handlers. Each ends with what it knows about its caller and its answers.
var kinds = map[string]func(steps *ledger) mcp.Handler{
	"answers at once": func(steps *ledger) mcp.Handler {
		return says(func(ctx context.Context) (string, error) { return "done", steps.once(ctx, "step") })
	},
	"Elicit": func(steps *ledger) mcp.Handler {
		return says(func(ctx context.Context) (string, error) {
			if err := steps.once(ctx, "before"); err != nil {
				return "", err
			}
			c, err := mcp.Elicit[codec](ctx, "codec", "Which codec?")
			if err != nil {
				return "", err
			}
			return c.Codec, steps.once(ctx, "after")
		})
	},
	"Sample": func(*ledger) mcp.Handler {
		return says(func(ctx context.Context) (string, error) {
			r, err := mcp.Sample(ctx, "poem", &mcp.CreateMessageParams{MaxTokens: 100, Messages: []*mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text("A poem!")}}}})
			if err != nil {
				return "", err
			}
			return r.Content[0].(*mcp.TextContent).Text, nil
		})
	},
	"several rounds": func(steps *ledger) mcp.Handler {
		return says(func(ctx context.Context) (string, error) {
			var all []string
			for i := range 3 {
				c, err := mcp.Elicit[codec](ctx, fmt.Sprint("codec ", i), fmt.Sprint("Which codec? ", i))
				if err != nil {
					return "", err
				}
				if err := steps.once(ctx, fmt.Sprint("step ", i)); err != nil {
					return "", err
				}
				all = append(all, c.Codec)
			}
			return fmt.Sprint(all), nil
		})
	},
	"own questions with a state": func(*ledger) mcp.Handler {
		return asksItself(func(in retry) (mcp.Result, string) {
			if len(in.State) == 2 {
				return nil, in.State + " " + string(in.Answers["q"])
			}
			state := in.State + "x"
			return &mcp.InputRequired{InputRequests: question("q", fmt.Sprint("Round ", len(state))), RequestState: &state}, ""
		})
	},
	"own questions without a state": func(*ledger) mcp.Handler {
		return asksItself(func(in retry) (mcp.Result, string) {
			switch {
			case in.Answers["second"] != nil:
				return nil, fmt.Sprint(len(in.Answers), " ", string(in.Answers["second"]))
			case in.Answers["first"] != nil:
				return &mcp.InputRequired{InputRequests: question("second", "Round 2")}, ""
			}
			return &mcp.InputRequired{InputRequests: question("first", "Round 1")}, ""
		})
	},
	"a state without questions": func(*ledger) mcp.Handler {
		return asksItself(func(in retry) (mcp.Result, string) {
			if len(in.State) == 3 {
				return nil, fmt.Sprint(in.State, len(in.Answers))
			}
			return &mcp.InputRequired{RequestState: new(in.State + "x")}, ""
		})
	},
	"a state without questions after a question": func(*ledger) mcp.Handler {
		return asksItself(func(in retry) (mcp.Result, string) {
			switch in.State {
			case "":
				return &mcp.InputRequired{InputRequests: question("q", "Round 1"), RequestState: new("asked")}, ""
			case "asked":
				return &mcp.InputRequired{RequestState: new("later " + string(in.Answers["q"]))}, ""
			}
			return nil, fmt.Sprint(in.State, len(in.Answers))
		})
	},
}

// says returns a handler that ends with the text of fn, its caller and its claims.
func says(fn func(ctx context.Context) (string, error)) mcp.Handler {
	return mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		s, err := fn(ctx)
		return s + describe(mcp.PrincipalFromContext(ctx)), err
	}, nil)
}

func describe(p *mcp.Principal) string {
	if p == nil {
		return " for no one"
	}
	return fmt.Sprintf(" for %s %v %#v", p.Subject, p.Scopes, p.Claims)
}

// A retry is what the client sends back to a handler that asks by itself.
type retry struct {
	State   string                     `json:"requestState"`
	Answers map[string]json.RawMessage `json:"inputResponses"`
}

// asksItself returns a handler that asks without the functions of package mcp.
func asksItself(fn func(in retry) (asks mcp.Result, text string)) mcp.Handler {
	return mcp.WithDescription(mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		var in retry
		if err := json.Unmarshal(req.Params(), &in); err != nil {
			return nil, err
		}
		asks, text := fn(in)
		if asks != nil {
			return asks, nil
		}
		return &mcp.CallToolResult{Content: mcp.Contents{mcp.Text(text + describe(req.Principal))}}, nil
	}), &mcp.Tool{})
}

func question(key, message string) map[string]mcp.InputRequest {
	return map[string]mcp.InputRequest{key: {Method: mcp.MethodElicit, Params: json.RawMessage(fmt.Sprintf(
		`{"message":%q,"requestedSchema":{"type":"object","properties":{"codec":{"type":"string"}}}}`, message))}}
}

// places are the places where Background can stand. They register the tool, and return its
// name.
var places = map[string]func(t *testing.T, s *site, r *replica) string{
	"around the tool": func(_ *testing.T, s *site, r *replica) string {
		r.background.Tool("work", s.handler)
		return "work"
	},
	"around the mux": func(_ *testing.T, s *site, r *replica) string {
		r.mux.Use(r.manager.Background(nil))
		r.mux.Tool("work", s.handler)
		return "work"
	},
	"around the mux and the tool": func(_ *testing.T, s *site, r *replica) string {
		r.mux.Use(r.manager.Background(nil))
		r.background.Tool("work", s.handler)
		return "work"
	},
	"around a mount": func(_ *testing.T, s *site, r *replica) string {
		child := mcp.NewMux("child", "1", r.muxOptions())
		child.Tool("work", s.handler)
		r.background.Mount("in_", child)
		return "in_work"
	},
	"around a mount of a server with tasks": func(t *testing.T, s *site, r *replica) string {
		child := newReplica(t, store.NewMemory(nil), nil, nil)
		child.background.Tool("work", s.handler)
		r.background.Mount("in_", child.mux)
		return "in_work"
	},
	"around a connection": func(t *testing.T, s *site, r *replica) string {
		if s.remote == nil {
			s.remote = mcp.NewMux("remote", "1", r.muxOptions())
			s.remote.Tool("work", s.handler)
		}
		r.background.Mount("in_", (&mcptest.Client{Options: *forwarding(mcp.LatestVersion)}).Connect(t, s.remote))
		return "in_work"
	},
	"around a connection to a server with tasks": func(t *testing.T, s *site, r *replica) string {
		if s.remote == nil {
			remote := newReplica(t, store.NewMemory(nil), nil, nil)
			remote.background.Tool("work", s.handler)
			s.remote = remote.mux
		}
		r.background.Mount("in_", (&mcptest.Client{Options: *forwarding(mcp.LatestVersion)}).Connect(t, s.remote))
		return "in_work"
	},
	"inside middleware that calls a background tool": func(_ *testing.T, s *site, r *replica) string {
		r.mux.Use(calling(r.mux, "audit", true))
		r.background.Tool("audit", s.audit())
		r.background.Tool("work", s.handler)
		return "work"
	},
	"around middleware that calls a background tool": func(_ *testing.T, s *site, r *replica) string {
		r.background.Tool("audit", s.audit())
		r.background.With(calling(r.mux, "audit", false)).Tool("work", s.handler)
		return "work"
	},
}

// audit returns a tool that remembers something.
func (s *site) audit() mcp.Handler {
	return mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		return mcp.Once(ctx, "audit", func(context.Context) (string, error) { return "audited", nil })
	}, nil)
}

// calling returns middleware that calls another tool after each call of a tool, and before it
// if early is true. Inside Background, the first handler that remembers something has the
// memory of the task, so another tool must not be called before.
func calling(mux *mcp.Mux, tool string, early bool) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != mcp.MethodCallTool || req.Name() == tool {
				return next.ServeMCP(ctx, req)
			}
			call := func() error {
				params := &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage("{}"), Meta: req.Meta()}
				inner, err := req.WithParams(params)
				if err == nil {
					_, err = mux.ServeMCP(ctx, inner)
				}
				return err
			}
			if early {
				if err := call(); err != nil {
					return nil, err
				}
			}
			res, err := next.ServeMCP(ctx, req)
			if err == nil {
				err = call()
			}
			return res, err
		})
	}
}

// muxOptions returns the options of the replica's mux.
func (r *replica) muxOptions() *mcp.MuxOptions {
	return &mcp.MuxOptions{Logger: slog.New(slog.DiscardHandler), StateKeys: [][]byte{r.key}, StateStore: r.link.shared}
}
