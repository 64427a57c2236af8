// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "slices"

// The methods of the modern core.
const (
	MethodDiscover              = "server/discover"
	MethodListTools             = "tools/list"
	MethodCallTool              = "tools/call"
	MethodListPrompts           = "prompts/list"
	MethodGetPrompt             = "prompts/get"
	MethodListResources         = "resources/list"
	MethodListResourceTemplates = "resources/templates/list"
	MethodReadResource          = "resources/read"
	MethodComplete              = "completion/complete"
	MethodListen                = "subscriptions/listen"
)

// MethodSubscribe asks the registration of a resource whether the caller may be told of
// updates of params.uri; see [Resource.Subscribe]. A mux asks it for each resource of a
// subscription. Clients send it in the revisions before 2026-07-28 only.
const MethodSubscribe = "resources/subscribe"

// The methods that a server asks its client, as requests in the legacy era and
// as the questions of an [InputRequired] in the modern one.
const (
	MethodElicit        = "elicitation/create"
	MethodCreateMessage = "sampling/createMessage"
	MethodListRoots     = "roots/list"
)

// The notifications.
const (
	NotificationCancelled            = "notifications/cancelled"
	NotificationProgress             = "notifications/progress"
	NotificationMessage              = "notifications/message"
	NotificationToolsListChanged     = "notifications/tools/list_changed"
	NotificationPromptsListChanged   = "notifications/prompts/list_changed"
	NotificationResourcesListChanged = "notifications/resources/list_changed"
	NotificationResourceUpdated      = "notifications/resources/updated"
	NotificationAcknowledged         = "notifications/subscriptions/acknowledged"
)

// methodNames are the methods and notifications of all revisions.
var methodNames = func() map[string]bool {
	names := map[string]bool{}
	for _, m := range slices.Concat([]string{
		MethodDiscover, MethodListTools, MethodCallTool, MethodListPrompts, MethodGetPrompt,
		MethodListResources, MethodListResourceTemplates, MethodReadResource, MethodComplete, MethodListen, MethodSubscribe,
		MethodElicit, MethodCreateMessage, MethodListRoots,
		NotificationCancelled, NotificationProgress, NotificationMessage,
		NotificationToolsListChanged, NotificationPromptsListChanged, NotificationResourcesListChanged,
		NotificationResourceUpdated, NotificationAcknowledged,
	}, legacyMethods) {
		names[m] = true
	}
	return names
}()

// prefixTasks begins the methods of the tasks extension that are about one task.
const prefixTasks = "tasks/"

// isNamed reports whether a method is about one thing whose name, URI or ID a transport
// can route by.
func isNamed(method string) bool {
	switch method {
	case MethodCallTool, MethodGetPrompt, MethodReadResource, prefixTasks + "get", prefixTasks + "update", prefixTasks + "cancel":
		return true
	}
	return false
}

// IsMethod reports whether method is one of the specification's, of any revision: a
// request or a notification. Others are those of extensions, and whatever a peer
// makes up.
func IsMethod(method string) bool { return methodNames[method] }
