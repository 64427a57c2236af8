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

// DefaultClientOptions returns o with defaults for unset fields.
func DefaultClientOptions(o *ClientOptions) ClientOptions { return NewClient("c", "v1", o).opts }

// DefaultReconnectOptions returns o with defaults for unset fields.
func DefaultReconnectOptions(o *UpstreamOptions) UpstreamOptions {
	return o.withDefaults(NewClient("c", "v1", nil))
}
