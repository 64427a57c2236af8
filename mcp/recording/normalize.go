// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package recording

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// kinds maps the members whose values a server or client chooses freely to the kind of the
// value.
var kinds = map[string]string{
	"requestId": "id", mcp.MetaSubscriptionID: "id",
	"progressToken": "progress token",
	"cursor":        "cursor", "nextCursor": "cursor",
	"requestState":  "state",
	"taskId":        "task",
	"sessionId":     "session",
	"elicitationId": "elicitation",
}

// A normalizer replaces values that differ between runs: identifiers by numbers in order of
// first appearance, and times by a placeholder. It tracks the identifiers of one session.
// The zero normalizer replaces only times.
type normalizer struct {
	numbers map[string]int // by kind and value
	counts  map[string]int // by kind
}

func newNormalizer() *normalizer {
	return &normalizer{numbers: map[string]int{}, counts: map[string]int{}}
}

// number returns a placeholder for a value, numbered by first appearance among its kind.
func (n *normalizer) number(kind, value string) string {
	key := kind + "\x00" + value
	if _, known := n.numbers[key]; !known {
		n.counts[kind]++
		n.numbers[key] = n.counts[kind]
	}
	return fmt.Sprintf("(%s %d)", kind, n.numbers[key])
}

// id returns the normalized form of an ID chosen by owner, or nil if the ID is zero.
func (n *normalizer) id(owner Direction, id transport.ID) any {
	if id.IsZero() {
		return nil
	}
	if n.numbers == nil {
		return id.Canonical().String()
	}
	return n.number("id "+string(owner), id.Canonical().String())
}

// entry returns the parts of an entry that are compared.
func (n *normalizer) entry(e *Entry) map[string]any {
	flat := map[string]any{"direction": string(e.Direction), "era": string(e.Era), "about": n.id(ToServer, e.About)}
	if e.Omitted > 0 {
		flat["omitted"] = strconv.Itoa(e.Omitted)
	}
	if f := e.Failure; f != nil {
		flat["failure"] = map[string]any{"id": n.id(ToServer, f.ID), "kind": string(f.Kind)}
		return flat
	}
	flat["message"] = n.message(e.Direction, &e.parsed)
	return flat
}

// message returns the parts of a message that are compared.
func (n *normalizer) message(d Direction, m *transport.Message) map[string]any {
	flat := map[string]any{}
	owner := d // of the request
	if m.IsResponse() {
		owner = opposite(d)
	}
	if id := n.id(owner, m.ID); id != nil {
		flat["id"] = id
	}
	if m.Method != "" {
		flat["method"] = m.Method
	}
	if m.Params != nil {
		flat["params"] = n.value("", decode(m.Params))
	}
	if m.Result != nil {
		flat["result"] = n.value("", decode(m.Result))
	}
	if e := m.Error; e != nil {
		flat["error"] = map[string]any{"code": strconv.Itoa(e.Code), "message": e.Message, "data": n.value("", decode(e.Data))}
	}
	return flat
}

func opposite(d Direction) Direction {
	if d == ToServer {
		return ToClient
	}
	return ToServer
}

// decode decodes JSON that has been parsed before. Nil means null.
func decode(raw json.RawMessage) (v any) {
	if raw == nil {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // preserve all digits
	if d.Decode(&v) != nil {
		return string(raw)
	}
	return v
}

// value normalizes the value of a member.
func (n *normalizer) value(name string, v any) any {
	if kind := kinds[name]; kind != "" && n.numbers != nil {
		switch v := v.(type) {
		case string:
			return n.number(kind, strconv.Quote(v))
		case json.Number:
			return n.number(kind, v.String())
		}
	}
	switch v := v.(type) {
	case map[string]any:
		flat := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			flat[name] = n.value(name, v[name])
		}
		return flat
	case []any:
		flat := make([]any, len(v))
		for i, element := range v {
			flat[i] = n.value("", element)
		}
		return flat
	case string:
		if _, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return "(time)"
		}
	}
	return v
}

// clone returns a copy of n.
func (n *normalizer) clone() *normalizer {
	return &normalizer{maps.Clone(n.numbers), maps.Clone(n.counts)}
}
