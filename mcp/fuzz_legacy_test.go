// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-psi/psi/internal/server"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// maxScript is the maximum number of lines played from a script.
const maxScript = 40

// script contains the messages of a peer, line by line. Each request of the other side
// consumes the following lines, in which `"$"` stands for the ID of the request.
type script struct {
	mu    sync.Mutex
	lines [][]byte
}

// newScript returns a script whose lines are mutated depending on seed.
func newScript(text []byte, seed uint64) *script {
	lines := bytes.Split(text, []byte("\n"))
	if len(lines) > maxScript {
		lines = lines[:maxScript]
	}
	for i, line := range lines {
		if lines[i] = line; (seed>>(i%64))&1 != 0 {
			lines[i] = mutated(line, seed+uint64(i))
		}
	}
	return &script{lines: lines}
}

// next returns the next line, or false after the last one.
func (s *script) next(id mcp.ID) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.lines) == 0 {
		return nil, false
	}
	line := s.lines[0]
	s.lines = s.lines[1:]
	return bytes.ReplaceAll(line, []byte(`"$"`), []byte(id.String())), true
}

// legacyPeer plays a script to a session and answers its questions.
type legacyPeer struct {
	*script
	t         *testing.T
	ctx       context.Context
	server    *server.Server
	session   *server.Session
	forgiving bool // the peer's answers may fail a request
}

func (p *legacyPeer) play() {
	for {
		line, ok := p.next(mcp.ID{})
		if !ok {
			return
		}
		p.feed(line)
	}
}

// feed passes a message to the session, as a transport does.
func (p *legacyPeer) feed(line []byte) (m transport.Message) {
	if transport.IsBatch(line) {
		if p.session.Batches() {
			batch := p.server.Accept(line, server.Origin{})
			p.session.Enter(p.ctx, batch)
			batch.Serve(p)
			p.checkBatch(batch.Append(nil))
		}
		return m
	}
	m, err := transport.ParseMessage(slices.Clone(line))
	if err != nil {
		return m
	}
	initialized := p.session.Initialized()
	answer := play(p.ctx, p.session, m, p)
	switch {
	case !m.IsRequest():
		if len(answer) > 0 {
			p.t.Errorf("%s was answered with %s", line, answer)
		}
	case len(answer) > 0: // not cancelled
		p.checkAnswer(&m, initialized, answer)
	}
	return m
}

func (p *legacyPeer) checkAnswer(req *transport.Message, initialized bool, answer []byte) {
	if p.isForgiven(answer) {
		return
	}
	version := p.session.State().Version
	members := checkResponse(p.t, version, req.Method, req.ID, answer)
	switch {
	case req.Method == "initialize" && members != nil:
		if got := string(members["protocolVersion"]); initialized || got != `"`+version+`"` || !slices.Contains(mcp.LegacyVersions(), version) {
			p.t.Errorf("the session of %s (opened before: %t) was opened with %s", version, initialized, answer)
		}
	case members != nil && !initialized && !p.session.Initialized() && req.Method != "ping":
		p.t.Errorf("%s before initialize: %s", req.Method, answer)
	}
}

// isForgiven reports whether an answer is an internal error, or one without a message, that
// the peer caused by answering with an internal error.
func (p *legacyPeer) isForgiven(answer []byte) bool {
	m, err := transport.ParseMessage(slices.Clone(answer))
	if err != nil || !m.IsResponse() || m.Error == nil || m.Error.Code != mcp.CodeInternalError && m.Error.Message != "" {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forgiving
}

func (p *legacyPeer) checkBatch(answer []byte) {
	if len(answer) == 0 {
		return
	}
	items, err := [][]byte{answer}, error(nil)
	if transport.IsBatch(answer) {
		items, err = transport.SplitBatch(answer)
	}
	for _, item := range items {
		m, parseErr := transport.ParseMessage(slices.Clone(item))
		if parseErr != nil || !m.IsResponse() {
			p.t.Errorf("a batch was answered with %s: %v", answer, parseErr)
			return
		}
		if m.Error != nil && m.Error.Code == mcp.CodeInternalError && !p.isForgiven(item) {
			p.t.Errorf("in a batch: %s", item)
		}
	}
	if err != nil {
		p.t.Errorf("a batch was answered with %s: %v", answer, err)
	}
}

// Send receives a message from the session. A question consumes lines of the script until
// one answers it. After the last line, the question is rejected.
func (p *legacyPeer) Send(_ context.Context, message []byte) error {
	m, err := transport.ParseMessage(slices.Clone(message))
	if err != nil || m.Method == "" {
		p.t.Errorf("the server said %s: %v", message, err)
		return nil
	}
	if m.IsNotification() {
		return nil
	}
	p.checkQuestion(&m)
	for {
		line, ok := p.next(m.ID)
		if !ok {
			line = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"no"}}`, m.ID)
		}
		if answer, err := transport.ParseMessage(slices.Clone(line)); err == nil && answer.IsResponse() && answer.ID == m.ID {
			p.forgive(&answer)
		}
		if said := p.feed(line); said.IsResponse() && said.ID == m.ID {
			return nil
		}
	}
}

// forgive records an answer after which the server can only fail.
func (p *legacyPeer) forgive(r *transport.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.Error != nil && r.Error.Code == mcp.CodeInternalError {
		p.forgiving = true
	}
}

// checkQuestion checks that the client declared the capability for a question.
func (p *legacyPeer) checkQuestion(req *transport.Message) {
	state := p.session.State()
	var caps mcp.ClientCapabilities
	if err := json.Unmarshal(state.Capabilities, &caps); err != nil {
		p.t.Errorf("asked %s, of a client with the capabilities %s", req.Method, state.Capabilities)
		return
	}
	var params struct{ Mode, ElicitationID string }
	_ = json.Unmarshal(req.Params, &params)
	ok := false
	switch req.Method {
	case "ping":
		ok = true
	case mcp.MethodElicit:
		ok = caps.Elicitation.AllowsForm() && params.Mode != "url" || caps.Elicitation.AllowsURL() && params.Mode == "url" && params.ElicitationID != ""
		if params.Mode != "" && state.Version < "2025-11-25" {
			ok = false
		}
	case mcp.MethodCreateMessage:
		ok = caps.Sampling != nil
	case mcp.MethodListRoots:
		ok = caps.Roots != nil
	}
	if !ok {
		p.t.Errorf("asked %s %s, of a client of %s with the capabilities %s", req.Method, req.Params, state.Version, state.Capabilities)
	}
}

// silent checks unsolicited messages.
type silent struct{ t *testing.T }

func (s silent) Send(_ context.Context, message []byte) error {
	if m, err := transport.ParseMessage(slices.Clone(message)); err != nil || !m.IsNotification() {
		s.t.Errorf("the server said %s: %v", message, err)
	}
	return nil
}

const (
	allCaps = `{"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}},"roots":{"listChanged":true},"experimental":{"x":{}}}`

	legacyAnswers = `
{"jsonrpc":"2.0","id":"$","result":{"action":"accept","content":{"ok":true}}}
{"jsonrpc":"2.0","id":"$","result":{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m"}}
{"jsonrpc":"2.0","id":"$","result":{"roots":[{"uri":"file:///home","name":"home"}]}}
{"jsonrpc":"2.0","id":"$","result":{"action":"decline"}}`
)

func opening(version, caps string) string {
	return `{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":` + caps +
		`,"clientInfo":{"name":"c","title":"C","version":"1"}}}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"
}

// legacyScripts returns conversations of clients of the four old revisions.
func legacyScripts() []string {
	var all []string
	versions := mcp.LegacyVersions()
	for i, s := range slices.Concat(coreSamples, legacySamples) {
		all = append(all, opening(versions[i%len(versions)], allCaps)+s.message(2, metaLegacy)+legacyAnswers)
	}
	for _, version := range versions {
		for _, name := range []string{"blocks", "kinds", "ask-all", "ask-at-once", "by-hand"} {
			all = append(all, opening(version, allCaps)+sample{mcp.MethodCallTool, `"name":"` + name + `"`}.message(2, metaLegacy)+legacyAnswers)
		}
	}
	call := func(id int, tool string) string {
		return sample{mcp.MethodCallTool, `"name":"` + tool + `"`}.message(id, metaLegacy)
	}
	batch := `[` + call(1, "hello") + `,` + call(2, "ask") + `,{"jsonrpc":"2.0","method":"notifications/x"},7,` + call(2, "talks") + `,{"jsonrpc":"2.0","id":3,"method":"ping"}]`
	return append(all,
		opening("2025-03-26", allCaps)+batch+legacyAnswers,
		opening("2025-03-26", `{}`)+batch+"\n[]\n[[]]",
		opening("2025-11-25", allCaps)+call(5, "ask-all")+"\n"+`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,"reason":"enough"}}`+legacyAnswers,
		opening("2025-11-25", allCaps)+call(5, "ask")+"\n"+call(5, "ask")+"\n"+call(6, "sample")+legacyAnswers,
		opening("2024-11-05", `{"sampling":{}}`)+call(5, "ask")+"\n"+call(6, "sample")+"\n"+`{"jsonrpc":"2.0","id":"$","error":{"code":-32603,"message":"no"}}`,
		opening("2025-06-18", `{"elicitation":{}}`)+call(5, "ask-at-once")+"\n"+call(6, "visit")+"\n"+call(7, "ask")+`
{"jsonrpc":"2.0","id":"psi-1","result":{"action":"accept","content":{"ok":"not a boolean"}}}`,
		call(1, "hello")+"\n"+legacySamples[0].message(2, "")+"\n"+opening("2027-01-01", `{}`)+opening("2025-06-18", `{}`)+
			legacySamples[2].message(3, "")+"\n"+legacySamples[3].message(4, "")+"\n"+legacySamples[1].message(5, ""),
	)
}

// Whatever a client of the legacy era sends, every request gets an answer of its revision,
// no client is asked what it does not support, and nothing blocks forever.
func FuzzLegacy(f *testing.F) {
	bell := newAlarm()
	logger := slog.New(bell)
	mux := stocked(logger)
	for _, text := range legacyScripts() {
		f.Add([]byte(text), uint64(0))
	}
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		synctest.Test(t, func(t *testing.T) {
			srv := server.New(mux, &server.Options{Logger: logger})
			session := srv.NewSession(server.Details{}, nil)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p := &legacyPeer{script: newScript(text, seed), t: t, ctx: ctx, server: srv, session: session}
			var listening sync.WaitGroup
			listening.Go(func() { session.Listen(ctx, server.Origin{}, silent{t}, nil) })
			synctest.Wait()
			p.play()
			mux.ResourceUpdated("test://fixed")
			synctest.Wait()
			session.Close()
			listening.Wait()
			bell.check(t)
		})
	})
}
