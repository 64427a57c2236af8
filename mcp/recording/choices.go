// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording

import (
	"encoding/json"
	"strings"

	"github.com/go-psi/psi/mcp/transport"
)

// choices maps values that the server chose in the recording, such as cursors, to the
// values that the live server chose.
type choices struct {
	ids    map[transport.ID]transport.ID // of the server's requests
	values map[string]string             // by kind, call and recorded value
}

func newChoices() *choices {
	return &choices{ids: map[transport.ID]transport.ID{}, values: map[string]string{}}
}

func (c *choices) addID(recorded, live transport.ID) { c.ids[recorded.Canonical()] = live }

// id returns the live ID of a server request.
func (c *choices) id(recorded transport.ID) transport.ID {
	if live, ok := c.ids[recorded.Canonical()]; ok {
		return live
	}
	return recorded
}

// learn records the values that a server chose in a result or params. States, which are
// redacted, belong to a call.
func (c *choices) learn(call string, recorded, live json.RawMessage) {
	c.walk("", call, decode(recorded), decode(live))
}

func (c *choices) walk(name, call string, recorded, live any) {
	switch recorded := recorded.(type) {
	case map[string]any:
		if live, ok := live.(map[string]any); ok {
			for name := range recorded {
				c.walk(name, call, recorded[name], live[name])
			}
		}
	case []any:
		if live, ok := live.([]any); ok {
			for i := range min(len(recorded), len(live)) {
				c.walk("", call, recorded[i], live[i])
			}
		}
	case string:
		if live, ok := live.(string); ok && isChosen(name) {
			c.values[choiceKey(name, call, recorded)] = live
		}
	}
}

// isChosen reports whether the value of a member is chosen by the server and repeated by
// the client.
func isChosen(name string) bool {
	switch kinds[name] {
	case "cursor", "state", "task", "elicitation":
		return true
	}
	return false
}

func choiceKey(name, call, value string) string {
	kind := kinds[name]
	if kind != "state" {
		call = ""
	}
	return strings.Join([]string{kind, call, value}, "\x00")
}

// replaced returns params with the recorded values replaced by live ones.
func (c *choices) replaced(params json.RawMessage, call string) json.RawMessage {
	v := decode(params)
	if !c.replace("", call, &v) {
		return params
	}
	return json.RawMessage(asText(v))
}

// replace replaces recorded values in v by live ones, and reports whether it changed v.
func (c *choices) replace(name, call string, v *any) (changed bool) {
	switch old := (*v).(type) {
	case map[string]any:
		for name, member := range old {
			if c.replace(name, call, &member) {
				old[name], changed = member, true
			}
		}
	case []any:
		for i := range old {
			changed = c.replace("", call, &old[i]) || changed
		}
	case string:
		if live, ok := c.values[choiceKey(name, call, old)]; ok && isChosen(name) {
			*v, changed = live, true
		}
	}
	return changed
}

// callKey identifies a request, without the answers that a client adds when it repeats the
// request.
func callKey(m *transport.Message) string {
	flat := matchable(m)
	if params, ok := flat["params"].(map[string]any); ok {
		delete(params, "inputResponses")
		delete(params, "requestState")
	}
	return asText(flat)
}
