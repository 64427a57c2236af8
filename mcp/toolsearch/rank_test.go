// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package toolsearch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/toolsearch"
)

// Words match in the forms in which people and programs write them.
func TestWords(t *testing.T) {
	rank := toolsearch.BM25()
	for _, test := range []struct{ name, query string }{
		{"parseHTMLPage", "html"}, {"parseHTMLPage", "parse pages"}, {"GitHub", "github"}, {"github", "GitHub"},
		{"snake_case_name", "case"}, {"kebab-case-name", "name"}, {"dots.in.names", "dots"}, {"brc20", "BRC-20"}, {"s3.get", "S3"},
		{"delete_entry", "entries"}, {"delete_entry", "deleting"}, {"list_boxes", "box"}, {"running", "run"}, {"stopped", "stops"},
		{"list_repositories", "repository"}, {"update_config", "the updated configs"}, {"ÜBERSICHT", "übersicht"}, {"Заказы", "заказы"},
		{"create_page", "created"}, {"find_status", "status"}, {"pass", "passes"},
		{"天気", "天気予報"}, {"날씨를_조회", "날씨"}, {"พยากรณ์อากาศ", "อากาศ"}, {"カタカナ", "タカ"}, {"a\xffb", "b"}, {"天\xff気", "気"},
	} {
		others := []*mcp.Tool{{Name: "unrelated"}, {Name: test.name}, {Name: "もの"}}
		got, err := rank(t.Context(), test.query, others)
		if err != nil || len(got) != 1 || got[0] != others[1] {
			t.Errorf("%q: found %v, %v, not %q", test.query, got, err, test.name)
		}
	}
}

// Words that look alike are not the same.
func TestOtherWords(t *testing.T) {
	for _, test := range []struct{ name, query string }{
		{"電気", "天気"}, {"気天", "天気"}, {"thing", "the"}, {"bring", "br"}, {"red", "r"}, {"bus", "bu"}, {"status", "statu"}, {"class", "cla"}, {"ties", "ty"},
		{"repository", "repo"}, {"delete", "remove"}, {"ab", "a b"},
	} {
		got, err := toolsearch.BM25()(t.Context(), test.query, []*mcp.Tool{{Name: test.name}})
		if err != nil || len(got) != 0 {
			t.Errorf("%q: found %v, %v", test.query, got, err)
		}
	}
}

// A word of a query counts once, and only so many words are read.
func TestLongQueries(t *testing.T) {
	tools := []*mcp.Tool{{Name: "common"}, {Name: "common", Title: "x"}, {Name: "rare"}}
	got, err := toolsearch.BM25()(t.Context(), strings.Repeat("common ", 50)+"rare", tools)
	if err != nil || len(got) != 3 || got[0] != tools[2] {
		t.Errorf("got %v, %v", got, err)
	}
	var many strings.Builder
	for i := range 64 {
		fmt.Fprintf(&many, "%c%c ", 'f'+i/8, 'f'+i%8)
	}
	if got, err = toolsearch.BM25()(t.Context(), many.String()+"rare", tools); err != nil || len(got) != 0 {
		t.Errorf("got %v, %v", got, err)
	}
}

// A word in a name counts more than one in a description, a rare one more than a common one, and
// the word itself more than another form of it, and more in a short text. Equal tools keep their
// order.
func TestOrder(t *testing.T) {
	tools := []*mcp.Tool{
		{Name: "a", Description: "invoice for a customer"}, {Name: "b", Description: "customer of a customer"},
		{Name: "invoice", Description: "for a customer"}, {Name: "c", Description: "customer"}, {Name: "d", Description: "customer"},
		{Name: "e", Description: "returns a page"}, {Name: "f", Description: "returned the page"},
		{Name: "g", Description: "cargo " + strings.Repeat("and many other words ", 20)}, {Name: "h", Description: "cargo"}, {Name: "i", Description: "cargo and more"},
	}
	for query, want := range map[string]string{
		"invoice": "invoice a", "invoice customer": "invoice a b c d", "returned": "f e", "returns": "e f", "the": "f", "what the page": "e f", "cargo": "h i g", "": "",
	} {
		ranked, err := toolsearch.BM25()(t.Context(), query, tools)
		var names []string
		for _, tool := range ranked {
			names = append(names, tool.Name)
		}
		if got := strings.Join(names, " "); got != want || err != nil {
			t.Errorf("%q: got %q, %v, want %q", query, got, err, want)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("gone"))
	if _, err := toolsearch.BM25()(ctx, "invoice", tools); err == nil || err.Error() != "gone" {
		t.Errorf("got %v", err)
	}
}

// What a schema says about arguments, at every depth, is found. Its other words are not.
func TestArguments(t *testing.T) {
	tool := &mcp.Tool{Name: "t", InputSchema: json.RawMessage(`{"type":"object","$schema":"https://dialect.example","$defs":{"internal":{"properties":{"street":{}}}},` +
		`"properties":{"recipient":{"description":"who gets it","enum":["friend",7,"colleague"],"pattern":"regex"},` +
		`"places":{"type":"array","title":"Stops","items":{"anyOf":[{"properties":{"city":{"const":"paris"}}},{"$ref":"#/$defs/internal"},true]}},` +
		`"extra":{"additionalProperties":{"oneOf":[{"description":"cargo"}]},"examples":["sample"],"default":"fallback"}},"required":["recipient","mandatory"]}`)}
	rank := toolsearch.BM25()
	for query, want := range map[string]bool{
		"recipient": true, "gets": true, "friend": true, "colleagues": true, "stop": true, "places": true, "city": true, "Paris": true, "street": true, "cargo": true,
		"internal": false, "regex": false, "mandatory": false, "sample": false, "fallback": false, "object": false, "dialect": false, "description": false,
	} {
		if got, err := rank(t.Context(), query, []*mcp.Tool{tool}); err != nil || len(got) == 1 != want {
			t.Errorf("%q: found %v, %v", query, got, err)
		}
	}
	// Of one argument, so many values are read.
	values := make([]string, 65)
	for i := range values {
		values[i] = fmt.Sprint("v", i)
	}
	enum := `"` + strings.Join(values, `","`) + `"`
	tool = &mcp.Tool{Name: "t", InputSchema: json.RawMessage(fmt.Sprintf(`{"properties":{"a":{"enum":[%s]},"b":{"enum":["last"]}}}`, enum))}
	for query, want := range map[string]bool{"63": true, "64": false, "last": true} {
		if got, err := rank(t.Context(), query, []*mcp.Tool{tool}); err != nil || len(got) == 1 != want {
			t.Errorf("%q: found %v, %v", query, got, err)
		}
	}
}

// catalog returns n tools with names, descriptions and arguments like those of real ones.
func catalog(n int) []*mcp.Tool {
	rnd := rand.New(rand.NewPCG(1, 2))
	word := func() string { return fmt.Sprintf("w%s%d", string(rune('a'+rnd.IntN(26))), rnd.IntN(400)) }
	words := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = word()
		}
		return strings.Join(all, " ")
	}
	tools := make([]*mcp.Tool, n)
	for i := range tools {
		tools[i] = &mcp.Tool{
			Name: fmt.Sprintf("%s_%s_%d", word(), word(), i), Description: words(30),
			InputSchema: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%q:{"type":"string","description":%q},%q:{"enum":["a","b"],"description":%q}}}`,
				word()+"x", words(10), word()+"y", words(10))),
		}
	}
	return tools
}

// Callers who see different tools share what was read of the tools.
func TestManyCallers(t *testing.T) {
	const callers = 50
	tools := catalog(1000)
	rank := toolsearch.BM25()
	var before, first, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := rank(t.Context(), "wa1 wb2", tools); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&first)
	for i := range callers {
		if _, err := rank(t.Context(), "wa1 wb2", slices.Concat(tools[:i], tools[i+1:])); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	one, others := first.TotalAlloc-before.TotalAlloc, (after.TotalAlloc-first.TotalAlloc)/callers
	if others > one/20 {
		t.Errorf("the first caller allocates %d bytes, each of the others %d", one, others)
	}
}

// FuzzBM25 checks that a search of any text in any tool returns tools of the list, once each,
// and the same again, and that a tool is found by its name.
func FuzzBM25(f *testing.F) {
	f.Add("create issues", "create_issue", "Report a bug.", `{"properties":{"title":{"enum":["a",{}],"items":[{"properties":{"x":true}}]}}}`)
	f.Add("天気 \xff", "tenki予報", "\u0e01\u0e02", `{"$defs":{"a":{"description":1}},"properties":[]}`)
	f.Fuzz(func(t *testing.T, query, name, description, schema string) {
		tools := []*mcp.Tool{{Name: "other_tool", Description: query}, {Name: name, Description: description, InputSchema: json.RawMessage(schema)}}
		rank := toolsearch.BM25()
		for _, q := range []string{query, name} {
			first, err := rank(t.Context(), q, tools)
			again, errAgain := rank(t.Context(), q, tools)
			if err != nil || errAgain != nil || !slices.Equal(first, again) || len(first) > 2 || len(first) == 2 && first[0] == first[1] {
				t.Fatalf("%q: %v, %v; %v, %v", q, first, err, again, errAgain)
			}
			if hasLetter := strings.ContainsAny(name, "abcdefghijklmnopqrstuvwxyz0123456789"); q == name && hasLetter && len(name) < 64 && !slices.Contains(first, tools[1]) {
				t.Fatalf("%q is not found by its name", name)
			}
		}
	})
}

// BenchmarkSearch searches 10,000 tools, as a client does.
func BenchmarkSearch(b *testing.B) {
	tools := catalog(10_000)
	mux := mcp.NewMux("m", "v1", quiet())
	mux.Use(toolsearch.New(nil))
	err := mux.Update(func(m *mcp.Mux) {
		for _, tool := range tools {
			described := *tool
			m.Tool(tool.Name, mcp.WithDescription(mcp.HandlerFunc(nothing), &described))
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	req := mcptest.NewRequest(mcp.MethodCallTool, &mcp.CallToolParams{Name: "search_tools", Arguments: []byte(`{"query":"wa1 the wb2 we250 wz7"}`)})
	b.Run("whole", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := mux.ServeMCP(b.Context(), req); err != nil {
				b.Fatal(err)
			}
		}
	})
	rank := toolsearch.BM25()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	if _, err := rank(b.Context(), "wa1", tools); err != nil {
		b.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.Run("rank", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := rank(b.Context(), "wa1 the wb2 we250 wz7", tools); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB-kept")
	})
}
