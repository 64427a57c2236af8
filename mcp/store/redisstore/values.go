// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/go-psi/psi/mcp/store"
)

// A value is a string: its version, the version before it, and the data. Versions are
// random, so that none is used twice and the nodes of a cluster need not share a counter.
const (
	versionSize = 8
	headSize    = 2 * versionSize
)

// putScript replaces a value. It returns 1, or the header of the existing value, which is
// empty if there is none. ARGV[4] is 1 if the step is repeated and may have been taken. A
// new value is then not put again, because nothing would show whether it has existed.
var putScript = rueidis.NewLuaScript(`
local head = redis.call('GETRANGE', KEYS[1], 0, 15)
if string.sub(head, 1, 8) == string.sub(ARGV[2], 1, 8) then return 1 end
if string.sub(head, 1, 8) ~= ARGV[1] or (ARGV[4] == '1' and ARGV[1] == '') then return head end
if ARGV[3] == '0' then
	redis.call('SET', KEYS[1], ARGV[2])
else
	redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
end
return 1`)

// takeScript moves a value to a key that only the caller uses, where a repetition finds it.
var takeScript = rueidis.NewLuaScript(`
if redis.call('EXISTS', KEYS[1]) == 1 and redis.call('EXISTS', KEYS[2]) == 0 then
	redis.call('RENAME', KEYS[1], KEYS[2])
	redis.call('PEXPIRE', KEYS[2], ARGV[1])
end
return redis.call('GET', KEYS[2])`)

// Get returns a value; see [store.Values].
func (s *Store) Get(ctx context.Context, key string) (value []byte, version uint64, err error) {
	if err := s.check(ctx, key, 0); err != nil {
		return nil, 0, err
	}
	var raw []byte
	err = s.try(ctx, func(ctx context.Context, _ bool) (err error) {
		// The client retries read-only commands. Without Pin, it could reuse the command
		// for another one while its first connection, which broke, is still writing it.
		read := s.client.B().Get().Key(s.name("v", key)).Build().Pin()
		raw, err = s.client.Do(ctx, read).AsBytes()
		return err
	})
	if err != nil {
		return nil, 0, err
	}
	return parseValue(raw)
}

func parseValue(raw []byte) (value []byte, version uint64, err error) {
	if len(raw) < headSize {
		return nil, 0, errors.New("redisstore: a key of the namespace has a value that no Store has put")
	}
	return raw[headSize:], binary.BigEndian.Uint64(raw), nil
}

// Put replaces a value; see [store.Values].
func (s *Store) Put(ctx context.Context, key string, value []byte, version uint64, ttl time.Duration) (uint64, error) {
	if err := s.check(ctx, key, len(value)); err != nil {
		return 0, err
	}
	if ttl < 0 {
		return 0, fmt.Errorf("%w: negative TTL %v", store.ErrInvalid, ttl)
	}
	expected := make([]byte, versionSize)
	binary.BigEndian.PutUint64(expected, version)
	next := newVersion()
	raw := append(append(append(make([]byte, 0, headSize+len(value)), next...), expected...), value...)
	if version == 0 {
		expected = nil
	}
	err := s.try(ctx, func(ctx context.Context, again bool) error {
		answer := putScript.Exec(ctx, s.client, []string{s.name("v", key)},
			[]string{string(expected), rueidis.BinaryString(raw), milliseconds(ttl), flag(again)})
		return putOutcome(answer, expected, again)
	})
	return binary.BigEndian.Uint64(next), err
}

// putOutcome converts the result of putScript to an error.
func putOutcome(answer rueidis.RedisResult, expected []byte, again bool) error {
	m, err := answer.ToMessage()
	if err != nil || m.IsInt64() {
		return err
	}
	head, err := m.ToString()
	isNext := len(head) == headSize && (expected == nil && head[versionSize:] == string(make([]byte, versionSize)) || head[versionSize:] == string(expected))
	switch {
	case err != nil:
		return err
	case !again, isNext: // another value was put instead of this one
		return store.ErrConflict
	}
	return errUnknown
}

// newVersion returns a random version that is not zero. A counter would be a second key,
// which could be on another node. Each value carries the version that it replaced, which
// shows after a lost answer whether a write was made.
func newVersion() []byte {
	v := make([]byte, versionSize)
	_, _ = rand.Read(v) // it never fails
	v[0] |= 1
	return v
}

// Take removes a value; see [store.Values].
func (s *Store) Take(ctx context.Context, key string) ([]byte, error) {
	if err := s.check(ctx, key, 0); err != nil {
		return nil, err
	}
	name := s.name("v", key)
	keys := []string{name, name + rand.Text()}
	var raw []byte
	err := s.try(ctx, func(ctx context.Context, _ bool) (err error) {
		raw, err = takeScript.Exec(ctx, s.client, keys, []string{milliseconds(s.opts.Timeout)}).AsBytes()
		return err
	})
	if err != nil {
		return nil, err
	}
	value, _, err := parseValue(raw)
	return value, err
}

// milliseconds rounds a TTL up to milliseconds.
func milliseconds(ttl time.Duration) string {
	ms := ttl.Milliseconds()
	if ttl%time.Millisecond > 0 {
		ms++
	}
	return strconv.FormatInt(ms, 10)
}

func flag(set bool) string {
	if set {
		return "1"
	}
	return "0"
}
