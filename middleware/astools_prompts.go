// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/mcp"
)

// PromptsAsTools adds the tools list_prompts and get_prompt to a server, for hosts that know
// tools only. It is otherwise like [ResourcesAsTools]. The model gets the messages of the prompt
// as the result of a tool; if there are several, each begins with its role.
func PromptsAsTools() mcp.Middleware {
	return addTools(func(next mcp.Handler) []addedTool {
		return []addedTool{listPrompts(next), getPrompt(next)}
	})
}

// promptPage is the result of list_prompts.
type promptPage struct {
	Prompts    []*mcp.Prompt `json:"prompts"`
	NextCursor *string       `json:"nextCursor,omitempty"`
}

func listPrompts(next mcp.Handler) addedTool {
	return newAddedTool[cursorArgs](&mcp.Tool{
		Name: "list_prompts", Title: "List prompts",
		Description: "List the prompts of this server: instructions for common tasks, which get_prompt returns.",
		OutputSchema: json.RawMessage(`{"type":"object","required":["prompts"],"properties":{` +
			`"prompts":{"type":"array","items":{"type":"object"}},` + cursorSchema + `}}`),
	}, func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		cursor := jsonscan.Member(req.Arguments(), "cursor")
		in, err := args[cursorArgs](req)
		if err != nil {
			return nil, err
		}
		res, failed, err := ask(ctx, next, req, mcp.MethodListPrompts, pageAt(in.Cursor, cursor != nil))
		list, ok := res.(*mcp.ListPromptsResult)
		if !ok {
			return failed, cmp.Or(err, unexpected(failed, res))
		}
		page := promptPage{Prompts: []*mcp.Prompt{}, NextCursor: list.NextCursor}
		for _, p := range list.Prompts {
			if p != nil {
				c := *p
				c.Icons = nil
				page.Prompts = append(page.Prompts, &c)
			}
		}
		return structured(page)
	})
}

type promptArgs struct {
	Name      string            `json:"name" jsonschema:"minLength=1,description=The name of the prompt"`
	Arguments map[string]string `json:"arguments,omitempty" jsonschema:"description=Its arguments; all values are strings"`
}

func getPrompt(next mcp.Handler) addedTool {
	return newAddedTool[promptArgs](&mcp.Tool{
		Name: "get_prompt", Title: "Get a prompt",
		Description: "Get a prompt of this server that list_prompts returns. The result has instructions for you.",
	}, func(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
		in, err := args[promptArgs](req)
		if err != nil {
			return nil, err
		}
		res, failed, err := ask(ctx, next, req, mcp.MethodGetPrompt, in)
		prompt, ok := res.(*mcp.GetPromptResult)
		if failed != nil || err != nil || !ok {
			return cmp.Or(failed, res), err
		}
		out := &mcp.CallToolResult{ResultBase: mcp.ResultBase{Meta: prompt.Meta}, Content: mcp.Contents{}}
		for _, m := range prompt.Messages {
			if m == nil || m.Content == nil {
				continue
			}
			if len(prompt.Messages) > 1 {
				out.Content = append(out.Content, mcp.Text(string(m.Role)+":"))
			}
			out.Content = append(out.Content, m.Content)
		}
		return out, nil
	})
}
