// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
)

func openTest(t *testing.T) store {
	t.Helper()
	s, err := open(t.Context(), filepath.Join(t.TempDir(), "notes.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// user answers the question of delete_note.
func user(sure bool) *mcptest.Client {
	return &mcptest.Client{Options: mcp.ClientOptions{
		Elicit: func(context.Context, *mcp.Conn, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
			return mcptest.Accept(map[string]bool{"sure": sure}), nil
		},
	}}
}

// TestNotes adds, finds, reads and deletes a note, in both eras over every transport.
func TestNotes(t *testing.T) {
	mux := newMux(openTest(t), slog.New(slog.DiscardHandler))
	user(true).Run(t, mux, func(t *testing.T, c *mcp.Conn) {
		added, err := mcp.Call[note](t.Context(), c, "add_note", addIn{"Shopping", "100% milk"})
		if err != nil {
			t.Fatal(err)
		}
		found, err := mcp.Call[searchOut](t.Context(), c, "search_notes", searchIn{Words: "0% M"})
		if err != nil || len(found.Notes) != 1 || found.Notes[0] != added {
			t.Errorf("found %+v, %v; want %+v", found, err, added)
		}

		read := &mcp.ReadResourceParams{URI: uri(added.ID)}
		res, err := c.ReadResource(t.Context(), read)
		if err != nil || res.Contents[0].Text != "Shopping\n\n100% milk" {
			t.Errorf("read %+v, %v", res, err)
		}
		updated := make(chan string, 1)
		if _, err := c.Subscribe(t.Context(), read.URI, func(uri string) { updated <- uri }); err != nil {
			t.Fatal(err)
		}
		if got, err := mcp.Call[string](t.Context(), c, "delete_note", idIn{added.ID}); err != nil || got != "Deleted." {
			t.Errorf("got %q, %v", got, err)
		}
		if got := <-updated; got != read.URI {
			t.Errorf("updated %q, want %q", got, read.URI)
		}
		if _, err := c.ReadResource(t.Context(), read); err == nil {
			t.Error("the deleted note can be read")
		}
	})
}

func TestKeep(t *testing.T) {
	c := user(false).Connect(t, newMux(openTest(t), slog.New(slog.DiscardHandler)))
	added, err := mcp.Call[note](t.Context(), c, "add_note", addIn{"Diary", "Sunny."})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := mcp.Call[string](t.Context(), c, "delete_note", idIn{added.ID}); err != nil || got != "The user wants to keep it." {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := mcp.Call[string](t.Context(), c, "delete_note", idIn{added.ID + 1}); err != nil || got != "There is no such note." {
		t.Errorf("got %q, %v", got, err)
	}
}

// TestPages lists more notes than fit on a page.
func TestPages(t *testing.T) {
	notes := openTest(t)
	for i := range pageSize + 1 {
		if err := notes.add(t.Context(), &note{Title: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	listed := 0
	for r, err := range mcptest.Connect(t, newMux(notes, slog.New(slog.DiscardHandler))).Resources(t.Context(), nil) {
		if err != nil || r.Name != fmt.Sprint(listed) {
			t.Fatalf("resource %d: %+v, %v", listed, r, err)
		}
		listed++
	}
	if listed != pageSize+1 {
		t.Errorf("%d resources, want %d", listed, pageSize+1)
	}
}

// The path of the database has its meaning for the operating system, not for URIs.
func TestOddPath(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"notes#1.db", "notes#2.db", "100%25.db", "a b.db"} {
		notes, err := open(t.Context(), filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		defer notes.Close()
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}
