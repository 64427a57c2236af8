// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package store is the contract for what the replicas of an MCP server share: legacy
// sessions, change notifications, tasks and rate limits. A server
// on one machine needs only [NewMemory].
//
// The contract requires only single atomic steps. There are no locks, no transactions, and
// no way to check whether something exists before acting on it: each method is one step
// that an engine such as NATS JetStream or Redis executes atomically. All replicas see the
// same order of events, even if they act concurrently.
//
// A [Store] consists of two small interfaces. A consumer should ask for the one it needs:
//
//   - [Values]: values with versions; read, compare and swap, take.
//   - [Topics]: messages to the current subscribers; publish, subscribe.
//
// # What holds for every method
//
// Methods may be called concurrently. Each takes a context and returns its error if it is
// done before the step is taken; if it is done already, no step is taken. After an error
// that is not one of this package, such as a lost connection, it is unknown whether the
// step was taken.
//
// The caller owns every slice that it passes or receives: stores do not retain the slices
// that they are passed, and do not share the slices that they return. A nil slice is
// equivalent to an empty one, and may be returned as either.
//
// Keys, and the names of topics, are any UTF-8 text of one to [MaxKey] bytes,
// without further syntax. Adapters escape what their engine does not accept. The two
// interfaces have separate name spaces. The error for an invalid key or a negative number
// is [ErrInvalid].
//
// A time to live (TTL) counts from the step that sets it. No method sees anything that has
// expired. Expiry is never early but, because engines count in whole seconds, may be late
// by a little over one second. A TTL of zero means no limit.
//
// A store, or its engine, is bounded. When it reaches a bound, it rejects new data with
// [ErrFull] or [ErrTooLarge]; it does not drop data that it has accepted. Take and the
// expiry of a TTL always make room. Values of half a megabyte, and messages of four kilobytes, are never too large.
//
// A store whose engine is on another machine limits the time of each operation, even if the
// context has no deadline. It may repeat a step whose response was lost, as long as the
// step takes effect once.
//
// # Engines
//
// Package [github.com/go-psi/psi/mcp/store/natsstore] uses NATS JetStream, and package
// [github.com/go-psi/psi/mcp/store/redisstore] uses Redis or Valkey. They are separate modules.
//
// # Writing an adapter
//
// Package [github.com/go-psi/psi/mcp/store/storetest] has the tests that every
// implementation must pass.
//
// This package is stable, as docs/stability.md defines it.
package store
