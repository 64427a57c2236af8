// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "fmt"

// checkConversation holds the messages for a model to what the specification asks of
// the use of tools (client/sampling): results stand alone in the message of the user
// after that of the uses, and there is one for each.
func checkConversation(messages []*SamplingMessage) error {
	var open map[string]bool // uses without a result yet
	for i, m := range messages {
		if m == nil {
			return fmt.Errorf("message %d is nil", i)
		}
		uses, results := toolBlocks(m.Content)
		if len(results) > 0 && (m.Role != RoleUser || len(results) != len(m.Content)) {
			return fmt.Errorf("message %d: results of tools stand in messages of the user, with nothing else", i)
		}
		for _, id := range results {
			if !open[id] {
				return fmt.Errorf("message %d: there is no use %q of a tool in the message before", i, id)
			}
			delete(open, id)
		}
		for id := range open {
			return fmt.Errorf("message %d: the use %q of a tool has no result", i, id)
		}
		open = uses
	}
	for id := range open {
		return fmt.Errorf("the use %q of a tool has no result", id)
	}
	return nil
}

// toolBlocks are the ids of the uses of tools in a message, and of their results.
func toolBlocks(content SamplingContent) (uses map[string]bool, results []string) {
	for _, block := range content {
		switch b := block.(type) {
		case *ToolUseContent:
			if uses == nil {
				uses = map[string]bool{}
			}
			uses[b.ID] = true
		case *ToolResultContent:
			results = append(results, b.ToolUseID)
		}
	}
	return uses, results
}
