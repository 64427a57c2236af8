// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package peers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client/transport"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/go-psi/psi/mcp"
)

// TestQuickstart tries other clients with examples/quickstart, started as users start it.
func TestQuickstart(t *testing.T) {
	program := buildQuickstart(t)
	overHTTP := append([]string{mcp.LatestVersion}, withSessions...)
	overStdio := []string{mcp.LatestVersion, "2025-11-25", "2024-11-05"}
	legs := []leg{
		{
			name: "go-sdk to the quickstart over http", versions: overHTTP,
			connect: connectSDK(func(t *testing.T) sdk.Transport {
				return &sdk.StreamableClientTransport{Endpoint: serveQuickstart(t, program)}
			}),
		},
		{
			name: "go-sdk to the quickstart over stdio", versions: overStdio,
			connect: connectSDK(func(*testing.T) sdk.Transport { return &sdk.CommandTransport{Command: exec.Command(program)} }),
		},
		{
			name: "mcp-go to the quickstart over http", versions: overHTTP,
			connect: connectMark(func(t *testing.T, version string) (transport.Interface, error) {
				return markHTTP(serveQuickstart(t, program), version)
			}),
		},
		{
			name: "mcp-go to the quickstart over stdio", versions: overStdio,
			connect: connectMark(func(*testing.T, string) (transport.Interface, error) { return transport.NewStdio(program, nil), nil }),
		},
	}
	checkLacks(t, legs, quickstartFeatures)
	for _, l := range legs {
		l.run(t, quickstartFeatures)
	}
}

func buildQuickstart(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "quickstart.exe") // Windows needs the extension
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = filepath.Join("..", "..", "..", "..", "examples", "quickstart")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

func serveQuickstart(t *testing.T, program string) string {
	t.Helper()
	address := net.JoinHostPort("127.0.0.1", freePort(t))
	start(t, exec.Command(program, "-http", address))
	listening(t, address)
	return fmt.Sprintf("http://%s/mcp", address)
}

var quickstartFeatures = []feature{
	{name: "lists", try: tryQuickstartLists},
	{name: "tools", try: tryQuickstartTools},
	{name: "elicitation", try: tryOrder},
	{name: "progress", try: tryCountdown},
	{name: "cancellation", try: tryCancelCountdown},
	{name: "prompts", try: tryExplain},
	{name: "prompt completion", try: completes("explain", "style", "pi", "pirate")},
	{name: "template completion", try: completes("docs:///{+path}", "path", "m", "menu/")},
	{name: "reading", try: tryDocs},
	{name: "list changes", try: trySecret},
}

func tryQuickstartLists(ctx context.Context, s *session) error {
	got, err := s.names(ctx)
	want := []string{
		"add", "countdown", "docs:///menu/pizza.csv", "docs:///secrets.md", "docs:///welcome.md", "docs:///{+path}",
		"explain", "order", "secret", "swatch",
	}
	if err == nil && !slices.Equal(got, want) {
		err = fmt.Errorf("listed %q, want %q", got, want)
	}
	return err
}

func tryQuickstartTools(ctx context.Context, s *session) error {
	unfit, err := s.call(ctx, "add", map[string]any{"a": "two", "b": 3}, nil)
	if err == nil && (!unfit.IsError || !strings.Contains(unfit.text(), `/a: expected integer, got string "two"`)) {
		err = fmt.Errorf("arguments that do not fit: %+v", unfit)
	}
	res, paintErr := s.mustCall(ctx, "swatch", map[string]any{"colour": "red"})
	if paintErr == nil && !bytes.HasPrefix(res.Content[0].Data, []byte("\x89PNG")) {
		paintErr = errors.New("no picture")
	}
	return errors.Join(tryAdd(ctx, s), err, paintErr)
}

func tryOrder(ctx context.Context, s *session) error {
	res, err := s.mustCall(ctx, "order", map[string]any{"pizza": "funghi"})
	if err == nil && !regexp.MustCompile(`^One funghi for \d+ euros is on its way to Via Roma 1\.$`).MatchString(res.text()) {
		err = fmt.Errorf("got %q", res.text())
	}
	return err
}

func tryCountdown(ctx context.Context, s *session) error {
	progress := make(chan float64, 100)
	res, err := s.succeeds(s.call(ctx, "countdown", map[string]any{"from": 3, "pause": 1}, func(done float64) { put(progress, done) }))
	if err != nil || res.text() != "Liftoff!" {
		return fmt.Errorf("%+v, %w", res, err)
	}
	for range 3 { // in any order: some clients start a goroutine for each
		if _, err := take(ctx, progress); err != nil {
			return err
		}
	}
	return nil
}

// tryCancelCountdown cancels a long call and makes another.
func tryCancelCountdown(ctx context.Context, s *session) error {
	call, cancel := context.WithCancel(ctx)
	defer cancel()
	res, err := s.call(call, "countdown", map[string]any{"from": 100, "pause": 1000}, func(float64) { cancel() })
	if err == nil || ctx.Err() != nil {
		return fmt.Errorf("%+v, %w", res, err)
	}
	return tryAdd(ctx, s)
}

func tryExplain(ctx context.Context, s *session) error {
	got, err := s.prompt(ctx, "explain", map[string]string{"topic": "monads", "style": "pirate"})
	if err == nil && got != "Explain monads to me, in a pirate style." {
		err = fmt.Errorf("got %q", got)
	}
	if err != nil {
		return err
	}
	_, err = s.prompt(ctx, "explain", nil)
	return s.refused(err, mcp.CodeInvalidParams)
}

func tryDocs(ctx context.Context, s *session) error {
	for uri, want := range map[string]string{"docs:///welcome.md": "# Welcome", "docs:///": "menu/\nsecrets.md\nwelcome.md\n"} {
		if got, err := s.read(ctx, uri); err != nil || !strings.HasPrefix(got, want) {
			return fmt.Errorf("%s: %q, %w", uri, got, err)
		}
	}
	for _, uri := range []string{"docs:///nowhere", "docs:///../main.go", "docs:///%2e%2e/main.go"} {
		if got, err := s.read(ctx, uri); err == nil {
			return fmt.Errorf("%s: %q", uri, got)
		}
	}
	return nil
}

// trySecret reveals a tool and calls it.
func trySecret(ctx context.Context, s *session) error {
	err := s.repeats(ctx, "", "secret", map[string]any{"revealed": true}, func(ctx context.Context) error {
		_, err := take(ctx, s.told.tools)
		return err
	})
	if err != nil {
		return err
	}
	if names, err := s.names(ctx); err != nil || !slices.Contains(names, "whisper") {
		return fmt.Errorf("listed %q, %w", names, err)
	}
	res, err := s.mustCall(ctx, "whisper", nil)
	if err == nil && res.text() != "The cake is real." {
		err = fmt.Errorf("got %q", res.text())
	}
	return err
}
