// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcphttp"
)

// A row is a client operation. Begin prepares it and returns the measured function.
type row struct {
	name   string
	isFree bool // needs no store operation
	begin  func(ctx context.Context, s *server) (func() error, error)
}

var legacy = mcp.LegacyVersions()[0]

var rows = []row{
	{"call of " + mcp.LatestVersion, true, calls(mcp.LatestVersion, "plain")},
	{"call of " + mcp.LatestVersion + " that asks once", false, calls(mcp.LatestVersion, "ask")},
	{"call of " + legacy, true, calls(legacy, "plain")},
	{"call of " + legacy + " that asks once", false, calls(legacy, "ask")},
	{"call of " + legacy + " with five events", true, calls(legacy, "work")},
	{"stream of five events, resumed", true, resume},
}

// calls returns calls of a tool.
func calls(version, tool string) func(context.Context, *server) (func() error, error) {
	return func(ctx context.Context, s *server) (func() error, error) {
		c, err := s.client(version).Connect(ctx, mcphttp.NewTransport(s.http.URL, nil))
		if err != nil {
			return nil, err
		}
		s.closeLater(func() { _ = c.Close() }) // the server is closed, too
		if tool == "work" {
			ctx = mcp.WithProgress(ctx, func(*mcp.ProgressParams) {})
		}
		return func() error {
			got, err := mcp.Call[string](ctx, c, tool, struct{}{})
			if err == nil && got != "done" {
				err = fmt.Errorf("the result is %q", got)
			}
			return err
		}, nil
	}
}

// resume reads a completed stream again from its first event.
func resume(ctx context.Context, s *server) (func() error, error) {
	session := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	res, err := s.send(ctx, http.MethodPost, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+legacy+`","capabilities":{},"clientInfo":{"name":"stores","version":"1"}}}`, session)
	if err != nil {
		return nil, err
	}
	session.Set("Mcp-Session-Id", res.header.Get("Mcp-Session-Id"))
	res, err = s.send(ctx, http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work","_meta":{"progressToken":1}}}`, session)
	if err != nil {
		return nil, err
	}
	_, first, _ := bytes.Cut(res.body, []byte("id: "))
	first, _, found := bytes.Cut(first, []byte("\n"))
	if !found {
		return nil, fmt.Errorf("the stream has no ID: %s", res.body)
	}
	session.Set("Last-Event-ID", string(first))
	return func() error {
		res, err := s.send(ctx, http.MethodGet, "", session)
		if err == nil && !bytes.Contains(res.body, []byte("done")) {
			err = errors.New("the stream has not ended")
		}
		return err
	}, nil
}

type reply struct {
	header http.Header
	body   []byte
}

func (s *server) send(ctx context.Context, method, body string, header http.Header) (reply, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.http.URL, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	r.Header = header.Clone()
	res, err := s.http.Client().Do(r)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, text)
	}
	return reply{res.Header, text}, err
}
