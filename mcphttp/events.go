// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"context"
	"strconv"
	"strings"

	"github.com/go-psi/psi/mcp/store"
)

// events keeps what was sent on streams, for clients that come back. Every
// stream has a log of its own, under the id of its session: whoever does not
// know that id cannot name the log.
type events struct {
	logs store.Store
	keep store.Retention
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

func (e *events) append(ctx context.Context, session string, stream int64, kind byte, message []byte) (string, error) {
	data := append(append(make([]byte, 0, len(message)+1), kind), message...)
	position, err := e.logs.Append(context.WithoutCancel(ctx), logName(session, stream), data, e.keep)
	if err != nil {
		return "", err
	}
	return eventID(stream, position), nil
}
