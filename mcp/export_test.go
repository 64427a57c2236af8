// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

// DefaultMuxOptions returns options with their defaults.
func DefaultMuxOptions(o *MuxOptions) MuxOptions { return o.withDefaults() }

// DefaultFileServerOptions returns options with their defaults.
func DefaultFileServerOptions(o *FileServerOptions) FileServerOptions { return o.withDefaults() }

// DefaultClientOptions returns options with their defaults.
func DefaultClientOptions(o *ClientOptions) ClientOptions { return NewClient("c", "v1", o).opts }

// DefaultReconnectOptions returns options with their defaults.
func DefaultReconnectOptions(o *ReconnectOptions) ReconnectOptions {
	return o.withDefaults(NewClient("c", "v1", nil))
}
