// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/seam"
	"github.com/go-psi/psi/internal/test/golden"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// What clients receive on the stream of a session, whatever they do in whatever order: open
// it, disconnect, or resume with or without the ID of the last event, while lists change and
// time passes.
func TestListenTranscripts(t *testing.T) {
	acts := map[string]func(*scene){
		"open":   func(s *scene) { s.send(http.MethodGet, "", nil) },
		"resume": func(s *scene) { s.send(http.MethodGet, "", header{"Last-Event-ID": s.id}) },
		"leave":  func(s *scene) { s.leave() },
		"change": func(s *scene) { s.mux.Tool(fmt.Sprint("t", time.Now().UnixNano()), uncalled) },
		"wait":   func(*scene) { pass(50 * time.Second) }, // and a little longer: after two, nothing listens for the client
	}
	var text strings.Builder
	play := func(plan []string) {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t)
			s.step(func(s *scene) { s.send(http.MethodPost, initialize("2025-11-25"), nil) })
			s.step(func(s *scene) { s.send(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, nil) })
			fmt.Fprintf(&text, "> %s\n", strings.Join(plan, ", "))
			for i, act := range plan {
				if outcome := s.step(acts[act]); i >= 3 { // other plans begin in the same way
					text.WriteString(outcome)
				}
			}
			s.site.close()
			s.begun.Wait()
		})
	}
	for _, second := range []string{"open", "resume", "leave", "change"} {
		for _, third := range []string{"open", "resume", "leave", "change", "wait"} {
			for _, fourth := range []string{"open", "resume", "leave", "change", "wait"} {
				for _, last := range []string{"resume", "change"} {
					play([]string{"open", second, third, fourth, last})
				}
			}
		}
	}
	play([]string{"open", "change", "leave", "wait", "change", "wait", "change", "resume"})
	play([]string{"open", "leave", "wait", "wait", "open", "change", "leave", "resume", "change"})
	golden.Check(t, "transcript-listen", text.String())
}

// A scene is a conversation with a server.
type scene struct {
	t       *testing.T
	site    *site
	mux     *mcp.Mux
	served  *mcphttp.Handler
	session header
	id      string // of the last event
	begun   sync.WaitGroup
	leave   context.CancelFunc // cancels the most recent request

	mu   sync.Mutex
	news []string // received or logged since the last step
}

// Write records log output, except about events of a session that ends at the same time.
func (s *scene) Write(p []byte) (int, error) {
	if !strings.Contains(string(p), "the session has ended") {
		s.note("  log: " + string(p))
	}
	return len(p), nil
}

func (s *scene) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.news = append(s.news, text)
}

var (
	eventID    = regexp.MustCompile(`(?m)^id: (\S+)$`)
	anySession = regexp.MustCompile(`session=\S+ `)
)

// send sends a request and records what it receives, as it arrives.
func (s *scene) send(method, body string, h header) {
	ctx, cancel := context.WithCancel(s.t.Context())
	s.leave = cancel
	r := s.site.request(ctx, method, body, with(s.session, h))
	s.begun.Go(func() {
		res, err := s.site.client.Do(r)
		if err != nil {
			return // the scene has ended
		}
		defer res.Body.Close()
		s.mu.Lock()
		if id := res.Header.Get("Mcp-Session-Id"); id != "" {
			s.session = header{"Mcp-Session-Id": id, "MCP-Protocol-Version": "2025-11-25"}
		}
		s.mu.Unlock()
		s.note(fmt.Sprintf("  %s 0: %d %s\n", method, res.StatusCode, res.Header.Get("Retry-After")))
		text := make([]byte, 1<<16)
		for {
			n, err := res.Body.Read(text)
			if n > 0 {
				s.note(fmt.Sprintf("  %s 0: %s\n", method, s.known(string(text[:n]))))
			}
			if err != nil {
				s.note(fmt.Sprintf("  %s 0 ends\n", method))
				return
			}
		}
	})
}

// known saves the IDs that the next steps need, and replaces them in the text.
func (s *scene) known(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found := eventID.FindAllStringSubmatch(text, -1); found != nil {
		s.id = found[len(found)-1][1]
	}
	kept := "id"
	if strings.Contains(text, mcp.ErrClosed.Error()) {
		kept = "" // or not: the events of the session are removed at the same time
	}
	text = strings.TrimSpace(eventID.ReplaceAllString(text, kept))
	return strings.ReplaceAll(text, "\n", `\n`)
}

// step performs a step and returns its effects within some seconds.
func (s *scene) step(do func(*scene)) string {
	do(s)
	synctest.Wait()
	pass(5700 * time.Millisecond) // at a different time than anything else
	synctest.Wait()
	s.note(s.state())
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(s.news) // goroutines that do not wait for each other report in any order
	text := strings.Join(slices.Compact(s.news), "")
	s.news = nil
	return anySession.ReplaceAllString(text, "")
}

// state describes what the server holds, if anything: requests in flight and streams,
// including how many streams have a client or events.
func (s *scene) state() string {
	var attached, kept int
	all := mcphttp.Internal(seam.Key{}).Streams(s.served)
	for _, stream := range all {
		if stream.Attached {
			attached++
		}
		if stream.Kept > 0 {
			kept++
		}
	}
	inFlight := mcphttp.Internal(seam.Key{}).InFlight(s.served)
	if inFlight+len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("  state 0: %d in flight, %d streams, %d with a client, %d with events\n", inFlight, len(all), attached, kept)
}

func newScene(t *testing.T) *scene {
	s := &scene{t: t, mux: tools(), session: header{}}
	dropTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	log := slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{ReplaceAttr: dropTime})).With("replica", 0)
	s.served = newHandler(t, s.mux, &mcphttp.Options{Heartbeat: -1, Logger: log, Sessions: mcphttp.SessionOptions{Idle: time.Hour}})
	s.site = serve(t, s.served)
	return s
}
