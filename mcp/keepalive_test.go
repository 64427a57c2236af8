// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/internal/legacyserver"
	"github.com/go-psi/psi/internal/serving"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// pinged is a legacy client that answers pings or does not.
type pinged struct {
	session *legacyserver.Session
	answer  func(n int) string // the member of the response to the nth ping, "" for silence
	pings   int
}

func (p *pinged) Send(ctx context.Context, message []byte) error {
	m, err := transport.ParseMessage(bytes.Clone(message))
	if err != nil || m.Method != "ping" {
		return err
	}
	p.pings++
	member := p.answer(p.pings)
	if member == "" {
		return nil
	}
	response, err := transport.ParseMessage([]byte(`{"jsonrpc":"2.0","id":` + m.ID.String() + `,` + member + `}`))
	if err != nil {
		return err
	}
	go play(ctx, p.session, response, p)
	return nil
}

const (
	pong    = `"result":{}`
	unknown = `"error":{"code":-32601,"message":"no ping here"}`
)

// T53: any response counts as an answer, one missed ping is ignored, and a client that cannot
// be pinged is not considered dead.
func TestKeepAlive(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer func(n int) string
		listen bool
		alive  bool
	}{
		{"answers", func(int) string { return pong }, true, true},
		{"does not know ping", func(int) string { return unknown }, true, true},
		{"misses every other", func(n int) string { return map[int]string{0: pong}[n%2] }, true, true},
		{"misses two of three", func(n int) string { return map[int]string{0: pong}[n%3] }, true, true},
		{"cannot be asked", func(int) string { return "" }, false, true},
		{"is silent", func(int) string { return "" }, true, false},
		{"falls silent", func(n int) string { return map[bool]string{true: pong}[n < 5] }, true, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log lockedBuffer
				mux := mcp.NewMux("m", "v1", quiet())
				server := legacyserver.NewServer(mux, &legacyserver.Options{KeepAlive: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				l := server.NewSession(legacyserver.Details{}, nil)
				client := &pinged{session: l, answer: test.answer}
				open, err := transport.ParseMessage([]byte(eras[1].open[0]))
				if err != nil {
					t.Fatal(err)
				}
				play(t.Context(), l, open, client)
				if test.listen {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					go l.Listen(ctx, serving.Origin{}, client, nil)
				}
				<-time.After(time.Hour)
				synctest.Wait()
				alive := true
				select {
				case <-l.Done():
					alive = false
				default:
				}
				if alive != test.alive {
					t.Errorf("alive is %t after %d pings", alive, client.pings)
				}
				lines := strings.Count(log.String(), "\n")
				if want := map[bool]int{true: 0, false: 1}[alive]; lines != want {
					t.Errorf("logged %d lines:\n%s", lines, log.String())
				}
				if test.listen && client.pings < 3 {
					t.Errorf("pinged %d times", client.pings)
				}
			})
		})
	}
}
