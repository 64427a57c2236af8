// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/mcp/transport"
)

// toolPlans holds what a connection knows about the server's tools from the lists that it
// has received.
type toolPlans struct {
	mu    sync.Mutex
	plans map[string]*toolPlan
}

// maxPlans is the maximum number of tools that a connection remembers.
const maxPlans = 100_000

// A toolPlan holds what is needed to call a tool.
type toolPlan struct {
	headers []paramHeader
	schema  json.RawMessage                    // of the output; nil if the tool has none
	output  func() (*jsonschema.Schema, error) // compiles the schema, once

	isChecked bool // the schema was requested again after a result did not fit it
}

// addPage stores the plans of the tools of a page and returns the tools. It drops tools
// whose schema mirrors arguments in headers in a way that the specification forbids.
func (p *toolPlans) addPage(tools []*Tool, logger *slog.Logger) []*Tool {
	kept := make([]*Tool, 0, len(tools))
	for _, t := range tools {
		headers, err := paramHeaders(t.InputSchema)
		if err != nil {
			logger.Warn("mcp: a tool was dropped from the server's list", "tool", t.Name, "error", err)
			continue
		}
		kept = append(kept, t)
		p.add(t, headers)
	}
	return kept
}

func (p *toolPlans) add(t *Tool, headers []paramHeader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plans == nil {
		p.plans = map[string]*toolPlan{}
	}
	known := p.plans[t.Name]
	if known == nil && len(p.plans) >= maxPlans {
		return
	}
	plan := &toolPlan{headers: headers, schema: t.OutputSchema, output: sync.OnceValues(func() (*jsonschema.Schema, error) {
		return jsonschema.Compile(t.OutputSchema, nil)
	})}
	if known != nil && bytes.Equal(known.schema, plan.schema) {
		plan.output, plan.isChecked = known.output, known.isChecked
	}
	p.plans[t.Name] = plan
}

// shouldRefetch reports whether to read the definition of a tool again because a result does not
// fit its output schema. It returns true at most once per schema.
func (p *toolPlans) shouldRefetch(tool string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	plan := p.plans[tool]
	if plan == nil || plan.isChecked {
		return false
	}
	plan.isChecked = true
	return true
}

// plan returns the plan of a tool, or nil if the tool has not been listed.
func (p *toolPlans) plan(tool string) *toolPlan {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plans[tool]
}

// headers returns the arguments of a call that are mirrored in headers.
func (p *toolPlans) headers(req *Request) []transport.HeaderParam {
	plan := p.plan(req.Name())
	if plan == nil || len(plan.headers) == 0 {
		return nil
	}
	var params []transport.HeaderParam
	for _, h := range plan.headers {
		value := argumentAt(req.Arguments(), h.path)
		switch {
		case value == nil:
		case value[0] == '"':
			params = append(params, transport.HeaderParam{Key: h.key, Value: jsonscan.Text(value)})
		default:
			params = append(params, transport.HeaderParam{Key: h.key, Value: string(value)})
		}
	}
	return params
}

// checkOutput validates structured content against the output schema of its tool. It also
// returns an error if the schema does not compile.
func (p *toolPlans) checkOutput(ctx context.Context, tool string, res *CallToolResult) error {
	plan := p.plan(tool)
	if plan == nil || plan.schema == nil || res.StructuredContent == nil || res.IsError {
		return nil
	}
	trace(traceOf(ctx).CacheHit, mcptrace.CacheInfo{Kind: "schema", Name: tool})
	schema, err := plan.output()
	if err == nil {
		err = schema.Validate(ctx, res.StructuredContent)
	}
	if err != nil {
		return &OutputError{tool, res, err}
	}
	return nil
}
