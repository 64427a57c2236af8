// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package natsstore

import (
	"cmp"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/go-psi/psi/mcp/store"
)

// A place is where a record stands in its log.
type place struct {
	seq   uint64 // of its message, which is its position
	count uint64 // records of the log up to it
	bytes uint64 // in these records
	size  uint64 // bytes in the record itself
}

// A tail is what the last record of a log says about the log. Every record carries it in a
// header, so that the next one can be made from it alone: no engine counts what a log of
// many in one stream has, and which of its records are gone.
type tail struct {
	place

	before  uint64    // the sequence number of the record before it, 0 if there was none
	keep    place     // what is kept: count and bytes
	expires time.Time // not before the records before it
	mark    place     // when the log has left this record behind, it is trimmed up to it
}

// append returns the next record, without its sequence number.
func (t *tail) append(size int, keep store.Retention, limit *store.Retention) tail {
	ttl := within(keep.TTL, limit.TTL)
	expires := time.Now().Add(ttl)
	if t.expires.After(expires) {
		expires = t.expires
	}
	return tail{
		place:   place{count: t.count + 1, bytes: t.bytes + uint64(size), size: uint64(size)},
		before:  t.seq,
		keep:    place{count: uint64(within(keep.Records, limit.Records)), bytes: uint64(within(keep.Bytes, limit.Bytes))},
		expires: expires,
		mark:    t.mark,
	}
}

// within returns what is wanted, or the limit if that is 0 or more.
func within[T int | time.Duration](wanted, limit T) T { return min(cmp.Or(wanted, limit), limit) }

// keeps reports whether a record is kept behind which t is the last one.
func (t *tail) keeps(p *place) bool {
	return t.count <= p.count || t.count-p.count < t.keep.count && t.bytes-p.bytes+p.size <= t.keep.bytes
}

// ttl returns the time until the record expires.
func (t *tail) ttl() time.Duration { return max(time.Until(t.expires), time.Second) }

// tailHeader has the fields of a tail, except for the sequence number.
const (
	tailHeader = "Psi-Log"
	tailFormat = "%d %d %d %d %d %d %d %d %d %d %d"
)

func (t *tail) header() nats.Header {
	return nats.Header{tailHeader: {fmt.Sprintf(tailFormat, t.count, t.bytes, t.size, t.before, t.keep.count, t.keep.bytes,
		t.expires.UnixMilli(), t.mark.seq, t.mark.count, t.mark.bytes, t.mark.size)}}
}

func parseTail(m *jetstream.RawStreamMsg) (t tail, err error) {
	t.seq = m.Sequence
	var expires int64
	_, err = fmt.Sscanf(m.Header.Get(tailHeader), tailFormat, &t.count, &t.bytes, &t.size, &t.before, &t.keep.count, &t.keep.bytes,
		&expires, &t.mark.seq, &t.mark.count, &t.mark.bytes, &t.mark.size)
	if err != nil {
		return t, fmt.Errorf("natsstore: the message %d on %s is no record of a log: %w", m.Sequence, m.Subject, err)
	}
	t.expires = time.UnixMilli(expires)
	return t, nil
}
