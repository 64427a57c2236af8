// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package model_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-psi/psi/mcp"
)

// judge checks the outcome of every call against the model.
func (w *world) judge() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.serving != 0 {
		w.wrongLockedf("%d handlers did not end", w.serving)
	}
	for _, tag := range slices.Sorted(maps.Keys(w.calls)) {
		k := w.calls[tag]
		if k.returned == 0 {
			w.wrongLockedf("%s has not returned", k)
			continue
		}
		k.judgeOutcome()
		k.judgeRuns()
		k.judgeCancelling()
		k.judgeProgress()
	}
}

// excused reports whether the call may fail in any way because of faults.
func (k *call) excused() bool {
	w := k.client.w
	if k.strict {
		return false
	}
	if k.dead || slices.ContainsFunc(k.faults, func(f string) bool { return f != "delay" }) {
		return true
	}
	if !w.down.IsZero() && !w.down.After(k.returnedAt) {
		return true
	}
	return during(k.client.disturbed, k.begunAt, k.returnedAt)
}

// during reports whether one of the times lies between from and to.
func during(times []time.Time, from, to time.Time) bool {
	return slices.ContainsFunc(times, func(t time.Time) bool { return !t.Before(from) && !t.After(to) })
}

func (k *call) judgeOutcome() {
	w := k.client.w
	switch {
	case k.err == nil && !k.mayAnswer():
		w.wrongLockedf("%s was answered with %q %v", k, k.text, k.list)
	case k.err == nil && slices.Contains(k.faults, "drop"):
		w.wrongLockedf("%s was answered, although a message of it was lost", k)
	case k.err == nil, k.cancelled && errors.Is(k.err, context.Canceled):
	case !k.excused() && !k.mayFail():
		w.wrongLockedf("%s failed: %v", k, k.err)
	}
}

// mayAnswer reports whether the model allows the result of the call.
func (k *call) mayAnswer() bool {
	switch k.kind {
	case "echo", "work":
		return k.text == k.tag
	case "hostile":
		return true
	case "dyn":
		return k.text == k.tag && k.could(func(tools []string) bool { return slices.Contains(tools, k.name) })
	case "ask":
		return k.action == mcp.ActionAccept && k.text == asked(k.tag)
	case "list":
		leftOut := k.client.way.mounted && len(k.list) == 0 && k.excused() // by the gateway
		return leftOut || k.could(func(tools []string) bool { return slices.Equal(tools, k.list) })
	}
	return false
}

// could reports whether the dynamic tools satisfied the condition at any time during the
// call.
func (k *call) could(be func(tools []string) bool) bool {
	from, to := k.begun, k.returned
	var before change // no tools
	for _, ch := range k.client.w.changes {
		if ch.key != toolsKey {
			continue
		}
		if before.begun <= to && ch.end >= from && be(before.tools) {
			return true
		}
		before = ch
	}
	return before.begun <= to && be(before.tools)
}

// mayFail reports whether the call may fail with its error even without any fault.
func (k *call) mayFail() bool {
	var failure *mcp.ToolError
	var coded *mcp.Error
	text := ""
	switch {
	case errors.As(k.err, &failure):
		for _, block := range failure.Result.Content {
			text += block.(*mcp.TextContent).Text
		}
	case errors.As(k.err, &coded):
		text = coded.Message
	}
	switch k.kind {
	case "fail":
		return failure != nil && text == "failed "+k.tag
	case "panic":
		return coded != nil && coded.Code == mcp.CodeInternalError && !strings.Contains(text, k.tag)
	case "hostile":
		return true
	case "ask":
		if k.client.way.shared && strings.Contains(text, "cannot be passed on") {
			return true // the gateway cannot tell which call the question belongs to
		}
		return failure != nil && (k.action == mcp.ActionDecline && strings.Contains(text, "declined") || k.action == mcp.ActionCancel && strings.Contains(text, "cancelled"))
	case "dyn":
		return coded != nil && coded.Code == mcp.CodeInvalidParams && k.could(func(tools []string) bool { return !slices.Contains(tools, k.name) })
	}
	return false
}

// judgeRuns checks that no handler ran more often than requested.
func (k *call) judgeRuns() {
	if k.kind == "list" || k.kind == "hostile" {
		return
	}
	w := k.client.w
	copies := 1
	for _, f := range k.faults {
		if f == "duplicate" {
			copies++
		}
	}
	rounds := 1
	if k.kind == "ask" {
		rounds = 3
	}
	switch {
	case k.runs > copies*rounds:
		w.wrongLockedf("%s: its handler ran %d times", k, k.runs)
	case k.once > copies:
		w.wrongLockedf("%s: what is done once was done %d times", k, k.once)
	case k.err == nil && k.runs == 0:
		w.wrongLockedf("%s was answered, but not served", k)
	}
	for question, n := range k.asked {
		if n > copies {
			w.wrongLockedf("%s: the user was asked %q %d times", k, question, n)
		}
	}
}

// judgeCancelling checks that the server stops a cancelled call.
func (k *call) judgeCancelling() {
	if !k.cancelled || k.runs == 0 || k.excused() || k.ended.IsZero() {
		return
	}
	late := k.cancelledAt.Add(10 * time.Second)
	if k.ended.After(late) && !k.client.dead && !during(k.client.irritated, k.cancelledAt, late) && !slices.Contains(k.faults, "delay") {
		k.client.w.wrongLockedf("%s was cancelled, but went on for %v", k, k.ended.Sub(k.cancelledAt))
	}
}

// judgeProgress checks that all progress arrived, unless there were faults.
func (k *call) judgeProgress() {
	if k.kind == "work" && k.err == nil && len(k.faults) == 0 && !k.excused() && len(k.progress) != k.steps {
		k.client.w.wrongLockedf("%s: %d steps made the progress %v", k, k.steps, k.progress)
	}
	if k.kind != "work" && len(k.progress) > 0 {
		k.client.w.wrongLockedf("%s: the progress %v is of somebody else", k, k.progress)
	}
}
