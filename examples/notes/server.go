// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/middleware"
)

// pageSize is the number of notes on a page of resources/list.
const pageSize = 100

// A server provides the tools and resources for the notes in a store.
type server struct {
	notes store
	mux   *mcp.Mux
}

func newMux(notes store, logger *slog.Logger) *mcp.Mux {
	mux := mcp.NewMux("notes", "v1.0.0", &mcp.MuxOptions{
		Instructions: "Notes of the user. Search before you add a note, so that none is written twice.",
		Logger:       logger,
	})
	mux.Use(middleware.Logger(logger))
	s := &server{notes, mux}
	mux.Tool("add_note", mcp.ToolFunc(s.add, &mcp.Tool{Description: "Write a note."}))
	mux.Tool("search_notes", mcp.ToolFunc(s.search, &mcp.Tool{
		Description: "Find notes by a part of their title or text.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: new(true)},
	}))
	mux.Tool("delete_note", mcp.ToolFunc(s.remove, &mcp.Tool{Description: "Delete a note, after asking the user."}))
	mux.Resource("notes://{id}", mcp.ResourceFunc(s.read, &mcp.Resource{
		Name: "note", Description: "One note.", MIMEType: "text/plain", List: s.list,
	}))
	return mux
}

type addIn struct {
	Title string `json:"title" jsonschema:"minLength=1,maxLength=100"`
	Text  string `json:"text" jsonschema:"maxLength=10000"`
}

func (s *server) add(ctx context.Context, in addIn) (note, error) {
	n := note{Title: in.Title, Text: in.Text}
	return n, s.notes.add(ctx, &n)
}

type searchIn struct {
	Words string `json:"words" jsonschema:"minLength=1"`
	Limit int    `json:"limit,omitzero" jsonschema:"minimum=1,maximum=100,default=10"`
}

type searchOut struct {
	Notes []note `json:"notes"`
}

func (s *server) search(ctx context.Context, in searchIn) (searchOut, error) {
	notes, err := s.notes.search(ctx, in.Words, in.Limit)
	return searchOut{notes}, err
}

type idIn struct {
	ID int64 `json:"id"`
}

// remove asks the user before it deletes. Until the user has answered, Elicit returns an
// error, which remove must return; it then runs again from the start.
func (s *server) remove(ctx context.Context, in idIn) (string, error) {
	n, err := s.notes.get(ctx, in.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return "There is no such note.", nil
	}
	if err != nil {
		return "", err
	}
	answer, err := mcp.Elicit[struct {
		Sure bool `json:"sure" jsonschema:"title=Delete it"`
	}](ctx, "sure", fmt.Sprintf("Delete the note %q?", n.Title))
	if err != nil {
		return "", err
	}
	if !answer.Sure {
		return "The user wants to keep it.", nil
	}
	if removed, err := s.notes.remove(ctx, in.ID); err != nil || !removed {
		return "It was gone already.", err
	}
	s.mux.ResourceUpdated(uri(in.ID)) // notify subscribers
	return "Deleted.", nil
}

// read serves notes://{id}. An error that wraps fs.ErrNotExist becomes "resource not found".
func (s *server) read(ctx context.Context, in idIn) (string, error) {
	n, err := s.notes.get(ctx, in.ID)
	return n.Title + "\n\n" + n.Text, err
}

// list serves resources/list, one page at a time. The cursor is the ID of the last note of
// the previous page. psi encrypts it, so it is one that list returned.
func (s *server) list(ctx context.Context, p *mcp.ListParams) (*mcp.ListResourcesResult, error) {
	var after int64
	if p.Cursor != nil {
		var err error
		if after, err = strconv.ParseInt(*p.Cursor, 10, 64); err != nil {
			return nil, mcp.Errorf(mcp.CodeInvalidParams, "the cursor is not valid")
		}
	}
	notes, err := s.notes.page(ctx, after, pageSize)
	if err != nil {
		return nil, err
	}
	res := &mcp.ListResourcesResult{}
	for _, n := range notes {
		res.Resources = append(res.Resources, &mcp.Resource{URI: uri(n.ID), Name: n.Title, MIMEType: "text/plain"})
	}
	if len(notes) == pageSize {
		next := strconv.FormatInt(notes[pageSize-1].ID, 10)
		res.NextCursor = &next
	}
	return res, nil
}

func uri(id int64) string { return "notes://" + strconv.FormatInt(id, 10) }
