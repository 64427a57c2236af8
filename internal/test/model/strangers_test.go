// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package model_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// stranger sends hand-written messages: calls without a session, and batches, which only
// one revision supports and psi's client never sends.
type stranger struct {
	w       *world
	rng     *rand.Rand
	client  *client // owns its calls
	session string  // session ID, over HTTP
	mark    int     // prefix of its tags
	next    int     // number of the next tag
}

func (w *world) newStranger(i int) *stranger {
	p := principals[i]
	return &stranger{w: w, rng: w.rng("stranger " + p.Subject), mark: 8 + i, client: &client{w: w, name: "stranger " + p.Subject, principal: p}}
}

const (
	strangersHello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"stranger","version":"1"}}}`
	strangersReady = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

func (s *stranger) act() {
	if s.w.rng("strangers").IntN(2) == 0 {
		s.actOnPipe()
	} else {
		s.actOverHTTP()
	}
}

func (s *stranger) actOverHTTP() {
	s.refused(s.post(s.early()))
	s.refused(s.post(`[` + s.early() + `,` + strangersHello + `]`))
	s.post(strangersHello)
	s.post(strangersReady)
	for range 3 {
		<-time.After(time.Duration(1+s.rng.IntN(2000)) * time.Millisecond)
		batch, calls := s.batch()
		s.answered(s.post(batch), calls)
	}
	s.delete()
}

func (s *stranger) actOnPipe() {
	stream, err := s.w.site.pipe(s.client.principal)(s.w.ctx)
	if err != nil {
		s.w.wrongf("%s: %v", s.client.name, err)
		return
	}
	defer stream.Close()
	exchange := func(message string) string {
		ctx, cancel := context.WithTimeout(s.w.ctx, time.Minute)
		defer cancel()
		defer context.AfterFunc(ctx, func() { _ = stream.Close() })()
		if stream.Write(ctx, []byte(message)) != nil {
			return ""
		}
		for {
			answer, err := stream.Read(ctx)
			if err != nil || !methodPattern.Match(answer) { // not a notification
				return string(answer)
			}
		}
	}
	s.refused(exchange(s.early()))
	s.refused(exchange(`[` + s.early() + `,` + strangersHello + `]`))
	exchange(strangersHello)
	_ = stream.Write(s.w.ctx, []byte(strangersReady))
	for range 3 {
		<-time.After(time.Duration(1+s.rng.IntN(2000)) * time.Millisecond)
		batch, calls := s.batch()
		s.answered(exchange(batch), calls)
	}
}

// early returns a call that must not be served: its tag belongs to no call.
func (s *stranger) early() string { return echoMessage(7, "~0000~") }

func echoMessage(id int, tag string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"tag":%q,"steps":1,"pause":0}}}`, id, tag)
}

// batch returns a batch of two calls.
func (s *stranger) batch() (message string, calls []*call) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	var messages []string
	for range 2 {
		s.next++
		s.w.seq++
		k := &call{client: s.client, kind: "echo", name: "echo", begun: s.w.seq, begunAt: time.Now(), asked: map[string]int{}}
		k.tag = fmt.Sprintf("~%d%d~", s.mark, s.next)
		s.w.calls[k.tag] = k
		calls = append(calls, k)
		messages = append(messages, echoMessage(s.next+10, k.tag))
		s.w.logLockedf("%s begins by hand", k)
	}
	return `[` + strings.Join(messages, ",") + `]`, calls
}

// refused checks that an answer is an error, unless the server is down.
func (s *stranger) refused(answer string) {
	if !strings.Contains(answer, `"error"`) && !s.w.isDown() {
		s.w.wrongf("%s called too early, and got %q", s.client.name, answer)
	}
}

// answered records the answer to a batch. It may only be an error if the server forgot a
// session.
func (s *stranger) answered(answer string, calls []*call) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	for _, k := range calls {
		s.w.seq++
		k.returned, k.returnedAt = s.w.seq, time.Now()
		k.dead = s.w.lost > 0
		if strings.Contains(answer, fmt.Sprintf(`"text":%q`, k.tag)) {
			k.text = k.tag
		} else {
			k.err = fmt.Errorf("the answer to the batch is %q", answer)
		}
	}
}

// post sends a message and returns the answer. If it is a stream, all its events are
// returned.
func (s *stranger) post(message string) string {
	ctx, cancel := context.WithTimeout(s.w.ctx, time.Minute)
	defer cancel()
	return s.send(ctx, http.MethodPost, message)
}

func (s *stranger) delete() {
	ctx, cancel := context.WithTimeout(s.w.ctx, time.Minute)
	defer cancel()
	s.send(ctx, http.MethodDelete, "")
}

func (s *stranger) send(ctx context.Context, method, body string) string {
	r, err := http.NewRequestWithContext(ctx, method, "http://localhost/mcp", bytes.NewReader([]byte(body)))
	if err != nil {
		s.w.wrongf("%s: %v", s.client.name, err)
		return ""
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set(userHeader, s.client.principal.Subject)
	if s.session != "" {
		r.Header.Set("Mcp-Session-Id", s.session)
	}
	res, err := s.w.site.httpClient.Do(r)
	if err != nil {
		return ""
	}
	defer res.Body.Close()
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		s.session = id
	}
	answer, _ := io.ReadAll(res.Body)
	return string(answer)
}
