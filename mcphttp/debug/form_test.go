// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
)

// every has one property of every kind that forms support.
const every = `{"type":"object","required":["name"],"properties":{
	"name":{"type":"string","title":"Full name"},
	"mail":{"type":"string","format":"email","default":"a@example.com"},
	"count":{"type":"integer","minimum":1,"maximum":9},
	"ratio":{"type":"number"},
	"sure":{"type":"boolean","default":true},
	"size":{"enum":["s","m",3]},
	"color":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g"}],"default":"g"},
	"days":{"type":"array","items":{"type":"string","enum":["mo","tu"]}},
	"tree":{"type":"object"},
	"any":true}}`

// echo registers a tool that returns its arguments.
func echo(mux *mcp.Mux, schema string) {
	mux.Tool("echo", mcp.WithDescription(mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return mcp.TextResult(string(req.Arguments())), nil
	}), &mcp.Tool{InputSchema: json.RawMessage(schema)}))
}

func TestForm(t *testing.T) {
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: quiet})
	echo(mux, every)
	s := serve(t, mux, nil)
	wantIn(t, s.page("?view=item&kind=tool&name=echo"),
		"Full name (name)", `type="email"`, `value="a@example.com"`, `placeholder="integer, from 1, to 9"`,
		`<option value="true" selected>`, `<option value="3" >3`, `<option value="&#34;r&#34;" >Red (r)`, `<option value="&#34;g&#34;" selected>g`,
		`<input type="checkbox" name="f.days" value="&#34;mo&#34;"`, `placeholder="JSON object"`, `name="f.any"`)
	for _, test := range []struct {
		form url.Values
		want string // arguments or the error
	}{
		{url.Values{"f.name": {"Ada\r\nL"}}, `{"name":"Ada\nL"}`},
		{url.Values{"f.name": {""}, "f.mail": {""}, "f.count": {" "}, "f.sure": {""}}, `{"name":""}`},
		{url.Values{"f.name": {"x"}, "f.count": {"12345678901234567890"}, "f.ratio": {"0.10"}}, `{"count":12345678901234567890,"name":"x","ratio":0.10}`},
		{url.Values{"f.name": {"x"}, "f.sure": {"false"}, "f.size": {"3"}, "f.color": {`"r"`}}, `{"color":"r","name":"x","size":3,"sure":false}`},
		{url.Values{"f.name": {"x"}, "f.days": {`"mo"`, `"tu"`}, "f.tree": {`{"a":[1]}`}, "f.any": {"null"}}, `{"any":null,"days":["mo","tu"],"name":"x","tree":{"a":[1]}}`},
		{url.Values{"f.name": {"x"}, "json": {`{"name":"y"}`}}, `{"name":"y"}`},
		{url.Values{"f.count": {"many"}}, `count: "many" is not a number`},
		{url.Values{"f.tree": {"{"}}, `tree: "{" is not JSON`},
		{url.Values{"json": {"[]"}}, "the arguments are not a JSON object"},
		{url.Values{"json": {"null"}}, "the arguments are not a JSON object"},
	} {
		test.form.Set("action", "call")
		test.form.Set("kind", "tool")
		test.form.Set("name", "echo")
		_, body := s.do(s.request(http.MethodPost, "?format=json", test.form))
		quoted, err := json.Marshal(test.want)
		if err != nil || !strings.Contains(body, strings.Trim(string(quoted), `"`)) {
			t.Errorf("%v: there is no %s in\n%s", test.form, quoted, body)
		}
	}
}

// TestFindingV4 checks that a form does not answer for its user: what is required and has no
// default starts without a choice, and the browser asks for one.
func TestFindingV4(t *testing.T) {
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: quiet})
	echo(mux, `{"type":"object","required":["agreed","size","sure"],"properties":{
		"agreed":{"type":"boolean"},"size":{"enum":["s","l"]},"sure":{"type":"boolean","default":false},"extra":{"type":"boolean"}}}`)
	s := serve(t, mux, nil)
	wantIn(t, s.page("?view=item&kind=tool&name=echo"),
		`<select name="f.agreed" required><option value="">Choose…</option><option value="true" >true</option>`,
		`<select name="f.size" required><option value="">Choose…</option><option value="&#34;s&#34;" >s</option>`,
		`<select name="f.sure" required><option value="true" >true</option><option value="false" selected>false</option>`,
		`<select name="f.extra"><option value="">–</option>`)
}

// A question does not count as answered with yes because its form says so: a boolean whose
// default is true must be chosen.
func TestConsentIsChosen(t *testing.T) {
	mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: quiet})
	mux.Tool("delete", mcp.ToolFunc(func(ctx context.Context, _ empty) (string, error) {
		type form struct {
			Agreed bool   `json:"agreed" jsonschema:"default=true"`
			Size   string `json:"size" jsonschema:"enum=s,enum=l,default=l"`
		}
		f, err := mcp.Elicit[form](ctx, "sure", "Really?")
		return fmt.Sprint(f), err
	}, nil))
	s := serve(t, mux, nil)
	r := s.post(url.Values{"action": {"call"}, "kind": {"tool"}, "name": {"delete"}})
	r = s.wait(r.ID, "asking")
	wantIn(t, s.page("?view=run&id="+r.ID),
		`<select name="f.agreed" required><option value="">Choose…</option><option value="true" >true</option>`,
		`<option value="&#34;l&#34;" selected>l</option>`)
	answer := url.Values{"action": {"answer"}, "id": {r.ID}, "question": {"1"}, "answer": {"accept"}, "f.agreed": {""}}
	if res, _ := s.do(s.request(http.MethodPost, "", answer)); res.StatusCode != http.StatusBadRequest {
		t.Error("accepted without a choice:", res.Status)
	}
	answer.Set("f.agreed", "false")
	s.post(answer)
	wantIn(t, string(s.wait(r.ID, "ok").Result), "{false l}")
}

// Schemas that cannot be shown as a form get one field for all arguments.
func TestFormWithoutFields(t *testing.T) {
	many := make([]string, 101)
	for i := range many {
		many[i] = fmt.Sprintf(`"p%d":{}`, i)
	}
	for _, schema := range []string{`{"type":"object"}`, `{"type":"object","properties":{}}`, `{"type":"object","properties":{` + strings.Join(many, ",") + `}}`} {
		mux := mcp.NewMux("m", "v1", &mcp.MuxOptions{Logger: quiet})
		echo(mux, schema)
		s := serve(t, mux, nil)
		if text := s.page("?view=item&kind=tool&name=echo"); strings.Contains(text, `name="f.`) || !strings.Contains(text, `name="json"`) {
			t.Error(text)
		}
	}
}

// A user can decline a question, accept a URL, and answer for a model.
func TestQuestions(t *testing.T) {
	mux := newMux(t)
	mux.Tool("open", mcp.ToolFunc(func(ctx context.Context, _ empty) (string, error) {
		if err := mcp.ElicitURL(ctx, "url", "Please log in", "https://example.com/login"); err != nil {
			return "", err
		}
		return "logged in", nil
	}, nil))
	mux.Tool("think", mcp.ToolFunc(func(ctx context.Context, _ empty) (string, error) {
		res, err := mcp.Sample(ctx, "m", &mcp.CreateMessageParams{
			Messages: []*mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text("What is 6 x 7?")}}}, MaxTokens: 10,
		})
		if err != nil {
			return "", err
		}
		raw, err := json.Marshal(res.Content)
		return "the model says " + string(raw), err
	}, nil))
	for _, test := range []struct {
		tool, asks, state, want string
		answer                  url.Values
	}{
		{"ask", "Where to?", "isError", "declined", url.Values{"answer": {"decline"}}},
		{"ask", "Where to?", "isError", "cancel", url.Values{"answer": {"cancel"}}},
		{"open", `href="https://example.com/login"`, "ok", "logged in", url.Values{"answer": {"accept"}}},
		{"think", "What is 6 x 7?", "ok", "42", url.Values{"answer": {"accept"}, "text": {"42"}}},
		{"think", "What is 6 x 7?", "isError", "declined", url.Values{"answer": {"decline"}}},
	} {
		s := serve(t, mux, nil)
		r := s.post(url.Values{"action": {"call"}, "kind": {"tool"}, "name": {test.tool}})
		r = s.wait(r.ID, "asking")
		wantIn(t, s.page("?view=run&id="+r.ID), test.asks)
		test.answer.Set("action", "answer")
		test.answer.Set("id", r.ID)
		test.answer.Set("question", "1")
		r = s.post(test.answer)
		for !r.Done {
			r = decode[run](s, "?view=run&format=json&id="+r.ID)
		}
		if r.State != test.state || !strings.Contains(string(r.Result), test.want) {
			t.Errorf("%s %v: %s %s %s", test.tool, test.answer, r.State, r.Error, r.Result)
		}
		if res, _ := s.do(s.request(http.MethodPost, "", test.answer)); res.StatusCode != http.StatusConflict {
			t.Error("answered again:", res.Status)
		}
	}
}

// A question remains until an answer matches its form.
func TestBadAnswer(t *testing.T) {
	s := serve(t, newMux(t), nil)
	r := s.post(url.Values{"action": {"call"}, "kind": {"tool"}, "name": {"ask"}})
	r = s.wait(r.ID, "asking")
	for _, answer := range []url.Values{{"answer": {"accept"}, "f.days": {"two"}}, {"answer": {"perhaps"}}, {}} {
		answer.Set("action", "answer")
		answer.Set("id", r.ID)
		answer.Set("question", "1")
		if res, _ := s.do(s.request(http.MethodPost, "", answer)); res.StatusCode != http.StatusBadRequest {
			t.Error(answer, res.Status)
		}
	}
	if r := decode[run](s, "?view=run&format=json&id="+r.ID); r.State != "asking" {
		t.Errorf("%+v", r)
	}
}

// The number of calls from the page is bounded, and calls can be cancelled.
func TestMaxCalls(t *testing.T) {
	s := serve(t, newMux(t), nil)
	call := url.Values{"action": {"call"}, "kind": {"tool"}, "name": {"ask"}}
	r := s.post(call)
	for range 15 {
		s.post(call)
	}
	if res, _ := s.do(s.request(http.MethodPost, "", call)); res.StatusCode != http.StatusTooManyRequests {
		t.Error(res.Status)
	}
	s.post(url.Values{"action": {"stop"}, "id": {r.ID}})
	if r = s.wait(r.ID, "error"); !strings.Contains(r.Error, "cancelled from the debug page") {
		t.Errorf("%+v", r)
	}
	s.post(call)
}

// Unknown items are an error, in both formats of the page.
func TestUnknown(t *testing.T) {
	s := serve(t, newMux(t), nil)
	for _, query := range []string{"?view=nothing", "?view=run&id=x", "?view=request&number=99", "?view=item&kind=tool&name=x", "?view=item"} {
		for _, format := range []string{"", "&format=json"} {
			res, body := s.do(s.request(http.MethodGet, query+format, nil))
			if isJSON := json.Valid([]byte(body)); res.StatusCode != http.StatusNotFound || isJSON != (format != "") {
				t.Errorf("%s%s: %s\n%s", query, format, res.Status, body)
			}
		}
	}
	for _, form := range []url.Values{{}, {"action": {"fly"}}} {
		if res, _ := s.do(s.request(http.MethodPost, "", form)); res.StatusCode != http.StatusBadRequest {
			t.Error(form, res.Status)
		}
	}
	for action, want := range map[string]int{"call": 404, "answer": 404, "stop": 404, "cancel": 409, "end": 409} {
		if res, _ := s.do(s.request(http.MethodPost, "", url.Values{"action": {action}})); res.StatusCode != want {
			t.Error(action, res.Status)
		}
	}
}
