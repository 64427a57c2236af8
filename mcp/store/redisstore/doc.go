// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package redisstore keeps what the replicas of an MCP server share in Redis or Valkey. It
// implements [github.com/go-psi/psi/mcp/store.Store]:
//
//	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"redis:6379"}})
//	if err != nil {
//		return err
//	}
//	shared, err := redisstore.Open(ctx, client, nil)
//
// Addresses, TLS, the user and the mode (one server, Sentinel, Cluster) are those of the
// client. Do not send reads to replicas (ClientOption.SendToReplicas), which can be behind.
//
// # What the server needs
//
// Redis 6.2 or Valkey 7.2, or later; for a cluster Redis 7. Its maxmemory-policy must be
// noeviction: with any other, a full server forgets what it has accepted. Set appendonly,
// or everything is lost when the server restarts.
//
// All keys and channels begin with the namespace and a colon. The user needs, with the
// namespace "psi", the rules
//
//	~psi:* &psi:* +@read +@write +@scripting +@pubsub +@connection +time +info
//
// Each operation uses one key, or two with the same hash tag, so that it works in a
// cluster. The commands are GET, EVALSHA, EVAL, UNLINK, PUBLISH and SUBSCRIBE, and in a
// cluster SPUBLISH and SSUBSCRIBE.
//
// # What is guaranteed
//
// Each operation is one command or script of one server, which runs them one after the
// other. But Redis acknowledges a write before its replicas have it: when a replica takes
// over, the writes of the last moments can be gone. Use package natsstore where that
// matters.
//
// An operation is repeated until [Options].Timeout if the connection breaks. Scripts
// recognize the repetition of a write, so a write takes effect once.
//
// The subscription of a topic reports lost messages as [store.ErrOverflow] if too many wait,
// or if its connection was broken. Each topic with subscriptions takes one connection.
package redisstore
