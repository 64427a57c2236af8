// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/mcp/store"
)

// maxBody is the maximum number of bytes of a request.
const maxBody = 32 << 10

// A problem is an error response (RFC 6749, section 5.2), or an error that the browser takes
// to the client (section 4.1.2.1).
type problem struct {
	Code        string `json:"error"`
	Description string `json:"error_description,omitzero"` // of our own words only

	status int
	header http.Header
}

func (p *problem) Error() string { return p.Code + ": " + p.Description }

func refuse(code, description string) *problem {
	return &problem{Code: code, Description: description, status: http.StatusBadRequest}
}

var (
	errBusy   = &problem{Code: "temporarily_unavailable", Description: "too many requests; try again later", status: http.StatusTooManyRequests}
	errFailed = &problem{Code: "temporarily_unavailable", Description: "the server cannot do this at the moment; try again later", status: http.StatusServiceUnavailable}
)

// problemOf returns the response for an error. Its text is logged, and not sent, unless it is
// a problem.
func (s *Server) problemOf(r *http.Request, err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if r.Context().Err() == nil {
		s.opts.Logger.LogAttrs(r.Context(), slog.LevelWarn, "authserver: request failed", slog.String("path", r.Pattern), slog.String("error", oneLine(err)))
	}
	return errFailed
}

// oneLine returns the text of an error for the log: a peer may have chosen parts of it.
func oneLine(err error) string { return printable.Excerpt(printable.Line(err.Error())) }

// api returns the handler of an endpoint that clients, not browsers, post to. Pages of any
// origin may, too: nothing depends on cookies.
func (s *Server) api(serve func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Expose-Headers", "DPoP-Nonce, WWW-Authenticate")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		switch r.Method {
		case http.MethodPost:
		case http.MethodOptions:
			h.Set("Access-Control-Allow-Methods", "POST")
			h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, DPoP, MCP-Protocol-Version")
			w.WriteHeader(http.StatusNoContent)
			return
		default:
			h.Set("Allow", "POST, OPTIONS")
			http.Error(w, "only POST is allowed", http.StatusMethodNotAllowed)
			return
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTime)) // not all writers support deadlines
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		answer, err := any(nil), error(errBusy)
		if s.limit.allow(r, costRequest) {
			answer, err = serve(r)
		}
		status := http.StatusOK
		if err != nil {
			p := s.problemOf(r, err)
			answer, status = p, p.status
			maps.Copy(h, p.header)
		} else if _, ok := answer.(*registered); ok {
			status = http.StatusCreated
		}
		body, err := json.Marshal(answer)
		if err != nil { // cannot happen: all answers are our own types
			panic(err)
		}
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(status)
		_, _ = w.Write(body) // the client may be gone
	})
}

// formOf returns the form in the body of a request. A parameter must not be repeated (RFC
// 6749, section 3.2).
func formOf(r *http.Request) (url.Values, error) {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded") {
		return nil, refuse("invalid_request", "the body must be a form")
	}
	if err := r.ParseForm(); err != nil {
		return nil, refuse("invalid_request", "the form is malformed or too long")
	}
	return r.PostForm, checkOnce(r.PostForm)
}

func checkOnce(params url.Values) error {
	for name, values := range params {
		if len(values) > 1 && name == "resource" {
			return refuse("invalid_target", "there is only one resource here")
		}
		if len(values) > 1 {
			return refuse("invalid_request", "a parameter appears more than once")
		}
	}
	return nil
}

// checkResource checks the parameter resource (RFC 8707). Clients of older revisions do not
// send it.
func (s *Server) checkResource(params url.Values) error {
	got := params.Get("resource")
	if got != "" && strings.TrimSuffix(got, "/") != strings.TrimSuffix(s.resource, "/") {
		return refuse("invalid_target", "the resource is not the one of this server")
	}
	return nil
}

// gone reports whether an error means that something was used, was revoked or has expired.
func gone(err error) bool { return errors.Is(err, store.ErrNotFound) || errors.Is(err, errSealed) }
