// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// A form is a flat object with primitive fields and the keywords that the specification
// allows. Any other schema fails when the question is asked, and the error says what is
// wrong and where.
func TestFormSchemas(t *testing.T) {
	field := func(f string) string { return `{"type":"object","properties":{"f":` + f + `}}` }
	for schema, want := range map[string]string{
		field(`{"type":"string","format":"email"}`):                                "",
		field(`{"type":"string","format":"date"}`):                                 "",
		field(`{"type":"string","enum":["a"],"enumNames":["A"]}`):                  "",
		field(`{"type":"integer","minimum":1,"maximum":3}`):                        "",
		field(`{"type":"number","title":"T","description":"D","default":1}`):       "",
		field(`{"type":"boolean"}`):                                                "",
		field(`{"type":"array","items":{"enum":["a"]},"minItems":1,"maxItems":2}`): "",
		field(`{"type":"array","items":{"anyOf":[{"const":"a"}]}}`):                "",
		`{"type":"object","properties":{},"additionalProperties":false}`:           "",
		field(`{"type":"string","format":"hostname"}`):                             `cannot have the format "hostname" at /properties/f`,
		field(`{"type":"object"}`):                                                 `cannot have the field /properties/f`,
		field(`{}`):                                                                `cannot have the field /properties/f`,
		field(`{"type":"string","minimum":1}`):                                     `cannot have the keyword "minimum" at "/properties/f"`,
		field(`{"type":"array","items":{"type":"string"}}`):                        `cannot have a list at /properties/f`,
		field(`{"type":"array"}`):                                                  `cannot have a list at /properties/f`,
		field(`5`):                                                                 `fields must be objects`,
		`{"type":"object","properties":{},"minProperties":1}`:                      `cannot have the keyword "minProperties"`,
		`{"type":"string"}`:                                                        `must have "type":"object"`,
		`[]`:                                                                       `must be an object`,
	} {
		mux := mcp.NewMux("m", "v1", quiet())
		mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
			var answer json.RawMessage
			err := mcp.Ask(ctx, mcp.ElicitSchemaQuestion("k", "?", json.RawMessage(schema), &answer))
			return string(answer), err
		}, nil))
		asked := ""
		c := connect(t, mux, &mcp.ClientOptions{Elicit: func(_ context.Context, _ *mcp.Conn, p *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			asked = string(p.RequestedSchema)
			return &mcp.ElicitResult{Action: mcp.ActionDecline}, nil
		}})
		res, err := c.CallTool(t.Context(), tool("ask", ""))
		switch {
		case err != nil:
			t.Errorf("%s: %v", schema, err)
		case want == "" && !strings.Contains(asked, `"properties":`):
			t.Errorf("%s: the client is asked %q, and the result is %s", schema, asked, textOf(res))
		case want != "" && (asked != "" || !res.IsError || !strings.Contains(textOf(res), want)):
			t.Errorf("%s: the client is asked %q, and the result is %s", schema, asked, textOf(res))
		}
	}
}

// A client may send null for a field that was left empty, as for an optional argument. A
// required field needs a value.
func TestNullInAForm(t *testing.T) {
	type profile struct {
		Name string `json:"name"`
		Nick string `json:"nick,omitempty"`
		Age  *int   `json:"age"` // which is optional, too
	}
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Tool("ask", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		p, err := mcp.Elicit[profile](ctx, "k", "Who are you?")
		if p.Age != nil {
			p.Nick += fmt.Sprint(*p.Age)
		}
		return p.Name + "/" + p.Nick, err
	}, nil))
	for content, want := range map[string]string{
		`{"name":"Ann","nick":"A"}`:  `"text":"Ann/A"`,
		`{"name":"Ann","nick":null}`: `"text":"Ann/"`,
		`{"name":"Ann","age":null}`:  `"text":"Ann/"`,
		`{"name":"Ann","age":7}`:     `"text":"Ann/7"`,
		`{"name":null}`:              "does not fit the form",
	} {
		p := newPeer(t, mux, eras[0])
		p.send(eras[0].request("1", "tools/call", `"name":"ask","inputResponses":{"k":{"action":"accept","content":`+content+`}}`))
		if got := p.receive(); !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %s", content, got, want)
		}
	}
}
