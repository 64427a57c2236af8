// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"encoding/json"
	"maps"
	"slices"
)

// A Change is one thing that changed at a server: a list, identified by the method of
// its notification, or a resource, identified by its URI.
type Change struct {
	Method string
	URI    string // only for NotificationResourceUpdated
}

// params returns the params of the notification about the change. Legacy notifications
// have no meta.
func (c Change) params(meta Meta) any {
	switch {
	case c.Method == NotificationResourceUpdated:
		return &ResourceUpdatedParams{URI: c.URI, Meta: meta}
	case meta == nil:
		return nil
	}
	return map[string]Meta{"_meta": meta}
}

// parseChange returns the change that a notification announces, and false if it
// announces none.
func parseChange(method string, params json.RawMessage) (c Change, ok bool, err error) {
	c.Method = method
	if method != NotificationResourceUpdated {
		return c, listsNotifiedBy(method) != 0, nil
	}
	var p ResourceUpdatedParams
	err = unmarshal(params, &p)
	c.URI = p.URI
	return c, true, err
}

// changeKinds is a set of kinds of changes.
type changeKinds uint8

const (
	toolsChanged changeKinds = 1 << iota
	promptsChanged
	resourcesChanged
	mountsChanged // internal: a mux has other mounts, so its listeners must listen to others

	listsChanged = toolsChanged | promptsChanged | resourcesChanged
)

// changeTable describes the lists whose changes are announced, in the order in which
// their notifications are sent.
var changeTable = [...]listChange{
	{
		toolsChanged, "tool", []string{MethodListTools}, NotificationToolsListChanged,
		func(f *SubscriptionFilter) *bool { return &f.ToolsListChanged },
		func(c *ServerCapabilities) bool { return c.Tools != nil && c.Tools.ListChanged },
	},
	{
		promptsChanged, "prompt", []string{MethodListPrompts}, NotificationPromptsListChanged,
		func(f *SubscriptionFilter) *bool { return &f.PromptsListChanged },
		func(c *ServerCapabilities) bool { return c.Prompts != nil && c.Prompts.ListChanged },
	},
	{
		resourcesChanged, "resource", []string{MethodListResources, MethodListResourceTemplates}, NotificationResourcesListChanged,
		func(f *SubscriptionFilter) *bool { return &f.ResourcesListChanged },
		func(c *ServerCapabilities) bool { return c.Resources != nil && c.Resources.ListChanged },
	},
}

type listChange struct {
	kind         changeKinds
	entries      string   // what is in the list
	methods      []string // that return the list
	notification string
	wanted       func(*SubscriptionFilter) *bool
	announced    func(*ServerCapabilities) bool
}

func findChanges(match func(listChange) bool) (found changeKinds) {
	for _, list := range changeTable {
		if match(list) {
			found |= list.kind
		}
	}
	return found
}

// listsOfEntries returns the lists that have entries of a kind such as "tool".
func listsOfEntries(kind string) changeKinds {
	return findChanges(func(list listChange) bool { return list.entries == kind })
}

// listsReturnedBy returns the list that a method such as tools/list returns.
func listsReturnedBy(method string) changeKinds {
	return findChanges(func(list listChange) bool { return slices.Contains(list.methods, method) })
}

// listsNotifiedBy returns the list whose changes a notification announces.
func listsNotifiedBy(method string) changeKinds {
	return findChanges(func(list listChange) bool { return list.notification == method })
}

// lists returns the lists that the filter names.
func (f *SubscriptionFilter) lists() changeKinds {
	return findChanges(func(list listChange) bool { return *list.wanted(f) })
}

// setLists makes the filter name these lists and no others.
func (f *SubscriptionFilter) setLists(kinds changeKinds) {
	for _, list := range changeTable {
		*list.wanted(f) = kinds&list.kind != 0
	}
}

// announcedLists returns the lists whose changes the server announces.
func (c *ServerCapabilities) announcedLists() changeKinds {
	return findChanges(func(list listChange) bool { return list.announced(c) })
}

// changeSet is a set of changes. The zero changeSet is empty.
type changeSet struct {
	kinds changeKinds
	uris  map[string]struct{} // of the resources that were updated
}

// everythingIn returns all changes that a filter covers: they stand for changes that
// may have been missed.
func everythingIn(f *SubscriptionFilter) changeSet {
	s := changeSet{kinds: f.lists()}
	for _, uri := range f.ResourceSubscriptions {
		s.addURI(uri)
	}
	return s
}

func (s *changeSet) add(c Change) {
	if c.Method == NotificationResourceUpdated {
		s.addURI(c.URI)
		return
	}
	s.kinds |= listsNotifiedBy(c.Method)
}

func (s *changeSet) merge(other changeSet) {
	s.kinds |= other.kinds
	for uri := range other.uris {
		s.addURI(uri)
	}
}

func (s *changeSet) addURI(uri string) {
	if s.uris == nil {
		s.uris = map[string]struct{}{}
	}
	s.uris[uri] = struct{}{}
}

// changes returns the changes in the order in which they are announced: lists, then
// resources by URI.
func (s *changeSet) changes() []Change {
	changes := make([]Change, 0, len(changeTable)+len(s.uris))
	for _, list := range changeTable {
		if s.kinds&list.kind != 0 {
			changes = append(changes, Change{Method: list.notification})
		}
	}
	for _, uri := range slices.Sorted(maps.Keys(s.uris)) {
		changes = append(changes, Change{NotificationResourceUpdated, uri})
	}
	return changes
}
