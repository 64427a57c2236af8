// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"sync"
)

// maxBatch bounds how many messages a batch may have.
const maxBatch = 100

// ServeBatch takes an array of messages, as [Legacy.Serve] takes one, and
// appends the array of the responses to dst, or nothing if there are none.
func (l *Legacy) ServeBatch(ctx context.Context, dst, data []byte, out Sender) []byte {
	items, err := SplitBatch(data)
	if err == nil && len(items) > maxBatch {
		err = Errorf(CodeInvalidRequest, "a batch of %d messages is over the limit of %d", len(items), maxBatch)
	}
	if err != nil {
		return AppendErrorResponse(dst, ID{}, err)
	}
	responses := make([][]byte, len(items))
	var wg sync.WaitGroup
	for i, item := range items {
		wg.Go(func() { responses[i] = l.serveItem(ctx, item, out) })
	}
	wg.Wait()
	return appendArray(dst, responses)
}

func (l *Legacy) serveItem(ctx context.Context, item []byte, out Sender) []byte {
	m, err := ParseMessage(item)
	switch {
	case err != nil && m.Request != nil && m.Request.IsNotification():
		return nil
	case err != nil:
		return AppendErrorResponse(nil, m.ID, err)
	case m.IsInitialize():
		return AppendErrorResponse(nil, m.ID, Errorf(CodeInvalidRequest, "initialize must not be in a batch"))
	}
	if m.Request != nil {
		m.Request.Principal = l.opts.Principal
	}
	return l.Serve(ctx, nil, m, out)
}

func appendArray(dst []byte, items [][]byte) []byte {
	start := len(dst)
	for _, item := range items {
		if len(item) == 0 {
			continue
		}
		separator := byte(',')
		if len(dst) == start {
			separator = '['
		}
		dst = append(append(dst, separator), item...)
	}
	if len(dst) == start {
		return dst
	}
	return append(dst, ']')
}
