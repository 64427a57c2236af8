// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/go-psi/psi/mcp"
)

// runSummary is a call made from the page, as shown in a list.
type runSummary struct {
	ID       string        `json:"id"`
	Method   string        `json:"method"`
	Name     string        `json:"name"`
	State    string        `json:"state"` // working, asking, ok, isError, error
	Duration time.Duration `json:"duration"`
}

// runModel is the model of the view of a call.
type runModel struct {
	runSummary

	Kind       string          `json:"kind"` // of the item
	IsDone     bool            `json:"done"`
	Params     json.RawMessage `json:"params"`
	ParamsText string          `json:"-"`
	Progress   *progress       `json:"progress,omitempty"`
	Logs       []string        `json:"logs,omitempty"`
	Questions  []questionModel `json:"questions,omitempty"`
	Err        string          `json:"error,omitempty"`
	Code       int             `json:"code,omitzero"`
	Result     json.RawMessage `json:"result,omitempty"`
	ResultText string          `json:"-"`
	Blocks     []block         `json:"-"`
	Patience   time.Duration   `json:"-"`
}

type progress struct {
	Done    float64  `json:"done"`
	Total   *float64 `json:"total,omitempty"`
	Message string   `json:"message,omitempty"`
}

type questionModel struct {
	Number     int             `json:"number"`
	Method     string          `json:"method"`
	Message    string          `json:"message"`
	URL        string          `json:"url,omitempty"`
	Schema     json.RawMessage `json:"schema,omitempty"`
	Fields     []field         `json:"-"`
	IsSampling bool            `json:"-"`
	RunID      string          `json:"-"`
}

// stateLocked returns the state of the run. The caller must hold r.mu.
func (r *run) stateLocked() string {
	tool, _ := r.result.(*mcp.CallToolResult)
	switch {
	case !r.isDone() && len(r.questions) > 0:
		return "asking"
	case !r.isDone():
		return "working"
	case r.err != nil:
		return "error"
	case tool != nil && tool.IsError:
		return "isError"
	}
	return "ok"
}

func (r *run) summary(now time.Time) runSummary {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.summaryLocked(now)
}

func (r *run) summaryLocked(now time.Time) runSummary {
	s := runSummary{ID: r.id, Method: r.method, Name: r.name, State: r.stateLocked(), Duration: r.duration}
	if !r.isDone() {
		s.Duration = now.Sub(r.start)
	}
	return s
}

func (p *page) runView(r *http.Request, _ *mcp.Principal) (string, any, error) {
	found, err := p.runs.find(r.URL.Query().Get("id"))
	if err != nil {
		return "", nil, err
	}
	m := found.model(time.Now())
	return m.Method + " " + m.Name, m, nil
}

var kindsByMethod = map[string]string{mcp.MethodCallTool: "tool", mcp.MethodGetPrompt: "prompt", mcp.MethodReadResource: "resource"}

func (r *run) model(now time.Time) *runModel {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := &runModel{
		runSummary: r.summaryLocked(now), Kind: kindsByMethod[r.method], IsDone: r.isDone(), Params: r.params, ParamsText: pretty(r.params), Logs: r.logs,
	}
	if r.progress != nil {
		m.Progress = &progress{r.progress.Progress, r.progress.Total, r.progress.Message}
	}
	for _, q := range r.questions {
		shown := questionModel{
			Number: q.number, Method: q.method, Message: cut(q.message), URL: q.url, Schema: q.schema,
			Fields: q.fields, IsSampling: q.method == mcp.MethodCreateMessage, RunID: r.id,
		}
		if shown.IsSampling {
			shown.Message = pretty(json.RawMessage(q.message))
		}
		m.Questions = append(m.Questions, shown)
	}
	if r.err != nil {
		m.Err, m.Code = cut(withCauses(r.err)), mcp.CodeOf(r.err)
	}
	if r.result != nil {
		raw, err := mcp.MarshalResult(r.result)
		if err == nil {
			m.ResultText = pretty(raw)
		}
		if len(raw) <= maxValue {
			m.Result = raw
		}
		m.Blocks = blocksOf(r.result)
	}
	return m
}
