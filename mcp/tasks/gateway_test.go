// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/mcptest"
	"github.com/go-psi/psi/mcp/tasks"
)

// forwarding returns the options for a gateway's client that uses a version.
func forwarding(version string) *mcp.ClientOptions {
	return &mcp.ClientOptions{
		Extensions: []*mcp.ClientExtension{tasks.Client()}, Forward: true, Version: version, Logger: slog.New(slog.DiscardHandler),
	}
}

// gate returns a gateway that mounts a handler under a_.
func gate(t testing.TB, h mcp.Handler) *mcp.Mux {
	t.Helper()
	mux := mcp.NewMux("gate", "1", &mcp.MuxOptions{Logger: slog.New(slog.DiscardHandler)})
	mux.Mount("a_", h)
	return mux
}

// A way is a gateway in front of a server, and the prefix of the server's tools.
type way struct {
	prefix string
	mount  func(t *testing.T, server *mcp.Mux) *mcp.Mux
}

// through lists the ways in which a gateway reaches its server.
var through = map[string]way{
	"a mux": {"a_", func(t *testing.T, server *mcp.Mux) *mcp.Mux { return gate(t, server) }},
	"a connection": {"a_", func(t *testing.T, server *mcp.Mux) *mcp.Mux {
		return gate(t, (&mcptest.Client{Options: *forwarding(mcp.LatestVersion)}).Connect(t, server))
	}},
	"a gateway behind it": {"a_a_", func(t *testing.T, server *mcp.Mux) *mcp.Mux {
		inner := gate(t, (&mcptest.Client{Options: *forwarding(mcp.LatestVersion)}).Connect(t, server))
		return gate(t, (&mcptest.Client{Options: *forwarding(mcp.LatestVersion)}).Connect(t, inner))
	}},
	"a connection in middleware": {"a_", func(t *testing.T, server *mcp.Mux) *mcp.Mux {
		return gate(t, plain((&mcptest.Client{Options: *forwarding(mcp.LatestVersion)}).Connect(t, server)))
	}},
	"a mux in middleware": {"a_", func(t *testing.T, server *mcp.Mux) *mcp.Mux { return gate(t, plain(server)) }},
	"muxes of muxes":      {"a_a_", func(t *testing.T, server *mcp.Mux) *mcp.Mux { return gate(t, gate(t, server)) }},
	"a gateway with tasks of its own": {"a_", func(t *testing.T, server *mcp.Mux) *mcp.Mux {
		r := newOutcomes(t)
		r.mux.Mount("a_", (&mcptest.Client{Options: *forwarding(mcp.LatestVersion)}).Connect(t, server))
		return r.mux
	}},
}

// plain wraps h in middleware without any effect, such as one that hides nothing.
func plain(h mcp.Handler) mcp.Handler {
	return mcp.Chain(h, func(next mcp.Handler) mcp.Handler { return next })
}

// A task of a mounted server is a task of the gateway.
func TestEveryOutcomeThroughGateways(t *testing.T) {
	for way, gateway := range through {
		for name, test := range outcomes {
			t.Run(way+"/"+name, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					test(t, (&mcptest.Client{Options: *options()}).Connect(t, gateway.mount(t, newOutcomes(t).mux)), gateway.prefix)
				})
			})
		}
	}
}

// For callers that do not support tasks, the gateway follows the tasks of its server until
// they end. A server of an older revision answers without a task.
func TestGatewayDrives(t *testing.T) {
	ways := maps.Clone(through)
	ways["a connection of 2025-11-25"] = way{"a_", func(t *testing.T, server *mcp.Mux) *mcp.Mux {
		return gate(t, (&mcptest.Client{Options: *forwarding(r202511)}).Connect(t, server))
	}}
	for name, gateway := range ways {
		for _, version := range []string{mcp.LatestVersion, r202511} {
			t.Run(fmt.Sprint(version, "/", name), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					opts := options()
					opts.Version, opts.Extensions = version, nil
					c := (&mcptest.Client{Options: *opts}).Connect(t, gateway.mount(t, newOutcomes(t).mux))
					for tool, want := range map[string]string{"quick": "done", "slow": "slow", "plain": "plain", "ask": "av1av1"} {
						got, err := mcp.Call[string](t.Context(), c, gateway.prefix+tool, struct{}{})
						check(t, got, err, want)
					}
				})
			})
		}
	}
}

// The task of one caller is unknown to other callers and to callers of other gateways. So
// are the server's own IDs.
func TestGatewayBindsTasks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for way, gateway := range through {
			server := newOutcomes(t)
			mux := gateway.mount(t, server.mux)
			connect := func(h mcp.Handler, caller *mcp.Principal) *mcp.Conn {
				return (&mcptest.Client{Principal: caller, Options: *options()}).Connect(t, h)
			}
			ada, bob := &mcp.Principal{Issuer: "a", Subject: "ada"}, &mcp.Principal{Issuer: "a", Subject: "bob"}
			own := start(t, connect(mux, ada), gateway.prefix+"quick")
			state(t, own)
			state(t, tasks.Attach(connect(mux, ada), own.ID)) // on another connection
			direct := start(t, connect(server.mux, ada), "quick")
			flipped := []byte(own.ID)
			flipped[len(flipped)-3] ^= 1
			for name, c := range map[string]struct {
				conn *mcp.Conn
				id   string
			}{
				"another's":           {connect(mux, bob), own.ID},
				"nobody's":            {connect(mux, nil), own.ID},
				"another gateway's":   {connect(gateway.mount(t, server.mux), ada), own.ID},
				"the server's own":    {connect(mux, ada), direct.ID},
				"changed":             {connect(mux, ada), string(flipped)},
				"given to the server": {connect(server.mux, ada), own.ID},
			} {
				h := tasks.Attach(c.conn, c.id)
				_, err := h.Get(t.Context())
				for _, err := range []error{err, h.Cancel(t.Context()), h.Update(t.Context(), map[string]json.RawMessage{})} {
					if mcp.CodeOf(err) != mcp.CodeInvalidParams {
						t.Errorf("%s: %s: %v", way, name, err)
					}
				}
			}
		}
	})
}

// If the server pushes, a subscription to tasks works through gateways.
func TestGatewayPushes(t *testing.T) {
	for way, gateway := range through {
		t.Run(way, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				server := newOutcomes(t)
				mux := gateway.mount(t, server.mux)
				h := start(t, (&mcptest.Client{Options: *options()}).Connect(t, mux), gateway.prefix+"ask")
				ctx, cancel := context.WithCancel(t.Context())
				rec := new(mcptest.Recorder)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					_, _ = serve(ctx, mux, sender(nil, true).NewRequest(mcp.MethodListen, map[string]any{
						"notifications": map[string]any{"taskIds": []string{h.ID, "unknown"}, "toolsListChanged": true},
					}), rec)
				}()
				for range 2 {
					question := until(t, h, tasks.InputRequired)
					synctest.Wait() // a state that is followed immediately by an answer need not be pushed
					answer(t, h, question, av1)
				}
				until(t, h, tasks.Completed)
				<-time.After(2 * time.Second)
				cancel()
				<-ended
				seen := map[tasks.Status]bool{}
				for _, note := range rec.Notifications() {
					var p tasks.NotificationParams
					switch note.Method {
					case mcp.NotificationAcknowledged:
						var ack mcp.AcknowledgedParams
						if err := note.Decode(&ack); err != nil || !strings.Contains(string(ack.Notifications.Extra["taskIds"]), h.ID) {
							t.Errorf("acknowledged: %+v, %v", ack, err)
						}
					case tasks.NotificationTask:
						if err := note.Decode(&p); err != nil || p.ID != h.ID || p.Meta[mcp.MetaSubscriptionID] == nil {
							t.Errorf("%+v, %v", p, err)
						}
						seen[p.Status] = true
					}
				}
				if !seen[tasks.InputRequired] || !seen[tasks.Completed] {
					t.Errorf("pushed: %v", seen)
				}
			})
		})
	}
}
