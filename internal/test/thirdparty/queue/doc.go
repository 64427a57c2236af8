// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

// Package queue carries single messages over a message broker: any number of workers serve
// the requests of a subject, and each answer goes to an inbox of its call. Because requests of
// the newest revision stand for themselves, no worker keeps anything about a client.
package queue
