// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/lru"
	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/internal/printable"
)

// An address may spend this much in a minute: nine logins of users, since an office may be
// behind one address.
const (
	budget      = 3000
	costRequest = 10  // a registration, a token, a page
	costFetch   = 50  // a metadata document, which makes this server send a request
	costLogin   = 300 // a value of up to 16 KiB is stored for ten minutes

	maxAddresses = 4096
	maxFetches   = 64 // at the same time; more than one address may begin in a minute
)

// A limiter counts what addresses spend. It keeps the addresses seen last, about 100 bytes
// each; all others begin anew.
type limiter struct {
	fetches chan struct{} // holds one element for each fetch
	logger  *slog.Logger

	mu    sync.Mutex
	spent *lru.Map[string, expense]
}

type expense struct {
	since  time.Time
	cost   int
	logged bool // that it was spent
}

func newLimiter(logger *slog.Logger) *limiter {
	return &limiter{fetches: make(chan struct{}, maxFetches), logger: logger, spent: lru.New[string, expense](maxAddresses)}
}

// allow reports whether the address of a request may spend cost, and counts it. It logs the first
// time in a minute that an address may not.
func (l *limiter) allow(r *http.Request, cost int) bool {
	address, now := network.CallerPrefix(r.RemoteAddr), time.Now()
	if len(address) > 64 {
		address = address[:64]
	}
	allowed, first := l.count(address, now, cost)
	if first {
		l.logger.WarnContext(r.Context(), "authserver: an address has made too many requests in a minute; if it is that of a proxy, set RemoteAddr to the client's", slog.String("address", printable.Line(address)))
	}
	return allowed
}

// count counts what an address spends. first reports whether it is the first time in a minute that
// it may not.
func (l *limiter) count(address string, now time.Time, cost int) (allowed, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e, ok := l.spent.Get(address)
	if !ok || now.Sub(e.since) >= time.Minute {
		e = expense{since: now}
	}
	if allowed = e.cost+cost <= budget; allowed {
		e.cost += cost
	} else {
		first, e.logged = !e.logged, true
	}
	l.spent.Put(address, e)
	return allowed, first
}
