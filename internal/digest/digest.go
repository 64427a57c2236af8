// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package digest

import (
	"crypto/sha256"
	"encoding/hex"
)

// Session names a session by its id, without giving that away. It is "" for "", the id
// of a session that is its connection.
func Session(id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}
