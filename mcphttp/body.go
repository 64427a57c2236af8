// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcphttp

import (
	"errors"
	"io"
	"net/http"
	"os"

	"github.com/go-psi/psi/mcp"
)

// receive checks a request and reads its body. It answers by itself, and reports
// false, if the request is refused. A request whose body has not arrived is not yet
// one that is being served: Shutdown does not wait for it.
func receive(w http.ResponseWriter, r *http.Request, g *guard, o *Options) (body []byte, ok bool) {
	if why := g.check(r); why != "" {
		writeProblem(w, http.StatusForbidden, mcp.Errorf(mcp.CodeInvalidRequest, "%s", why))
		return nil, false
	}
	if r.Method == http.MethodPost && !isJSON(r.Header.Get("Content-Type")) {
		writeProblem(w, http.StatusUnsupportedMediaType, mcp.Errorf(mcp.CodeInvalidRequest, "the Content-Type must be %s, not %q", typeJSON, r.Header.Get("Content-Type")))
		return nil, false
	}
	body, err := readBody(w, r, o.MaxBody)
	if err != nil {
		writeBodyProblem(w, err, o)
		return nil, false
	}
	return body, true
}

// readBody reads the whole body.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	if r.ContentLength < 0 {
		return io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	}
	return readLength(r.Body, int(r.ContentLength))
}

// preallocate is up to which length a client is believed before it has sent the body.
// Beyond it, memory grows with what has arrived.
const preallocate = 8 << 10

func readLength(r io.Reader, length int) ([]byte, error) {
	body := make([]byte, min(length, preallocate))
	for filled := 0; filled < length; {
		if filled == len(body) {
			grown := make([]byte, min(length, 2*filled))
			copy(grown, body)
			body = grown
		}
		n, err := io.ReadFull(r, body[filled:])
		if filled += n; err != nil {
			return nil, err
		}
	}
	return body, nil
}

func writeBodyProblem(w http.ResponseWriter, err error, o *Options) {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		writeProblem(w, http.StatusRequestEntityTooLarge, mcp.Errorf(mcp.CodeInvalidRequest, "the body is longer than %d bytes", tooLarge.Limit))
		return
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.Header().Set("Connection", "close")
		writeProblem(w, http.StatusRequestTimeout, mcp.Errorf(mcp.CodeInvalidRequest, "the body did not arrive within %v", o.BodyTimeout))
		return
	}
	writeProblem(w, http.StatusBadRequest, mcp.Errorf(mcp.CodeParseError, "the body could not be read"))
}
