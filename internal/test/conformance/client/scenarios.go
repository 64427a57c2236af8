// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/go-psi/psi/mcp"
)

// scenarios maps the name of each scenario to its function.
var scenarios = map[string]func(ctx context.Context, c *mcp.Conn) error{
	"initialize":                          list,
	"request-metadata":                    list,
	"json-schema-ref-no-deref":            list,
	"tools_call":                          calling("add_numbers", `{"a":5,"b":3}`),
	"elicitation-sep1034-client-defaults": calling("test_client_elicitation_defaults", `{}`),
	"sse-retry":                           calling("test_reconnection", `{}`),
	"json-schema-2020-12-preservation":    echoSchema,
	"sep-2322-client-request-state":       callAll,
	"http-standard-headers":               useEverything,
	"http-custom-headers":                 callFromContext,
	"http-invalid-tool-headers":           callWithRegion,
	"sep-2640-client-no-prefetch":         listSkills,
	"sep-2640-client-verify-digest":       useSkills,
	"sep-2640-client-verify-size":         useSkills,
	"sep-2640-client-verify-frontmatter":  useSkills,
}

func tools(ctx context.Context, c *mcp.Conn) ([]*mcp.Tool, error) {
	var all []*mcp.Tool
	for t, err := range c.Tools(ctx, nil) {
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

func list(ctx context.Context, c *mcp.Conn) error {
	_, err := tools(ctx, c)
	return err
}

func call(ctx context.Context, c *mcp.Conn, tool string, args json.RawMessage) error {
	res, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err == nil && res.IsError {
		err = &mcp.ToolError{Tool: tool, Result: res}
	}
	return err
}

func calling(tool, args string) func(context.Context, *mcp.Conn) error {
	return func(ctx context.Context, c *mcp.Conn) error {
		if err := list(ctx, c); err != nil {
			return err
		}
		return call(ctx, c, tool, json.RawMessage(args))
	}
}

// echoSchema sends a tool's schema back as received.
func echoSchema(ctx context.Context, c *mcp.Conn) error {
	all, err := tools(ctx, c)
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.Name == "json_schema_2020_12_tool" {
			args, err := json.Marshal(map[string]json.RawMessage{"schema": t.InputSchema})
			if err != nil {
				return err
			}
			return call(ctx, c, "json_schema_echo", args)
		}
	}
	return errors.New("the tool with the schema is not in the list")
}

func callAll(ctx context.Context, c *mcp.Conn) error {
	all, err := tools(ctx, c)
	for _, t := range all {
		err = errors.Join(err, call(ctx, c, t.Name, nil))
	}
	return err
}

func useEverything(ctx context.Context, c *mcp.Conn) error {
	err := callAll(ctx, c)
	for r, listErr := range c.Resources(ctx, nil) {
		if err = errors.Join(err, listErr); listErr != nil {
			break
		}
		_, readErr := c.ReadResource(ctx, &mcp.ReadResourceParams{URI: r.URI})
		err = errors.Join(err, readErr)
	}
	for p, listErr := range c.Prompts(ctx, nil) {
		if err = errors.Join(err, listErr); listErr != nil {
			break
		}
		_, getErr := c.GetPrompt(ctx, &mcp.GetPromptParams{Name: p.Name})
		err = errors.Join(err, getErr)
	}
	return err
}

// callFromContext makes the calls listed in the context.
func callFromContext(ctx context.Context, c *mcp.Conn) error {
	var given struct {
		ToolCalls []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"toolCalls"`
	}
	if err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &given); err != nil {
		return fmt.Errorf("context: %w", err)
	}
	err := list(ctx, c)
	for _, t := range given.ToolCalls {
		err = errors.Join(err, call(ctx, c, t.Name, t.Arguments))
	}
	return err
}

// callWithRegion calls all listed tools; tools with invalid definitions were dropped from
// the list.
func callWithRegion(ctx context.Context, c *mcp.Conn) error {
	all, err := tools(ctx, c)
	for _, t := range all {
		err = errors.Join(err, call(ctx, c, t.Name, json.RawMessage(`{"region":"us-west1"}`)))
	}
	return err
}
