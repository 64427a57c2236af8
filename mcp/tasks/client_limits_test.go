// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/tasks"
)

// A scriptedServer answers every call with the task x. Its states are those that get returns,
// as JSON objects without the members that all states have.
type scriptedServer struct {
	get    func(poll int) (state string, err error)
	listen mcp.HandlerFunc                        // nil if it does not push states
	alter  func(state map[string]json.RawMessage) // nil, or changes each state

	mu       sync.Mutex
	requests map[string]int // by method
}

// sent returns the number of requests with a method so far.
func (s *scriptedServer) sent(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[method]
}

func (s *scriptedServer) count(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[method]++
	return s.requests[method]
}

// ServeMCP implements mcp.Handler.
func (s *scriptedServer) ServeMCP(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	n := s.count(req.Method)
	var state string
	switch req.Method {
	case mcp.MethodDiscover:
		return &mcp.DiscoverResult{SupportedVersions: []string{mcp.LatestVersion}, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ListCapability{}}}, nil
	case mcp.MethodCallTool:
		state = `{"resultType":"task","status":"working"}`
	case tasks.MethodGet:
		var err error
		if state, err = s.get(n); err != nil {
			return nil, err
		}
	case tasks.MethodUpdate, tasks.MethodCancel:
		return &mcp.EmptyResult{}, nil
	case mcp.MethodListen:
		if s.listen != nil {
			return s.listen(ctx, req)
		}
		fallthrough
	default:
		return nil, mcp.NewMethodNotFoundError(req.Method)
	}
	res := &mcp.EmptyResult{}
	res.Extra = s.task(state)
	if res.Extra["resultType"] != nil {
		res.ResultType = tasks.ResultTask
		delete(res.Extra, "resultType")
	}
	return res, nil
}

// task returns the members of the task in a state.
func (s *scriptedServer) task(state string) map[string]json.RawMessage {
	members := map[string]json.RawMessage{
		"taskId": json.RawMessage(`"x"`), "ttlMs": json.RawMessage("60000"), "pollIntervalMs": json.RawMessage("20"),
		"createdAt": json.RawMessage(`"2026-01-01T00:00:00Z"`), "lastUpdatedAt": json.RawMessage(`"2026-01-01T00:00:00Z"`),
	}
	if err := json.Unmarshal([]byte(state), &members); err != nil {
		panic(err)
	}
	if s.alter != nil {
		s.alter(members)
	}
	return members
}

// connectScripted connects a client to a server with the given states.
func connectScripted(t *testing.T, opts *mcp.ClientOptions, get func(poll int) (string, error)) (*mcp.Conn, *scriptedServer) {
	t.Helper()
	s := &scriptedServer{get: get, requests: map[string]int{}}
	opts.Version, opts.Logger = mcp.LatestVersion, slog.New(slog.DiscardHandler)
	c, err := mcp.NewClient("test", "1", opts).Connect(t.Context(), mcp.InProcess(s))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, s
}

// The two ways in which a client waits for a task.
var waits = map[string]func(ctx context.Context, c *mcp.Conn) error{
	"Call": func(ctx context.Context, c *mcp.Conn) error {
		_, err := mcp.Call[string](ctx, c, "tool", struct{}{})
		return err
	},
	"Wait": func(ctx context.Context, c *mcp.Conn) error {
		_, err := tasks.Attach(c, "x").Wait(ctx)
		return err
	},
}

// asking returns a state with n questions, whose keys begin with a prefix.
func asking(prefix string, n int) string {
	var questions []string
	for i := range n {
		questions = append(questions, fmt.Sprintf(`"%s%d":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}`, prefix, i))
	}
	return `{"status":"input_required","inputRequests":{` + strings.Join(questions, ",") + `}}`
}

const done = `{"status":"completed","result":{"content":[{"type":"text","text":"done"}]}}`

// The limits on questions about a call also apply to the questions of its task. Beyond them,
// the task is cancelled.
func TestFindingX3QuestionsOfTasksAreBounded(t *testing.T) {
	for how, wait := range waits {
		for _, test := range []struct {
			asks   int // questions of each state
			states int // states that ask before the task is done; 0 means that it never is
			asked  int64
			err    string // "" means that the call succeeds
		}{
			{16, 32, 32 * 16, ""},
			{1, 0, 32, "asked in 32 rounds"},
			{17, 1, 0, "the limit is 16"},
			{20_000, 1, 0, "the limit is 16"},
			{2, 33, 64, "asked in 32 rounds"},
		} {
			t.Run(fmt.Sprint(how, test.asks, "×", test.states), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					var asked, atOnce, most atomic.Int64
					var opts mcp.ClientOptions
					opts.Extensions, opts.CallTimeout = []*mcp.ClientExtension{tasks.Client()}, time.Minute
					opts.Elicit = func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
						asked.Add(1)
						n := atOnce.Add(1)
						defer atOnce.Add(-1)
						for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
						}
						<-time.After(time.Minute) // the user takes as long as the call may take
						return &mcp.ElicitResult{Action: mcp.ActionAccept}, nil
					}
					c, s := connectScripted(t, &opts, func(poll int) (string, error) {
						if test.states > 0 && poll > test.states {
							return done, nil
						}
						return asking(fmt.Sprintf("q%d-", poll), test.asks), nil
					})
					err := wait(t.Context(), c)
					switch {
					case test.err == "" && err != nil, test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)):
						t.Errorf("the call ended with %v, want %q", err, test.err)
					case asked.Load() != test.asked || most.Load() > 4:
						t.Errorf("the user was asked %d questions, %d at once; want %d, 4", asked.Load(), most.Load(), test.asked)
					case (err != nil) != (s.sent(tasks.MethodCancel) == 1):
						t.Errorf("%v, and tasks/cancel was sent %d times", err, s.sent(tasks.MethodCancel))
					}
				})
			})
		}
	}
}

// A client that stops polling cancels the task. Problems of the server or the network that
// may pass do not make it stop, unless they last.
func TestFindingY5AbandonedTasksAreCancelled(t *testing.T) {
	unavailable := mcp.Errorf(-32050, "restarting")
	unavailable.Cause = passing{}
	for how, wait := range waits {
		for name, test := range map[string]struct {
			err       error  // of each tasks/get
			state     string // or what answers it
			times     int    // how often, before the task is done
			cancelled bool
		}{
			"a passing internal error":  {mcp.Errorf(mcp.CodeInternalError, "the database is busy"), "", 1, false},
			"ten internal errors":       {mcp.Errorf(mcp.CodeInternalError, "the database is busy"), "", 10, false},
			"a lasting internal error":  {mcp.Errorf(mcp.CodeInternalError, "the database is gone"), "", 11, true},
			"a passing 503":             {unavailable, "", 1, false},
			"a lasting 503":             {unavailable, "", 11, true},
			"a passing network failure": {errDown, "", 10, false},
			"an unknown task":           {mcp.Errorf(mcp.CodeInvalidParams, "no such task"), "", 1, true},
			"a missing capability":      {mcp.Errorf(mcp.CodeMissingCapability, "declare it"), "", 1, true},
			"a passing riddle":          {nil, `{"status":7}`, 10, false},
			"a lasting riddle":          {nil, `{"status":7}`, 11, true},
			"no status for a while":     {nil, `{}`, 10, false},
			"never a status":            {nil, `{}`, 11, true},
			"unreadable questions":      {nil, `{"status":"input_required","inputRequests":7}`, 11, true},
		} {
			t.Run(how+"/"+name, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					fail, polls := true, 0
					opts := options()
					opts.Extensions = append(opts.Extensions, flaky(func(req *mcp.Request) error {
						if req.Method != tasks.MethodGet {
							return nil
						}
						polls++
						if fail = polls <= test.times; fail {
							return test.err
						}
						return nil
					}))
					c, s := connectScripted(t, opts, func(int) (string, error) {
						if fail {
							return test.state, nil
						}
						return done, nil
					})
					err := wait(t.Context(), c)
					if (err != nil) != test.cancelled || (s.sent(tasks.MethodCancel) == 1) != test.cancelled {
						t.Errorf("%v after %d polls, and tasks/cancel was sent %d times; want cancelled %v", err, polls, s.sent(tasks.MethodCancel), test.cancelled)
					}
				})
			})
		}
	}
}

// passing is the cause of an error that may pass.
type passing struct{}

func (passing) Error() string   { return "503" }
func (passing) Transient() bool { return true }

// A question that stays open after it was answered is not asked again. Its answer is
// repeated, because the server may have lost it, but not at every poll.
func TestFindingY17AnswersAreNotRepeatedAtEveryPoll(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c, s := connectScripted(t, options(), func(poll int) (string, error) {
			if poll > 64 { // 1.3 seconds later
				return done, nil
			}
			return asking("q", 1), nil
		})
		if err := waits["Call"](t.Context(), c); err != nil {
			t.Error(err)
		}
		if n := s.sent(tasks.MethodUpdate); n != 2 {
			t.Errorf("tasks/update was sent %d times, want 2", n)
		}
	})
}

// An answer that the server did not acknowledge is sent again, for a limited number of times.
func TestUnacknowledgedAnswersAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		opts, updates := options(), 0
		opts.Extensions = append(opts.Extensions, flaky(func(req *mcp.Request) error {
			if req.Method == tasks.MethodUpdate {
				updates++
				return mcp.Errorf(mcp.CodeInternalError, "the database is gone")
			}
			return nil
		}))
		c, s := connectScripted(t, opts, func(int) (string, error) { return asking("q", 1), nil })
		if err := waits["Call"](t.Context(), c); err == nil || updates != 11 || s.sent(tasks.MethodCancel) != 1 {
			t.Errorf("%v; %d attempts, and tasks/cancel was sent %d times", err, updates, s.sent(tasks.MethodCancel))
		}
	})
}

// The error of a task that failed without a reason says so.
func TestFindingY15FailureWithoutReason(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for state, want := range map[string]string{
			`{"status":"failed"}`:                           "the task failed; the server does not say why",
			`{"status":"failed","statusMessage":"no film"}`: "the task failed: no film",
			`{"status":"failed","statusMessage":"x","error":{"code":-32050,"message":"on fire"}}`: "on fire",
		} {
			c, _ := connectScripted(t, options(), func(int) (string, error) { return state, nil })
			var refused *mcp.Error
			if err := waits["Call"](t.Context(), c); !errors.As(err, &refused) || refused.Message != want {
				t.Errorf("%s: %v, want %q", state, err, want)
			}
		}
	})
}

// The answers that a gateway passes on are sent again if they were lost, as those of a client
// of the server are.
func TestFindingK7GatewayRepeatsLostAnswers(t *testing.T) {
	for _, version := range []string{mcp.LatestVersion, r202511} { // of the gateway's client
		for name, lost := range map[string]error{
			"lost":    errDown,
			"busy":    mcp.NewRateLimitedError(time.Second, "busy"),
			"failing": mcp.Errorf(mcp.CodeInternalError, "the database is busy"),
		} {
			t.Run(fmt.Sprint(version, "/", name), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					server := newOutcomes(t)
					updates := 0
					toServer := forwarding(mcp.LatestVersion)
					toServer.Extensions = append(toServer.Extensions, flaky(func(req *mcp.Request) error {
						if req.Method != tasks.MethodUpdate {
							return nil
						}
						if updates++; updates <= 2 {
							return lost
						}
						return nil
					}))
					mux := gate(t, (&mcptest.Client{Options: *toServer}).Connect(t, server.mux))
					opts := options()
					opts.Version, opts.Extensions = version, nil
					asked := 0
					elicit := opts.Elicit
					opts.Elicit = func(ctx context.Context, c *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
						asked++
						return elicit(ctx, c, p)
					}
					c := (&mcptest.Client{Options: *opts}).Connect(t, mux)
					got, err := mcp.Call[string](t.Context(), c, "a_ask", nil)
					if got != "av1av1" || err != nil || asked != 2 {
						t.Errorf("%q, %v; %d questions and %d updates", got, err, asked, updates)
					}
				})
			})
		}
	}
}

// The rounds of a call before it became a task count, too.
func TestLookRoundsBeforeATaskCount(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var asked atomic.Int64
		calls := 0
		opts := &mcp.ClientOptions{
			Extensions: []*mcp.ClientExtension{tasks.Client()}, Version: mcp.LatestVersion, Logger: slog.New(slog.DiscardHandler),
			Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				asked.Add(1)
				return &mcp.ElicitResult{Action: mcp.ActionAccept}, nil
			},
		}
		s := &scriptedServer{requests: map[string]int{}, get: func(poll int) (string, error) { return asking(fmt.Sprintf("q%d-", poll), 1), nil }}
		first := mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
			if req.Method != mcp.MethodCallTool {
				return s.ServeMCP(ctx, req)
			}
			if calls++; calls < 4 {
				return &mcp.InputRequired{ResultBase: mcp.ResultBase{ResultType: mcp.ResultInputRequired}, InputRequests: map[string]mcp.InputRequest{
					"a": {Method: mcp.MethodElicit, Params: json.RawMessage(`{"message":"?","requestedSchema":{"type":"object","properties":{}}}`)},
				}}, nil
			}
			return s.ServeMCP(ctx, req)
		})
		c, err := mcp.NewClient("test", "1", opts).Connect(t.Context(), mcp.InProcess(first))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_, err = mcp.Call[string](t.Context(), c, "tool", struct{}{})
		if err == nil || asked.Load() != 32 {
			t.Errorf("a server asked %d times about one call: %v", asked.Load(), err)
		}
	})
}

// A task that uses the key of a question again must not get the answer to the earlier one.
func TestReusedKeyOfAQuestion(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var answered []string
		opts := &mcp.ClientOptions{
			Extensions: []*mcp.ClientExtension{tasks.Client()}, Version: mcp.LatestVersion, Logger: slog.New(slog.DiscardHandler),
			Elicit: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
				answered = append(answered, p.Message)
				return &mcp.ElicitResult{Action: mcp.ActionAccept}, nil
			},
		}
		s := &scriptedServer{requests: map[string]int{}, get: func(poll int) (string, error) {
			question := asking("q", 1)
			if poll > 10 {
				return done, nil
			}
			if poll > 3 { // until then, the same question again
				question = strings.ReplaceAll(question, `"message":"?"`, `"message":"Delete everything?"`)
			}
			return question, nil
		}}
		c, err := mcp.NewClient("test", "1", opts).Connect(t.Context(), mcp.InProcess(s))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		_, err = mcp.Call[string](t.Context(), c, "tool", struct{}{})
		if err == nil || !strings.Contains(err.Error(), `two different questions with the key "q0"`) || !slices.Equal(answered, []string{"?"}) || s.requests[tasks.MethodCancel] != 1 {
			t.Errorf("got %v after answers to %q and %d cancellations", err, answered, s.requests[tasks.MethodCancel])
		}
	})
}
