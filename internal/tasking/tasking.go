// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package tasking

import "slices"

// Extension is the identifier of the extension.
const Extension = "io.modelcontextprotocol/tasks"

// The methods and the notification of the extension.
const (
	MethodGet    = "tasks/get"
	MethodUpdate = "tasks/update"
	MethodCancel = "tasks/cancel"

	NotificationTask = "notifications/tasks"
)

// ResultTask is the type of a result that is a task.
const ResultTask = "task"

// TaskIDs is the member of a subscription's filter that names tasks.
const TaskIDs = "taskIds"

// MayUse reports whether a token with the granted scopes may use a task of its caller. The
// token needs all scopes of the token that created the task, because the tool may require them.
func MayUse(granted, created []string) bool {
	return !slices.ContainsFunc(created, func(scope string) bool { return !slices.Contains(granted, scope) })
}
