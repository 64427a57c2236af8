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

// A place is the place of a record in its log.
type place struct {
	seq   uint64 // sequence number of its message, which is its position
	count uint64 // records in the log up to and including it
	bytes uint64 // bytes in these records
	size  uint64 // bytes in the record itself
}

// A tail is the state of a log at its last record. Every record carries it in a header, so
// that the next record can be made from this one alone: the engine does not count the
// records of each log in the stream, or which of them are gone.
type tail struct {
	place

	before  uint64    // sequence number of the record before it, 0 if there was none
	keep    place     // limits of the log: count and bytes
	expires time.Time // not before the records before it
	mark    place     // a record; once it is no longer kept, the log is trimmed up to it
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

// within returns wanted, or limit if wanted is zero or larger than limit.
func within[T int | time.Duration](wanted, limit T) T { return min(cmp.Or(wanted, limit), limit) }

// keeps reports whether the record at p is kept if t is the last record.
func (t *tail) keeps(p *place) bool {
	return t.count <= p.count || t.count-p.count < t.keep.count && t.bytes-p.bytes+p.size <= t.keep.bytes
}

// ttl returns the time until the record expires.
func (t *tail) ttl() time.Duration { return max(time.Until(t.expires), time.Second) }

// tailHeader contains the fields of a tail, except for the sequence number.
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
		return t, fmt.Errorf("natsstore: the message %d on %s is not a log record: %w", m.Sequence, m.Subject, err)
	}
	t.expires = time.UnixMilli(expires)
	return t, nil
}
