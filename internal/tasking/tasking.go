// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasking

import (
	"encoding/json"
	"slices"
	"time"
)

// Extension is the identifier of the extension.
const Extension = "io.modelcontextprotocol/tasks"

// The methods and the notification of the extension.
const (
	MethodGet    = "tasks/get"
	MethodUpdate = "tasks/update"
	MethodCancel = "tasks/cancel"

	NotificationTask = "notifications/tasks"
)

// MethodList lists the tasks of a caller. It is not part of the extension: only requests
// with [Terms] are served.
const MethodList = "tasks/list"

// ResultTask is the type of a result that is a task.
const ResultTask = "task"

// TaskIDs is the member of a subscription's filter that names tasks.
const TaskIDs = "taskIds"

// Terms are what a request requires of tasks beyond the extension. Only code in the server
// process can set them. A tools/call with Terms is either answered immediately with a task,
// or rejected. A tasks/cancel with Terms cancels the task before it is answered, whatever
// the handler does.
type Terms struct {
	TTL time.Duration // TTL of a new task, if it is less than the tool's; 0 means the tool's
}

// MayUse reports whether a token with the granted scopes may use a task of its caller. The
// token needs all scopes of the token that created the task, because the tool may require them.
func MayUse(granted, created []string) bool {
	return !slices.ContainsFunc(created, func(scope string) bool { return !slices.Contains(granted, scope) })
}

// Support describes whether a tool can be called as a task.
type Support uint8

// The kinds of support.
const (
	Never Support = iota
	Optional
	Required
)

// A Supporter is a tool handler that can answer tools/call with a task.
type Supporter interface{ TaskSupport() Support }

// A Listed is a task in a [List].
type Listed struct {
	Task json.RawMessage `json:"task"` // as in the extension
	// IsError reports that the task is completed, and its result says that the tool failed.
	IsError bool `json:"isError,omitzero"`
}

// A List is the result of [MethodList].
type List struct {
	Tasks      []Listed `json:"tasks"`
	NextCursor *string  `json:"nextCursor,omitzero"`
}
