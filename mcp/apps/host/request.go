// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/go-psi/psi/internal/sparse"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
)

// maxRequest bounds the size of a request from a page, in bytes.
const maxRequest = 4 << 20

// codeDenied is the error code for what the host refuses to do for a page.
const codeDenied = -32000

// Methods that pages send and that are passed to the functions in Options.
const (
	methodMessage       = "ui/message"
	methodUpdateContext = "ui/update-model-context"
)

// call calls the tool of a view on behalf of the model.
func (h *Host) call(w http.ResponseWriter, r *http.Request) {
	v := h.views.find(chi.URLParam(r, "view"))
	if v == nil {
		writeOutcome(w, nil, errNoView)
		return
	}
	res, err := h.do(r.Context(), mcp.MethodCallTool, &mcp.CallToolParams{Name: v.tool, Arguments: v.arguments})
	writeOutcome(w, res, err)
}

var errNoView = mcp.Errorf(codeDenied, "the view is no longer open")

// request serves a request from the page of a view.
func (h *Host) request(w http.ResponseWriter, r *http.Request) {
	v := h.views.find(chi.URLParam(r, "view"))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	var req struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err == nil {
		err = strictjson.Unmarshal(body, &req)
	}
	switch {
	case v == nil:
		writeOutcome(w, nil, errNoView)
	case err != nil:
		writeOutcome(w, nil, mcp.Errorf(mcp.CodeInvalidRequest, "the request could not be read: %v", err))
	default:
		res, err := h.serve(apps.AsApp(r.Context()), v, req.Method, req.Params)
		writeOutcome(w, res, err)
	}
}

// serve serves a request from a page.
func (h *Host) serve(ctx context.Context, v *view, method string, params json.RawMessage) (any, error) {
	switch method {
	case mcp.MethodCallTool:
		var p mcp.CallToolParams
		if err := decode(params, &p); err != nil {
			return nil, err
		}
		return h.do(ctx, method, &mcp.CallToolParams{Name: p.Name, Arguments: p.Arguments}) // _meta is set by the host
	case mcp.MethodReadResource:
		var p mcp.ReadResourceParams
		if err := decode(params, &p); err != nil {
			return nil, err
		}
		return h.do(ctx, method, &mcp.ReadResourceParams{URI: p.URI})
	case mcp.MethodListTools, mcp.MethodListResources, mcp.MethodListResourceTemplates:
		var p mcp.ListParams
		if err := decode(params, &p); err != nil {
			return nil, err
		}
		return h.do(ctx, method, &mcp.ListParams{Cursor: p.Cursor})
	case methodMessage:
		return h.message(ctx, v, params)
	case methodUpdateContext:
		return h.updateContext(ctx, v, params)
	case mcp.NotificationMessage:
		return h.log(ctx, v, params)
	}
	return nil, mcp.NewMethodNotFoundError(method)
}

func decode(params json.RawMessage, p any) error {
	if params == nil {
		return nil
	}
	if err := strictjson.Unmarshal(params, p); err != nil {
		return mcp.Errorf(mcp.CodeInvalidParams, "params: %v", err)
	}
	return nil
}

// do sends a request to the server, as the side given by ctx. The browser controls the script
// of the host, so visibility is checked here again.
func (h *Host) do(ctx context.Context, method string, params any) (any, error) {
	req, err := mcp.NewRequest(method, params)
	if err != nil {
		return nil, err
	}
	req.ID = mcp.IntID(1)
	res, err := h.send.ServeMCP(ctx, req)
	if err != nil {
		return nil, err
	}
	if _, asks := res.(*mcp.InputRequired); asks {
		return nil, mcp.Errorf(codeDenied, "the server asks the user, and this host has no answer")
	}
	return res, nil
}

func (h *Host) message(ctx context.Context, v *view, params json.RawMessage) (any, error) {
	var p struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	if len(p.Content) > 0 && p.Content[0] == '{' { // the form of the stable revision
		p.Content = append(append(json.RawMessage{'['}, p.Content...), ']')
	}
	var content mcp.Contents
	if err := decode(p.Content, &content); err != nil {
		return nil, err
	}
	switch {
	case p.Role != "user" || len(content) == 0:
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "params: a message has the role user, and content")
	case h.opts.Message == nil:
		return nil, mcp.Errorf(codeDenied, "denied: this host has no conversation")
	}
	return struct{}{}, denied(h.opts.Message(ctx, v.tool, content))
}

func (h *Host) updateContext(ctx context.Context, v *view, params json.RawMessage) (any, error) {
	var c ModelContext
	if err := decode(params, &c); err != nil || h.opts.ModelContext == nil {
		return struct{}{}, err
	}
	return struct{}{}, denied(h.opts.ModelContext(ctx, v.id, &c))
}

func (h *Host) log(ctx context.Context, v *view, params json.RawMessage) (any, error) {
	var p mcp.LoggingMessageParams
	if err := decode(params, &p); err != nil {
		return nil, err
	}
	if h.opts.Log != nil {
		h.opts.Log(ctx, v.tool, &p)
	} else if n, write := h.logged.Next(); write {
		h.opts.Logger.InfoContext(ctx, "host: log message of a page", "tool", sparse.Excerpt(v.tool),
			"level", sparse.Excerpt(string(p.Level)), "data", sparse.Excerpt(fmt.Sprint(p.Data)), "messages", n)
	}
	return struct{}{}, nil
}

func denied(err error) error {
	if err == nil {
		return nil
	}
	return mcp.Errorf(codeDenied, "denied: %v", err)
}

// writeOutcome writes a result or an error as the members of a JSON-RPC response.
func writeOutcome(w http.ResponseWriter, res any, err error) {
	var out struct {
		Result any        `json:"result,omitzero"`
		Error  *wireError `json:"error,omitzero"`
	}
	out.Result = res
	if err != nil {
		out.Result, out.Error = nil, errorOf(err)
	}
	raw, err := strictjson.Marshal(&out)
	if err != nil {
		raw = fmt.Appendf(nil, `{"error":{"code":%d,"message":"the result could not be encoded"}}`, mcp.CodeInternalError)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(raw) // if it fails, the browser is gone
}

type wireError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// errorOf returns the error that is sent to a page. Requests that the host denies have the
// code codeDenied.
func errorOf(err error) *wireError {
	if _, refused := errors.AsType[*apps.VisibilityError](err); refused {
		return &wireError{codeDenied, "denied: " + err.Error()}
	}
	if e, ok := errors.AsType[*mcp.Error](err); ok {
		return &wireError{e.Code, e.Message}
	}
	return &wireError{mcp.CodeInternalError, err.Error()}
}
