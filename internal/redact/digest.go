// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redact

import (
	"crypto/sha256"
	"encoding/hex"
)

// Session returns a name for a session that does not reveal its ID. It returns "" for "",
// the ID of a session that is tied to a connection.
func Session(id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}
