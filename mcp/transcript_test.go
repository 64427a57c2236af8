// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/golden"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// A variant is JSON with one change.
type variant struct {
	name string // such as "arguments.int: null"
	text string
}

// variants returns an object with one of its values changed or missing, for each value:
// null, of another type, or empty.
func variants(t *testing.T, object string) (all []variant) {
	t.Helper()
	parse := func() (v any) {
		d := json.NewDecoder(strings.NewReader(object))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v", object, err)
		}
		return v
	}
	var visit func(path []string, v any)
	visit = func(path []string, v any) {
		if len(path) > 0 {
			for _, odd := range oddFor(v) {
				changed := parse()
				setAt(changed, path, odd.value)
				text, err := json.Marshal(changed)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, variant{strings.Join(path, ".") + ": " + odd.name, string(text)})
			}
		}
		switch v := v.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				visit(append(slices.Clone(path), name), v[name])
			}
		case []any:
			for i := range v {
				visit(append(slices.Clone(path), strconv.Itoa(i)), v[i])
			}
		}
	}
	visit(nil, parse())
	return all
}

type oddValue struct {
	name  string
	value any
}

// absent removes a member.
type absent struct{}

// oddFor returns what is put in the place of a value.
func oddFor(v any) []oddValue {
	odd := []oddValue{{"absent", absent{}}, {"null", nil}}
	switch v.(type) {
	case string:
		return append(odd, oddValue{"1", json.Number("1")}, oddValue{`""`, ""})
	case json.Number:
		return append(odd, oddValue{`"x"`, "x"}, oddValue{"-1.5", json.Number("-1.5")})
	case []any:
		return append(odd, oddValue{"{}", map[string]any{}}, oddValue{"[]", []any{}})
	case map[string]any:
		return append(odd, oddValue{"[]", []any{}}, oddValue{"{}", map[string]any{}})
	}
	return append(odd, oddValue{`"x"`, "x"})
}

// setAt changes the value at a path.
func setAt(v any, path []string, value any) {
	last := path[len(path)-1]
	for _, step := range path[:len(path)-1] {
		switch at := v.(type) {
		case map[string]any:
			v = at[step]
		case []any:
			i, _ := strconv.Atoi(step)
			v = at[i]
		}
	}
	switch at := v.(type) {
	case map[string]any:
		if at[last] = value; value == any(absent{}) {
			delete(at, last)
		}
	case []any:
		i, _ := strconv.Atoi(last)
		if at[i] = value; value == any(absent{}) {
			at[i] = json.Number("0") // an array has no absent elements
		}
	}
}

// random is what differs each time.
var random = regexp.MustCompile(`("requestState":|"nextCursor":|"id":)"[^"]*"`)

// outcomeOf is what a server has said to a request: an error in short, or all messages.
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

// conversation is how a client of a version plays samples.
type conversation struct {
	*peer
	answers map[string]string // of a client of the legacy era, by method
}

var usualAnswers = map[string]string{
	mcp.MethodElicit:        `{"action":"accept","content":{"ok":true,"n":1,"e":["a"]}}`,
	mcp.MethodCreateMessage: `{"role":"assistant","content":{"type":"text","text":"hi"},"model":"m","stopReason":"endTurn"}`,
	mcp.MethodListRoots:     `{"roots":[{"uri":"file:///home","name":"home"}]}`,
}

// say sends a message and returns all that the server says until it waits for the next.
func (c *conversation) say(message string) (said []string) {
	c.send(message)
	withoutID := func(a, b string) int {
		return strings.Compare(random.ReplaceAllString(a, ""), random.ReplaceAllString(b, ""))
	}
	for {
		<-time.After(time.Second) // servers may wait before they read more
		synctest.Wait()
		n := len(said)
		for len(c.stream.out) > 0 {
			said = append(said, string(<-c.stream.out))
		}
		if len(said) == n {
			return said
		}
		if c.answers[methodIn(said[n])] != "" {
			slices.SortFunc(said[n:], withoutID) // questions that are asked at once are in no order
		}
		for _, text := range said[n:] {
			if m, err := transport.ParseMessage([]byte(text)); err == nil && m.IsRequest() {
				c.send(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,"result":` + c.answers[m.Method] + `}`)
			}
		}
	}
}

// What a server answers to each message of each revision: to the samples and, in the
// newest revision of each era, to samples and answers of which one value is missing or
// another.
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
					for _, v := range variants(t, message) {
						if !full || i != 3 && (!strings.HasPrefix(v.name, "params.") || strings.HasPrefix(v.name, "params._meta")) {
							continue // the same for all
						}
						golden.WriteDifference(&text, v.name, expected, outcomeOf(c.say(v.text)))
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

// playAnswers calls a tool that asks, and answers in all ways.
func playAnswers(c *conversation, text *bytes.Buffer, method, tool string) {
	call := messageOf(mcp.MethodCallTool, `{"name":"`+tool+`"}`)
	last := func(said []string) string { return outcomeOf(said[len(said)-1:]) }
	expected := last(c.say(call))
	fmt.Fprintf(text, "< %s %s\n  %s\n", method, usualAnswers[method], expected)
	for _, v := range variants(c.t, usualAnswers[method]) {
		c.answers[method] = v.text
		golden.WriteDifference(text, v.name, expected, last(c.say(call)))
	}
}

// messageOf is a message with params, a notification if that is what the method is.
func messageOf(method, params string) string {
	id := `"id":1,`
	if strings.HasPrefix(method, "notifications/") {
		id = ""
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0",%s"method":%q,"params":%s}`, id, method, params)
}
