// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/golden"
)

// What clients receive on the stream of a session, whatever they do in whatever order: open
// it, disconnect, or resume with or without the ID of the last event, while lists change and
// time passes.
func TestListenTranscripts(t *testing.T) {
	acts := map[string]func(*scene){
		"open":   func(s *scene) { s.send(0, http.MethodGet, "", nil) },
		"resume": func(s *scene) { s.send(0, http.MethodGet, "", header{"Last-Event-ID": s.id}) },
		"leave":  func(s *scene) { s.leave() },
		"change": func(s *scene) { s.muxes[0].Tool(fmt.Sprint("t", time.Now().UnixNano()), uncalled) },
		"wait":   func(*scene) { pass(50 * time.Second) }, // and a little longer: after two, nothing listens for the client
	}
	var text strings.Builder
	play := func(plan []string) {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t, time.Hour)
			s.step(storeScene[0].do)
			s.step(storeScene[1].do)
			fmt.Fprintf(&text, "> %s\n", strings.Join(plan, ", "))
			for i, act := range plan {
				if outcome := s.step(acts[act]); i >= 3 { // other plans begin in the same way
					text.WriteString(outcome)
				}
			}
			for _, site := range s.sites {
				site.close()
			}
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
