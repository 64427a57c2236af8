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
// Its Middleware goes on a [mcp.Conn]; [Cache.Changed] belongs into the client's
// functions for changes, so that what has changed is asked for again.
type Cache struct {
	mu      sync.Mutex
	entries *lru.Map[cacheKey, cacheEntry]
}

type cacheKey struct {
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
	return &Cache{entries: lru.New[cacheKey, cacheEntry](most)}
}

// Middleware serves from the cache what is fresh there.
func (c *Cache) Middleware(next mcp.Handler) mcp.Handler {
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		about, ok := cachedBy(req)
		if !ok {
			return next.ServeMCP(ctx, req)
		}
		owner := ownerOf(ctx, req)
		if res := c.get(req.Method, about, owner); res != nil {
			return res, nil
		}
		res, err := next.ServeMCP(ctx, req)
		if mcp.CodeOf(err) == mcp.CodeInvalidParams && req.Method != mcp.MethodReadResource {
			c.drop(func(k cacheKey) bool { return k.method == req.Method }) // the cursor is no good: neither are the pages
		}
		if err == nil {
			c.put(req.Method, about, owner, res)
		}
		return res, err
	})
}

// Changed forgets what a notification of the server's says has changed: a list, by
// the notification's method, or one resource, by its URI.
func (c *Cache) Changed(notification, uri string) {
	c.drop(func(k cacheKey) bool {
		switch notification {
		case mcp.NotificationToolsListChanged:
			return k.method == mcp.MethodListTools
		case mcp.NotificationPromptsListChanged:
			return k.method == mcp.MethodListPrompts
		case mcp.NotificationResourcesListChanged:
			return k.method == mcp.MethodListResources || k.method == mcp.MethodListResourceTemplates
		case mcp.NotificationResourceUpdated:
			return k.method == mcp.MethodReadResource && k.about == uri
		}
		return false
	})
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

func (c *Cache) get(method, about, owner string) mcp.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, private := range []string{"", owner} {
		key := cacheKey{method, about, private}
		e, ok := c.entries.Get(key)
		if ok && time.Now().Before(e.expires) {
			return e.res
		}
		c.entries.Delete(key)
	}
	return nil
}

func (c *Cache) put(method, about, owner string, res mcp.Result) {
	hints := hintsOf(res)
	if hints == nil || hints.TTLMs == nil || *hints.TTLMs <= 0 {
		return
	}
	key := cacheKey{method, about, owner}
	if hints.CacheScope == mcp.CachePublic {
		key.private = ""
	}
	ttl := time.Duration(min(*hints.TTLMs, maxTTL.Milliseconds())) * time.Millisecond
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Put(key, cacheEntry{res, time.Now().Add(ttl)})
}

// maxTTL keeps a server's mistake from lasting.
const maxTTL = 24 * time.Hour

func (c *Cache) drop(which func(cacheKey) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.DeleteFunc(which)
}
