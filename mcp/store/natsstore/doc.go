// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package natsstore keeps what the replicas of an MCP server share in NATS JetStream. It
// implements [github.com/go-psi/psi/mcp/store.Store]:
//
//	nc, err := nats.Connect("nats://nats-1,nats://nats-2,nats://nats-3", nats.MaxReconnects(-1))
//	if err != nil {
//		return err
//	}
//	shared, err := natsstore.Open(ctx, nc, &natsstore.Options{Replicas: 3})
//
// The credentials, TLS and reconnect behavior are those of the connection. Set
// nats.MaxReconnects(-1), or the connection gives up after two minutes.
//
// # What is created
//
// [Open] creates two streams if they do not exist. With the namespace "psi":
//
//   - KV_psi, the values: one message for each key, below $KV.psi. The tools for
//     key-value buckets can read it.
//   - psi_logs, the logs: one subject for each log, below psi.logs.
//
// A stream that is gone later, as one in memory is when its servers were started again, is
// created again, empty.
//
// Topics are subjects below psi.topics and are not stored. [Streams] returns the
// configurations, for servers on which applications may not create streams. The client
// needs permission to publish to $KV.psi.>, psi.> and $JS.API.>, and to subscribe to
// psi.topics.> and its inbox. NATS 2.11 or later is required, for messages with a TTL.
//
// # What is guaranteed
//
// Every write is acknowledged by a majority of the replicas of its stream, so that it
// survives the loss of any minority. Reads go to the leader of the stream. A leader that
// was cut off from the others can answer reads with old data for up to ten seconds; it
// cannot accept writes.
//
// An operation is repeated until [Options].Timeout if the connection breaks or a stream
// has no leader. Writes carry an ID by which the server recognizes the repetition, so a
// write takes effect once. After a node was killed, an election can take nine seconds.
//
// The subscription of a topic reports lost messages as [store.ErrOverflow] if too many
// wait, if its connection was broken, or if the network between the servers lost some. The
// last of these is noticed when the next message of the same publisher arrives. In a
// cluster, Subscribe waits until the servers of all stores of the namespace know of the
// subscription: each store answers, below psi.topics, and the wait is over when a tenth of
// a second has passed since the last answer.
package natsstore
