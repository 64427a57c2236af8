// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/mcp"
)

const (
	maxBody  = 4 << 20                // bytes of a form
	patience = 300 * time.Millisecond // how long a response waits for the run to end
)

// actions are the actions of the page's forms. They return the URL to redirect to.
var actions = map[string]func(*page, *http.Request, *mcp.Principal) (*url.URL, error){
	"call":   (*page).actCall,
	"app":    (*page).actApp,
	"answer": (*page).actAnswer,
	"stop":   (*page).actStop,
	"cancel": (*page).actCancel,
	"end":    (*page).actEnd,
}

// servePost performs the action of a form.
func (p *page) servePost(w http.ResponseWriter, r *http.Request, caller *mcp.Principal) {
	p.attention.extend()
	next, err := p.act(w, r, caller)
	if err != nil {
		p.fail(w, r, err)
		return
	}
	if isJSON(r) && !next.IsAbs() {
		q := next.Query()
		q.Set("format", "json")
		next = addressOf(q)
	}
	w.Header().Set("Location", next.String())
	w.WriteHeader(http.StatusSeeOther)
}

// addressOf returns the URL of a view of the page.
func addressOf(query url.Values) *url.URL {
	return &url.URL{RawQuery: query.Encode(), ForceQuery: true}
}

func (p *page) act(w http.ResponseWriter, r *http.Request, caller *mcp.Principal) (*url.URL, error) {
	if p.opts.ReadOnly {
		return nil, failure{http.StatusForbidden, "the page is read-only (Options.ReadOnly)"}
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if err := r.ParseForm(); err != nil {
		return nil, failure{http.StatusBadRequest, fmt.Sprintf("the form cannot be read: %v", err)}
	}
	var name string
	if values := r.PostForm["action"]; len(values) > 0 {
		name = values[len(values)-1] // the value of a button follows the value of its form
	}
	act := actions[name]
	if act == nil {
		return nil, failure{http.StatusBadRequest, fmt.Sprintf("there is no action %.40q", name)}
	}
	return act(p, r, caller)
}

// actCall calls a tool, gets a prompt or reads a resource.
func (p *page) actCall(r *http.Request, caller *mcp.Principal) (*url.URL, error) {
	kind, name := r.PostForm.Get("kind"), r.PostForm.Get("name")
	it, err := p.item(r.Context(), caller, kind, name)
	if err != nil {
		return nil, err
	}
	method, params, err := it.request(r.PostForm)
	if err != nil {
		return nil, err
	}
	started, err := p.start(caller, method, name, params)
	if err != nil {
		return nil, err
	}
	return started.page(r.Context()), nil
}

// page returns the URL of the view of a run. It waits for up to patience for the run to end, so
// that the view shows the result immediately.
func (r *run) page(ctx context.Context) *url.URL {
	select {
	case <-r.done:
	case <-time.After(patience):
	case <-ctx.Done():
	}
	return addressOf(url.Values{"view": {"run"}, "id": {r.id}})
}

// request returns the method and params of the request that a form describes.
func (it *item) request(form url.Values) (method string, params any, err error) {
	arguments, err := objectOf(form, it.Fields)
	if err != nil {
		return "", nil, err
	}
	switch it.Kind {
	case "tool":
		return mcp.MethodCallTool, &mcp.CallToolParams{Name: it.Name, Arguments: arguments}, nil
	case "prompt":
		var texts map[string]string
		if err := json.Unmarshal(arguments, &texts); err != nil {
			return "", nil, failure{http.StatusBadRequest, "the arguments of a prompt are strings"}
		}
		return mcp.MethodGetPrompt, &mcp.GetPromptParams{Name: it.Name, Arguments: texts}, nil
	case "resource":
		return mcp.MethodReadResource, &mcp.ReadResourceParams{URI: it.Name}, nil
	}
	uri, err := it.expand(arguments)
	return mcp.MethodReadResource, &mcp.ReadResourceParams{URI: uri}, err
}

// actAnswer answers a question of a run.
func (p *page) actAnswer(r *http.Request, _ *mcp.Principal) (*url.URL, error) {
	asked, err := p.runs.find(r.PostForm.Get("id"))
	if err != nil {
		return nil, err
	}
	number, _ := strconv.Atoi(r.PostForm.Get("question"))
	err = asked.reply(number, func(q *question) (answer, error) { return q.read(r.PostForm) })
	if err != nil {
		return nil, err
	}
	return asked.page(r.Context()), nil
}

// read returns the answer in a form.
func (q *question) read(form url.Values) (answer, error) {
	a := answer{action: form.Get("answer")}
	switch a.action {
	case "decline", "cancel":
		return a, nil
	case "accept":
	default:
		return a, failure{http.StatusBadRequest, "answer must be accept, decline or cancel"}
	}
	if q.method == mcp.MethodCreateMessage {
		a.text = form.Get("text")
		return a, nil
	}
	if q.url != "" {
		return a, nil
	}
	var err error
	a.content, err = objectOf(form, q.fields)
	return a, err
}

// actStop cancels a run.
func (p *page) actStop(r *http.Request, _ *mcp.Principal) (*url.URL, error) {
	started, err := p.runs.find(r.PostForm.Get("id"))
	if err != nil {
		return nil, err
	}
	started.cancel(errors.New("cancelled from the debug page"))
	return started.page(r.Context()), nil
}

// actCancel cancels a request in flight, which may be of any caller.
func (p *page) actCancel(r *http.Request, caller *mcp.Principal) (*url.URL, error) {
	number, err := strconv.ParseUint(r.PostForm.Get("request"), 10, 64)
	if err != nil || !p.recorder.cancelRequest(number) {
		return nil, failure{http.StatusConflict, "this request is no longer in flight"}
	}
	p.opts.Logger.InfoContext(r.Context(), "debug: a request was cancelled from the page", "by", caller.Subject, "number", number)
	return addressOf(nil), nil
}

// actEnd ends a session.
func (p *page) actEnd(r *http.Request, caller *mcp.Principal) (*url.URL, error) {
	id := r.PostForm.Get("session")
	for _, e := range p.opts.Endpoints {
		for s := range e.Sessions() {
			if id != "" && redact.Session(s.ID()) == id {
				p.opts.Logger.InfoContext(r.Context(), "debug: a session was ended from the page", "by", caller.Subject, "session", id)
				s.Close()
				return addressOf(nil), nil
			}
		}
	}
	return nil, failure{http.StatusConflict, "this session has ended already"}
}
