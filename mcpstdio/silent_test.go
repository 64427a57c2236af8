// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcpstdio_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcpstdio"
)

// The error of connecting to a command that answers nothing states what was tried, for how
// long, and what the command wrote to its standard error.
func TestFindingU14SilentCommand(t *testing.T) {
	stderr := &awaited{words: "GB\n", come: make(chan struct{})}
	cmd := program("waiting")
	ctx, giveUp := context.WithCancelCause(t.Context())
	go func() {
		<-stderr.come
		giveUp(context.DeadlineExceeded)
	}()
	_, err := mcp.NewClient("c", "v1", nil).Connect(ctx, mcpstdio.NewCommand(cmd, &mcpstdio.CommandOptions{Stderr: stderr}))
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{
		"mcp: Connect: context deadline exceeded: no answer to server/discover or initialize in ",
		" from the command " + cmd.Path + ", which runs; its last words:\n\tloading the model\n\t99 GB",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("got %q, want %q in it", err, want)
		}
	}
	if code := mcp.CodeOf(err); code != mcp.CodeInternalError {
		t.Errorf("the code is %d", code)
	}
	if text := mcp.ErrorResult(err).Content[0].(*mcp.TextContent).Text; strings.Contains(text, "GB") {
		t.Errorf("a caller reads %q", text)
	}
}

// awaited is a writer that signals when words have been written to it.
type awaited struct {
	words string
	come  chan struct{}

	mu   sync.Mutex
	seen bytes.Buffer
	once sync.Once
}

func (w *awaited) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.Write(b)
	if strings.Contains(w.seen.String(), w.words) {
		w.once.Do(func() { close(w.come) })
	}
	return len(b), nil
}
