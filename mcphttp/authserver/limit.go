// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"net/http"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/lru"
	"github.com/go-psi/psi/internal/network"
)

// An address may spend this much in a minute: nine logins of users, since an office may be
// behind one address.
const (
	budget      = 3000
	costRequest = 10  // a registration, a token, a page
	costFetch   = 50  // a metadata document, which makes this server send a request
	costLogin   = 300 // a value of up to 16 KiB is stored for ten minutes

	maxAddresses = 4096
	maxFetches   = 16 // at the same time
)

// A limiter counts what addresses spend. It keeps the addresses seen last, about 100 bytes
// each; all others begin anew.
type limiter struct {
	fetches chan struct{} // holds one element for each fetch

	mu    sync.Mutex
	spent *lru.Map[string, expense]
}

type expense struct {
	since time.Time
	cost  int
}

func newLimiter() *limiter {
	return &limiter{fetches: make(chan struct{}, maxFetches), spent: lru.New[string, expense](maxAddresses)}
}

// allow reports whether the address of a request may spend cost, and counts it.
func (l *limiter) allow(r *http.Request, cost int) bool {
	address, now := network.CallerPrefix(r.RemoteAddr), time.Now()
	if len(address) > 64 {
		address = address[:64]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.spent.Get(address)
	if !ok || now.Sub(e.since) >= time.Minute {
		e = expense{since: now}
	}
	if e.cost+cost > budget {
		return false
	}
	e.cost += cost
	l.spent.Put(address, e)
	return true
}
