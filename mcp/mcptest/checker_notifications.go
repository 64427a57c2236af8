// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcptest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/tasking"
	"github.com/go-psi/psi/mcp"
)

var errUnacknowledged = errors.New("the subscription was not acknowledged")

// checkNotificationLocked checks a notification of the server.
func (c *checker) checkNotificationLocked(note *mcp.Request, about mcp.ID) error {
	if c.session == nil && c.isConnectingLocked() {
		return nil // the answer to initialize may have arrived and not been checked
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
	case tasking.NotificationTask, revision.TaskStatus:
		return checkTaskNotification(note, c.session == nil)
	case methodInitialized, mcp.NotificationRootsListChanged:
		return errors.New("it is a notification of clients")
	}
	return nil // of an extension
}

// checkProgressLocked checks that progress names a request in flight and increases.
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

// checkLogLocked checks that somebody asked for a log message of this level: in the
// modern era a request in flight, in the legacy era the session.
func (c *checker) checkLogLocked(note *mcp.Request, about mcp.ID) error {
	var p mcp.LoggingMessageParams
	if err := note.Decode(&p); err != nil {
		return err
	}
	if _, ok := p.Level.Level(); !ok {
		return fmt.Errorf("the level %q does not exist", p.Level)
	}
	if s := c.session; s != nil {
		if !s.logging {
			return errors.New("the server did not declare logging")
		}
		if s.level != "" && !reaches(p.Level, s.level) {
			return fmt.Errorf("the client asked for the level %s", s.level)
		}
		return nil
	}
	for id, call := range c.calls {
		named := about.IsZero() || id == about
		if named && call.req.Method != mcp.MethodListen && reaches(p.Level, call.req.LogLevel()) {
			return nil
		}
	}
	return fmt.Errorf("no request in flight asked for the level %s", p.Level)
}

// reaches reports whether a message of a level is wanted where least is asked for.
func reaches(level, least mcp.LoggingLevel) bool {
	have, _ := level.Level()
	want, ok := least.Level()
	return ok && have >= want
}

// checkCancelledLocked checks that a server cancels a request of its own or, in the
// modern era, ends a subscription: before or after its result.
func (c *checker) checkCancelledLocked(note *mcp.Request) error {
	var p mcp.CancelledParams
	if err := note.Decode(&p); err != nil {
		return err
	}
	if c.session != nil {
		switch c.asked[p.RequestID] {
		case answerDue:
			c.asked[p.RequestID] = answerOptional
		case answerOptional, wasAnswered: // the answer may have crossed it
		default:
			return fmt.Errorf("the server made no request %s", p.RequestID)
		}
		return nil
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
	if c.session != nil {
		return errors.New("the legacy era has no acknowledgements")
	}
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

// checkChangeLocked checks that a change was subscribed to or, in the legacy era, that
// the server has declared that it reports such changes.
func (c *checker) checkChangeLocked(note *mcp.Request) error {
	if note.Method == mcp.NotificationResourceUpdated && note.Name() == "" {
		return errors.New("params.uri is missing")
	}
	if c.session != nil {
		if !slices.Contains(c.session.changes, note.Method) {
			return errors.New("the server did not declare that it reports such changes")
		}
		return nil
	}
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

// changeMethods returns the notifications of the changes in a filter.
func changeMethods(f *mcp.SubscriptionFilter) []string {
	return methodsOf(f.ToolsListChanged, f.PromptsListChanged, f.ResourcesListChanged, len(f.ResourceSubscriptions) > 0)
}

// declaredChanges returns the notifications that a legacy server has declared to send.
func declaredChanges(s *mcp.ServerCapabilities) []string {
	tools, prompts, resources := s.Tools, s.Prompts, s.Resources
	return methodsOf(tools != nil && tools.ListChanged, prompts != nil && prompts.ListChanged,
		resources != nil && resources.ListChanged, resources != nil && resources.Subscribe)
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
