// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "time"

// A Result is the outcome of a request: a pointer to one of the result structs
// of this package, or to any struct that embeds [ResultBase], which is how the
// results of custom methods are made. A Result that a handler has returned must
// not be changed any more, unless by middleware that knows it to be its own.
type Result interface{ base() *ResultBase }

// ResultBase holds the members that every result has.
type ResultBase struct {
	// ResultType is left empty by handlers. On the wire of the modern era an
	// empty one is "complete".
	ResultType string `json:"resultType,omitempty"`
	Meta       Meta   `json:"_meta,omitempty"`
	Extra      Extra  `json:",embed"`
}

func (b *ResultBase) base() *ResultBase { return b }

// The result types of the core protocol.
const (
	ResultComplete      = "complete"
	ResultInputRequired = "input_required"
)

// EmptyResult is a result without members of its own.
type EmptyResult struct{ ResultBase }

// Cacheable holds the hints that tell a client for how long, and for whom, a
// result may be kept (server/utilities/caching).
type Cacheable struct {
	// TTLMs is for how many milliseconds the result stays fresh. Nil means
	// that nothing was said, which is sent as 0: do not keep it.
	TTLMs *int64 `json:"ttlMs,omitzero"`
	// CacheScope is "public" or "private". Empty is sent as "private".
	CacheScope string `json:"cacheScope,omitempty"`
}

// The cache scopes.
const (
	CachePublic  = "public"  // the same for every caller; anyone may keep it
	CachePrivate = "private" // depends on the caller; nobody else may see it
)

// CacheFor returns hints for ttl, rounded down to milliseconds.
func CacheFor(ttl time.Duration, scope string) Cacheable {
	ms := max(ttl.Milliseconds(), 0)
	return Cacheable{TTLMs: &ms, CacheScope: scope}
}

func (c *Cacheable) hints() *Cacheable { return c }

// cacheable is a result that carries cache hints.
type cacheable interface {
	Result
	hints() *Cacheable
}

// Page holds the cursor of a list result.
type Page struct {
	// NextCursor names the next page; nil means that this is the last one. The
	// empty string is a cursor.
	NextCursor *string `json:"nextCursor,omitzero"`
}
