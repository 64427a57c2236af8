// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/mcphttp/auth"
)

const (
	accessAge = 5 * time.Minute
	grantAge  = 30 * 24 * time.Hour // since the last refresh
)

// tokens is the response of the token endpoint.
type tokens struct {
	Access  string `json:"access_token"`
	Type    string `json:"token_type"`
	Expires int    `json:"expires_in"`
	Refresh string `json:"refresh_token"`
	Scope   string `json:"scope"`
}

// A refreshText is what a refresh token is, sealed. Its text is never the same twice.
type refreshText struct {
	Grant string `json:"g"`
	Count int    `json:"n"`
}

var errGrant = refuse("invalid_grant", "the code or refresh token is not valid, was used or revoked, or is of another client")

// token exchanges a code, or a refresh token, for tokens.
func (s *Server) token(r *http.Request) (any, error) {
	form, err := formOf(r)
	if err != nil {
		return nil, err
	}
	client, err := s.authenticate(r, form)
	if err != nil {
		return nil, err
	}
	if err := s.checkResource(form); err != nil {
		return nil, err
	}
	var code string
	var refresh refreshText
	switch form.Get("grant_type") {
	case "authorization_code":
		err = s.open(kindCode, form.Get("code"), &code)
	case "refresh_token":
		err = s.open(kindRefresh, form.Get("refresh_token"), &refresh)
	default:
		return nil, refuse("unsupported_grant_type", "only authorization_code and refresh_token are supported")
	}
	if err != nil {
		return nil, errGrant
	}
	jkt, err := s.proofs.VerifyProof(r) // not earlier: it is stored that a proof was used
	if e, ok := errors.AsType[*auth.Error](err); ok {
		return nil, &problem{Code: e.Code, Description: e.Description, status: http.StatusBadRequest, header: e.Header}
	}
	if err != nil {
		return nil, err
	}
	if code != "" {
		return s.redeem(r.Context(), code, form, client, jkt)
	}
	return s.refresh(r.Context(), refresh, form, client, jkt)
}

// redeem exchanges the code of a grant. It can be used once, right or wrong; when it comes a second time,
// somebody has stolen it, and what it was exchanged for is revoked.
func (s *Server) redeem(ctx context.Context, id string, form url.Values, client, jkt string) (any, error) {
	var g grant
	redirect := form.Get("redirect_uri")
	err := update(ctx, s, kindGrant, id, grantAge, func(v *grant) error {
		c := v.Code
		if c == nil || v.Client != client || redirect != "" && redirect != c.Redirect || !isVerifier(form.Get("code_verifier"), c.Challenge) || c.JKT != "" && c.JKT != jkt {
			return errGrant
		}
		v.Code, v.JKT, v.Count = nil, jkt, 1
		g = *v
		return nil
	})
	switch {
	case gone(err), errors.Is(err, errGrant):
		return nil, s.end(ctx, id)
	case err != nil:
		return nil, err
	}
	return s.issue(id, &g, g.scopes())
}

// isVerifier reports whether a code verifier is the one of a challenge (RFC 7636, section 4.6).
func isVerifier(verifier, challenge string) bool {
	sum := sha256.Sum256([]byte(verifier))
	return len(verifier) >= 43 && len(verifier) <= 128 && sameText(base64.RawURLEncoding.EncodeToString(sum[:]), challenge)
}

// end revokes a grant, and returns the error for who has caused it.
func (s *Server) end(ctx context.Context, id string) error {
	var g grant
	if err := s.take(ctx, kindGrant, id, &g); err != nil && !gone(err) {
		return err
	}
	return errGrant
}

var errReplay = errors.New("authserver: a refresh token was used twice")

const (
	retryTime  = 30 * time.Second // how long a refresh token still works after it was exchanged
	maxRenewed = 8                // tokens in that time
)

// check reports whether a refresh token may be exchanged now. One that was exchanged before was
// stolen, by the one who sent it first or by the one who sends it now, and the grant ends.
//
// It is excepted for a moment, because honest clients send it twice: when the answer is lost,
// and when several calls or processes that share a token notice one after the other that it has
// expired. All of them get the last token. So a thief who comes in that moment gains one
// refresh: as soon as either of the two uses that token later than the other, the grant ends.
// Clients that want more prove a key (DPoP).
func (g *grant) check(count int, client, jkt string) error {
	if g.Client != client || g.JKT != jkt {
		return errGrant
	}
	i := len(g.Renewed) - (g.Count - count)
	if count == g.Count || count < g.Count && i >= 0 && time.Since(time.Unix(0, g.Renewed[i])) < retryTime {
		return nil
	}
	return errReplay
}

// renew counts the next refresh token.
func (g *grant) renew() {
	g.Count++
	g.Renewed = append(g.Renewed, time.Now().UnixNano())
	g.Renewed = g.Renewed[max(0, len(g.Renewed)-maxRenewed):]
}

// refresh exchanges a refresh token for the next one.
func (s *Server) refresh(ctx context.Context, text refreshText, form url.Values, client, jkt string) (any, error) {
	var g grant
	var scopes []string
	err := s.get(ctx, kindGrant, text.Grant, &g)
	if err == nil {
		err = g.check(text.Count, client, jkt)
	}
	if err == nil {
		err = s.identifyAgain(ctx, text.Grant, &g)
	}
	if err == nil {
		scopes, err = g.fewer(strings.Fields(form.Get("scope")))
	}
	if err == nil {
		err = update(ctx, s, kindGrant, text.Grant, grantAge, func(v *grant) error {
			if err := v.check(text.Count, client, jkt); err != nil {
				return err
			}
			v.User, v.Info = g.User, g.Info // Told may be newer than ours
			if v.Count == text.Count {
				v.renew()
			}
			g.Count = v.Count
			return nil
		})
	}
	switch {
	case errors.Is(err, errReplay):
		s.opts.Logger.WarnContext(ctx, "authserver: a refresh token was used twice; the grant ends", "subject", printable.Line(g.User.Subject))
		return nil, s.end(ctx, text.Grant)
	case gone(err):
		return nil, errGrant
	case err != nil:
		return nil, err
	}
	return s.issue(text.Grant, &g, scopes)
}

// fewer returns the scopes that a refresh asks for.
func (g *grant) fewer(asked []string) ([]string, error) {
	all := g.scopes()
	if len(asked) == 0 {
		return all, nil
	}
	for _, scope := range asked {
		if !slices.Contains(all, scope) {
			return nil, refuse("invalid_scope", "the user has not granted this scope")
		}
	}
	return slices.DeleteFunc(all, func(scope string) bool { return !slices.Contains(asked, scope) }), nil
}

// reserved are the claims that only this server sets.
var reserved = []string{"iss", "aud", "sub", "client_id", "scope", "scp", "exp", "iat", "nbf", "jti", "cnf", "act", claimGrant}

const claimGrant = "psi_grant"

// issue returns the tokens of a grant.
func (s *Server) issue(id string, g *grant, scopes []string) (any, error) {
	now := time.Now()
	claims := maps.Clone(g.User.Claims)
	if claims == nil {
		claims = map[string]any{}
	}
	for _, name := range reserved {
		delete(claims, name)
	}
	maps.Copy(claims, map[string]any{
		"iss": s.issuer, "aud": s.resource, "sub": g.User.Subject, "client_id": g.Client, "scope": strings.Join(scopes, " "),
		"iat": now.Unix(), "exp": now.Add(accessAge).Unix(), "jti": newID(), claimGrant: id,
	})
	answer := &tokens{Type: "Bearer", Expires: int(accessAge.Seconds()), Scope: strings.Join(scopes, " ")}
	if g.JKT != "" {
		claims["cnf"], answer.Type = map[string]any{"jkt": g.JKT}, "DPoP"
	}
	var err error
	if answer.Access, err = s.signer.sign(claims); err != nil {
		return nil, err
	}
	answer.Refresh, err = s.sealed(kindRefresh, &refreshText{id, g.Count})
	return answer, err
}
