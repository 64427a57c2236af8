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

// MethodSubscribe asks whether the caller may be notified of updates of params.uri; see
// [Resource.Subscribe]. A mux sends it to the registration of each resource in a
// subscription that has a Subscribe function. Clients send it only in the revisions before
// 2026-07-28.
const MethodSubscribe = "resources/subscribe"

// The methods with which a server asks its client questions: requests in the legacy era,
// members of an [InputRequired] in the modern era.
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

// A Kind is a kind of item that a server has.
type Kind string

// The kinds of items.
const (
	KindTool     Kind = "tool"
	KindPrompt   Kind = "prompt"
	KindResource Kind = "resource" // named by its URI or, in lists and completion, by its template
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

// prefixTasks is the prefix of the methods of the tasks extension.
const prefixTasks = "tasks/"

// isNamed reports whether requests of a method are about one tool, prompt, resource or task,
// whose name, URI or ID transports can use for routing.
func isNamed(method string) bool {
	switch method {
	case MethodCallTool, MethodGetPrompt, MethodReadResource, prefixTasks + "get", prefixTasks + "update", prefixTasks + "cancel":
		return true
	}
	return false
}

// IsMethod reports whether method is a request or notification of any revision of the
// specification. Extensions have other methods, and peers may send arbitrary ones.
func IsMethod(method string) bool { return methodNames[method] }
