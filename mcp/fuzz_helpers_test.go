// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-psi/psi/mcp"
)

// alarm is a slog handler that records logged panics.
type alarm struct {
	slog.Handler
	mu     sync.Mutex
	panics []string
}

func newAlarm() *alarm { return &alarm{Handler: slog.DiscardHandler} }

func (a *alarm) Enabled(context.Context, slog.Level) bool { return true }

func (a *alarm) Handle(_ context.Context, r slog.Record) error {
	if !strings.Contains(r.Message, "panicked") {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	r.Attrs(func(attr slog.Attr) bool {
		a.panics = append(a.panics, attr.String())
		return true
	})
	return nil
}

// check reports the recorded panics.
func (a *alarm) check(t *testing.T) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.panics) > 0 {
		t.Fatalf("a panic: %s", strings.Join(a.panics, "\n"))
	}
}

// allKinds contains arguments of every kind.
type allKinds struct {
	Text    string            `json:"text,omitempty" jsonschema:"maxLength=20"`
	Int     int               `json:"int"`
	Float   float64           `json:"float,omitempty" jsonschema:"minimum=0"`
	Flag    bool              `json:"flag,omitempty"`
	Pointer *int8             `json:"pointer,omitempty"`
	List    []string          `json:"list,omitempty"`
	Map     map[string]uint   `json:"map,omitempty"`
	Colour  string            `json:"colour,omitempty" jsonschema:"enum=red,enum=green,default=red"`
	Inner   *allKinds         `json:"inner,omitempty"`
	When    time.Time         `json:"when,omitzero"`
	Raw     json.RawMessage   `json:"raw,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
}

// stocked returns a mux with everything that a mux can have. Its handlers never fail with
// an internal error.
func stocked(logger *slog.Logger) *mcp.Mux {
	mux := mcp.NewMux("all", "v1", &mcp.MuxOptions{
		Logger: logger, PageSize: 3, Instructions: "Use it.", ListCache: mcp.CacheFor(time.Minute, mcp.CachePublic),
		StateKeys: [][]byte{bytes.Repeat([]byte("k"), 32)}, StateTTL: 10_000 * time.Hour,
	})
	addTools(mux)
	addAskingTools(mux)
	addByHand(mux)
	mux.Prompt("greet", mcp.PromptFunc(func(_ context.Context, in struct {
		Name  string `json:"name"`
		Tone  string `json:"tone,omitempty" jsonschema:"enum=formal,enum=friendly"`
		Times int    `json:"times,omitempty"`
	}) (string, error) {
		return strings.Repeat("Hello, "+in.Name, min(max(in.Times, 1), 3)), nil
	}, &mcp.Prompt{Completers: map[string]mcp.Completer{"name": mcp.CompleteFrom("Ada", "Alan")}}))
	mux.Prompt("ask", mcp.PromptFunc(func(ctx context.Context, _ none) (string, error) {
		ok, err := mcp.Elicit[yes](ctx, "k", "Sure?")
		return fmt.Sprint(ok.OK), refused(err)
	}, nil))
	mux.Resource("test://fixed", reads("text"))
	mux.Resource("test://blob", mcp.ResourceFunc(func(context.Context, none) ([]byte, error) { return []byte{0, 255}, nil }, nil))
	mux.Resource("test://users/{user}/{+path}", mcp.ResourceFunc(func(_ context.Context, in map[string]string) (any, error) {
		return in, nil
	}, &mcp.Resource{Completers: map[string]mcp.Completer{"user": mcp.CompleteFrom("ann", "bob")}}))
	mux.Resource(filesTemplate, mcp.FileServerFS(fstest.MapFS{"a.txt": {Data: []byte("a")}, "sub/b.bin": {Data: []byte{0}}}, nil))
	mux.Handle("vendor/echo", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		return &mcp.EmptyResult{ResultBase: mcp.ResultBase{Extra: mcp.Extra{"params": append(json.RawMessage("["), append(orNull(req.Params()), ']')...)}}}, nil
	}))
	inner := mcp.NewMux("inner", "v1", &mcp.MuxOptions{Logger: logger, PageSize: 1})
	addTools(inner)
	inner.Prompt("one", mcp.PromptFunc(func(_ context.Context, in struct {
		Size string `json:"size" jsonschema:"enum=small,enum=large"`
	}) (string, error) {
		return in.Size, nil
	}, nil))
	inner.Resource("test://one", reads("one"))
	mux.Mount("in_", inner)
	return mux
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return slices.Clone(raw)
}

func addTools(mux *mcp.Mux) {
	mux.Tool("hello", says("hi"))
	mux.Tool("kinds", mcp.ToolFunc(func(_ context.Context, in allKinds) (map[string]int, error) {
		return map[string]int{"int": in.Int, "list": len(in.List)}, nil
	}, nil))
	mux.Tool("headers", mcp.ToolFunc(func(_ context.Context, in map[string]any) (string, error) { return fmt.Sprint(len(in)), nil }, &mcp.Tool{
		Title: "Headers", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true)},
		InputSchema: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region","pattern":"^[a-z]*$"},"n":{"type":"integer","x-mcp-header":"N"}},"additionalProperties":{"anyOf":[{"type":"null"},{"type":"array","uniqueItems":true}]}}`),
	}))
	mux.Tool("blocks", mcp.ToolFunc(func(context.Context, none) ([]mcp.Content, error) {
		return []mcp.Content{
			mcp.Text("a"), &mcp.ImageContent{Data: []byte{1}, MIMEType: "image/png"}, &mcp.AudioContent{Data: []byte{2}, MIMEType: "audio/wav"},
			&mcp.ResourceLink{Resource: mcp.Resource{URI: "test://fixed", Name: "fixed"}},
			&mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "test://fixed", Text: "text"}},
		}, nil
	}, nil))
	mux.Tool("fails", mcp.ToolFunc(func(context.Context, none) (string, error) { return "", errors.New("it rains") }, nil))
	mux.Tool("refuses", mcp.ToolFunc(func(context.Context, none) (string, error) {
		return "", mcp.Errorf(77, "no").WithData([]int{1})
	}, nil))
	mux.Tool("talks", mcp.ToolFunc(func(ctx context.Context, _ none) (string, error) {
		mcp.Progress(ctx, 1, 2, "half")
		mcp.ClientLogger(ctx).Info("hello", "a", 1)
		mcp.Progress(ctx, 2, 2, "")
		return "done", nil
	}, nil))
}

func addAskingTools(mux *mcp.Mux) {
	add := func(name string, ask func(ctx context.Context) (any, error)) {
		mux.Tool(name, mcp.ToolFunc(func(ctx context.Context, _ map[string]json.RawMessage) (string, error) {
			n, err := mcp.Once(ctx, "n", func(context.Context) (int, error) { return 7, nil })
			if err != nil {
				return "", err
			}
			answer, err := ask(ctx)
			if err != nil {
				return "", err
			}
			text, err := json.Marshal(answer)
			return fmt.Sprintf("%d %s", n, text), err
		}, nil))
	}
	form := func(ctx context.Context) (any, error) { return mcp.Elicit[yes](ctx, "k", "Sure?") }
	sample := func(ctx context.Context) (any, error) {
		return mcp.Sample(ctx, "s", &mcp.CreateMessageParams{MaxTokens: 9, Messages: []*mcp.SamplingMessage{{Role: mcp.RoleUser, Content: mcp.SamplingContent{mcp.Text("hi")}}}})
	}
	roots := func(ctx context.Context) (any, error) { return mcp.Roots(ctx, "r") }
	visit := func(ctx context.Context) (any, error) {
		return nil, mcp.ElicitURL(ctx, "u", "Go there", "https://example.com/")
	}
	add("ask", form)
	add("sample", sample)
	add("roots", roots)
	add("visit", visit)
	add("ask-all", func(ctx context.Context) (any, error) {
		for _, ask := range []func(context.Context) (any, error){form, sample, roots, visit} {
			if _, err := ask(ctx); err != nil {
				return nil, err
			}
		}
		return "all", nil
	})
	add("ask-at-once", func(ctx context.Context) (any, error) {
		var (
			ok    yes
			roots []mcp.Root
			form  json.RawMessage
		)
		return roots, mcp.Ask(ctx, mcp.ElicitQuestion("k", "Sure?", &ok), mcp.RootsQuestion("r", &roots),
			mcp.ElicitSchemaQuestion("f", "More?", json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","minimum":1},"e":{"type":"array","items":{"type":"string","enum":["a","b"]}}},"required":["n"]}`), &form))
	})
}

// addByHand adds a tool that returns InputRequired itself: first for the roots, then
// without a question.
func addByHand(mux *mcp.Mux) {
	mux.Tool("by-hand", mcp.HandlerFunc(func(_ context.Context, req *mcp.Request) (mcp.Result, error) {
		var p mcp.CallToolParams
		if err := req.Decode(&p); err != nil {
			return nil, err
		}
		switch {
		case p.RequestState == nil:
			questions := map[string]mcp.InputRequest{"r": {Method: mcp.MethodListRoots}}
			return &mcp.InputRequired{InputRequests: questions, RequestState: new("asked")}, nil
		case *p.RequestState == "asked":
			return &mcp.InputRequired{RequestState: new("waited")}, nil
		}
		return mcp.TextResult(string(p.InputResponses["r"])), nil
	}))
}

// refused turns errors that would be internal errors into errors of the request.
func refused(err error) error {
	if errors.Is(err, mcp.ErrDeclined) || errors.Is(err, mcp.ErrCancelled) {
		return mcp.Errorf(78, "%w", err)
	}
	return err
}

// mutated returns JSON in which some values are changed, dropped or moved, depending on
// seed. If seed is 0 or data is not JSON, it returns data.
func mutated(data []byte, seed uint64) []byte {
	if seed == 0 {
		return data
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return data
	}
	r := rand.New(rand.NewPCG(seed, 0))
	for range 1 + r.IntN(3) {
		var places []place
		walk(v, func(x any) { v = x }, func() { v = nil }, &places)
		p := places[r.IntN(len(places))]
		switch r.IntN(4) {
		case 0:
			p.drop()
		case 1:
			p.set(copied(places[r.IntN(len(places))].value))
		default:
			p.set(odd(r))
		}
	}
	text, err := json.Marshal(v)
	if err != nil {
		return data // too deeply nested
	}
	return text
}

// place is the location of a value.
type place struct {
	value any
	set   func(any)
	drop  func()
}

func walk(v any, set func(any), drop func(), places *[]place) {
	*places = append(*places, place{v, set, drop})
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			walk(v[name], func(x any) { v[name] = x }, func() { delete(v, name) }, places)
		}
	case []any:
		for i := range v {
			walk(v[i], func(x any) { v[i] = x }, func() { v[i] = nil }, places)
		}
	}
}

// copied returns a deep copy, so that a value is never in two places or within itself.
func copied(v any) any {
	switch v := v.(type) {
	case map[string]any:
		m := map[string]any{}
		for name, member := range v {
			m[name] = copied(member)
		}
		return m
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = copied(v[i])
		}
		return list
	}
	return v
}

// odd returns a value that few programs expect.
func odd(r *rand.Rand) any {
	values := []any{
		nil, true, false, "", " ", "a", "\x00", "é\u2028", "null", "$ref", "../..", "=?base64?YQ==?=", strings.Repeat("x", 300), strings.Repeat("%", 40),
		json.Number("0"), json.Number("-0"), json.Number("-1"), json.Number("1.5"), json.Number("1.0"), json.Number("9007199254740993"), json.Number("1e400"), json.Number("18446744073709551616"),
		[]any{}, []any{nil}, []any{[]any{map[string]any{}}}, map[string]any{}, map[string]any{"": nil}, map[string]any{"type": "text"}, map[string]any{"a": []any{json.Number("1")}},
		mcp.LatestVersion, "2025-03-26", "accept", "input_required", "text", "resource", "file:///", "psi-1",
	}
	return copied(values[r.IntN(len(values))])
}
