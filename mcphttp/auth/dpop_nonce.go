// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"sync"
	"time"
)

// nonces are made of the time and a secret: nothing has to be kept, and replicas that
// share the secret know each other's.
type nonces struct {
	key []byte
	age time.Duration

	mu           sync.Mutex
	period       int64
	last, newest string // of the period before, and of the period
}

func newNonces(key []byte, age time.Duration) *nonces {
	if key == nil {
		key = make([]byte, 32)
		_, _ = rand.Read(key) // it never fails
	}
	if len(key) < 32 {
		panic("auth: DPoPOptions.NonceKey has less than 32 bytes")
	}
	if age < time.Second {
		panic("auth: DPoPOptions.NonceAge is less than a second")
	}
	return &nonces{key: slices.Clone(key), age: age}
}

func (n *nonces) of(period int64) string {
	mac := hmac.New(sha256.New, n.key)
	_, _ = mac.Write(binary.BigEndian.AppendUint64([]byte("psi dpop nonce "), uint64(period)))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:18])
}

func (n *nonces) at(now time.Time) (last, newest string) {
	period := now.UnixNano() / int64(n.age)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.newest == "" || n.period != period {
		n.period, n.last, n.newest = period, n.of(period-1), n.of(period)
	}
	return n.last, n.newest
}

func (n *nonces) current(now time.Time) string {
	_, newest := n.at(now)
	return newest
}

func (n *nonces) good(nonce string, now time.Time) bool {
	last, newest := n.at(now)
	return sameText(nonce, newest) || sameText(nonce, last)
}
