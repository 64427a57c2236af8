// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package redisstore stores what the replicas of an MCP server share in Redis or Valkey. It
// implements [github.com/go-psi/psi/mcp/store.Store]:
//
//	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{"redis:6379"}})
//	if err != nil {
//		return err
//	}
//	shared, err := redisstore.Open(ctx, client, nil)
//
// Addresses, TLS, the user and the mode (one server, Sentinel, Cluster) are configured in
// the client. Do not send reads to replicas (ClientOption.SendToReplicas), which can be behind.
//
// # What the server needs
//
// Redis 6.2 or Valkey 7.2, or later, is required; for a cluster, Redis 7. Set the
// maxmemory-policy to noeviction: with any other policy, a full server drops data that it
// has accepted. Set appendonly, or everything is lost when the server restarts.
//
// All keys and channels begin with the namespace and a colon. The user needs, for the
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
// Each operation is one command or script on one server, which executes them sequentially.
// But Redis acknowledges a write before its replicas have it: if a replica takes over, the
// most recent writes can be lost. Use package natsstore if that matters.
//
// If the connection breaks, an operation is repeated until [Options].Timeout. Scripts
// recognize repeated writes, so a write takes effect once.
//
// The subscription of a topic reports lost messages as [store.ErrOverflow] if too many were
// queued, or if its connection was broken. Each topic with subscriptions uses one connection.
//
// This package is stable, as docs/stability.md defines it.
package redisstore
