// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/lru"
	"github.com/go-psi/psi/mcp"
)

// CacheOptions configure a [Cache]. Nil means the zero CacheOptions.
type CacheOptions struct {
	// MaxEntries is how many results are kept at most; the one used longest ago
	// makes room. 0 means 1024.
	MaxEntries int
}

// A Cache keeps the results of a client's requests for as long as the server allows
// (server/utilities/caching): discovery, lists and resources, by what was asked.
// What is private is kept for the principal it was asked for; requests without one
// are one principal. Nothing is kept that the server gave no time to, and no answer
// to a question's retry. It is safe for concurrent use.
//
// Its Middleware goes on a [mcp.Conn], or on several: each has results of its own, and
// all share the bound. [Cache.Changed] belongs into the client's functions for changes,
// so that what has changed is asked for again.
type Cache struct {
	mu      sync.Mutex
	entries *lru.Map[cacheKey, cacheEntry]
	servers int            // how many handlers the Middleware was put around
	changes map[string]int // by method, how often its results became invalid
}

type cacheKey struct {
	server  int // whose results they are
	method  string
	about   string // the cursor or the URI
	private string // whose, "" if it is public
}

type cacheEntry struct {
	res     mcp.Result
	expires time.Time
}

// NewCache makes an empty cache; opts may be nil.
func NewCache(opts *CacheOptions) *Cache {
	most := 1024
	if opts != nil && opts.MaxEntries > 0 {
		most = opts.MaxEntries
	}
	return &Cache{entries: lru.New[cacheKey, cacheEntry](most), changes: map[string]int{}}
}

// Middleware serves from the cache what is fresh there.
func (c *Cache) Middleware(next mcp.Handler) mcp.Handler {
	c.mu.Lock()
	c.servers++
	server := c.servers
	c.mu.Unlock()
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		about, ok := cachedBy(req)
		if !ok {
			return next.ServeMCP(ctx, req)
		}
		key := cacheKey{server, req.Method, about, ownerOf(ctx, req)}
		kept, changes := c.get(key)
		if kept != nil {
			return kept, nil
		}
		res, err := next.ServeMCP(context.WithValue(ctx, changesKey{}, changes), req)
		if mcp.CodeOf(err) == mcp.CodeInvalidParams && req.Method != mcp.MethodReadResource {
			c.drop(req.Method, func(k cacheKey) bool { return k.server == server }) // the cursor is no good: neither are the pages
		}
		if err == nil {
			c.put(key, res, changes)
		}
		return res, err
	})
}

// changesKey finds, in the context of a request, how often its results had become invalid
// when it was made: [Singleflight] must not answer it with what was asked before that.
type changesKey struct{}

// Changed forgets what a notification of the server's says has changed: a list, by
// the notification's method, or one resource, by its URI. Results that are on their way
// are not kept, since they may be older than the change. A Cache of several connections
// forgets it for all of them.
func (c *Cache) Changed(notification, uri string) {
	all := func(cacheKey) bool { return true }
	switch notification {
	case mcp.NotificationToolsListChanged:
		c.drop(mcp.MethodListTools, all)
	case mcp.NotificationPromptsListChanged:
		c.drop(mcp.MethodListPrompts, all)
	case mcp.NotificationResourcesListChanged:
		c.drop(mcp.MethodListResources, all)
		c.drop(mcp.MethodListResourceTemplates, all)
	case mcp.NotificationResourceUpdated:
		c.drop(mcp.MethodReadResource, func(k cacheKey) bool { return k.about == uri })
	}
}

// cachedBy is what tells a request from others of its method, if its results may be
// kept at all.
func cachedBy(req *mcp.Request) (about string, ok bool) {
	switch req.Method {
	case mcp.MethodDiscover:
		return "", true
	case mcp.MethodListTools, mcp.MethodListPrompts, mcp.MethodListResources, mcp.MethodListResourceTemplates:
		var p mcp.ListParams
		if req.Decode(&p) != nil {
			return "", false
		}
		if p.Cursor == nil {
			return "", true
		}
		return "=" + *p.Cursor, true
	case mcp.MethodReadResource:
		var p mcp.ReadResourceParams
		err := req.Decode(&p)
		return p.URI, err == nil && p.InputResponses == nil && p.RequestState == nil
	}
	return "", false
}

// hintsOf are the cache hints of a result, nil if it is none that is kept.
func hintsOf(res mcp.Result) *mcp.Cacheable {
	switch r := res.(type) {
	case *mcp.DiscoverResult:
		return &r.Cacheable
	case *mcp.ListToolsResult:
		return &r.Cacheable
	case *mcp.ListPromptsResult:
		return &r.Cacheable
	case *mcp.ListResourcesResult:
		return &r.Cacheable
	case *mcp.ListResourceTemplatesResult:
		return &r.Cacheable
	case *mcp.ReadResourceResult:
		return &r.Cacheable
	}
	return nil
}

// get returns a result that is kept, or nil, and how often those of its method became
// invalid so far.
func (c *Cache) get(key cacheKey) (res mcp.Result, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, private := range []string{"", key.private} {
		key.private = private
		e, ok := c.entries.Get(key)
		if ok && time.Now().Before(e.expires) {
			return e.res, 0
		}
		c.entries.Delete(key)
	}
	return nil, c.changes[key.method]
}

// put keeps a result, unless it may have become invalid since get.
func (c *Cache) put(key cacheKey, res mcp.Result, changes int) {
	hints := hintsOf(res)
	if hints == nil || hints.TTLMs == nil || *hints.TTLMs <= 0 {
		return
	}
	if hints.CacheScope == mcp.CachePublic {
		key.private = ""
	}
	ttl := time.Duration(min(*hints.TTLMs, maxTTL.Milliseconds())) * time.Millisecond
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes[key.method] == changes {
		c.entries.Put(key, cacheEntry{res, time.Now().Add(ttl)})
	}
}

// maxTTL keeps a server's mistake from lasting.
const maxTTL = 24 * time.Hour

// drop forgets results of a method.
func (c *Cache) drop(method string, which func(cacheKey) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes[method]++
	c.entries.DeleteFunc(func(k cacheKey) bool { return k.method == method && which(k) })
}
