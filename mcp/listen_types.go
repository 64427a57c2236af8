// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

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
	Extra                 Extra    `json:",embed"`
}

// check returns an error if the filter names more resources than limit.
func (f *SubscriptionFilter) check(limit int) error {
	if n := len(f.ResourceSubscriptions); n > limit {
		return Errorf(CodeInvalidParams, "params.notifications.resourceSubscriptions has %d URIs; the limit is %d", n, limit)
	}
	return nil
}

// ListenResult is the result of subscriptions/listen, by which a server ends it.
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

// LogParams are the params of notifications/message.
type LogParams struct {
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
