// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/tasks"
)

// A member of a task that the client does not need does not make a call fail, whatever the
// server sends instead: when it creates the task, when it is polled, and when it pushes a
// state. It is left out, with one warning.
func TestFindingY4SloppyMembers(t *testing.T) {
	for _, member := range []string{"statusMessage", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs", "error"} {
		for _, value := range []string{"absent", "null", "7", "-1", "10.5", "5000.0", "1e300", `"x"`, `""`, "true", "[]", "{}"} {
			t.Run(member+"="+value, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					c, s := connectScripted(t, options(), func(poll int) (string, error) {
						if poll == 1 {
							return `{"status":"working"}`, nil
						}
						return done, nil
					})
					s.alter = func(state map[string]json.RawMessage) {
						if state[member] = json.RawMessage(value); value == "absent" {
							delete(state, member)
						}
					}
					if err := waits["Call"](t.Context(), c); err != nil || s.sent(tasks.MethodGet) != 2 {
						t.Errorf("%v after %d polls", err, s.sent(tasks.MethodGet))
					}
					if h, res, err := tasks.Start(t.Context(), c, quickCall); err != nil || h == nil || h.ID != "x" {
						t.Errorf("Start: %v, %v, %v", h, res, err)
					}
				})
			})
		}
	}
}

// What was left out is logged once for each task.
func TestFindingY4SloppyMembersAreLogged(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &scriptedServer{requests: map[string]int{}, get: func(poll int) (string, error) {
			if poll < 10 {
				return `{"status":"working"}`, nil
			}
			return done, nil
		}}
		s.alter = func(state map[string]json.RawMessage) { state["ttlMs"] = json.RawMessage(`"an hour"`) }
		opts := options()
		opts.Version, opts.Logger = mcp.LatestVersion, slog.New(slog.NewTextHandler(&log, nil))
		c, err := mcp.NewClient("test", "1", opts).Connect(t.Context(), mcp.InProcess(s))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := waits["Wait"](t.Context(), c); err != nil || strings.Count(log.String(), "member=ttlMs") != 1 || strings.Count(log.String(), "\n") != 1 {
			t.Errorf("%v, logged: %s", err, &log)
		}
	})
}

// A pushed state whose dates cannot be read is received like any other.
func TestFindingY4SloppyPushes(t *testing.T) {
	for _, date := range []string{`"2026-01-01T00:00:00.123456"`, `"soon"`, "7", "null"} {
		t.Run(date, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c, s := connectScripted(t, options(), func(int) (string, error) { return `{"status":"working"}`, nil })
				s.listen = func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
					var p mcp.ListenParams
					if err := req.Decode(&p); err != nil {
						return nil, err
					}
					accepted := &mcp.AcknowledgedParams{Notifications: p.Notifications, Meta: mcp.Meta{}}
					accepted.Meta.Set(mcp.MetaSubscriptionID, req.ID)
					if err := req.Notify(ctx, mcp.NotificationAcknowledged, accepted); err != nil {
						return nil, err
					}
					<-time.After(time.Second)
					state := s.task(done)
					state["createdAt"], state["lastUpdatedAt"] = json.RawMessage(date), json.RawMessage(date)
					state["_meta"] = json.RawMessage(fmt.Sprintf(`{%q:%q}`, mcp.MetaSubscriptionID, req.ID.String()))
					if err := req.Notify(ctx, tasks.NotificationTask, state); err != nil {
						return nil, err
					}
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
				begun := time.Now()
				if err := waits["Call"](t.Context(), c); err != nil || time.Since(begun) > 2*time.Second {
					t.Errorf("%v after %v", err, time.Since(begun))
				}
			})
		})
	}
}

// Dates are read in all common spellings of ISO 8601. Any other is the zero time.
func TestFindingY4Dates(t *testing.T) {
	for spelling, want := range map[string]string{
		"2026-01-02T03:04:05Z":        "2026-01-02T03:04:05Z",
		"2026-01-02T03:04:05.123456":  "2026-01-02T03:04:05.123456Z",
		"2026-01-02T03:04:05+0000":    "2026-01-02T03:04:05Z",
		"2026-01-02T03:04:05.5+02:00": "2026-01-02T01:04:05.5Z",
		"2026-01-02T03:04:05-01":      "2026-01-02T04:04:05Z",
		"2026-01-02T03:04Z":           "2026-01-02T03:04:00Z",
		"20260102T030405Z":            "2026-01-02T03:04:05Z",
		"2026-01-02T03:04:05,5Z":      "2026-01-02T03:04:05.5Z",
		"2026-01-02t03:04:05z":        "2026-01-02T03:04:05Z",
		"2026-01-02 03:04:05":         "2026-01-02T03:04:05Z",
		"2026-01-02 03:04:05 +0100":   "2026-01-02T02:04:05Z",
		"2026-01-02":                  "2026-01-02T00:00:00Z",
		"yesterday":                   "0001-01-01T00:00:00Z",
		"":                            "0001-01-01T00:00:00Z",
		"1767322800":                  "0001-01-01T00:00:00Z",
	} {
		inBubble(t, func(t *testing.T) {
			c, _ := connectScripted(t, options(), func(int) (string, error) {
				return fmt.Sprintf(`{"status":"working","createdAt":%q}`, spelling), nil
			})
			d, err := tasks.Attach(c, "x").Get(t.Context())
			if err != nil || d.CreatedAt.UTC().Format(time.RFC3339Nano) != want {
				t.Errorf("%q: %+v, %v; want %s", spelling, d, err, want)
			}
		})
	}
}
