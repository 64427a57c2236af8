// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package store is the contract for what the replicas of an MCP server share:
// legacy sessions, resumable event streams, change notifications, tasks and rate
// limits. A server on one machine needs nothing but [NewMemory].
//
// The contract asks for single atomic steps only. There is no lock, no
// transaction and no way to ask whether something exists and then act on it: each
// method is one step that an engine such as NATS JetStream or Redis takes in one
// go, and two replicas that take it at once see one order of events.
//
// A [Store] is three small interfaces. A consumer should ask for the one it needs:
//
//   - [Values]: values with versions; read, compare and swap, take.
//   - [Logs]: records in order; append, read from a position.
//   - [Topics]: messages to whoever listens at the moment; publish, subscribe.
//
// # What holds for every method
//
// Methods may be called by several goroutines at once. Each takes a context and
// returns its error when it is done before the step is taken; with a context
// that is done already, no step is taken. An error other than those of this
// package leaves open whether the step was taken, as a lost connection does.
//
// The caller owns every slice it passes in and every slice it gets: stores keep
// no reference to the former, and nobody else sees the latter. A nil slice is an
// empty one, and may come back as either.
//
// Keys, and the names of logs and topics, are any UTF-8 text of one to [MaxKey]
// bytes, without further syntax; an adapter escapes what its engine does not take.
// The three interfaces have separate name spaces. A key that no adapter would take,
// or a negative number, is an [ErrInvalid].
//
// A time to live (TTL) counts from the step that sets it. What has expired is
// not seen by any method again. Expiry is never early and, as engines count in
// whole seconds, may be late by a little over one. A TTL of zero sets no limit.
//
// A store is bounded, or its engine is. Where a bound is reached it refuses new
// data with [ErrFull] or [ErrTooLarge]; it does not make room by dropping what
// it has accepted. Take, Drop and the expiry of a TTL always make room. Values and
// records of half a megabyte, and messages of four kilobytes, are never too large.
//
// A store whose engine is on another machine bounds each operation in time, also
// without a deadline in the context. It may repeat a step whose answer was lost, as
// long as the step is taken once.
//
// # Engines
//
// Package [github.com/go-psi/psi/mcp/store/natsstore] uses NATS JetStream, and package
// [github.com/go-psi/psi/mcp/store/redisstore] uses Redis or Valkey. They are modules of
// their own.
//
// # Writing an adapter
//
// Package [github.com/go-psi/psi/mcp/store/storetest] has the tests that every
// implementation must pass.
package store
