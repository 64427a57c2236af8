// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"net/http"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/transport"
)

// serveModern serves one request of the modern era, which needs nothing from
// before and leaves nothing behind.
func (h *Handler) serveModern(w http.ResponseWriter, r *http.Request, req *mcp.Request) {
	if status, err := checkModern(req); err != nil {
		writeResponse(w, status, mcp.AppendErrorResponse(nil, req.ID, err))
		return
	}
	if req.IsNotification() {
		_, _ = mcp.Serve(withRequest(r), h.mcp, req, nil, h.opts.Logger) // nobody hears of its outcome
		accepted(w)
		return
	}
	accept := acceptable(r.Header)
	if req.Method == mcp.MethodListen {
		accept.json = false
	}
	c := new(modernCall)
	if !h.prepare(&c.reply, w, r, accept) {
		return
	}
	ctx := c.context(r, h.set(req.Method))
	defer c.end()
	if c.accept.stream {
		h.pulse.start(&c.beat, &c.reply)
	}
	res, err := mcp.Serve(ctx, h.mcp, req, c, h.opts.Logger)
	c.finish(ctx, req, res, err)
}

// set is the one that a call belongs to: subscriptions end, in good order, as soon as
// the server begins to shut down.
func (h *Handler) set(method string) *inflight {
	if method == mcp.MethodListen {
		return &h.listening
	}
	return &h.inflight
}

// checkModern holds a request to what the specification asks of it before it is
// looked at: headers present, metadata present, the two equal, the version known.
func checkModern(req *mcp.Request) (int, error) {
	checks := []func(*mcp.Request) error{requireHeaders, (*mcp.Request).CheckMeta, compareHeaders, (*mcp.Request).CheckVersion}
	if req.IsNotification() {
		checks = []func(*mcp.Request) error{compareVersion}
	}
	for _, check := range checks {
		if err := check(req); err != nil {
			return http.StatusBadRequest, err
		}
	}
	return http.StatusOK, nil
}

// named are the methods whose name stands in a header.
func named(method string) bool {
	switch method {
	case mcp.MethodCallTool, mcp.MethodGetPrompt, mcp.MethodReadResource:
		return true
	}
	return false
}

func requireHeaders(req *mcp.Request) error {
	keys := []string{headerVersion, headerMethod, headerName}
	if !named(req.Method) {
		keys = keys[:2]
	}
	for _, key := range keys {
		switch n := len(req.Header[key]); {
		case n == 0:
			return mcp.Errorf(mcp.CodeHeaderMismatch, "the header %s is missing; requests of %s must have it", key, mcp.LatestVersion)
		case n > 1:
			return mcp.Errorf(mcp.CodeHeaderMismatch, "the header %s stands %d times", key, n)
		}
	}
	return nil
}

func compareHeaders(req *mcp.Request) error {
	if err := compareVersion(req); err != nil {
		return err
	}
	if method := req.Header[headerMethod][0]; method != req.Method {
		return differs(headerMethod, method, "method", req.Method)
	}
	if !named(req.Method) {
		return nil
	}
	name, err := transport.DecodeHeaderValue(req.Header[headerName][0])
	if err != nil {
		return mcp.Errorf(mcp.CodeHeaderMismatch, "the header %s: %w", headerName, err)
	}
	if name != req.Name() {
		return differs(headerName, name, "name or URI", req.Name())
	}
	return nil
}

func compareVersion(req *mcp.Request) error {
	values := req.Header[headerVersion]
	if len(values) == 0 || req.Version() == "" || values[0] == req.Version() {
		return nil
	}
	return differs(headerVersion, values[0], "version", req.Version())
}

func differs(key, header, member, body string) error {
	return mcp.Errorf(mcp.CodeHeaderMismatch, "the header %s is %.80q, but the %s in the body is %.80q", key, header, member, body)
}
