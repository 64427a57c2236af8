// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "context"

// DefaultMuxOptions returns o with defaults for unset fields.
func DefaultMuxOptions(o *MuxOptions) MuxOptions { return o.withDefaults() }

// DefaultFileServerOptions returns o with defaults for unset fields.
func DefaultFileServerOptions(o *FileServerOptions) FileServerOptions { return o.withDefaults() }

// LimitPages makes the file server h list at most n files on a page, and returns h.
func LimitPages(h Handler, n int) Handler {
	h.(*fileServer).pageSize = n
	return h
}

// ListFiles returns the page of the file server h at cursor, below a template.
func ListFiles(ctx context.Context, h Handler, template string, cursor *string) (*ListResourcesResult, error) {
	return h.(*fileServer).list(ctx, template, &ListParams{Cursor: cursor})
}

// LimitQuestions sets how often and how much servers may ask about one call, and returns o.
func LimitQuestions(o *ClientOptions, rounds, questions int) *ClientOptions {
	o.maxRounds, o.maxQuestions = rounds, questions
	return o
}

// LimitLists sets how many pages of a list are read, and returns o.
func LimitLists(o *ClientOptions, pages int) *ClientOptions {
	o.maxPages = pages
	return o
}

// LimitState sets how large the state of a call may be, in bytes, and returns o.
func LimitState(o *MuxOptions, size int) *MuxOptions {
	o.maxState = size
	return o
}

// LimitSubscriptions sets how many resources a subscription, and how many subscriptions a
// caller, may have, and returns o.
func LimitSubscriptions(o *MuxOptions, resources, listeners int) *MuxOptions {
	o.maxSubscriptions, o.maxListeners = resources, listeners
	return o
}

// DefaultClientOptions returns o with defaults for unset fields.
func DefaultClientOptions(o *ClientOptions) ClientOptions { return NewClient("c", "v1", o).opts }

// DefaultReconnectOptions returns o with defaults for unset fields.
func DefaultReconnectOptions(o *UpstreamOptions) UpstreamOptions {
	return o.withDefaults(NewClient("c", "v1", nil))
}
