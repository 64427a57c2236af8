// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-psi/psi/mcp"
)

// maxNotes is the maximum number of notes of a user.
const maxNotes = 1000

// notebooks holds the notes of all users. Their owner is always the principal, never an
// argument.
type notebooks struct {
	mu     sync.Mutex
	byUser map[string][]string
}

type note struct {
	Text string `json:"text" jsonschema:"minLength=1,maxLength=1000"`
}

type notesOut struct {
	Notes []string `json:"notes"`
}

func (n *notebooks) list(ctx context.Context, _ struct{}) (notesOut, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return notesOut{append([]string{}, n.byUser[mcp.PrincipalFromContext(ctx).Subject]...)}, nil
}

func (n *notebooks) add(ctx context.Context, in note) (notesOut, error) {
	user := mcp.PrincipalFromContext(ctx).Subject
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.byUser[user]) >= maxNotes {
		return notesOut{}, errors.New("the notebook is full")
	}
	n.byUser[user] = append(n.byUser[user], in.Text)
	return notesOut{slices.Clone(n.byUser[user])}, nil
}
