// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/test/golden"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// random matches values that differ on each run.
var random = regexp.MustCompile(`("requestState":|"nextCursor":|"id":)"[^"]*"`)

// outcomeOf formats the messages in response to a request: a single error briefly,
// otherwise all messages.
func outcomeOf(said []string) string {
	for i, m := range said {
		said[i] = random.ReplaceAllString(m, `$1"..."`)
	}
	if len(said) == 1 {
		if m, err := transport.ParseMessage([]byte(said[0])); err == nil && m.Error != nil {
			text := fmt.Sprintf("error %d: %s", m.Error.Code, m.Error.Message)
			if m.Error.Data != nil {
				text += " " + string(m.Error.Data)
			}
			return text
		}
	}
	return strings.Join(said, "\n  ")
}

// methodIn returns the method of a message, "" for a response.
func methodIn(message string) string {
	m, _ := transport.ParseMessage([]byte(message))
	return m.Method
}

// conversation is a peer that plays samples as a client of a version.
type conversation struct {
	*peer
	answers map[string]string // from a legacy client, by method
}

var usualAnswers = map[string]string{
	mcp.MethodElicit:        `{"action":"accept","content":{"ok":true,"n":1,"e":["a"]}}`,
	mcp.MethodCreateMessage: `{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m","stopReason":"endTurn"}`,
	mcp.MethodListRoots:     `{"roots":[{"uri":"file:///home","name":"home"}]}`,
}

// say sends a message and returns all messages from the server until it is idle.
func (c *conversation) say(message string) (said []string) {
	c.send(message)
	withoutID := func(a, b string) int {
		return strings.Compare(random.ReplaceAllString(a, ""), random.ReplaceAllString(b, ""))
	}
	for {
		<-time.After(time.Second) // servers may pause before reading more
		synctest.Wait()
		n := len(said)
		for len(c.stream.out) > 0 {
			said = append(said, string(<-c.stream.out))
		}
		if len(said) == n {
			return said
		}
		if c.answers[methodIn(said[n])] != "" {
			slices.SortFunc(said[n:], withoutID) // concurrent questions arrive in any order
		}
		for _, text := range said[n:] {
			if m, err := transport.ParseMessage([]byte(text)); err == nil && m.IsRequest() {
				c.send(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":` + c.answers[m.Method] + `}`)
			}
		}
	}
}

// The golden files record how a server answers each message of each revision. In the newest
// revision of each era, they also cover samples and answers with one value missing or
// changed.
func TestTranscripts(t *testing.T) {
	for _, version := range append(mcp.LegacyVersions(), mcp.LatestVersion) {
		t.Run(version, func(t *testing.T) {
			modern, full := version == mcp.LatestVersion, version >= mcp.LegacyVersions()[0]
			era, samples := wireEra{name: version}, slices.Clone(coreSamples)
			meta, plain := metaModern, eras[0].meta
			if !modern {
				meta, plain = metaLegacy, metaLegacy
				era.open = strings.Split(strings.TrimSpace(opening(version, allCaps)), "\n")
				samples = append(samples, legacySamples...)
			}
			var text bytes.Buffer
			with := func(fn func(c *conversation)) {
				synctest.Test(t, func(t *testing.T) {
					c := &conversation{newPeer(t, stocked(slog.New(slog.DiscardHandler)), era), maps.Clone(usualAnswers)}
					fn(c)
					c.finish()
				})
			}
			for i, s := range samples {
				message := messageOf(s.method, s.params(plain))
				if i == 3 {
					message = messageOf(s.method, s.params(meta))
				}
				with(func(c *conversation) {
					expected := outcomeOf(c.say(message))
					fmt.Fprintf(&text, "> %s\n  %s\n", message, expected)
					for _, v := range golden.Variants(t, message) {
						if !full || i != 3 && (!strings.HasPrefix(v.Name, "params.") || strings.HasPrefix(v.Name, "params._meta")) {
							continue // the same for all methods
						}
						golden.WriteDifference(&text, v.Name, expected, outcomeOf(c.say(v.Text)))
					}
				})
			}
			if full && !modern {
				for _, asks := range [][2]string{{mcp.MethodElicit, "ask-at-once"}, {mcp.MethodCreateMessage, "sample"}, {mcp.MethodListRoots, "roots"}} {
					with(func(c *conversation) { playAnswers(c, &text, asks[0], asks[1]) })
				}
			}
			golden.Check(t, "transcript-"+version, text.String())
		})
	}
}

// playAnswers calls a tool that asks, with every variant of the answer.
func playAnswers(c *conversation, text *bytes.Buffer, method, tool string) {
	call := messageOf(mcp.MethodCallTool, `{"name":"`+tool+`"}`)
	last := func(said []string) string { return outcomeOf(said[len(said)-1:]) }
	expected := last(c.say(call))
	fmt.Fprintf(text, "< %s %s\n  %s\n", method, usualAnswers[method], expected)
	for _, v := range golden.Variants(c.t, usualAnswers[method]) {
		c.answers[method] = v.Text
		golden.WriteDifference(text, v.Name, expected, last(c.say(call)))
	}
}

// messageOf returns a message with params, which is a notification if its method is one.
func messageOf(method, params string) string {
	id := `"id":1,`
	if strings.HasPrefix(method, "notifications/") {
		id = ""
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0",%s"method":%q,"params":%s}`, id, method, params)
}
