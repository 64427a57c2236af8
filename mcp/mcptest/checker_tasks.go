// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/go-psi/psi/mcp"
)

// taskStates are the states of a task.
var taskStates = []string{"working", "input_required", "completed", "failed", "cancelled"}

// checkTask checks the members that every task has.
func checkTask(o object) error {
	var state string
	var created, updated time.Time
	if err := checkMembers(o, []string{"taskId", "status", "createdAt", "lastUpdatedAt"}); err != nil {
		return err
	}
	if jsonv2.Unmarshal(o["status"], &state) != nil || !slices.Contains(taskStates, state) {
		return fmt.Errorf("status is %s", o["status"])
	}
	if err := errors.Join(jsonv2.Unmarshal(o["createdAt"], &created), jsonv2.Unmarshal(o["lastUpdatedAt"], &updated)); err != nil {
		return err
	}
	var ms *int64
	if raw, ok := o["ttlMs"]; !ok || jsonv2.Unmarshal(raw, &ms) != nil {
		return errors.New("ttlMs is neither a number of milliseconds nor null")
	}
	return nil
}

// taskMembers are the members that a task must have, by state.
var taskMembers = map[string]string{"input_required": "inputRequests", "completed": "result", "failed": "error"}

// checkDetailedTask checks the result of tasks/get, or the params of notifications/tasks.
func checkDetailedTask(o object) error {
	if err := checkTask(o); err != nil {
		return err
	}
	var state string
	_ = jsonv2.Unmarshal(o["status"], &state) // checked by checkTask
	if member := taskMembers[state]; member != "" && o[member] == nil {
		return fmt.Errorf("the member %s is missing", member)
	}
	return nil
}

// checkTaskNotification checks a notification about a task.
func checkTaskNotification(note *mcp.Request) error {
	var o object
	if err := note.Decode(&o); err != nil {
		return err
	}
	return checkDetailedTask(o)
}
