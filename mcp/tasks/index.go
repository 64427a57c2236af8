// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/store"
)

// A store cannot be searched, so the working tasks of all processes are listed in it: those
// that a process must run. The list is divided by a hash of the IDs, so that processes
// seldom change the same part at once. A task is listed before its record says that it is
// working, and taken off after the record says otherwise.

// shards is the number of parts of the list.
const shards = 32

func shardOf(id string) string {
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(id))%shards), 10)
}

// A listing is a part of the list: the rounds of tasks, by ID. A round ends when the task
// waits for answers or has ended.
type listing map[string]uint64

// list adds a working task to the list. It fails if there are too many. Entries do not
// expire, because clocks can be wrong: the sweeper removes what is left over.
func (m *Manager) list(ctx context.Context, id string, round uint64) error {
	return updateObject(ctx, m.store, m.key("working", shardOf(id)), 0, func(l listing) error {
		if _, known := l[id]; !known && len(l) >= max(m.opts.MaxWorking/shards, 1) {
			return mcp.NewRateLimitedError(m.opts.PollInterval, "too many tasks are working; try again later")
		}
		l[id] = round
		return nil
	})
}

// unlist takes a task off the list whose round has ended. It leaves a later round listed: the
// client may have answered in the meantime.
func (m *Manager) unlist(ctx context.Context, id string, round uint64) error {
	return updateObject(ctx, m.store, m.key("working", shardOf(id)), 0, func(l listing) error {
		if listed, ok := l[id]; !ok || listed > round {
			return errUnchanged
		}
		delete(l, id)
		return nil
	})
}

// listed returns the working tasks of one shard.
func (m *Manager) listed(ctx context.Context, shard int) (listing, error) {
	raw, _, err := m.store.Get(ctx, m.key("working", strconv.Itoa(shard)))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	var l listing
	if err == nil {
		err = strictjson.Unmarshal(raw, &l)
	}
	return l, err
}

// enter counts a new task for its caller. It fails if the caller has too many. Callers that
// are not authenticated cannot be told apart and are not counted.
func (m *Manager) enter(ctx context.Context, caller *mcp.Principal, id string, ttl time.Duration) error {
	return m.updateCaller(ctx, caller, func(expiries map[string]int64) error {
		if len(expiries) >= m.opts.MaxPerCaller {
			return mcp.NewRateLimitedError(m.opts.PollInterval, "the caller has %d tasks, which is the limit; they are kept until their TTL has passed", len(expiries))
		}
		expiries[id] = time.Now().Add(ttl).Unix()
		return nil
	})
}

// leave takes a task back that was counted and could not be stored.
func (m *Manager) leave(ctx context.Context, caller *mcp.Principal, id string) error {
	return m.updateCaller(ctx, caller, func(expiries map[string]int64) error {
		delete(expiries, id)
		return nil
	})
}

// updateCaller changes what is kept about a caller: when its tasks expire, in Unix seconds,
// without those that have expired.
func (m *Manager) updateCaller(ctx context.Context, caller *mcp.Principal, change func(map[string]int64) error) error {
	if caller == nil {
		return nil
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(caller.Issuer), caller.Issuer, caller.Subject))
	key := m.key("caller", base64.RawURLEncoding.EncodeToString(sum[:]))
	return updateObject(ctx, m.store, key, m.longestTTL()+time.Hour, func(expiries map[string]int64) error {
		for id, expires := range expiries {
			if expires < time.Now().Unix() {
				delete(expiries, id)
			}
		}
		return change(expiries)
	})
}

// updateObject changes an object in the store, which is empty at first. If change returns
// errUnchanged, it stays as it is.
func updateObject[O ~map[string]V, V any](ctx context.Context, s store.Values, key string, ttl time.Duration, change func(O) error) error {
	err := store.Update(ctx, s, key, ttl, func(old []byte) ([]byte, error) {
		o := O{}
		if old != nil {
			if err := strictjson.Unmarshal(old, &o); err != nil {
				return nil, fmt.Errorf("tasks: the value of %s in the store cannot be read: %w", key, err)
			}
		}
		if err := change(o); err != nil {
			return nil, err
		}
		return strictjson.Marshal(o)
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}
