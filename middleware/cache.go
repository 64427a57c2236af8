// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/lru"
	"github.com/go-psi/psi/internal/made"
	"github.com/go-psi/psi/internal/mark"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/internal/uritemplate"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptrace"
)

// CacheOptions configure a [Cache]. Nil means the zero CacheOptions.
type CacheOptions struct {
	// MaxEntries is the maximum number of cached results. 0 means 1024.
	MaxEntries int
	// MaxBytes is the approximate maximum of the memory, in bytes, that cached results take. A
	// result that takes a large part of it is not cached. 0 means 64 MiB.
	MaxBytes int
}

// A Cache caches results of a client's requests for as long as the server allows
// (server/utilities/caching): discovery, lists and resources. Results are cached separately
// for each set of capabilities declared by the sender of the request, and private results
// also for each principal and its scopes; requests without a principal share one entry.
// Results without a TTL and results of requests that answer a question are not cached. A
// Cache must be created by [NewCache] and is safe for concurrent use.
//
// Beyond MaxEntries or MaxBytes, the caller whose requests filled most of the cache loses its
// least recently used result: a caller that requests much evicts its own results. Requests
// without a principal count as one caller.
//
// Use its Middleware on one or more connections ([mcp.Conn]). Each connection has its own
// results, and all share the limits. Subscribe to changes with [Cache.Changed], so that changed
// lists are requested again:
//
//	conn.Use(cache.Middleware)
//	conn.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}, cache.Changed)
//
// Without a subscription, results stay cached until their TTL expires. Resources need a
// subscription to each URI. Every subscription made through Middleware, such as one by a
// caller of a gateway, drops stale results before its receiver is notified of the change.
type Cache struct {
	most, mostBytes int

	mu      sync.Mutex
	entries *lru.Map[cacheKey, cacheEntry]
	bytes   int            // memory of all entries
	shares  map[string]int // memory of the entries of each viewer; see cacheEntry.owner
	servers int            // number of handlers wrapped by Middleware
	changes map[string]int // number of invalidations, by method
}

type cacheKey struct {
	server  int // number of the handler; see Cache.servers
	method  string
	about   string // cursor, or URI as spelled in the request: the server may distinguish spellings
	private string // viewer; "" if public
	caps    string // see capabilitiesOf
	byApp   bool   // requested by a page, which sees different tools than the model
}

type cacheEntry struct {
	res     mcp.Result
	expires time.Time
	owner   string // viewer whose request filled the entry
	bytes   int
}

// NewCache returns an empty cache. opts may be nil.
func NewCache(opts *CacheOptions) *Cache {
	c := &Cache{
		most: 1024, mostBytes: 64 << 20,
		entries: lru.New[cacheKey, cacheEntry](math.MaxInt), // evict applies the limits
		shares:  map[string]int{}, changes: map[string]int{},
	}
	if opts != nil && opts.MaxEntries > 0 {
		c.most = opts.MaxEntries
	}
	if opts != nil && opts.MaxBytes > 0 {
		c.mostBytes = opts.MaxBytes
	}
	return c
}

// mustBeMade panics unless the Cache was created by NewCache.
func (c *Cache) mustBeMade() {
	made.Check(c != nil && c.entries != nil, "middleware: a Cache", "NewCache")
}

// Middleware wraps next so that requests are answered from the cache if it has a fresh
// result. It drops results that the notifications of subscriptions make stale.
func (c *Cache) Middleware(next mcp.Handler) mcp.Handler {
	c.mustBeMade()
	c.mu.Lock()
	c.servers++
	server := c.servers
	c.mu.Unlock()
	return mcp.HandlerFunc(func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		if req.Method == mcp.MethodListen {
			req.FilterNotifications(c.invalidate)
		}
		about, ok := cachedBy(req)
		if !ok {
			return next.ServeMCP(ctx, req)
		}
		key := cacheKey{server, req.Method, about, viewOf(ctx, req), capabilitiesOf(req), mark.IsApp(ctx)}
		kept, changes := c.get(key)
		if kept != nil && !mark.IsRefresh(ctx) {
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

// changesKey is the context key of the value of Cache.changes when the request was made.
// [Singleflight] must not answer the request with an older result.
type changesKey struct{}

// Changed drops the results that a change makes stale: a list, or a resource and, if its
// URI ends with a slash, the resources below it. Pass it to [mcp.Conn.Listen], or call it
// from the function passed to Listen. The results of requests in flight are not cached,
// because they may be older than the change. If the Cache serves several connections,
// Changed applies to all of them.
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
		changed := uritemplate.Normal(change.URI)
		isDirectory := strings.HasSuffix(changed, "/") // it stands for all resources below it
		c.drop(mcp.MethodReadResource, func(k cacheKey) bool {
			uri := uritemplate.Normal(k.about)
			return uri == changed || isDirectory && strings.HasPrefix(uri, changed)
		})
	}
}

// invalidate drops the results that a notification makes stale. It returns true, so that every
// notification is delivered.
func (c *Cache) invalidate(method string, params json.RawMessage) bool {
	if note, err := mcp.NewRequest(method, params); err == nil {
		c.Changed(mcp.Change{Method: method, URI: note.Name()})
	}
	return true
}

// cachedBy returns the part of a request that its cached result depends on, and reports
// whether results of its method may be cached.
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

// capabilitiesOf returns a hash of the capabilities of the sender of a request. They differ
// between requests because a gateway forwards the capabilities of its callers, and a server
// may hide items that a client cannot use.
func capabilitiesOf(req *mcp.Request) string {
	raw, err := strictjson.Marshal(req.ClientCapabilities())
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return string(sum[:])
}

// withHints returns a copy of a result and a pointer to the cache hints in the copy, or nil
// if such results are not cached.
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

// get returns a fresh result, or nil, and the number of invalidations of the method so far.
// The hints of the result contain the remaining time for which it is fresh.
func (c *Cache) get(key cacheKey) (res mcp.Result, changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, private := range []string{"", key.private} {
		key.private = private
		e, ok := c.entries.Get(key)
		if !ok {
			continue
		}
		if rest := time.Until(e.expires); rest > 0 {
			res, hints := withHints(e.res)
			*hints = mcp.CacheFor(rest, hints.CacheScope)
			return res, c.changes[key.method]
		}
		c.removeLocked(key, e)
	}
	return nil, c.changes[key.method]
}

// put caches a result, unless the method was invalidated since get.
func (c *Cache) put(key cacheKey, res mcp.Result, changes int) {
	_, hints := withHints(res)
	if hints == nil || hints.TTLMs == nil || *hints.TTLMs <= 0 {
		return
	}
	e := cacheEntry{res: res, owner: key.private, bytes: sizeOf(key) + sizeOf(res)}
	if e.bytes > c.mostBytes/16 {
		return
	}
	if hints.CacheScope == mcp.CachePublic {
		key.private = ""
	}
	ttl := time.Duration(min(*hints.TTLMs, maxTTL.Milliseconds())) * time.Millisecond
	e.expires = time.Now().Add(ttl)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes[key.method] != changes {
		return
	}
	if old, ok := c.entries.Get(key); ok {
		c.removeLocked(key, old)
	}
	c.entries.Put(key, e)
	c.bytes += e.bytes
	c.shares[e.owner] += e.bytes
	for c.entries.Len() > c.most || c.bytes > c.mostBytes {
		c.evictLocked()
	}
}

// evictLocked removes the least recently used entry of the viewer with the largest share. The
// search takes time proportional to the number of entries, which MaxEntries bounds.
func (c *Cache) evictLocked() {
	var largest string
	for owner, share := range c.shares {
		if share > c.shares[largest] {
			largest = owner
		}
	}
	key, e, ok := c.entries.Oldest(func(e cacheEntry) bool { return e.owner == largest })
	if ok {
		c.removeLocked(key, e)
	}
}

func (c *Cache) removeLocked(key cacheKey, e cacheEntry) {
	c.entries.Delete(key)
	c.bytes -= e.bytes
	if c.shares[e.owner] -= e.bytes; c.shares[e.owner] == 0 {
		delete(c.shares, e.owner)
	}
}

// maxTTL bounds the TTL of a result, whatever the server requests.
const maxTTL = 24 * time.Hour

// drop removes the results of a method for which the function returns true.
func (c *Cache) drop(method string, which func(cacheKey) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes[method]++
	for k, e := range c.entries.All() {
		if k.method == method && which(k) {
			c.removeLocked(k, e)
		}
	}
}
