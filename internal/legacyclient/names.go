// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package legacyclient

// Names of the newest revision. Package mcp, which imports this package, exports them.
const (
	methodDiscover      = "server/discover"
	methodListen        = "subscriptions/listen"
	methodListTools     = "tools/list"
	methodListPrompts   = "prompts/list"
	methodListResources = "resources/list"
	methodListTemplates = "resources/templates/list"
	methodCallTool      = "tools/call"
	methodGetPrompt     = "prompts/get"
	methodReadResource  = "resources/read"
	methodElicit        = "elicitation/create"
	methodCreateMessage = "sampling/createMessage"
	methodListRoots     = "roots/list"

	noteAcknowledged     = "notifications/subscriptions/acknowledged"
	noteCancelled        = "notifications/cancelled"
	noteProgress         = "notifications/progress"
	noteMessage          = "notifications/message"
	noteUpdated          = "notifications/resources/updated"
	noteToolsChanged     = "notifications/tools/list_changed"
	notePromptsChanged   = "notifications/prompts/list_changed"
	noteResourcesChanged = "notifications/resources/list_changed"

	metaVersion        = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities   = "io.modelcontextprotocol/clientCapabilities"
	metaClientInfo     = "io.modelcontextprotocol/clientInfo"
	metaServerInfo     = "io.modelcontextprotocol/serverInfo"
	metaLogLevel       = "io.modelcontextprotocol/logLevel"
	metaSubscriptionID = "io.modelcontextprotocol/subscriptionId"
	metaProgressToken  = "progressToken"
)

const (
	codeInvalidRequest     = -32600
	codeMethodNotFound     = -32601
	codeInvalidParams      = -32602
	codeInternalError      = -32603
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)

// levels are the levels of log messages in ascending order.
var levels = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// isQuestion reports whether method is a question that a server may ask its client.
func isQuestion(method string) bool {
	return method == methodElicit || method == methodCreateMessage || method == methodListRoots
}

// isList reports whether method requests a page of a list.
func isList(method string) bool {
	switch method {
	case methodListTools, methodListPrompts, methodListResources, methodListTemplates:
		return true
	}
	return false
}
