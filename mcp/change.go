// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/uritemplate"
)

// A Change is a change at a server: of a list, identified by the method of its
// notification, or of a resource, identified by its URI.
type Change struct {
	Method string
	URI    string // set only for NotificationResourceUpdated
}

// changeLists describes the lists whose changes are announced.
var changeLists = [...]struct {
	change    Change
	entries   string // the kind of entries, such as "tool"
	wanted    func(*SubscriptionFilter) *bool
	announced func(*ServerCapabilities) bool
}{
	{
		Change{Method: NotificationToolsListChanged}, "tool",
		func(f *SubscriptionFilter) *bool { return &f.ToolsListChanged },
		func(c *ServerCapabilities) bool { return c.Tools != nil && c.Tools.ListChanged },
	},
	{
		Change{Method: NotificationPromptsListChanged}, "prompt",
		func(f *SubscriptionFilter) *bool { return &f.PromptsListChanged },
		func(c *ServerCapabilities) bool { return c.Prompts != nil && c.Prompts.ListChanged },
	},
	{
		Change{Method: NotificationResourcesListChanged}, "resource",
		func(f *SubscriptionFilter) *bool { return &f.ResourcesListChanged },
		func(c *ServerCapabilities) bool { return c.Resources != nil && c.Resources.ListChanged },
	},
}

// changeOfEntries returns the change of the list that holds entries of a kind such as
// "tool". It is zero if no list holds them.
func changeOfEntries(kind string) (c Change) {
	for _, list := range changeLists {
		if list.entries == kind {
			c = list.change
		}
	}
	return c
}

// announcedLists returns the lists of a filter whose changes the server announces.
func (c *ServerCapabilities) announcedLists(f SubscriptionFilter) (announced SubscriptionFilter) {
	for _, list := range changeLists {
		*list.wanted(&announced) = *list.wanted(&f) && list.announced(c)
	}
	return announced
}

// parseChange returns the change that a notification announces. ok is false if it announces
// none.
func parseChange(method string, params json.RawMessage) (c Change, ok bool) {
	if method == NotificationResourceUpdated {
		var p ResourceUpdatedParams
		err := unmarshal(params, &p)
		return Change{method, p.URI}, err == nil
	}
	for _, list := range changeLists {
		ok = ok || list.change.Method == method
	}
	return Change{Method: method}, ok
}

// A changeNotifier is a notifier that passes the notifications of a subscription to
// functions.
type changeNotifier struct {
	acknowledged func(ctx context.Context, accepted SubscriptionFilter)
	changed      func(ctx context.Context, c Change) error
	// other is called for notifications of extensions; nil drops them.
	other func(ctx context.Context, method string, params json.RawMessage) error
}

// parseAcknowledgement returns what a server has accepted, which is kept for as long as the
// subscription is open. An acknowledgement that is unreadable, or larger than any filter that
// was requested, accepts nothing.
func parseAcknowledgement(params json.RawMessage) *SubscriptionFilter {
	var p AcknowledgedParams
	if len(params) > maxFilter+maxListenMeta || unmarshal(params, &p) != nil {
		return new(SubscriptionFilter)
	}
	return &p.Notifications
}

// Notify implements [notifier].
func (n *changeNotifier) Notify(ctx context.Context, method string, params json.RawMessage) error {
	if method == NotificationAcknowledged {
		n.acknowledged(ctx, *parseAcknowledgement(params))
		return nil
	}
	if c, ok := parseChange(method, params); ok {
		return n.changed(ctx, c)
	}
	if n.other != nil {
		return n.other(ctx, method, params)
	}
	return nil
}

// A changeSet is a set of changes in the order in which they are sent: lists, tools first,
// then resources by URI.
type changeSet []Change

func compareChanges(a, b Change) int {
	return cmp.Or(strings.Compare(a.URI, b.URI), strings.Compare(b.Method, a.Method))
}

// everythingIn returns all changes that a filter covers. It is used if changes may have
// been missed.
func everythingIn(f *SubscriptionFilter) changeSet {
	var s changeSet
	for _, list := range changeLists {
		if *list.wanted(f) {
			s = append(s, list.change)
		}
	}
	for _, uri := range f.ResourceSubscriptions {
		s = append(s, Change{NotificationResourceUpdated, uri})
	}
	slices.SortFunc(s, compareChanges)
	return slices.Compact(s)
}

func (s *changeSet) add(c Change) {
	if i, found := slices.BinarySearchFunc(*s, c, compareChanges); !found {
		*s = slices.Insert(*s, i, c)
	}
}

func (s changeSet) has(c Change) bool {
	_, found := slices.BinarySearchFunc(s, c, compareChanges)
	return found
}

// ListenParams are the params of subscriptions/listen.
type ListenParams struct {
	Notifications SubscriptionFilter `json:"notifications"`
	Meta          Meta               `json:"_meta,omitempty"`
}

// A SubscriptionFilter selects the changes that a client is notified of.
type SubscriptionFilter struct {
	ToolsListChanged      bool     `json:"toolsListChanged,omitzero"`
	PromptsListChanged    bool     `json:"promptsListChanged,omitzero"`
	ResourcesListChanged  bool     `json:"resourcesListChanged,omitzero"`
	ResourceSubscriptions []string `json:"resourceSubscriptions,omitempty"`
	Extra                 Extra    `json:",inline,embed"`
}

// check returns an error if the filter names more resources than limit, or if their URIs are
// too long. All work for a subscription, and what is kept for it, depends on these bounds.
func (f *SubscriptionFilter) check(limit int) error {
	const member = "params.notifications.resourceSubscriptions"
	if n := len(f.ResourceSubscriptions); n > limit {
		return Errorf(CodeInvalidParams, member+" has %d URIs; the limit is %d", n, limit)
	}
	size := 0
	for i, uri := range f.ResourceSubscriptions {
		if len(uri) > uritemplate.MaxURI {
			return Errorf(CodeInvalidParams, member+"[%d] has %d bytes; a URI has at most %d", i, len(uri), uritemplate.MaxURI)
		}
		size += len(uri)
	}
	if size > maxFilter {
		return Errorf(CodeInvalidParams, member+" has %d bytes; the limit is %d: subscribe to fewer resources, or to their directory", size, maxFilter)
	}
	return nil
}

// ListenResult is the result of subscriptions/listen. A server sends it to end the
// subscription.
type ListenResult struct{ ResultBase }

// AcknowledgedParams are the params of notifications/subscriptions/acknowledged: the
// part of the filter that the server accepts.
type AcknowledgedParams struct {
	Notifications SubscriptionFilter `json:"notifications"`
	Meta          Meta               `json:"_meta,omitempty"`
}

// ResourceUpdatedParams are the params of notifications/resources/updated.
type ResourceUpdatedParams struct {
	URI  string `json:"uri"`
	Meta Meta   `json:"_meta,omitempty"`
}

// ProgressParams are the params of notifications/progress.
type ProgressParams struct {
	ProgressToken ID       `json:"progressToken"`
	Progress      float64  `json:"progress"`
	Total         *float64 `json:"total,omitzero"`
	Message       string   `json:"message,omitempty"`
	Meta          Meta     `json:"_meta,omitempty"`
}

// LoggingMessageParams are the params of notifications/message.
type LoggingMessageParams struct {
	Level  LoggingLevel `json:"level"`
	Logger string       `json:"logger,omitempty"`
	Data   any          `json:"data"`
	Meta   Meta         `json:"_meta,omitempty"`
}

// CancelledParams are the params of notifications/cancelled.
type CancelledParams struct {
	RequestID ID     `json:"requestId"`
	Reason    string `json:"reason,omitempty"`
	Meta      Meta   `json:"_meta,omitempty"`
}
