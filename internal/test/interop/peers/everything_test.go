// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/mcp/transport"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

const (
	everythingFile = "node_modules/@modelcontextprotocol/server-everything/dist/index.js"
	everythingForm = "Please provide inputs for the following fields:"
	textURI        = "demo://resource/dynamic/text/"
)

// TestEverything tries psi's client with all features of the reference server, which has
// its own names for them and speaks only the legacy era.
func TestEverything(t *testing.T) {
	open := func(to func(url string) transport.Transport, mode string) func(t *testing.T, version string, told *told) client {
		return connectPsi(func(t *testing.T) transport.Transport { return to(everything(t, mode)) })
	}
	legs := []leg{
		{
			name: "psi to everything over stdio", versions: overStdio, found: "2025-11-25",
			connect: connectPsi(nodeStdio(everythingFile)),
		},
		{
			name: "psi to everything over http", versions: append([]string{""}, withSessions...), found: "2025-11-25",
			connect: open(func(url string) transport.Transport { return mcphttp.NewTransport(url+"/mcp", nil) }, "streamableHttp"),
		},
		{
			name: "psi to everything over sse", versions: []string{"2024-11-05"},
			connect: open(func(url string) transport.Transport { return mcphttp.NewSSETransport(url+"/sse", nil) }, "sse"),
		},
	}
	checkLacks(t, legs, everythingFeatures)
	for _, l := range legs {
		l.run(t, everythingFeatures)
	}
}

var everythingFeatures = []feature{
	{name: "lists", try: tryEverythingLists},
	{name: "tools", try: tryEverythingTools},
	{name: "annotations", try: tryAnnotations},
	{name: "structured content", try: tryWeather, since: "2025-06-18"},
	{name: "files", try: tryFiles},
	{name: "prompts", try: tryEverythingPrompts},
	{name: "reading", try: tryEverythingReading},
	{name: "completion", try: tryEverythingCompletion},
	{name: "progress", try: tryLongOperation},
	{name: "cancellation", try: tryCancelOperation},
	{name: "elicitation", try: says("trigger-elicitation-request", nil, "- Name: Ada\n- Agreed to terms: true\n- Favorite Integer: 7")},
	{name: "url elicitation", try: tryVisit, since: "2025-11-25"},
	{name: "sampling", try: says("trigger-sampling-request", map[string]any{"prompt": "ping"}, "pong to Resource trigger-sampling-request context: ping")},
	{name: "roots", try: tryEverythingRoots},
	{name: "logging and updates", try: tryEverythingUpdates},
	{name: "a required task", try: tryResearch, since: "2025-11-25"},
	{name: "errors", try: tryEverythingErrors},
}

// conn returns psi's client, for features that not every client supports.
func (s *session) conn() (*psiClient, error) {
	c, ok := s.client.(*psiClient)
	if !ok {
		return nil, errors.New("not a client of psi")
	}
	return c, nil
}

func tryEverythingLists(ctx context.Context, s *session) error {
	got, err := s.names(ctx)
	for _, want := range []string{
		"echo", "get-annotated-message", "get-env", "get-resource-links", "get-resource-reference", "get-roots-list",
		"get-structured-content", "get-sum", "get-tiny-image", "gzip-file-as-resource", "simulate-research-query",
		"toggle-simulated-logging", "toggle-subscriber-updates", "trigger-elicitation-request", "trigger-long-running-operation",
		"trigger-sampling-request", "trigger-url-elicitation", "simple-prompt", "args-prompt", "completable-prompt", "resource-prompt",
		"demo://resource/static/document/features.md", textURI + "{resourceId}",
	} {
		if !slices.Contains(got, want) {
			err = errors.Join(err, fmt.Errorf("%s is not listed", want))
		}
	}
	return err
}

// says returns a function that calls a tool and expects want in its text.
func says(tool string, args any, want string) func(ctx context.Context, s *session) error {
	return func(ctx context.Context, s *session) error {
		res, err := s.mustCall(ctx, tool, args)
		if err != nil {
			return err
		}
		var all []string
		for _, block := range res.Content {
			all = append(all, block.Text)
		}
		if !strings.Contains(strings.Join(all, "\n"), want) {
			return fmt.Errorf("%s: %q", tool, all)
		}
		return nil
	}
}

func tryEverythingTools(ctx context.Context, s *session) error {
	return errors.Join(
		says("echo", map[string]any{"message": "grüß dich\n🎉"}, "Echo: grüß dich\n🎉")(ctx, s),
		says("get-sum", map[string]any{"a": 2, "b": 3}, "The sum of 2 and 3 is 5.")(ctx, s),
		says("get-env", nil, "PATH")(ctx, s),
		says("get-resource-reference", map[string]any{"resourceType": "Text", "resourceId": 7}, textURI+"7")(ctx, s),
		says("toggle-simulated-logging", nil, "Started")(ctx, s),
		says("toggle-simulated-logging", nil, "Stopped")(ctx, s),
		s.shows(ctx, "get-tiny-image", nil, "text", "image", "text"),
		s.shows(ctx, "get-resource-links", map[string]any{"count": 2}, "text", "resource_link", "resource_link"),
		s.shows(ctx, "get-resource-reference", map[string]any{"resourceType": "Blob", "resourceId": 7}, "text", "resource", "text"),
	)
}

// shows calls a tool and checks the kinds of its content.
func (s *session) shows(ctx context.Context, tool string, args any, want ...string) error {
	res, err := s.mustCall(ctx, tool, args)
	if err == nil && !slices.Equal(res.kinds(), want) {
		err = fmt.Errorf("%s: %q", tool, res.kinds())
	}
	return err
}

func tryAnnotations(ctx context.Context, s *session) error {
	c, err := s.conn()
	if err != nil {
		return err
	}
	res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: "get-annotated-message", Arguments: []byte(`{"messageType":"error","includeImage":true}`)})
	if err != nil || len(res.Content) != 2 {
		return fmt.Errorf("%+v, %w", res, err)
	}
	text, ok := res.Content[0].(*mcp.TextContent)
	if !ok || text.Annotations == nil || len(text.Annotations.Audience) != 2 || *text.Annotations.Priority != 1 {
		return fmt.Errorf("annotated %+v", res.Content[0])
	}
	return nil
}

func tryWeather(ctx context.Context, s *session) error {
	c, err := s.conn()
	if err != nil {
		return err
	}
	type weather struct {
		Temperature float64 `json:"temperature"`
		Humidity    float64 `json:"humidity"`
	}
	got, err := mcp.Call[weather](ctx, c.Conn, "get-structured-content", map[string]string{"location": "Chicago"})
	if err == nil && got != (weather{36, 82}) {
		err = fmt.Errorf("got %+v", got)
	}
	return err
}

// tryFiles asks the server to create a file, which becomes a resource of the session.
func tryFiles(ctx context.Context, s *session) error {
	c, err := s.conn()
	if err != nil {
		return err
	}
	args := map[string]any{"name": "a.gz", "data": "data:text/plain,hello", "outputType": "resourceLink"}
	res, err := s.mustCall(ctx, "gzip-file-as-resource", args)
	if err != nil || len(res.Content) != 1 {
		return fmt.Errorf("%+v, %w", res, err)
	}
	read, err := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: res.Content[0].URI})
	if err != nil || len(read.Contents) != 1 || !strings.HasPrefix(string(read.Contents[0].Blob), "\x1f\x8b") {
		return fmt.Errorf("%+v, %w", read, err)
	}
	return nil
}

func tryEverythingPrompts(ctx context.Context, s *session) error {
	var all error
	for _, p := range []struct {
		name string
		args map[string]string
		want string
	}{
		{"simple-prompt", nil, "This is a simple prompt without arguments."},
		{"args-prompt", map[string]string{"city": "Rome"}, "What's weather in Rome?"},
		{"args-prompt", map[string]string{"city": "Rome", "state": "Lazio"}, "What's weather in Rome, Lazio?"},
		{"completable-prompt", map[string]string{"department": "Sales", "name": "Eve"}, "Please promote Eve to the head of the Sales team."},
	} {
		if got, err := s.prompt(ctx, p.name, p.args); err != nil || got != p.want {
			all = errors.Join(all, fmt.Errorf("%s: %q, %w", p.name, got, err))
		}
	}
	c, err := s.conn()
	if err != nil {
		return err
	}
	res, err := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: "resource-prompt", Arguments: map[string]string{"resourceType": "Text", "resourceId": "7"}})
	if err != nil || len(res.Messages) != 2 {
		return errors.Join(all, fmt.Errorf("%+v, %w", res, err))
	}
	if embedded, ok := res.Messages[1].Content.(*mcp.EmbeddedResource); !ok || embedded.Resource.URI != textURI+"7" {
		all = errors.Join(all, fmt.Errorf("embedded %+v", res.Messages[1].Content))
	}
	return all
}

func tryEverythingReading(ctx context.Context, s *session) error {
	file, err := s.read(ctx, "demo://resource/static/document/features.md")
	if err != nil || !strings.HasPrefix(file, "# ") {
		return fmt.Errorf("%q, %w", file, err)
	}
	made, err := s.read(ctx, textURI+"7")
	if err != nil || !strings.HasPrefix(made, "Resource 7: ") {
		return fmt.Errorf("%q, %w", made, err)
	}
	return nil
}

func tryEverythingCompletion(ctx context.Context, s *session) error {
	c, err := s.conn()
	if err != nil {
		return err
	}
	res, err := c.Complete(ctx, &mcp.CompleteParams{
		Ref:      mcp.CompleteRef{Type: "ref/prompt", Name: "completable-prompt"},
		Argument: mcp.CompleteArgument{Name: "name", Value: "E"},
		Context:  &mcp.CompleteContext{Arguments: map[string]string{"department": "Sales"}},
	})
	if err != nil || !slices.Equal(res.Completion.Values, []string{"Eve"}) {
		return fmt.Errorf("%+v, %w", res, err)
	}
	return errors.Join(
		completes("completable-prompt", "department", "S", "Sales", "Support")(ctx, s),
		completes(textURI+"{resourceId}", "resourceId", "7", "7")(ctx, s),
	)
}

func tryLongOperation(ctx context.Context, s *session) error {
	progress := make(chan float64, 100)
	args := map[string]any{"duration": 0.3, "steps": 3}
	if _, err := s.succeeds(s.call(ctx, "trigger-long-running-operation", args, func(done float64) { put(progress, done) })); err != nil {
		return err
	}
	for want := 1.0; want <= 3; want++ {
		if got, err := take(ctx, progress); err != nil || got != want {
			return fmt.Errorf("progress %v, %w", got, err)
		}
	}
	return nil
}

// tryCancelOperation cancels a call after the first progress notification. Other calls
// continue.
func tryCancelOperation(ctx context.Context, s *session) error {
	call, cancel := context.WithCancel(ctx)
	defer cancel()
	args := map[string]any{"duration": 60, "steps": 600}
	if res, err := s.call(call, "trigger-long-running-operation", args, func(float64) { cancel() }); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("%+v, %w", res, err)
	}
	return says("echo", map[string]any{"message": "on"}, "Echo: on")(ctx, s)
}

// tryVisit tests URL elicitation: first by an error that asks for the call to be repeated,
// which is left to the caller, and then by a request during the call.
func tryVisit(ctx context.Context, s *session) error {
	args := map[string]any{"url": visitURL, "errorPath": true}
	res, err := s.call(ctx, "trigger-url-elicitation", args, nil)
	_, isPsi := s.client.(*psiClient)
	switch {
	case isPsi && err == nil && res.IsError && strings.Contains(res.Content[0].Text, "an unknown URL"): // it asked its user
	case isPsi || s.code(err) != revision.CodeURLElicitationRequired:
		return fmt.Errorf("%+v, %w", res, err)
	}
	return says("trigger-url-elicitation", map[string]any{"url": visitURL}, "User completed the URL elicitation")(ctx, s)
}

func tryEverythingRoots(ctx context.Context, s *session) error {
	c, err := s.conn()
	if err != nil {
		return err
	}
	if err := says("get-roots-list", nil, "file:///psi")(ctx, s); err != nil {
		return err
	}
	if err := c.AddRoots(ctx, mcp.Root{URI: "file:///other", Name: "other"}); err != nil {
		return err
	}
	if err := s.logs(ctx, "info: Roots updated: 2 root(s) received from client"); err != nil {
		return err
	}
	return says("get-roots-list", nil, "file:///other")(ctx, s)
}

// logs waits for a log message.
func (s *session) logs(ctx context.Context, want string) error {
	for {
		got, err := take(ctx, s.told.logged)
		if err != nil || strings.HasPrefix(got, want) {
			return err
		}
	}
}

func tryEverythingUpdates(ctx context.Context, s *session) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.listen(ctx, textURI+"7"); err != nil {
		return err
	}
	if err := s.logs(ctx, "info: Received Subscribe Resource request for URI: "+textURI+"7"); err != nil {
		return err
	}
	if err := says("toggle-subscriber-updates", nil, "Started")(ctx, s); err != nil {
		return err
	}
	if uri, err := take(ctx, s.told.updated); err != nil || uri != textURI+"7" {
		return fmt.Errorf("told of %q, %w", uri, err)
	}
	return says("toggle-subscriber-updates", nil, "Stopped")(ctx, s)
}

// tryResearch calls a tool that can only be called as a task of 2025-11-25, which psi's client
// refuses once it has listed the tool.
func tryResearch(ctx context.Context, s *session) error {
	if _, err := s.names(ctx); err != nil {
		return err
	}
	_, err := s.call(ctx, "simulate-research-query", map[string]any{"topic": "psi", "ambiguous": true}, nil)
	if err == nil || !strings.Contains(err.Error(), "requires a task") {
		return fmt.Errorf("the tool requires a task: %w", err)
	}
	return nil
}

// tryEverythingErrors provokes errors of various kinds.
func tryEverythingErrors(ctx context.Context, s *session) error {
	for tool, args := range map[string]any{
		"nonesuch": nil,
		"get-sum":  map[string]any{"a": "two"},
	} {
		if res, err := s.call(ctx, tool, args, nil); err == nil && !res.IsError {
			return fmt.Errorf("%s: %+v", tool, res)
		}
	}
	_, err := s.read(ctx, "demo://nonesuch")
	return s.refused(err, mcp.CodeInvalidParams)
}
