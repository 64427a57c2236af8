// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/jsonschema"
)

// answers reports whether the client has a function for the question.
func (c *Client) answers(q InputRequest) bool {
	switch q.Method {
	case MethodElicit:
		if isURLMode(q.Params) {
			return c.opts.ElicitURL != nil
		}
		return c.opts.Elicit != nil
	case MethodCreateMessage:
		return c.opts.Sample != nil
	case MethodListRoots:
		return c.opts.Roots != nil
	}
	return false
}

func isURLMode(params json.RawMessage) bool {
	var p struct {
		Mode string `json:"mode"`
	}
	return unmarshal(params, &p) == nil && p.Mode == "url"
}

// answer answers one question, through the middleware around answering.
func (c *Conn) answer(ctx context.Context, q InputRequest) (json.RawMessage, error) {
	req, err := NewRequest(q.Method, q.Params)
	if err != nil {
		return nil, err
	}
	req.ID = StringID(q.Method)
	h := Chain(HandlerFunc(c.answerOne), c.client.opts.Answering...)
	res, err := serveSafely(contextWithRequest(ctx, req), h, req, c.client.opts.Logger)
	if err != nil {
		return nil, err
	}
	return encodeAnswer(res)
}

// encodeAnswer keeps what the client's functions return from ending the process, such
// as a nil block of content.
func encodeAnswer(res Result) (raw json.RawMessage, err error) {
	defer func() {
		if recover() != nil {
			raw, err = nil, &Error{Code: CodeInternalError, Message: "the client's answer could not be encoded", Cause: errPanicked}
		}
	}()
	return marshal(res)
}

// A badQuestionError is the error of a question that is the server's mistake.
type badQuestionError struct{ error }

func (e badQuestionError) Unwrap() error { return e.error }

func (c *Conn) answerOne(ctx context.Context, req *Request) (Result, error) {
	if !c.client.answers(InputRequest{Method: req.Method, Params: req.Params()}) {
		return nil, badQuestionError{MethodNotFound(req.Method)}
	}
	switch req.Method {
	case MethodElicit:
		return c.elicit(ctx, req)
	case MethodCreateMessage:
		var p CreateMessageParams
		if err := req.Decode(&p); err != nil {
			return nil, badQuestionError{err}
		}
		if slices.Contains(p.Messages, nil) || slices.Contains(p.Tools, nil) {
			return nil, badQuestionError{Errorf(CodeInvalidParams, "params.messages and params.tools must hold objects, not null")}
		}
		if (p.Tools != nil || p.ToolChoice != nil) && !c.client.opts.SampleTools {
			return nil, badQuestionError{Errorf(CodeInvalidParams, "the client did not declare sampling.tools")}
		}
		return answered(c.client.opts.Sample(ctx, &p))
	default:
		return &ListRootsResult{Roots: c.Roots()}, nil
	}
}

// answered keeps a nil answer from becoming a result that is not nil.
func answered[R any, P interface {
	*R
	Result
}](r P, err error) (Result, error) {
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, Errorf(CodeInternalError, "the client's function returned neither an answer nor an error")
	}
	return r, nil
}

// elicit fills in the defaults of a form that was accepted, and holds the answer to
// the schema of the question.
func (c *Conn) elicit(ctx context.Context, req *Request) (Result, error) {
	var p ElicitParams
	if err := req.Decode(&p); err != nil {
		return nil, badQuestionError{err}
	}
	ask := c.client.opts.Elicit
	if p.Mode == "url" {
		if err := checkVisit(p.URL); err != nil {
			return nil, badQuestionError{err}
		}
		ask = c.client.opts.ElicitURL
	}
	form, err := compileForm(&p)
	if err != nil {
		return nil, err
	}
	res, err := ask(ctx, &p)
	if err != nil || res == nil {
		return answered(res, err)
	}
	filled := *res
	if p.Mode == "url" || res.Action != ActionAccept {
		filled.Content = nil // only who accepts a form sends what he wrote
		return &filled, nil
	}
	if filled.Content, err = fillForm(ctx, form, p.RequestedSchema, res.Content); err != nil {
		return nil, err
	}
	return &filled, nil
}

// checkVisit checks a URL that a server sends the user to. Programs hand it to whatever
// opens URLs, which runs scripts and programs for other schemes; a user name in it makes
// it look like another host.
func checkVisit(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "" || printable.Line(raw) != raw:
		return Errorf(CodeInvalidParams, "params.url is not the URL of a page")
	case u.User != nil:
		return Errorf(CodeInvalidParams, "params.url must not have user information")
	case u.Scheme == "https", u.Scheme == "http" && network.IsLoopback(u.Hostname()):
		return nil
	}
	return Errorf(CodeInvalidParams, "params.url must be https, or http on this machine")
}

func fillForm(ctx context.Context, form *jsonschema.Schema, schema, content json.RawMessage) (json.RawMessage, error) {
	if content == nil {
		content = json.RawMessage("{}")
	}
	if !isObject(content) || jsonscan.Valid(content, 0) != nil {
		return nil, Errorf(CodeInvalidParams, "the answer to a form must be an object")
	}
	filled := defaultsOf(schema).fill(content)
	if err := form.Validate(ctx, filled); err != nil {
		return nil, Errorf(CodeInvalidParams, "the answer does not fit the form: %w", err)
	}
	return filled, nil
}

// compileForm refuses a form that answers cannot be validated against, before the
// user fills it in. It returns nil for a URL.
func compileForm(p *ElicitParams) (*jsonschema.Schema, error) {
	if p.Mode == "url" {
		return nil, nil
	}
	form, err := jsonschema.Compile(p.RequestedSchema, nil)
	if err != nil {
		return nil, badQuestionError{Errorf(CodeInvalidParams, "requestedSchema is not the schema of a form: %w", err)}
	}
	return form, nil
}

// Roots are the roots that the client answers with now.
func (c *Conn) Roots() []Root {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.roots)
}

// checkRoots reports a root that is none: they are file URIs (client/roots).
func checkRoots(roots []Root) error {
	for _, r := range roots {
		if !strings.HasPrefix(r.URI, "file://") {
			return fmt.Errorf("mcp: the root %q is not a file:// URI", r.URI)
		}
	}
	return nil
}

// AddRoots adds roots, or changes those with the same URIs, and tells a server of
// the legacy era. Roots are file:// URIs.
func (c *Conn) AddRoots(ctx context.Context, roots ...Root) error {
	if err := checkRoots(roots); err != nil {
		return err
	}
	c.changeRoots(func() {
		for _, r := range roots {
			c.roots = slices.DeleteFunc(c.roots, func(old Root) bool { return old.URI == r.URI })
			c.roots = append(c.roots, r)
		}
	})
	return c.era.rootsChanged(ctx)
}

// RemoveRoots removes roots by URI, and tells a server of the legacy era.
func (c *Conn) RemoveRoots(ctx context.Context, uris ...string) error {
	c.changeRoots(func() {
		c.roots = slices.DeleteFunc(c.roots, func(old Root) bool { return slices.Contains(uris, old.URI) })
	})
	return c.era.rootsChanged(ctx)
}

func (c *Conn) changeRoots(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.roots = slices.Clone(c.roots)
	change()
}
