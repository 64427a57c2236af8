// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/transport"
)

// spy records the messages that a client sends.
type spy struct {
	mu  sync.Mutex
	all []*transport.Outgoing
}

func (s *spy) on(t transport.Transport) transport.Transport {
	return mcptest.Faulty(t, func(_ int, m *transport.Outgoing) mcptest.Fault {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, m)
		return mcptest.Fault{}
	})
}

// sent returns the messages sent with the given method, or the responses if it is "".
func (s *spy) sent(method string) []*transport.Outgoing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.all), func(m *transport.Outgoing) bool { return m.Method != method })
}

// wireParams are params as sent in a message.
type wireParams struct {
	ProtocolVersion string                     `json:"protocolVersion"`
	Capabilities    map[string]json.RawMessage `json:"capabilities"`
	ClientInfo      *mcp.Implementation        `json:"clientInfo"`
	RequestState    *string                    `json:"requestState"`
	InputResponses  map[string]json.RawMessage `json:"inputResponses"`
	RequestID       json.RawMessage            `json:"requestId"`
	Meta            struct {
		Version      string                     `json:"io.modelcontextprotocol/protocolVersion"`
		Capabilities map[string]json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
		Info         *mcp.Implementation        `json:"io.modelcontextprotocol/clientInfo"`
		Token        json.RawMessage            `json:"progressToken"`
	} `json:"_meta"`
}

func paramsOf(t *testing.T, m *transport.Outgoing) wireParams {
	t.Helper()
	var body struct {
		JSONRPC string     `json:"jsonrpc"`
		Params  wireParams `json:"params"`
	}
	if err := json.Unmarshal(m.Body, &body); err != nil || body.JSONRPC != "2.0" {
		t.Fatalf("%s: %v", m.Body, err)
	}
	return body.Params
}

// talkative returns the options of a client that supports everything.
func talkative(version string) *mcp.ClientOptions {
	return &mcp.ClientOptions{
		Version: version, Logger: quiet().Logger, Roots: []mcp.Root{{URI: "file:///home"}},
		Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return mcptest.Accept(yes{true}), nil
		},
		Sample: func(context.Context, *mcp.Conn, *mcp.CreateMessageParams) (*mcp.CreateMessageResult, error) {
			return nil, errors.New("no model")
		},
	}
}

// talk makes a client send every kind of message.
func talk(t *testing.T, c *mcp.Conn) {
	t.Helper()
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			ctx := mcp.WithProgress(t.Context(), func(*mcp.ProgressParams) {})
			for _, name := range []string{"hello", "ask"} {
				if _, err := c.CallTool(ctx, tool(name, "")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	_, promptErr := c.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p", Arguments: map[string]string{"topic": "x"}})
	_, readErr := c.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "r:r"})
	_, listErr := c.ListTools(t.Context(), nil)
	if err := errors.Join(promptErr, readErr, listErr, c.Ping(t.Context())); err != nil {
		t.Error(err)
	}
	s, err := c.Listen(t.Context(), mcp.SubscriptionFilter{ToolsListChanged: true}, func(mcp.Change) {})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	<-s.Done()
}

// onEveryPath runs talk, then fn, on every path in every version accepted by era.
func onEveryPath(t *testing.T, era func(version string) bool, fn func(t *testing.T, version string, s *spy)) {
	t.Helper()
	for _, path := range mcptest.Paths() {
		for _, version := range path.Versions() {
			if !era(version) {
				continue
			}
			t.Run(path.Name+" "+version, func(t *testing.T) {
				var s spy
				talk(t, mcptest.Dial(t, s.on(path.Serve(t, everything(quiet()))), talkative(version)))
				fn(t, version, &s)
			})
		}
	}
}

func isModern(version string) bool { return version == mcp.LatestVersion }
func isLegacy(version string) bool { return version != mcp.LatestVersion }
func isAny(string) bool            { return true }

// RPC-02, RPC-04, RPC-05, MRTR-13, PROG-01: IDs and progress tokens are never reused, even
// if a request is sent again.
func TestFreshIDs(t *testing.T) {
	onEveryPath(t, isAny, func(t *testing.T, _ string, s *spy) {
		ids, tokens := map[mcp.ID]bool{}, map[string]bool{}
		for _, m := range s.all {
			if m.Method == "" || m.ID.IsZero() {
				continue
			}
			if ids[m.ID] {
				t.Errorf("%s has an id that there was before: %s", m.Method, m.ID)
			}
			ids[m.ID] = true
			if token := string(paramsOf(t, m).Meta.Token); token != "" {
				if tokens[token] {
					t.Errorf("%s has a token that there was before: %s", m.Method, token)
				}
				tokens[token] = true
			}
		}
		if len(ids) < 20 || len(tokens) < 20 {
			t.Errorf("%d ids, %d tokens", len(ids), len(tokens))
		}
	})
}

// META-01, META-03, VER-12, ELI-01, SAMP-01, ROOT-01: every request of the modern era
// carries the client's identity, version and capabilities. RPC-15, HTTP-05, STDIO-06: it is
// never a response.
func TestRequestsSpeakForThemselves(t *testing.T) {
	onEveryPath(t, isModern, func(t *testing.T, version string, s *spy) {
		for _, m := range s.all {
			if m.Method == "" || m.Version != version {
				t.Errorf("sent %s, version %q", m.Body, m.Version)
			}
			if m.ID.IsZero() {
				continue
			}
			meta := paramsOf(t, m).Meta
			if meta.Version != version || meta.Info == nil || meta.Info.Name == "" || len(meta.Capabilities) != 3 ||
				meta.Capabilities["elicitation"] == nil || meta.Capabilities["sampling"] == nil || string(meta.Capabilities["roots"]) != "{}" {
				t.Errorf("%s says of itself: %+v", m.Method, meta)
			}
		}
	})
}

// HDR-01, HDR-02: mirrored headers match the body.
func TestMirroredNames(t *testing.T) {
	onEveryPath(t, isModern, func(t *testing.T, _ string, s *spy) {
		for method, names := range map[string][]string{
			"tools/call": {"hello", "ask"}, "prompts/get": {"p"}, "resources/read": {"r:r"}, "tools/list": {""}, "subscriptions/listen": {""},
		} {
			for _, m := range s.sent(method) {
				if !slices.Contains(names, m.Name) {
					t.Errorf("%s is sent under the name %q", method, m.Name)
				}
			}
		}
	})
}

// MRTR-12, MRTR-14, MRTR-15: only a retry carries the state it was given and an answer to
// each question.
func TestRetries(t *testing.T) {
	onEveryPath(t, isModern, func(t *testing.T, _ string, s *spy) {
		retries := 0
		for _, m := range s.all {
			p := paramsOf(t, m)
			switch {
			case p.RequestState == nil && p.InputResponses == nil:
			case m.Method != "tools/call" || m.Name != "ask" || p.RequestState == nil || len(p.InputResponses) != 1 || p.InputResponses["k"] == nil:
				t.Errorf("sent %s", m.Body)
			default:
				retries++
			}
		}
		if retries != 10 {
			t.Errorf("%d retries, want 10", retries)
		}
	})
}

// INIT-01, INIT-02, INIT-04, INIT-05, INIT-07, ELI-01, SAMP-01, ROOT-01: the handshake is
// complete and precedes all other messages.
func TestHandshake(t *testing.T) {
	onEveryPath(t, isLegacy, func(t *testing.T, version string, s *spy) {
		if len(s.all) < 2 || s.all[0].Method != "initialize" || s.all[1].Method != "notifications/initialized" || len(s.sent("initialize")) != 1 {
			t.Fatalf("it begins with %+v", s.all)
		}
		p := paramsOf(t, s.all[0])
		if p.ProtocolVersion != version || p.ClientInfo == nil || p.ClientInfo.Name == "" || len(p.Capabilities) != 3 ||
			p.Capabilities["elicitation"] == nil || p.Capabilities["sampling"] == nil || string(p.Capabilities["roots"]) != `{"listChanged":true}` {
			t.Errorf("it opens with %s", s.all[0].Body)
		}
		for _, m := range s.all[2:] {
			if meta := paramsOf(t, m).Meta; meta.Version != "" || meta.Capabilities != nil {
				t.Errorf("%s has metadata of the modern era", m.Body)
			}
		}
	})
}

// heard is a notification received by a subscriber.
type heard struct {
	Method string `json:"method"`
	Params struct {
		Notifications mcp.SubscriptionFilter `json:"notifications"`
		Meta          struct {
			Subscription json.RawMessage `json:"io.modelcontextprotocol/subscriptionId"`
		} `json:"_meta"`
	} `json:"params"`
}

func hear(t *testing.T, p *peer) (h heard) {
	t.Helper()
	if err := json.Unmarshal([]byte(p.receive()), &h); err != nil {
		t.Fatal(err)
	}
	return h
}

// META-08, SUB-01, SUB-02, SUB-03, SUB-05, SUB-12, SUB-13: a subscription begins with its
// acknowledgement, delivers only what was requested, and is identified by the ID of its
// request, exactly as written.
func TestSubscriptionOnTheWire(t *testing.T) {
	for _, id := range []string{`7`, `"7"`, `"a b"`} {
		mux := everything(quiet())
		p := newPeer(t, mux, eras[0])
		p.send(eras[0].request(id, "subscriptions/listen",
			`"notifications":{"toolsListChanged":true,"resourceSubscriptions":["r:r","none:x"],"unknownThings":true}`))
		first := hear(t, p)
		if f := first.Params.Notifications; first.Method != mcp.NotificationAcknowledged || !f.ToolsListChanged || f.PromptsListChanged ||
			len(f.ResourceSubscriptions) != 1 || string(first.Params.Meta.Subscription) != id {
			t.Errorf("%s: it begins with %+v", id, first)
		}
		mux.Prompt("new", promptSays(""))
		mux.Resource("r:new", reads(""))
		mux.ResourceUpdated("r:new")
		mux.ResourceUpdated("r:r")
		if h := hear(t, p); h.Method != mcp.NotificationResourceUpdated || string(h.Params.Meta.Subscription) != id {
			t.Errorf("%s: heard %+v", id, h)
		}
		mux.Tool("new", says(""))
		if h := hear(t, p); h.Method != mcp.NotificationToolsListChanged || string(h.Params.Meta.Subscription) != id {
			t.Errorf("%s: heard %+v", id, h)
		}
	}
}

// CAN-02, SUB-07: a cancelled subscription sends nothing more. Others continue.
func TestCancelledSubscription(t *testing.T) {
	mux := everything(quiet())
	p := newPeer(t, mux, eras[0])
	for _, id := range []string{"1", "2"} {
		p.send(eras[0].request(id, "subscriptions/listen", `"notifications":{"toolsListChanged":true}`))
		hear(t, p)
	}
	p.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	p.send(eras[0].request("3", "tools/call", `"name":"hello"`))
	p.read()
	mux.Tool("new", says(""))
	if h := hear(t, p); string(h.Params.Meta.Subscription) != "2" {
		t.Errorf("heard %+v", h)
	}
	p.send(eras[0].request("4", "tools/call", `"name":"hello"`))
	if r := p.read(); r.ID != mcp.IntID(4) {
		t.Errorf("then came %+v", r)
	}
}
