// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// A store cannot be searched, so the working tasks of all processes are listed in it: those
// that somebody must run. The list is divided by the first characters of the IDs, so that
// processes seldom change the same part at once. A task is listed before its record says
// that it is working, and taken off after the record says otherwise.

// shards is the number of parts of the list.
const shards = 32

func shardOf(id string) string {
	return fmt.Sprint((int(id[0])*31 + int(id[1])) % shards)
}

// An expiring set holds IDs and when they may be forgotten, in Unix seconds.
type expiringSet map[string]int64

// list adds a working task to the list. It fails if there are too many.
func (m *Manager) list(ctx context.Context, id string, rest time.Duration) error {
	return m.updateSet(ctx, m.key("working", shardOf(id)), rest, func(s expiringSet) error {
		if _, known := s[id]; !known && len(s) >= max(m.opts.MaxWorking/shards, 1) {
			return mcp.NewRateLimitedError(m.opts.PollInterval, "too many tasks are working; try again later")
		}
		s[id] = time.Now().Add(rest).Unix()
		return nil
	})
}

// unlist takes a task that is not working off the list.
func (m *Manager) unlist(ctx context.Context, id string) error {
	return m.updateSet(ctx, m.key("working", shardOf(id)), time.Minute, func(s expiringSet) error {
		delete(s, id)
		return nil
	})
}

// listed returns the working tasks of one shard.
func (m *Manager) listed(ctx context.Context, shard int) (expiringSet, error) {
	raw, _, err := m.store.Get(ctx, m.key("working", fmt.Sprint(shard)))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	var s expiringSet
	if err == nil {
		err = strictjson.Unmarshal(raw, &s)
	}
	return s, err
}

// enter counts a new task for its caller. It fails if the caller has too many. Callers that
// are not authenticated cannot be told apart and are not counted.
func (m *Manager) enter(ctx context.Context, caller *mcp.Principal, id string, ttl time.Duration) error {
	if caller == nil {
		return nil
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(caller.Issuer), caller.Issuer, caller.Subject))
	key := m.key("caller", base64.RawURLEncoding.EncodeToString(sum[:]))
	return m.updateSet(ctx, key, ttl, func(s expiringSet) error {
		if len(s) >= m.opts.MaxPerCaller {
			return mcp.NewRateLimitedError(m.opts.PollInterval, "the caller has %d tasks, which is the limit; they are kept until their TTL has passed", len(s))
		}
		s[id] = time.Now().Add(ttl).Unix()
		return nil
	})
}

// updateSet changes a set without its expired members. Ttl is how long the set must be kept
// at least.
func (m *Manager) updateSet(ctx context.Context, key string, ttl time.Duration, change func(expiringSet) error) error {
	return store.Update(ctx, m.store, key, max(ttl, m.opts.TTL)+time.Hour, func(old []byte) ([]byte, error) {
		s := expiringSet{}
		if old != nil {
			if err := strictjson.Unmarshal(old, &s); err != nil {
				return nil, err
			}
		}
		for id, expires := range s {
			if expires < time.Now().Unix() {
				delete(s, id)
			}
		}
		if err := change(s); err != nil {
			return nil, err
		}
		return strictjson.Marshal(s)
	})
}
