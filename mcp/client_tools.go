// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/lru"
	"github.com/go-psi/psi/internal/sparse"
	"github.com/go-psi/psi/jsonschema"
	"github.com/go-psi/psi/mcp/mcptrace"
	"github.com/go-psi/psi/mcp/transport"
)

// toolPlans holds what a connection knows about the server's tools from the lists that it
// has received.
type toolPlans struct {
	mu    sync.Mutex
	plans map[string]*toolPlan
	size  int // of all plans, in bytes

	// Compiled output schemas, by the hash of their text.
	outputs    *lru.Map[[sha256.Size]byte, *outputSchema]
	outputSize int // of all of them, in bytes

	// The list that is being read: its number, and a hash of the cursor of its next page.
	// Plans of tools that a complete list lacks are dropped.
	list int
	next [sha256.Size]byte

	crowded bool      // plans of the latest list were dropped because there was no room
	isStale bool      // the server has said since then that its tools have changed
	read    time.Time // when the whole list was last read because a tool was not in plans
}

// maxPlans limits the memory for the plans of a connection, in bytes. If there is no room
// for a plan, others are dropped: their tools are listed again when that is noticed.
const maxPlans = 32 << 20

// maxOutputs limits the memory for the compiled output schemas of a connection, in bytes. A
// schema can need far more than its text, and a larger one is compiled for each result.
const maxOutputs = 32 << 20

// maxOutputSchema is the limit of package jsonschema for schemas. Larger ones do not
// compile and are not kept.
const maxOutputSchema = 1 << 20

// A toolPlan holds what is needed to call a tool.
type toolPlan struct {
	headers   []paramHeader
	needsTask bool              // see Conn.needsTask
	output    json.RawMessage   // the schema of the output; nil if the tool has none, or errOutput is set
	digest    [sha256.Size]byte // of output
	size      int               // in bytes
	list      int               // number of the latest list with the tool

	errOutput error // why the schema of the output was not kept
	isChecked bool  // the schema was requested again after a result did not fit it
}

// An outputSchema is an output schema that is compiled by the first call that needs it.
type outputSchema struct {
	compile func() (*jsonschema.Schema, error)
	size    int // in bytes; 0 until it is compiled
}

// rememberTools stores the plans of the tools of a page and returns the tools. It drops
// tools whose schema mirrors arguments in headers in a way that the specification forbids.
func (c *Conn) rememberTools(req *Request, page *ListToolsResult) []*Tool {
	kept := make([]*Tool, 0, len(page.Tools))
	plans := make([]*toolPlan, 0, len(page.Tools))
	for _, t := range page.Tools {
		plan, err := c.newToolPlan(t)
		if err != nil {
			c.warnDropped("mcp: a tool was dropped from the server's list", "tool", sparse.Excerpt(t.Name), "error", sparse.Excerpt(err.Error()))
			continue
		}
		kept, plans = append(kept, t), append(plans, plan)
	}
	c.tools.addPage(jsonscan.Member(req.Params(), "cursor"), page.NextCursor, kept, plans)
	return kept
}

func (c *Conn) newToolPlan(t *Tool) (*toolPlan, error) {
	const fixed = 256 // for the plan and its place in the map
	headers, err := paramHeaders(t.InputSchema)
	if err != nil {
		return nil, err
	}
	plan := &toolPlan{headers: headers, needsTask: c.needsTask(t), size: fixed + len(t.Name)}
	for _, h := range headers {
		plan.size += fixed + len(h.key) + 16*len(h.path) // the names are counted below
	}
	if len(headers) > 0 {
		plan.size += len(t.InputSchema) // has the names in the paths
	}
	if schema := t.OutputSchema; len(schema) > maxOutputSchema {
		plan.errOutput = errLargeSchema
	} else if schema != nil {
		plan.size += len(schema)
		plan.output, plan.digest = schema, sha256.Sum256(schema)
	}
	if plan.size > maxPlans/4 {
		return nil, fmt.Errorf("its name and its annotations with %s have %d bytes, the limit is %d", headerKeyword, plan.size, maxPlans/4)
	}
	return plan, nil
}

var errLargeSchema = fmt.Errorf("the schema has more than %d bytes", maxOutputSchema)

// addPage stores the plans of the tools of a page with the given cursors.
func (p *toolPlans) addPage(cursor json.RawMessage, next *string, tools []*Tool, plans []*toolPlan) {
	p.mu.Lock()
	defer p.mu.Unlock()
	isNext := cursor == nil || string(cursor) == "null"
	if isNext {
		p.list++
		p.crowded = false
	} else {
		isNext = sha256.Sum256(jsonscan.Unquote(cursor)) == p.next
	}
	for i, t := range tools {
		p.addLocked(t.Name, plans[i])
	}
	switch {
	case !isNext: // of another list
	case next != nil:
		p.next = sha256.Sum256([]byte(*next))
	default:
		p.next = [sha256.Size]byte{}
		p.dropLocked(func(plan *toolPlan) bool { return plan.list != p.list })
	}
}

func (p *toolPlans) addLocked(tool string, plan *toolPlan) {
	if p.plans == nil {
		p.plans = map[string]*toolPlan{}
	}
	if known := p.plans[tool]; known != nil {
		plan.isChecked = known.isChecked && bytes.Equal(known.output, plan.output)
		p.size -= known.size
		delete(p.plans, tool)
	}
	if p.size+plan.size > maxPlans {
		p.crowded = true
		p.dropLocked(func(*toolPlan) bool { return p.size+plan.size > maxPlans })
	}
	plan.list = p.list
	p.plans[tool] = plan
	p.size += plan.size
}

// dropLocked drops plans, in no particular order.
func (p *toolPlans) dropLocked(drop func(*toolPlan) bool) {
	for tool, plan := range p.plans {
		if drop(plan) {
			p.size -= plan.size
			delete(p.plans, tool)
		}
	}
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
		if value := argumentAt(req.Arguments(), h.path); value != nil {
			params = append(params, transport.HeaderParam{Key: h.key, Value: h.text(value)})
		}
	}
	return params
}

// rereadAfter is how long a connection relies on the list that it has read to find a tool.
// Without it, every call of an unknown tool would read the list.
const rereadAfter = 10 * time.Second

// checkCall returns an error if a request cannot be sent as it is: it calls a tool that is known
// to require a task, or its headers and arguments differ.
func (c *Conn) checkCall(ctx context.Context, req *Request) error {
	if req.Method != MethodCallTool {
		return nil
	}
	if plan := c.tools.plan(req.Name()); plan != nil && plan.needsTask {
		return errNeedsTask(req.Name())
	}
	return c.checkHeaders(ctx, req)
}

// checkHeaders returns an error if the headers and the arguments of a received tool call
// differ. The call has new headers on the next hop, so nothing else would notice that what
// stands in front of this program has seen other arguments. Tools that are not known are
// listed first, since a missing header can be noticed only with the schema.
func (c *Conn) checkHeaders(ctx context.Context, req *Request) error {
	if !req.mirrorsParams() {
		return nil
	}
	plan, isRead, isCrowded := c.tools.find(req.Name())
	if (plan == nil || c.tools.hasChanged()) && !isRead {
		_, err := c.listing.Do(ctx, struct{}{}, func(ctx context.Context) (struct{}, error) {
			c.tools.setStale(false)
			_ = c.readTool(ctx, "") // all pages; without a list, the tool stays unknown
			c.tools.setRead()
			return struct{}{}, nil
		})
		if err != nil {
			return err
		}
		plan, _, isCrowded = c.tools.find(req.Name())
	}
	if plan != nil {
		return checkParamHeaders(plan.headers, req)
	}
	if isCrowded {
		return Errorf(CodeHeaderMismatch, "the headers of %q cannot be checked: the server behind this one lists more tools than fit in %d bytes", req.Name(), maxPlans)
	}
	for key := range req.Header {
		if strings.HasPrefix(key, paramHeaderPrefix) {
			return headerMismatch(key, "it cannot be checked, because the server behind this one does not list the tool")
		}
	}
	return nil
}

// find returns the plan of a tool, or nil. isRead reports whether the whole list was read
// within rereadAfter, and isCrowded whether not all of its plans were kept.
func (p *toolPlans) find(tool string) (plan *toolPlan, isRead, isCrowded bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plans[tool], !p.read.IsZero() && time.Since(p.read) < rereadAfter, p.crowded
}

// setStale records whether the server has said that its tools have changed.
func (p *toolPlans) setStale(isStale bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isStale = isStale
}

func (p *toolPlans) hasChanged() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.isStale
}

func (p *toolPlans) setRead() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.read = time.Now()
}

// checkOutput validates structured content against the output schema of its tool. It also
// returns an error if the schema does not compile. The definition of the tool is read again
// if the content does not fit, because the schema may have changed. The error contains the
// result, so that a server with one unreadable schema stays usable. Returning both was
// rejected, because programs ignore a result beside an error.
func (c *Conn) checkOutput(ctx context.Context, tool string, res *CallToolResult) error {
	plan := c.tools.plan(tool)
	if res.StructuredContent == nil || res.IsError || !plan.hasOutput() {
		return nil
	}
	ctx, _ = inheritTrace(ctx, c.trace)
	ctx, stop := c.withCallTimeout(ctx, MethodCallTool)
	defer stop()
	err := c.tools.validate(ctx, plan, tool, res)
	if err != nil && c.tools.shouldRefetch(tool) && c.readTool(ctx, tool) == nil {
		if plan = c.tools.plan(tool); !plan.hasOutput() {
			return nil
		}
		err = c.tools.validate(ctx, plan, tool, res)
	}
	return err
}

// hasOutput reports whether the tool of the plan, which may be nil, has an output schema.
func (p *toolPlan) hasOutput() bool { return p != nil && (p.output != nil || p.errOutput != nil) }

func (p *toolPlans) validate(ctx context.Context, plan *toolPlan, tool string, res *CallToolResult) error {
	trace(traceOf(ctx).CacheHit, mcptrace.CacheInfo{Kind: "schema", Name: tool})
	schema, err := p.compileOutput(plan)
	if err == nil {
		err = schema.Validate(ctx, res.StructuredContent)
	}
	if err != nil {
		return &OutputError{tool, res, err}
	}
	return nil
}

// compileOutput returns the compiled output schema of a plan. Calls that need the same schema
// at the same time compile it once.
func (p *toolPlans) compileOutput(plan *toolPlan) (*jsonschema.Schema, error) {
	if plan.errOutput != nil {
		return nil, plan.errOutput
	}
	p.mu.Lock()
	if p.outputs == nil {
		p.outputs = lru.New[[sha256.Size]byte, *outputSchema](math.MaxInt) // limited by maxOutputs
	}
	output, ok := p.outputs.Get(plan.digest)
	if !ok {
		output = &outputSchema{compile: sync.OnceValues(func() (*jsonschema.Schema, error) {
			return jsonschema.Compile(plan.output, &jsonschema.Options{MaxInputBytes: -1})
		})}
		p.outputs.Put(plan.digest, output)
	}
	p.mu.Unlock()
	schema, err := output.compile()
	if !ok {
		p.limitOutputs(plan.digest, output, schema, err)
	}
	return schema, err
}

// limitOutputs counts a schema that was compiled, and drops the least recently used ones if
// all are too large together.
func (p *toolPlans) limitOutputs(digest [sha256.Size]byte, output *outputSchema, schema *jsonschema.Schema, err error) {
	const fixed = 512 // for the place in the map
	size := fixed
	if err != nil {
		size += len(err.Error())
	} else {
		size += schema.Size()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if kept, ok := p.outputs.Get(digest); !ok || kept != output {
		return // dropped by another call
	}
	output.size = size
	p.outputSize += size
	isCompiled := func(o *outputSchema) bool { return o.size > 0 }
	for p.outputSize > maxOutputs {
		oldest, dropped, _ := p.outputs.Oldest(isCompiled)
		p.outputs.Delete(oldest)
		p.outputSize -= dropped.size
	}
}
