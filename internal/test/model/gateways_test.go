// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
	"github.com/go-psi/psi/mcphttp"
	"github.com/go-psi/psi/middleware"
)

// inMux connects through a mux in the same process that mounts the server.
func inMux(s *site, f *faults) transport.Transport {
	mux := mcp.NewMux("outer", "v1", &mcp.MuxOptions{Logger: quiet})
	mux.Mount(mounted, s.w.handler)
	return s.inMemory(as(f.client.principal, mux))
}

// gateway connects through a mux that mounts a connection to the server. All clients that
// use the same gateway share the mux and the connection.
func gateway(version string, to func(*site) transport.Transport) func(s *site, f *faults) transport.Transport {
	return func(s *site, f *faults) transport.Transport {
		mux := s.gateways[f.client.way.name]
		if mux == nil {
			mux = mcp.NewMux("gateway", "v1", &mcp.MuxOptions{Logger: quiet})
			mux.Use(s.w.watch, middleware.Visible(visible))
			s.mount(mux, mounted, version, to(s))
			s.mount(mux, hostile, mcp.LegacyVersions()[0], newLiar(s.w).transport())
			s.gateways[f.client.way.name] = mux
		}
		return s.inMemory(as(f.client.principal, mux))
	}
}

// mount mounts a connection to a server.
func (s *site) mount(mux *mcp.Mux, prefix, version string, to transport.Transport) {
	opts := &mcp.ClientOptions{Version: version, Forward: true, Logger: quiet}
	behind, err := mcp.NewClient("gateway", "v1", opts).Connect(s.ctx, to)
	if err != nil {
		s.w.wrongf("the gateway could not connect %s: %v", prefix, err)
		return
	}
	s.behind = append(s.behind, behind)
	mux.Mount(prefix, behind)
}

func (s *site) overHTTP() transport.Transport {
	return mcphttp.NewTransport("http://localhost/mcp", &mcphttp.TransportOptions{Client: s.httpClient, Logger: quiet})
}

func (s *site) overStdio() transport.Transport { return transport.FromStream(s.pipe(nil)) }

const (
	// hostile is the prefix of names of the hostile server.
	hostile = "x_"
	// forged is the text sent by the hostile server.
	forged = "forged"
)

// tool returns the name of the call's tool as the client sees it.
func (k *call) tool() string {
	switch {
	case k.kind == "hostile":
		return hostile + "tool"
	case k.client.way.mounted:
		return mounted + k.name
	}
	return k.name
}

// checkNames checks that a list contains no duplicates and only names with the prefix of a
// mount.
func (k *call) checkNames(tools []*mcp.Tool) {
	seen := map[string]bool{}
	for _, t := range tools {
		if seen[t.Name] {
			k.client.w.wrongf("%s: the list has %q twice", k, t.Name)
		}
		seen[t.Name] = true
		if k.client.way.mounted && !strings.HasPrefix(t.Name, mounted) && !strings.HasPrefix(t.Name, hostile) {
			k.client.w.wrongf("%s: the list has %q, which no mount has", k, t.Name)
		}
	}
}

// reachesHostile reports whether the hostile server is involved in the call. Every list of
// a gateway includes the hostile server's list.
func (k *call) reachesHostile() bool {
	return k.kind == "hostile" || k.kind == "list" && k.client.way.gateway
}

// askedByHostile answers a question from the hostile server, which is only allowed during a
// call to that server.
func (c *client) askedByHostile() (*mcp.ElicitResult, error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if !c.hasHostileCallLocked() {
		c.w.wrongLockedf("%s was asked by a server that it did not call", c.name)
	}
	return &mcp.ElicitResult{Action: mcp.ActionDecline}, nil
}

// hasHostileCallLocked reports whether the hostile server may be serving a call of the client.
// If a fault duplicated the request, the refusal of the duplicate is all that the client gets,
// and the call stays in progress.
func (c *client) hasHostileCallLocked() bool {
	for _, k := range c.w.calls {
		isOpen := k.returned == 0 || time.Since(k.returnedAt) < 10*time.Second || slices.Contains(k.faults, "duplicate")
		if k.client == c && k.reachesHostile() && isOpen {
			return true
		}
	}
	return false
}

// liar is a hostile server behind a gateway. It is silent, answers with wrong IDs and
// nonsense, and sends messages it should not. Only its own callers may be affected.
type liar struct {
	w      *world
	rng    *rand.Rand
	polite bool // answers everything except calls
	stream transport.Stream
	open   map[string]string // tags of unanswered calls by ID; their cancellation is ignored
}

func newLiar(w *world) *liar {
	rng := w.rng("liar")
	return &liar{w: w, rng: rng, polite: rng.IntN(2) == 0, open: map[string]string{}}
}

func (l *liar) transport() transport.Transport {
	return transport.FromStream(func(context.Context) (transport.Stream, error) {
		client, server := transport.Pipe()
		l.stream = server
		go l.serve()
		return client, nil
	})
}

func (l *liar) serve() {
	defer l.stream.Close()
	for {
		data, err := l.stream.Read(l.w.ctx)
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(data, &m) != nil || m.ID == nil {
			continue
		}
		if m.Method == "initialize" {
			l.sayf(`"id":%s,"result":{"protocolVersion":%q,"capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}},"serverInfo":{"name":"liar","version":"1"}}`, m.ID, mcp.LegacyVersions()[0])
			continue
		}
		if !l.w.isCalm() {
			l.chatter()
		}
		if m.Method == mcp.MethodCallTool {
			l.open[string(m.ID)] = tagOf(data)
		}
		l.answer(string(m.ID), m.Method)
	}
}

func (l *liar) sayf(format string, args ...any) {
	_ = l.stream.Write(l.w.ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0",`+format+`}`, args...))
}

// answer answers a request or ignores it.
func (l *liar) answer(id, method string) {
	result := `{"content":[{"type":"text","text":"forged"}]}`
	if method == mcp.MethodListTools {
		tool := `{"name":"%s","inputSchema":{"type":"object"}}`
		result = fmt.Sprintf(`{"tools":[`+tool+`,`+tool+`,`+tool+`%s]}`, "tool", "tool", "b_echo", []string{"", `,{"name":7}`, `,null`}[l.rng.IntN(3)])
	}
	what := l.rng.IntN(8)
	if l.polite && method != mcp.MethodCallTool {
		what = 7
	}
	switch what {
	case 0:
	case 1:
		l.reply(strconv.Itoa(l.rng.IntN(40)), `"result":`+result)
	case 2:
		_ = l.stream.Write(l.w.ctx, []byte([]string{`{`, `[]`, `null`, "\xff", `{"jsonrpc":"2.0"}`}[l.rng.IntN(5)]))
	case 3:
		l.reply(id, `"result":[1]`)
	case 4:
		l.reply(id, `"error":{"code":1,"message":"forged"}`)
	default:
		l.reply(id, `"result":`+result)
		l.reply(id, `"result":`+result)
	}
}

func (l *liar) reply(id, outcome string) {
	delete(l.open, id)
	l.sayf(`"id":%s,%s`, id, outcome)
}

// chatter sends a random unsolicited message.
func (l *liar) chatter() {
	l.w.mu.Lock()
	l.w.forged++
	l.w.mu.Unlock()
	switch l.rng.IntN(8) {
	case 0:
		l.sayf(`"method":"notifications/resources/updated","params":{"uri":%q}`, resources[0])
	case 1:
		l.sayf(`"method":"notifications/progress","params":{"progressToken":%d,"progress":%d,"message":"forged"}`, l.rng.IntN(40), l.rng.IntN(40))
	case 2:
		l.sayf(`"method":"notifications/message","params":{"level":"error","data":"forged"}`)
	case 3:
		l.ask(forged)
	case 4:
		l.sayf(`"method":"notifications/cancelled","params":{"requestId":%d}`, l.rng.IntN(40))
	case 5:
		l.sayf(`"method":"notifications/tools/list_changed"`)
	default:
		if tags := slices.Sorted(maps.Values(l.open)); len(tags) > 0 {
			l.ask(tags[l.rng.IntN(len(tags))])
		}
	}
}

func (l *liar) ask(message string) {
	l.sayf(`"id":"q%d","method":"elicitation/create","params":{"message":%q,"requestedSchema":{"type":"object","properties":{}}}`, l.rng.IntN(3), message)
}
