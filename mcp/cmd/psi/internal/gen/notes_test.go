// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gen_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/cmd/psi/internal/gen"
	"github.com/go-psi/psi/mcp/cmd/psi/internal/gen/testdata/notes"
	"github.com/go-psi/psi/mcp/mcptest"
)

// notesServer returns a server with schemas like those of published servers.
func notesServer() *gen.Server {
	return &gen.Server{
		Name: "Notes", Version: "v1.2.0",
		Tools: []*mcp.Tool{
			{
				Name: "search_notes", Title: "Search",
				Description: "Search all notes.\n\nWords are joined by AND:\n- \"a b\" finds notes with both\n- quotes find a phrase",
				Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true)},
				InputSchema: json.RawMessage(`{"type":"object","required":["query"],"properties":{
					"query":{"type":"string","description":"the words to find"},
					"limit":{"type":"integer","minimum":1,"default":10,"description":"how many to return"},
					"order":{"type":"string","enum":["newest","oldest",""],"default":"newest"},
					"since":{"type":"string","format":"date-time"},
					"filter":{"type":"object","title":"Note filter","properties":{"tags":{"type":"array","items":{"type":"string"}},"authorId":{"type":["string","null"]}},"required":["authorId"]},
					"rating":{"enum":[1,2,3]},
					"place":{"anyOf":[{"type":"string"},{"type":"object","properties":{"lat":{"type":"number"}}}],"description":"where it was written"}
				}}`),
				OutputSchema: json.RawMessage(`{"type":"object","required":["notes","total"],"properties":{
					"notes":{"type":"array","items":{"$ref":"#/$defs/Note"}},
					"total":{"type":"integer"},
					"next":{"anyOf":[{"type":"string"},{"type":"null"}],"description":"the cursor of the next page"}
				},"$defs":{
					"Note":{"type":"object","description":"A note with those that answer it.","required":["id","written_at","answers","meta"],"additionalProperties":{},"properties":{
						"id":{"type":"string"},"written_at":{"type":"string","format":"date-time"},
						"answers":{"type":"array","items":{"$ref":"#/$defs/Note"}},
						"parent":{"$ref":"#/$defs/Note"},
						"meta":{"type":"object","additionalProperties":{"type":"number"}},
						"state":{"$ref":"#/$defs/State"}
					}},
					"State":{"oneOf":[{"const":"draft","title":"Draft"},{"const":"final","title":"Final"}]}
				}}`),
			},
			{
				Name: "put-note", Description: "Write a note.",
				Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(false), DestructiveHint: new(true)},
				InputSchema: json.RawMessage(`{"type":"object","required":["text"],"properties":{"text":{"type":"string"},"file":{"type":"string","contentEncoding":"base64"}},"additionalProperties":false}`),
			},
			{Name: "count", InputSchema: json.RawMessage(`{"type":"object","properties":{}}`), OutputSchema: json.RawMessage(`{"type":"integer"}`)},
			{Name: "raw", InputSchema: json.RawMessage(`{"type":"object","additionalProperties":true}`)},
		},
		Prompts: []*mcp.Prompt{
			{Name: "summarize", Description: "Summarize notes.", Arguments: []*mcp.PromptArgument{{Name: "topic", Required: true, Description: "what about"}, {Name: "max-words"}}},
			{Name: "greet"},
		},
	}
}

func TestGolden(t *testing.T) { golden(t, "notes", notesServer()) }

// TestNotesClient calls a server with the generated client, which proves that it compiles.
func TestNotesClient(t *testing.T) {
	mux := mcp.NewMux("notes", "v1.2.0", nil)
	for _, tool := range notesServer().Tools {
		mux.Tool(tool.Name, mcp.WithDescription(mcp.HandlerFunc(serveNotes), tool))
	}
	for _, p := range notesServer().Prompts {
		mux.Prompt(p.Name, mcp.WithDescription(mcp.HandlerFunc(servePrompt), p))
	}
	conn := mcptest.Connect(t, mux)
	c, ctx := notes.New(conn), t.Context()

	found, err := c.SearchNotes(ctx, notes.SearchNotesInput{
		Query: "tea", Limit: new(int64(3)), Order: new(notes.SearchNotesInputOrderOldest),
		Since: new(time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)), Filter: &notes.SearchNotesNoteFilter{Tags: []string{"a"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	const arguments = `{"filter":{"authorId":null,"tags":["a"]},"limit":3,"order":"oldest","query":"tea","since":"2026-01-02T00:00:00Z"}`
	note := found.Notes[0]
	if note.ID != arguments || len(note.Answers) != 1 || *note.State != notes.SearchNotesStateDraft || note.Meta["x"] != 1.5 || string(note.Extra["more"]) != "[1]" {
		t.Errorf("found %+v", found)
	}
	if n, err := c.Count(ctx); err != nil || n != 7 {
		t.Errorf("counted %d, %v", n, err)
	}
	res, err := c.Raw(ctx, map[string]any{"x": 1})
	if err != nil || notes.Text(res) != `raw {"x":1}` {
		t.Errorf("got %+v, %v", res, err)
	}
	_, err = c.PutNote(ctx, notes.PutNoteInput{Text: "fail", File: []byte{1}})
	if failed, ok := errors.AsType[*mcp.ToolError](err); !ok || failed.Error() != `the tool "put-note" failed: {"file":"AQ==","text":"fail"}` {
		t.Errorf("got the error %v", err)
	}
	prompt, err := c.SummarizePrompt(ctx, notes.SummarizePromptInput{Topic: "tea", MaxWords: new("9")})
	if err != nil || prompt.Description != "map[max-words:9 topic:tea]" {
		t.Errorf("got %+v, %v", prompt, err)
	}
	if prompt, err = c.GreetPrompt(ctx); err != nil || prompt.Description != "map[]" {
		t.Errorf("got %+v, %v", prompt, err)
	}
}

// serveNotes returns the arguments of a call in its result.
func serveNotes(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	var p mcp.CallToolParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	var arguments any
	if err := json.Unmarshal(p.Arguments, &arguments); err != nil {
		return nil, err
	}
	sorted, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	switch p.Name {
	case "count":
		return &mcp.CallToolResult{StructuredContent: json.RawMessage("7")}, nil
	case "put-note":
		return mcp.ErrorResult(errors.New(string(sorted))), nil
	case "raw":
		return mcp.TextResult("raw " + string(sorted)), nil
	}
	note := map[string]any{"id": string(sorted), "written_at": "today", "answers": []any{}, "meta": map[string]any{}}
	whole := map[string]any{"id": string(sorted), "written_at": "today", "answers": []any{note}, "meta": map[string]any{"x": 1.5}, "state": "draft", "more": []int{1}}
	found, err := json.Marshal(map[string]any{"notes": []any{whole}, "total": 1})
	return &mcp.CallToolResult{StructuredContent: found}, err
}

func servePrompt(_ context.Context, req *mcp.Request) (mcp.Result, error) {
	var p mcp.GetPromptParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	return &mcp.GetPromptResult{Description: fmt.Sprint(p.Arguments), Messages: []*mcp.PromptMessage{}}, nil
}
