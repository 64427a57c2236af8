// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/mcp/transport"
)

// tracedEvents records the calls of a trace, in order.
type tracedEvents struct {
	mu     sync.Mutex
	events []string
}

func (e *tracedEvents) addf(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, fmt.Sprintf(format, args...))
}

// take returns and clears the recorded events.
func (e *tracedEvents) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	events := e.events
	e.events = nil
	return events
}

// trace returns a trace that records everything except wire events.
func (e *tracedEvents) trace() *mcptrace.ClientTrace {
	return &mcptrace.ClientTrace{
		ProbeSent: func(i mcptrace.ProbeInfo) { e.addf("probe %s", i.Method) },
		EraChosen: func(i mcptrace.EraInfo) { e.addf("era %s: %s", i.Version, i.Reason) },
		CacheHit:  func(i mcptrace.CacheInfo) { e.addf("cached %s %s", i.Kind, i.Name) },
		Question:  func(i mcptrace.QuestionInfo) { e.addf("question %s", i.Method) },
		Answered:  func(i mcptrace.QuestionInfo) { e.addf("answered %s %s %v", i.Method, i.Answer, i.Err) },
		Round: func(i mcptrace.RoundInfo) {
			e.addf("round %d of %s %s with %d", i.Round, i.Method, i.Name, i.Questions)
		},
		Retry:     func(i mcptrace.RetryInfo) { e.addf("retry %s %s", i.Method, i.Name) },
		Reconnect: func(i mcptrace.ReconnectInfo) { e.addf("reconnect %s", i.Kind) },
		Challenge: func(i mcptrace.ChallengeInfo) { e.addf("challenge %d", i.Status) },
	}
}

// wire returns a trace that records wire events, without IDs.
func (e *tracedEvents) wire() *mcptrace.ClientTrace {
	add := func(verb string) func(mcptrace.WireInfo) {
		return func(i mcptrace.WireInfo) {
			m, err := transport.ParseMessage(i.Message)
			if err != nil || m.Method != i.Method || m.ID != i.ID {
				e.addf("%s %+v: %v", verb, i, err)
			}
			kind := i.Method
			if m.IsResponse() {
				kind = "response"
			}
			e.addf("%s %s", verb, kind)
		}
	}
	return &mcptrace.ClientTrace{WireWrite: add("write"), WireRead: add("read")}
}

// curious returns a server with a tool that asks a question.
func curious() *mcp.Mux {
	mux := mcp.NewMux("asking", "v1", quiet())
	mux.Tool("greet", mcp.ToolFunc(func(ctx context.Context, _ struct{}) (string, error) {
		in, err := mcp.Elicit[struct {
			Name string `json:"name"`
		}](ctx, "who", "Who are you?")
		return "Hello, " + in.Name + "!", err
	}, nil))
	mux.Tool("add", mcp.ToolFunc(func(_ context.Context, in sumIn) (sumOut, error) { return sumOut{in.A + in.B}, nil }, nil))
	return mux
}

// answeringAda returns the options of a client whose user is Ada.
func answeringAda(version string) *mcp.ClientOptions {
	return &mcp.ClientOptions{Version: version, Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return mcptest.Accept(map[string]string{"name": "Ada"}), nil
	}}
}

// The trace in the context of a call receives its events, in both eras and on every path.
func TestClientTraceOfACall(t *testing.T) {
	for _, p := range mcptest.Paths() {
		for _, version := range p.Versions() {
			t.Run(p.Name+"/"+version, func(t *testing.T) {
				c := connectTo(t, p.Serve(t, curious()), answeringAda(version))
				var e, wire tracedEvents
				ctx := mcptrace.WithClientTrace(mcptrace.WithClientTrace(t.Context(), e.trace()), wire.wire())
				if got, err := mcp.Call[string](ctx, c, "greet", nil); err != nil || got != "Hello, Ada!" {
					t.Fatalf("%q, %v", got, err)
				}
				question := []string{"question elicitation/create", `answered elicitation/create {"action":"accept","content":{"name":"Ada"}} <nil>`}
				want, wantWire := slices.Concat(question, []string{"round 2 of tools/call greet with 1"}), []string{"write tools/call", "read response", "write tools/call", "read response"}
				if version != mcp.LatestVersion {
					want, wantWire = nil, []string{"write tools/call", "read response"} // the question belongs to the connection
				}
				if got := e.take(); !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
				got := slices.DeleteFunc(wire.take(), func(e string) bool { return e == "read elicitation/create" }) // over HTTP it names the call
				if !slices.Equal(got, wantWire) {
					t.Errorf("on the wire: got %q, want %q", got, wantWire)
				}
				if _, err := mcp.Call[string](t.Context(), c, "greet", nil); err != nil || len(e.take())+len(wire.take()) > 0 {
					t.Errorf("a call without a trace is traced (%v)", err)
				}
			})
		}
	}
}

// The trace in the context of Connect receives the events of the connection.
func TestClientTraceOfAConnection(t *testing.T) {
	for _, p := range mcptest.Paths() {
		for _, version := range p.Versions() {
			t.Run(p.Name+"/"+version, func(t *testing.T) {
				var e tracedEvents
				ctx := mcptrace.WithClientTrace(t.Context(), e.trace())
				c, err := mcp.NewClient("traced", "v1", answeringAda(version)).Connect(ctx, p.Serve(t, curious()))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				if got, want := e.take(), []string{"era " + version + ": ClientOptions.Version"}; !slices.Equal(got, want) {
					t.Errorf("connecting: got %q, want %q", got, want)
				}
				if _, err := mcp.Call[string](t.Context(), c, "greet", nil); err != nil {
					t.Fatal(err)
				}
				if got := e.take(); len(got) < 2 || got[0] != "question elicitation/create" || !strings.HasPrefix(got[1], "answered") {
					t.Errorf("the question: got %q", got)
				}
				var own tracedEvents
				if _, err := mcp.Call[sumOut](mcptrace.WithClientTrace(t.Context(), own.wire()), c, "add", sumIn{}); err != nil || len(own.take()) != 2 || len(e.take()) != 0 {
					t.Errorf("a call with a trace of its own is not traced by that alone (%v)", err)
				}
			})
		}
	}
}

// onlyLegacy returns a transport to a server without server/discover.
func onlyLegacy(t *testing.T, h mcp.Handler) transport.Transport {
	return mcptest.Paths()[len(mcptest.Paths())-1].Serve(t, h) // HTTP+SSE ends with the legacy revisions
}

// A trace reports how the revision was determined, and whether it was remembered.
func TestClientTraceOfTheEra(t *testing.T) {
	var e tracedEvents
	ctx := mcptrace.WithClientTrace(t.Context(), e.trace())
	connect := func(c *mcp.Client, to transport.Transport) []string {
		conn, err := c.Connect(ctx, to)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		return e.take()
	}
	client := mcp.NewClient("traced", "v1", nil)
	modern := []string{"probe server/discover", "era " + mcp.LatestVersion + ": the server answers server/discover"}
	if got := connect(client, mcp.InProcess(curious())); !slices.Equal(got, modern) {
		t.Errorf("a modern server: got %q, want %q", got, modern)
	}
	old := onlyLegacy(t, curious())
	got := connect(client, old)
	if len(got) != 3 || got[0] != "probe server/discover" || got[1] != "probe initialize" || !strings.HasPrefix(got[2], "era 2025-11-25: the server does not answer server/discover") {
		t.Errorf("a legacy server: got %q", got)
	}
	if got, want := connect(client, old), []string{"cached version ", "era 2025-11-25: the version was known"}; !slices.Equal(got, want) {
		t.Errorf("a legacy server again: got %q, want %q", got, want)
	}
}

// A trace reports that the output schema of a listed tool is remembered.
func TestClientTraceOfASchema(t *testing.T) {
	var e tracedEvents
	c := connectTo(t, mcp.InProcess(curious()), nil)
	ctx := mcptrace.WithClientTrace(t.Context(), e.trace())
	call := func() []string {
		if _, err := mcp.Call[sumOut](ctx, c, "add", sumIn{1, 2}); err != nil {
			t.Fatal(err)
		}
		return e.take()
	}
	if got := call(); len(got) != 0 {
		t.Errorf("before the list: got %q", got)
	}
	if _, err := c.ListTools(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if got, want := call(), []string{"cached schema add"}; !slices.Equal(got, want) {
		t.Errorf("after the list: got %q, want %q", got, want)
	}
}

// A trace reports the attempts of an Upstream to reconnect.
func TestClientTraceOfAnUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e tracedEvents
		r := new(restless)
		r.become(nil, errors.New("no route"))
		opts := &mcp.UpstreamOptions{Logger: slog.New(slog.DiscardHandler)}
		u := mcp.NewClient("traced", "v1", nil).Maintain(mcptrace.WithClientTrace(t.Context(), e.trace()), r.transport(), opts)
		defer u.Close()
		synctest.Wait()
		want := []string{"reconnect connection", "probe server/discover", "era " + mcp.LatestVersion + ": the server answers server/discover"}
		r.become(curious(), nil)
		for _, state := range []string{"after a failure", "after a crash"} {
			if _, err := u.Conn(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := e.take(); !slices.Equal(got, want) {
				t.Errorf("%s: got %q, want %q", state, got, want)
			}
			r.crash()
			synctest.Wait()
		}
	})
}
