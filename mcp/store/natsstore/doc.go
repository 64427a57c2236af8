// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package natsstore stores what the replicas of an MCP server share in NATS JetStream. It
// implements [github.com/go-psi/psi/mcp/store.Store]:
//
//	nc, err := nats.Connect("nats://nats-1,nats://nats-2,nats://nats-3", nats.MaxReconnects(-1))
//	if err != nil {
//		return err
//	}
//	shared, err := natsstore.Open(ctx, nc, &natsstore.Options{Replicas: 3})
//
// Credentials, TLS and reconnect behavior are configured in the connection. Set
// nats.MaxReconnects(-1), or the connection gives up after two minutes.
//
// # What is created
//
// [Open] creates a stream if it does not exist. With the namespace "psi", it is KV_psi, with
// one message for each key, below $KV.psi. Tools for key-value buckets can read it. If it
// disappears later, for example because it was in memory and its servers restarted, it is created again, empty.
//
// Topics are subjects below psi.topics and are not stored. [StreamConfig] returns
// the configuration, for servers on which applications may not create streams. The client
// needs permission to publish to $KV.psi.>, psi.> and $JS.API.>, and to subscribe to
// psi.topics.> and its inbox. NATS 2.11 or later is required, for messages with a TTL.
//
// # What is guaranteed
//
// Every write is acknowledged by a majority of the replicas of its stream, so it survives
// the loss of any minority. Reads go to the leader of the stream. A leader that was cut off
// from the other replicas can return old data for up to ten seconds; it cannot accept writes.
//
// If the connection breaks or a stream has no leader, an operation is repeated until
// [Options].Timeout. Writes carry an ID by which the server recognizes repetitions, so a write
// takes effect once. After a node was killed, an election can take several seconds.
//
// The subscription of a topic reports lost messages as [store.ErrOverflow] if too many were
// queued, if its connection was broken, or if the network between the servers lost some. The
// last case is detected when the next message of the same publisher arrives. In a cluster,
// Subscribe waits until the servers of all stores of the namespace know of the subscription:
// each store responds, below psi.topics, and the wait ends when no more responses arrive.
//
// This package is stable, as docs/stability.md defines it.
package natsstore
