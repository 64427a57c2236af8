// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/appside"
	"github.com/go-psi/psi/internal/lru"
	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/refresh"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptrace"
)

// CacheOptions configure a [Cache]. Nil means the zero CacheOptions.
type CacheOptions struct {
	// MaxEntries is the maximum number of results kept. The least recently used makes
	// room. 0 means 1024.
	MaxEntries int
}

// A Cache keeps results of a client's requests for as long as the server allows
// (server/utilities/caching): discovery, lists and resources. They are kept per capabilities
// that the sender of the request has declared, and private ones per principal and its scopes;
// requests without a principal share one entry. Results without a TTL, and answers to requests
// that retry a question, are not kept. It is safe for concurrent use. It must be made by
// [NewCache].
//
// Use its Middleware on one [mcp.Conn] or several: each has results of its own, and all
// share MaxEntries. Subscribe to changes with [Cache.Changed], so that lists that have
// changed are requested again:
//
//	conn.Use(cache.Middleware)
//	conn.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, cache.Changed)
//
// Without a subscription, results stay until their TTL has passed. Resources need a
// subscription to each URI. Every subscription that is made through Middleware, such as that of
// a gateway's caller, drops what has changed before its receiver learns of it.
type Cache struct {
	mu      sync.Mutex
	entries *lru.Map[cacheKey, cacheEntry]
	servers int            // number of handlers that Middleware wrapped
	changes map[string]int // by method: number of invalidations
}

type cacheKey struct {
	server  int // number of the handler, see Cache.servers
	method  string
	about   string // cursor or URI
	private string // viewer, "" if public
	caps    string // see capabilitiesOf
	byApp   bool   // requested by a page, which sees other tools than the model
}

type cacheEntry struct {
	res     mcp.Result
	expires time.Time
}

// NewCache returns an empty cache. opts may be nil.
func NewCache(opts *CacheOptions) *Cache {
	most := 1024
	if opts != nil && opts.MaxEntries > 0 {
		most = opts.MaxEntries
	}
	return &Cache{entries: lru.New[cacheKey, cacheEntry](most), changes: map[string]int{}}
}

// mustBeMade panics if NewCache did not make the cache.
func (c *Cache) mustBeMade() {
	made.Check(c != nil && c.entries != nil, "middleware: a Cache", "NewCache")
}

// Middleware answers from the cache if it has a fresh result. It drops what the notifications
// of subscriptions make stale.
func (c *Cache) Middleware(next mcp.Handler) mcp.Handler {
	c.mustBeMade()
	c.mu.Lock()
	c.servers++
	server := c.servers
	c.mu.Unlock()
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == mcp.MethodListen {
			req.FilterNotifications(c.hear)
		}
		about, ok := cachedBy(req)
		if !ok {
			return next.ServeMCP(ctx, req)
		}
		key := cacheKey{server, req.Method, about, viewOf(ctx, req), capabilitiesOf(req), appside.Is(ctx)}
		kept, changes := c.get(key)
		if kept != nil && !refresh.Is(ctx) {
			if t := mcptrace.ClientTraceFromContext(ctx); t != nil && t.CacheHit != nil {
				t.CacheHit(mcptrace.CacheInfo{Kind: req.Method, Name: req.Name()})
			}
			return kept, nil
		}
		res, err := next.ServeMCP(context.WithValue(ctx, changesKey{}, changes), req)
		if mcp.CodeOf(err) == mcp.CodeInvalidParams && req.Method != mcp.MethodReadResource {
			c.drop(req.Method, func(k cacheKey) bool { return k.server == server }) // the cursor has expired, and so have the other pages
		}
		if err == nil {
			c.put(key, res, changes)
		}
		return res, err
	})
}

// changesKey is the context key of Cache.changes as it was when the request was made.
// [Singleflight] must not answer the request with a result from before that.
type changesKey struct{}

// Changed drops the results that a change makes stale: a list, or a resource and, if its URI
// ends with a slash, those below it. Pass it to [mcp.Conn.Listen], or call it in the function
// given there. The results of requests in flight are not kept, because they may be older than
// the change. If the Cache serves several connections, Changed applies to all of them.
func (c *Cache) Changed(change mcp.Change) {
	c.mustBeMade()
	all := func(cacheKey) bool { return true }
	switch change.Method {
	case mcp.NotificationToolsListChanged:
		c.drop(mcp.MethodListTools, all)
	case mcp.NotificationPromptsListChanged:
		c.drop(mcp.MethodListPrompts, all)
	case mcp.NotificationResourcesListChanged:
		c.drop(mcp.MethodListResources, all)
		c.drop(mcp.MethodListResourceTemplates, all)
	case mcp.NotificationResourceUpdated:
		isDirectory := strings.HasSuffix(change.URI, "/") // which stands for what is below it
		c.drop(mcp.MethodReadResource, func(k cacheKey) bool {
			return k.about == change.URI || isDirectory && strings.HasPrefix(k.about, change.URI)
		})
	}
}

// hear drops what a notification makes stale. It keeps all notifications.
func (c *Cache) hear(method string, params json.RawMessage) bool {
	if note, err := mcp.NewRequest(method, params); err == nil {
		c.Changed(mcp.Change{Method: method, URI: note.Name()})
	}
	return true
}

// cachedBy returns the part of a request that its cached result depends on, and whether
// results of its method may be cached.
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

// capabilitiesOf identifies the capabilities of the sender of a request: a gateway passes on what
// its callers declare, and a server may hide from some what is of no use to them.
func capabilitiesOf(req *mcp.Request) string {
	raw, err := strictjson.Marshal(req.ClientCapabilities())
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return string(sum[:])
}

// withHints returns a copy of a result and the cache hints in it, or nil if such results are not
// cached.
func withHints(res mcp.Result) (mcp.Result, *mcp.Cacheable) {
	switch r := res.(type) {
	case *mcp.DiscoverResult:
		c := *r
		return &c, &c.Cacheable
	case *mcp.ListToolsResult:
		c := *r
		return &c, &c.Cacheable
	case *mcp.ListPromptsResult:
		c := *r
		return &c, &c.Cacheable
	case *mcp.ListResourcesResult:
		c := *r
		return &c, &c.Cacheable
	case *mcp.ListResourceTemplatesResult:
		c := *r
		return &c, &c.Cacheable
	case *mcp.ReadResourceResult:
		c := *r
		return &c, &c.Cacheable
	}
	return nil, nil
}

// get returns a fresh result, which says for how long it still is, or nil; and the number of
// invalidations of the method so far.
func (c *Cache) get(key cacheKey) (res mcp.Result, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, private := range []string{"", key.private} {
		key.private = private
		e, ok := c.entries.Get(key)
		if rest := time.Until(e.expires); ok && rest > 0 {
			res, hints := withHints(e.res)
			*hints = mcp.CacheFor(rest, hints.CacheScope)
			return res, c.changes[key.method]
		}
		c.entries.Delete(key)
	}
	return nil, c.changes[key.method]
}

// put keeps a result, unless the method was invalidated since get.
func (c *Cache) put(key cacheKey, res mcp.Result, changes int) {
	_, hints := withHints(res)
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

// maxTTL bounds the TTL that a server can ask for.
const maxTTL = 24 * time.Hour

// drop drops results of a method.
func (c *Cache) drop(method string, which func(cacheKey) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes[method]++
	c.entries.DeleteFunc(func(k cacheKey) bool { return k.method == method && which(k) })
}
