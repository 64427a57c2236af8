// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redisstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/go-psi/psi/mcp/store"
)

// A log is a Redis stream. The ID of an entry is its position, in microseconds, so that a
// log does not reuse the positions of a dropped one. An entry has the data (d), the ID of
// the step that appended it (i), the position before it (b), the bytes in the log up to and
// including it (t), and when it expires (x), in milliseconds, which is never before earlier
// entries.

// appendScript appends ARGV[1] and trims the log to ARGV[2] records and ARGV[3] bytes.
// ARGV[4] is the TTL and ARGV[5] the ID of the step. ARGV[6] is 1 if the step is repeated.
// It returns the position.
//
//nolint:dupword // Lua
var appendScript = rueidis.NewLuaScript(`
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local position, before, total = clock[1] * 1000000 + clock[2], 0, #ARGV[1]
local expires = now + 1 + ARGV[4] -- now is rounded down
local function number(n) return string.format('%.0f', n) end
local function at(entry) return tonumber(string.match(entry[1], '^%d+')) end

if ARGV[6] == '1' then
	for _, entry in ipairs(redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 100)) do
		if entry[2][4] == ARGV[5] then return number(at(entry)) end
	end
end
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if last then
	position = math.max(position, at(last) + 1)
	if tonumber(last[2][10]) <= now then -- the key expires a millisecond later
		redis.call('DEL', KEYS[1])
	else
		before = at(last)
		total = total + last[2][8]
		expires = math.max(expires, tonumber(last[2][10]))
	end
end
redis.call('XADD', KEYS[1], number(position) .. '-0', 'd', ARGV[1], 'i', ARGV[5], 'b', number(before), 't', number(total), 'x', number(expires))
redis.call('PEXPIREAT', KEYS[1], number(expires))
redis.call('XTRIM', KEYS[1], 'MAXLEN', ARGV[2])
while true do
	local first = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
	local kept = total - first[2][8] + #first[2][2]
	if at(first) == position or (kept <= tonumber(ARGV[3]) and tonumber(first[2][10]) > now) then break end
	redis.call('XDEL', KEYS[1], first[1])
end
return number(position)`)

// readScript returns up to ARGV[2] records after position ARGV[1], but no more once they
// have ARGV[3] bytes, as alternating positions and data. It returns 0 if records are missing there.
//
//nolint:dupword // Lua
var readScript = rueidis.NewLuaScript(`
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local from = '(' .. ARGV[1] .. '-0'
if ARGV[1] == '0' then from = '-' end
local entries = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', ARGV[2])
local last = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
if last and tonumber(last[2][10]) <= now then last, entries = nil, {} end
if not entries[1] then
	local final = '0'
	if last then final = string.match(last[1], '^%d+') end
	if final == ARGV[1] then return {} end
	return 0
end
if entries[1][2][6] ~= ARGV[1] or tonumber(entries[1][2][10]) <= now then return 0 end
local found, size = {}, 0
for _, entry in ipairs(entries) do
	found[#found + 1] = string.match(entry[1], '^%d+')
	found[#found + 1] = entry[2][2]
	size = size + #entry[2][2]
	if size >= tonumber(ARGV[3]) then break end
end
return found`)

// Append adds a record to a log; see [store.Logs].
func (s *Store) Append(ctx context.Context, log string, data []byte, keep store.Retention) (position uint64, err error) {
	if min(keep.Records, keep.Bytes) < 0 || keep.TTL < 0 {
		return 0, fmt.Errorf("%w: negative retention %+v", store.ErrInvalid, keep)
	}
	if err := s.check(ctx, log, len(data)); err != nil {
		return 0, err
	}
	limit := &s.opts.Log
	args := []string{
		rueidis.BinaryString(data), strconv.Itoa(within(keep.Records, limit.Records)), strconv.Itoa(within(keep.Bytes, limit.Bytes)),
		milliseconds(within(keep.TTL, limit.TTL)), rand.Text(), flag(false),
	}
	err = s.try(ctx, func(ctx context.Context, again bool) error {
		args[len(args)-1] = flag(again)
		answer, err := appendScript.Exec(ctx, s.client, []string{s.name("l", log)}, args).ToString()
		if err == nil {
			position, err = strconv.ParseUint(answer, 10, 64)
		}
		return err
	})
	return position, err
}

// within returns wanted, or limit if wanted is zero or larger than limit.
func within[T int | time.Duration](wanted, limit T) T { return min(cmp.Or(wanted, limit), limit) }

// Approximate limits on what one Read returns: records and bytes.
const (
	readRecords = 256
	readSize    = 1 << 20
)

// Read returns records; see [store.Logs].
func (s *Store) Read(ctx context.Context, log string, position uint64, limit int) (records []store.Record, err error) {
	if limit < 0 {
		return nil, fmt.Errorf("%w: negative limit %d", store.ErrInvalid, limit)
	}
	if err := s.check(ctx, log, 0); err != nil {
		return nil, err
	}
	args := []string{strconv.FormatUint(position, 10), strconv.Itoa(min(cmp.Or(limit, readRecords), readRecords)), strconv.Itoa(readSize)}
	err = s.try(ctx, func(ctx context.Context, _ bool) error {
		m, err := readScript.Exec(ctx, s.client, []string{s.name("l", log)}, args).ToMessage()
		if err == nil {
			records, err = parseRecords(&m)
		}
		return err
	})
	return records, err
}

func parseRecords(m *rueidis.RedisMessage) (records []store.Record, err error) {
	if m.IsInt64() {
		return nil, store.ErrTrimmed
	}
	fields, err := m.ToArray()
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(fields); i += 2 {
		name, err := fields[i].ToString()
		if err != nil {
			return nil, err
		}
		data, err := fields[i+1].AsBytes()
		if err != nil {
			return nil, err
		}
		position, err := strconv.ParseUint(name, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("redisstore: an entry of a log has the ID %q", name)
		}
		records = append(records, store.Record{Position: position, Data: data})
	}
	return records, nil
}

// Drop removes a log; see [store.Logs].
func (s *Store) Drop(ctx context.Context, log string) error {
	if err := s.check(ctx, log, 0); err != nil {
		return err
	}
	return s.try(ctx, func(ctx context.Context, _ bool) error {
		return s.client.Do(ctx, s.client.B().Unlink().Key(s.name("l", log)).Build()).Error()
	})
}
