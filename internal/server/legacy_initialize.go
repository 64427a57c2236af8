// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package server

import (
	"context"
	"encoding/json"

	"github.com/go-psi/psi/internal/redact"
	"github.com/go-psi/psi/internal/revision"
	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp"
)

type initializeParams struct {
	ProtocolVersion string          `json:"protocolVersion"`
	Capabilities    json.RawMessage `json:"capabilities"` // mcp.ClientCapabilities
	ClientInfo      json.RawMessage `json:"clientInfo"`   // mcp.Implementation
}

type initializeResult struct {
	mcp.ResultBase
	ProtocolVersion string                  `json:"protocolVersion"`
	Capabilities    *mcp.ServerCapabilities `json:"capabilities"`
	ServerInfo      mcp.Implementation      `json:"serverInfo"`
	Instructions    string                  `json:"instructions,omitempty"`
}

// initialize negotiates the revision: the requested one if it is supported, otherwise the
// newest one that has a handshake. The server's identity and capabilities come from
// server/discover.
func (s *Session) initialize(ctx context.Context, req *mcp.Request) (mcp.Result, error) {
	var p initializeParams
	if err := req.Decode(&p); err != nil {
		return nil, err
	}
	if p.ProtocolVersion == "" {
		return nil, mcp.Errorf(mcp.CodeInvalidParams, "params.protocolVersion is missing")
	}
	rev := revision.Parse(p.ProtocolVersion)
	if rev == revision.None {
		rev = revision.Newest
	}
	p.Capabilities = translation{rev}.clientCapabilities(p.Capabilities)
	if err := s.boundHandshake(ctx, &p); err != nil {
		return nil, err
	}
	if err := s.open(rev, &p, req); err != nil {
		return nil, err
	}
	d, info, err := s.discover(ctx, req)
	if err != nil {
		s.reset()
		return nil, err
	}
	t := translation{rev}
	return &initializeResult{
		ProtocolVersion: rev.String(),
		Capabilities:    t.capabilities(d.Capabilities),
		ServerInfo:      t.implementation(info),
		Instructions:    d.Instructions,
	}, nil
}

// maxHandshake limits clientInfo and capabilities together, in bytes, because a session
// keeps both for as long as it lives. Those of the known clients have less than 2 KiB, and
// the 10,000 sessions that an HTTP endpoint has by default fit into 160 MiB. With 64 KiB,
// 10,000 sessions would take 640 MiB; known clients send less than 2 KiB. What can be large
// are icons as data URLs, which are left out rather than refused.
const maxHandshake = 16 << 10

// boundHandshake returns an error if the session would keep too much of p. If the icons of
// the client are what is too much, it removes them instead: no request needs them.
func (s *Session) boundHandshake(ctx context.Context, p *initializeParams) error {
	if len(p.ClientInfo)+len(p.Capabilities) <= maxHandshake {
		return nil
	}
	var info map[string]json.RawMessage
	if strictjson.Unmarshal(p.ClientInfo, &info) == nil && info["icons"] != nil {
		s.server.warnedIcons.Do(func() {
			s.server.Logger.WarnContext(ctx, "mcp: the icons in clientInfo are not kept: clientInfo and capabilities are too large; further ones are not reported",
				"session", redact.Session(s.details.ID), "bytes", len(p.ClientInfo)+len(p.Capabilities), "limit", maxHandshake)
		})
		delete(info, "icons")
		p.ClientInfo = strictjson.MustMarshal(info)
	}
	if size := len(p.ClientInfo) + len(p.Capabilities); size > maxHandshake {
		return mcp.Errorf(mcp.CodeInvalidParams, "params.clientInfo and params.capabilities have %d bytes; at most %d are accepted", size, maxHandshake)
	}
	return nil
}

// ErrInitialized is the error of a second handshake.
var ErrInitialized = mcp.Errorf(mcp.CodeInvalidRequest, "the session is initialized already")

// open records the revision and the client's details, and describes req by them. It returns
// an error if the handshake is done or in progress.
func (s *Session) open(rev revision.Revision, p *initializeParams, req *mcp.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rev != revision.None {
		return ErrInitialized
	}
	s.rev, s.info, s.caps = rev, p.ClientInfo, p.Capabilities
	s.describeLocked(req)
	return nil
}

// reset undoes open after a failed handshake, so that the client may try again.
func (s *Session) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rev, s.info, s.caps = revision.None, nil, nil
}

// discover sends server/discover to the handler. It returns the result and the server's
// identity.
func (s *Session) discover(ctx context.Context, req *mcp.Request) (*mcp.DiscoverResult, mcp.Implementation, error) {
	var info mcp.Implementation
	discover, err := req.WithParams(nil)
	if err != nil {
		return nil, info, err
	}
	discover.Method = mcp.MethodDiscover
	res, err := core.Serve(ctx, s.server.handler, discover, nil, s.server.Logger)
	if err != nil {
		return nil, info, err
	}
	d, ok := res.(*mcp.DiscoverResult)
	if !ok {
		return nil, info, mcp.Errorf(mcp.CodeInternalError, "%s was answered with a %T", mcp.MethodDiscover, res)
	}
	if server := core.Server(discover); !d.Meta.Get(mcp.MetaServerInfo, &info) && server != nil {
		_ = strictjson.Unmarshal(server, &info)
	}
	return d, info, nil
}
