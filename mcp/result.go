// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "time"

// A Result is the result of a request: a pointer to one of the result structs of this
// package, or, for custom methods, to any struct that embeds [ResultBase]. A Result must
// not be changed after a handler has returned it, because it may be shared.
type Result interface{ base() *ResultBase }

// ResultBase holds the members that every result has.
type ResultBase struct {
	// ResultType is left empty by handlers; it is then sent as "complete".
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

// Cacheable holds cache hints: how long, and for which callers, a client may keep a result
// (server/utilities/caching).
type Cacheable struct {
	// TTLMs is the time in milliseconds that the result stays fresh. Nil means unspecified,
	// and is sent as 0: do not keep it. More than 2^53-1 is sent as that.
	TTLMs *int64 `json:"ttlMs,omitzero"`
	// CacheScope is "public" or "private". Empty is sent as "private".
	CacheScope string `json:"cacheScope,omitempty"`
}

// The cache scopes.
const (
	CachePublic  = "public"  // the same for every caller; shared caches may keep it
	CachePrivate = "private" // depends on the caller; must not be shared with others
)

// CacheFor returns cache hints with ttl, rounded down to milliseconds.
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
	// NextCursor is the cursor of the next page; nil means that this is the last page. The
	// empty string is a cursor.
	NextCursor *string `json:"nextCursor,omitzero"`
}
