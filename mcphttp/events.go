// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-psi/psi/mcp/store"
)

// events keeps what was sent on streams, for clients that come back. Every
// stream has a log of its own, under the id of its session: whoever does not
// know that id cannot name the log.
type events struct {
	logs      store.Store
	keep      store.Retention
	perCaller int           // bytes
	shared    bool          // with other processes
	replica   string        // the name of this one
	askTime   time.Duration // how long a question may wait for its answer
	warned    atomic.Int64  // when the operator was last told that events are not kept, in Unix seconds
}

// mayWarn reports whether it is time to tell the operator again that events are not
// kept: that is no news with each of them.
func (e *events) mayWarn() bool {
	now, last := time.Now().Unix(), e.warned.Load()
	return now-last >= 60 && e.warned.CompareAndSwap(last, now)
}

func logName(session string, stream int64) string {
	return "psi/events/" + session + "/" + strconv.FormatInt(stream, 10)
}

// eventID is "stream-position".
func eventID(stream int64, position uint64) string {
	id := append(strconv.AppendInt(make([]byte, 0, 24), stream, 10), '-')
	return string(strconv.AppendUint(id, position, 10))
}

func parseEventID(id string) (stream int64, position uint64, ok bool) {
	before, after, ok := strings.Cut(id, "-")
	if !ok || len(id) > 64 {
		return 0, 0, false
	}
	number, err := strconv.ParseUint(before, 10, 63)
	if err != nil {
		return 0, 0, false
	}
	position, err = strconv.ParseUint(after, 10, 64)
	return int64(number), position, err == nil
}

// The first byte of a record says what it is.
const (
	recordPrime   = 'p' // nothing: where a stream began
	recordMessage = 'm'
	recordLast    = 'l' // a message after which the stream is done
)

// append keeps a record and returns its position.
func (e *events) append(ctx context.Context, session string, stream int64, kind byte, message []byte) (uint64, error) {
	data := append(append(make([]byte, 0, len(message)+1), kind), message...)
	return e.logs.Append(context.WithoutCancel(ctx), logName(session, stream), data, e.keep)
}

// whole reports whether nothing is missing between the beginning of a stream and what
// was first kept of it, at a position; 0 means that nothing was.
func (e *events) whole(ctx context.Context, session string, stream int64, first uint64) (bool, error) {
	if first == 0 {
		return true, nil
	}
	records, err := e.logs.Read(ctx, logName(session, stream), 0, 1)
	return len(records) > 0 && records[0].Position == first, err
}
