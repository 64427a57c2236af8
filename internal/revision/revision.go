// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package revision

import "slices"

// A Revision is an older revision of the protocol. Revisions compare by age; None is less
// than all others.
type Revision uint8

// The older revisions, by date.
const (
	None    Revision = iota
	R202411          // 2024-11-05
	R202503          // 2025-03-26
	R202506          // 2025-06-18
	R202511          // 2025-11-25
)

// Newest is the newest of the older revisions.
const Newest = R202511

var names = [...]string{R202411: "2024-11-05", R202503: "2025-03-26", R202506: "2025-06-18", R202511: "2025-11-25"}

// String returns the date of the revision, or "" for None.
func (r Revision) String() string { return names[r] }

// Parse returns the revision with the given date, or None.
func Parse(date string) Revision {
	if i := slices.Index(names[1:], date); i >= 0 {
		return Revision(i + 1)
	}
	return None
}

// Names returns the dates of all revisions of this package, newest first.
func Names() []string {
	list := slices.Clone(names[1:])
	slices.Reverse(list)
	return list
}

// The methods and notifications that only the older revisions have.
const (
	Initialize  = "initialize"
	Initialized = "notifications/initialized"
	Ping        = "ping"
	SetLevel    = "logging/setLevel"
	Subscribe   = "resources/subscribe"
	Unsubscribe = "resources/unsubscribe"

	RootsListChanged = "notifications/roots/list_changed"
)

// The error codes that only the older revisions have.
const (
	CodeResourceNotFound       = -32002
	CodeURLElicitationRequired = -32042 // 2025-11-25
	CodeUserRejectedRequest    = -1     // the user declined sampling
)
