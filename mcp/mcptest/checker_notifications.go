// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp"
)

var errUnacknowledged = errors.New("the subscription was not acknowledged")

// checkNotificationLocked checks a notification of the server.
func (c *checker) checkNotificationLocked(note *mcp.Request, about mcp.ID) error {
	if note.Method == mcp.NotificationResourceUpdated && note.Name() == "" {
		return errors.New("params.uri is missing")
	}
	if isLegacy, err := c.checkLegacyNotificationLocked(note); isLegacy {
		return err
	}
	switch note.Method {
	case mcp.NotificationProgress:
		return c.checkProgressLocked(note)
	case mcp.NotificationMessage:
		return c.checkLogLocked(note, about)
	case mcp.NotificationCancelled:
		return c.checkCancelledLocked(note)
	case mcp.NotificationAcknowledged:
		return c.checkAcknowledgedLocked(note)
	case mcp.NotificationToolsListChanged, mcp.NotificationPromptsListChanged, mcp.NotificationResourcesListChanged, mcp.NotificationResourceUpdated:
		return c.checkChangeLocked(note)
	case tasking.NotificationTask:
		return checkTaskNotification(note)
	}
	if mcp.IsMethod(note.Method) {
		return errors.New("it is a notification of clients")
	}
	return nil // defined by an extension
}

// checkProgressLocked checks that progress belongs to a request in flight and increases.
func (c *checker) checkProgressLocked(note *mcp.Request) error {
	var p mcp.ProgressParams
	if err := note.Decode(&p); err != nil {
		return err
	}
	for _, call := range c.calls {
		if token := call.req.ProgressToken(); token.IsZero() || token != p.ProgressToken {
			continue
		}
		if call.progress != nil && p.Progress <= *call.progress {
			return fmt.Errorf("progress must increase; it was %v", *call.progress)
		}
		call.progress = &p.Progress
		return nil
	}
	return fmt.Errorf("no request in flight has the progress token %s", p.ProgressToken)
}

// checkLogLocked checks that a request in flight asked for log messages of this level.
func (c *checker) checkLogLocked(note *mcp.Request, about mcp.ID) error {
	level, err := levelOf(note)
	if err != nil {
		return err
	}
	for id, call := range c.calls {
		named := about.IsZero() || id == about
		if named && call.req.Method != mcp.MethodListen && reaches(level, call.req.LogLevel()) {
			return nil
		}
	}
	return fmt.Errorf("no request in flight asked for the level %s", level)
}

// levelOf returns the level of a log message.
func levelOf(note *mcp.Request) (mcp.LoggingLevel, error) {
	var p mcp.LoggingMessageParams
	if err := note.Decode(&p); err != nil {
		return "", err
	}
	if _, ok := p.Level.Level(); !ok {
		return "", fmt.Errorf("the level %q does not exist", p.Level)
	}
	return p.Level, nil
}

// reaches reports whether level is at least as severe as least. It is false if least is not a
// valid level.
func reaches(level, least mcp.LoggingLevel) bool {
	have, _ := level.Level()
	want, ok := least.Level()
	return ok && have >= want
}

// checkCancelledLocked checks that the server cancels only subscriptions. The notification
// may arrive before or after the result of the subscription.
func (c *checker) checkCancelledLocked(note *mcp.Request) error {
	var p mcp.CancelledParams
	if err := note.Decode(&p); err != nil {
		return err
	}
	if call := c.calls[p.RequestID]; !c.ended[p.RequestID] && (call == nil || call.req.Method != mcp.MethodListen) {
		return fmt.Errorf("%s is not the id of a subscription", p.RequestID)
	}
	return nil
}

// subscriptionLocked returns the subscription that a notification belongs to.
func (c *checker) subscriptionLocked(note *mcp.Request) (*checkedCall, error) {
	var id mcp.ID
	if !note.Meta().Get(mcp.MetaSubscriptionID, &id) {
		return nil, fmt.Errorf("_meta has no %s", mcp.MetaSubscriptionID)
	}
	if call := c.calls[id]; call != nil && call.req.Method == mcp.MethodListen {
		return call, nil
	}
	return nil, fmt.Errorf("%s is not the id of a subscription", id)
}

func (c *checker) checkAcknowledgedLocked(note *mcp.Request) error {
	call, err := c.subscriptionLocked(note)
	if err != nil {
		return err
	}
	if call.acknowledged {
		return errors.New("the subscription was acknowledged before")
	}
	var p mcp.AcknowledgedParams
	var asked mcp.ListenParams
	if err := errors.Join(note.Decode(&p), call.req.Decode(&asked)); err != nil {
		return err
	}
	call.acknowledged, call.accepted = true, changeMethods(&p.Notifications)
	got := slices.Concat(p.Notifications.ResourceSubscriptions, call.accepted)
	want := slices.Concat(asked.Notifications.ResourceSubscriptions, changeMethods(&asked.Notifications))
	for _, what := range got {
		if !slices.Contains(want, what) {
			return fmt.Errorf("the client did not ask for %s", what)
		}
	}
	return nil
}

// checkChangeLocked checks that a change was subscribed to.
func (c *checker) checkChangeLocked(note *mcp.Request) error {
	call, err := c.subscriptionLocked(note)
	switch {
	case err != nil:
		return err
	case !call.acknowledged:
		return errUnacknowledged
	case !slices.Contains(call.accepted, note.Method):
		return errors.New("the subscription does not include it")
	}
	return nil
}

// changeMethods returns the methods of the notifications selected by a filter.
func changeMethods(f *mcp.SubscriptionFilter) []string {
	return methodsOf(f.ToolsListChanged, f.PromptsListChanged, f.ResourcesListChanged, len(f.ResourceSubscriptions) > 0)
}

func methodsOf(tools, prompts, resources, updates bool) []string {
	var methods []string
	for method, ok := range map[string]bool{
		mcp.NotificationToolsListChanged:     tools,
		mcp.NotificationPromptsListChanged:   prompts,
		mcp.NotificationResourcesListChanged: resources,
		mcp.NotificationResourceUpdated:      updates,
	} {
		if ok {
			methods = append(methods, method)
		}
	}
	return methods
}
