// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// OAuth is what a file says about the login at a [Server] with a URL. [Options].HTTP receives
// it with its variables replaced. Any field may be empty.
type OAuth struct {
	// ClientID is a client that was registered with the authorization server in advance. It is
	// public: it has no secret.
	ClientID string
	// CallbackPort is the port of the registered redirect URI, http://localhost:port/callback.
	// 0 means any.
	CallbackPort int
	// Scopes are the scopes to request. Nil means those that the server asks for.
	Scopes []string
	// AuthorizationServerMetadata is the URL of the metadata of the authorization server, for
	// servers that name none or a wrong one.
	AuthorizationServerMetadata string
}

// oauthMembers are the members of "oauth".
var oauthMembers = []member{
	{"clientId", text(func(s *Server) *string { return &s.OAuth.ClientID })},
	{"callbackPort", readCallbackPort},
	{"scopes", readScopes},
	{"scope", readScopes}, // opencode
	{"authServerMetadataUrl", text(func(s *Server) *string { return &s.OAuth.AuthorizationServerMetadata })},
}

// readOAuth reads "oauth". A boolean says whether the host may log in. Parts that cannot be
// used are left out, because a server may work without.
func readOAuth(s *Server, raw jsontext.Value) error {
	if kind := raw.Kind(); kind == 't' || kind == 'f' {
		return nil
	}
	o, err := parseObject(raw)
	if err != nil {
		s.warnf("oauth", "%w", err)
		return nil
	}
	s.OAuth = &OAuth{}
	s.read("oauth", o, oauthMembers, func(member string, err error) { s.warnf(member, "%w", err) })
	return nil
}

func readCallbackPort(s *Server, raw jsontext.Value) error {
	port, err := decode[int](raw)
	if err == nil && (port < 0 || port > 65535) {
		err = errors.New("want a port")
	}
	if err == nil {
		s.OAuth.CallbackPort = port
	}
	return err
}

// readScopes reads a list of scopes, or a string with spaces between them. Elements that are
// not strings are left out. The others are kept, because the host would otherwise request all
// scopes that the server asks for.
func readScopes(s *Server, raw jsontext.Value) error {
	var scopes []string
	if raw.Kind() == '[' {
		list, err := decode[[]jsontext.Value](raw)
		for _, item := range list {
			scope, itemErr := decode[string](item)
			if itemErr == nil {
				scopes = append(scopes, scope)
			}
			err = cmp.Or(err, itemErr)
		}
		if len(s.OAuth.Scopes) == 0 {
			s.OAuth.Scopes = scopes
		}
		return err
	}
	all, err := decode[string](raw)
	if err == nil && len(s.OAuth.Scopes) == 0 {
		s.OAuth.Scopes = strings.Fields(all)
	}
	return err
}

// oauth returns the server's OAuth with its variables replaced, or nil.
func (x *expander) oauth(ctx context.Context) *OAuth {
	if x.server.OAuth == nil {
		return nil
	}
	o := *x.server.OAuth
	o.ClientID = x.expand(ctx, "oauth.clientId", o.ClientID)
	o.AuthorizationServerMetadata = x.expand(ctx, "oauth.authServerMetadataUrl", o.AuthorizationServerMetadata)
	o.Scopes = slices.Clone(o.Scopes)
	for i, scope := range o.Scopes {
		o.Scopes[i] = x.expand(ctx, fmt.Sprintf("oauth.scopes/%d", i), scope)
	}
	return &o
}
