// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package host

import (
	"crypto/rand"
	"encoding/json"
	"sync"
)

// A view is a tool shown with its page.
type view struct {
	id        string // unguessable
	tool      string
	arguments json.RawMessage
}

// maxViews is the maximum number of open views. A view keeps the arguments of its tool; a user
// looks at a few.
const maxViews = 100

// views holds the open views. When there are too many, the oldest is closed.
type views struct {
	mu    sync.Mutex
	byID  map[string]*view
	order []string // oldest first
}

func (vs *views) open(tool string, arguments json.RawMessage) *view {
	v := &view{rand.Text(), tool, arguments}
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if vs.byID == nil {
		vs.byID = map[string]*view{}
	}
	if len(vs.order) >= maxViews {
		delete(vs.byID, vs.order[0])
		vs.order = append([]string{}, vs.order[1:]...)
	}
	vs.byID[v.id] = v
	vs.order = append(vs.order, v.id)
	return v
}

func (vs *views) find(id string) *view {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	return vs.byID[id]
}
