// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// A heartbeat that finds the client gone before anything else was said on the stream
// of its call ends nothing but itself.
func TestFirstHeartbeatToNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mux := tools()
		done := make(chan struct{})
		mux.Tool("long", mcp.ToolFunc(func(context.Context, struct{}) (string, error) {
			<-time.After(time.Hour)
			close(done)
			return "", nil
		}, nil))
		s := serve(t, newHandler(t, mux, &mcphttp.Options{Heartbeat: time.Minute, Logger: quiet}))
		h := s.open(mcp.LegacyVersions()[0])
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = s.client.Do(s.request(ctx, "POST", call(1, "long"), h)) }()
		synctest.Wait()
		cancel()
		<-done
		if got := whole(t, s.post(call(2, "hello"), h)); got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
}
