// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/network"
	"github.com/go-psi/psi/internal/redact"
)

// resourceMetadata is the metadata of an MCP server (RFC 9728).
type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	Scopes               []string `json:"scopes_supported"`
	DPoPRequired         bool     `json:"dpop_bound_access_tokens_required"`
}

// serverMetadata is the metadata of an authorization server (RFC 8414).
type serverMetadata struct {
	Issuer                string   `json:"issuer"`
	AuthorizationEndpoint string   `json:"authorization_endpoint"`
	TokenEndpoint         string   `json:"token_endpoint"`
	RegistrationEndpoint  string   `json:"registration_endpoint"`
	RevocationEndpoint    string   `json:"revocation_endpoint"`
	Challenges            []string `json:"code_challenge_methods_supported"`
	Scopes                []string `json:"scopes_supported"`
	AuthMethods           []string `json:"token_endpoint_auth_methods_supported"`
	AuthAlgorithms        []string `json:"token_endpoint_auth_signing_alg_values_supported"`
	DPoPAlgorithms        []string `json:"dpop_signing_alg_values_supported"`
	MetadataClients       bool     `json:"client_id_metadata_document_supported"`
	SendsIssuer           bool     `json:"authorization_response_iss_parameter_supported"`

	// mayOmitPKCE means that the metadata need not promise PKCE: it is of a server of
	// revision 2025-03-26, or the user named it.
	mayOmitPKCE bool
}

// serverMembers are the members of serverMetadata that every login needs.
var serverMembers = []string{"issuer", "token_endpoint"}

// A site is the source of the tokens for an MCP server.
type site struct {
	resource string // identifier of the server, from its metadata
	scopes   []string
	dpop     bool
	as       *serverMetadata
	reach    reach
}

// wellKnown inserts a well-known path before the path of an identifier.
func wellKnown(id *url.URL, name string) string {
	return rooted(id, "/.well-known/"+name+strings.TrimRight(id.EscapedPath(), "/"))
}

// rooted returns a path at the origin of a URL.
func rooted(id *url.URL, path string) string { return id.Scheme + "://" + id.Host + path }

// discover finds the authorization server.
func (t *Transport) discover(ctx context.Context, d *demand, near reach, prefers func(issuer string) bool) (*site, error) {
	if t.opts.AuthorizationServerMetadata != "" {
		return t.discoverConfigured(ctx, d, near)
	}
	prm, err := t.resource(ctx, d.metadata, near)
	if errors.Is(err, errAbsent) {
		return t.discoverOld(ctx, near)
	}
	if err != nil {
		return nil, err
	}
	as, err := t.firstServer(ctx, t.candidates(prm.AuthorizationServers, prefers), near)
	if err != nil {
		return nil, err
	}
	return &site{prm.Resource, scopeSet(prm.Scopes), prm.DPoPRequired, as, near}, nil
}

// maxIssuers is the maximum number of authorization servers that are tried. A server that
// names more could use the client for requests to others.
const maxIssuers = 4

// candidates returns the authorization servers to try, in order: those for which the grant
// has credentials, or else the one that a client without an issuer is bound to, or else all.
// A preferred server that is down is not replaced by another: credentials belong to one
// issuer.
func (t *Transport) candidates(named []string, prefers func(issuer string) bool) []string {
	t.mu.Lock()
	bound := t.bound
	t.mu.Unlock()
	only := prefers
	if !slices.ContainsFunc(named, only) {
		only = func(issuer string) bool { return sameIssuer(issuer, bound) }
	}
	all := !slices.ContainsFunc(named, only)
	var list []string
	for _, issuer := range named {
		if (all || only(issuer)) && !slices.Contains(list, issuer) && len(list) < maxIssuers {
			list = append(list, issuer)
		}
	}
	return list
}

// firstServer returns the metadata of the first authorization server that has some.
func (t *Transport) firstServer(ctx context.Context, issuers []string, near reach) (*serverMetadata, error) {
	if len(issuers) == 0 {
		return nil, fmt.Errorf("%w: the server names no authorization server", ErrMetadata)
	}
	var failed error
	for _, issuer := range issuers {
		as, err := t.egress.server(ctx, issuer, &call{reach: near, header: t.version()})
		if err == nil || len(issuers) == 1 || ctx.Err() != nil {
			return as, err
		}
		t.opts.Logger.WarnContext(ctx, "oauth: one of several authorization servers cannot be used", "issuer", redact.URL(issuer), "error", err)
		err = fmt.Errorf("authorization server %.200q: %w", redact.URL(issuer), err)
		if failed == nil {
			failed = err
		} else {
			failed = fmt.Errorf("%w; %w", failed, err)
		}
	}
	return nil, failed
}

const resourceWellKnown = "/.well-known/oauth-protected-resource"

// resource fetches the metadata of the MCP server. It skips documents about other
// resources, because the right one may follow, and an advertised place that cannot be used:
// a server behind a proxy often does not know its own URL. A 404 or another resource at a
// well-known URL ends nothing; other errors there are fatal, or a 503 would make the login be
// for the parent.
func (t *Transport) resource(ctx context.Context, advertised string, near reach) (*resourceMetadata, error) {
	path := t.server.EscapedPath()
	places := []string{rooted(t.server, strings.TrimSuffix(resourceWellKnown+path, "/")), rooted(t.server, resourceWellKnown)}
	if strings.HasSuffix(path, "/") && path != "/" {
		places = append([]string{rooted(t.server, resourceWellKnown+path)}, places...) // with the slash
	}
	isUnknown := !slices.Contains(places, advertised)
	if advertised != "" {
		places = append([]string{advertised}, places...)
	}
	var absent, problem error
	for _, place := range slices.Compact(places) {
		prm, err := t.resourceAt(ctx, place, near)
		switch {
		case err == nil, ctx.Err() != nil:
			return prm, err
		case errors.Is(err, errAbsent):
			absent = err
		case errors.Is(err, ErrResource), place == advertised && isUnknown:
			problem = cmp.Or(problem, err)
		default:
			return nil, cmp.Or(problem, err)
		}
		if place == advertised {
			t.opts.Logger.WarnContext(ctx, "oauth: the resource_metadata of the server's challenge cannot be used", "url", redact.URL(place), "error", err)
		}
	}
	return nil, cmp.Or(problem, absent)
}

// resourceAt fetches the metadata of the MCP server from one place.
func (t *Transport) resourceAt(ctx context.Context, place string, near reach) (*resourceMetadata, error) {
	var prm resourceMetadata
	if err := t.egress.document(ctx, &call{url: place, reach: near, header: t.version()}, &prm, "resource", "authorization_servers"); err != nil {
		return nil, err
	}
	if !t.isResource(prm.Resource, place) {
		return nil, fmt.Errorf("%w: %.200q, found at %.200q, is not %q", ErrResource, redact.URL(prm.Resource), place, t.server)
	}
	return &prm, nil
}

// isResource reports whether metadata found at a place may identify the server as id (RFC
// 9728, section 3.3). The server's own URL is accepted at any place. The URL of a parent
// may be shared by tenants of one host, so it is accepted only at the parent's own
// well-known URL, which no tenant controls. RFC 9728 requires the exact URL, but many servers
// publish their origin.
func (t *Transport) isResource(id, place string) bool {
	u, err := parseURL(id)
	if err != nil || origin(u) != t.home || !isBelow(t.server, u) {
		return false
	}
	path := strings.TrimRight(u.EscapedPath(), "/")
	if path == strings.TrimRight(t.server.EscapedPath(), "/") && u.RawQuery == t.server.RawQuery {
		return true
	}
	at, err := url.Parse(place)
	return err == nil && !t.opts.ExactResource && u.RawQuery == "" &&
		origin(at) == t.home && at.EscapedPath() == resourceWellKnown+path && at.RawQuery == ""
}

// isBelow reports whether the path of u is the path of top or below it.
func isBelow(u, top *url.URL) bool {
	path, prefix := u.EscapedPath(), strings.TrimRight(top.EscapedPath(), "/")
	rest, ok := strings.CutPrefix(path, prefix)
	return ok && (rest == "" || rest[0] == '/') && !slices.ContainsFunc(strings.Split(u.Path, "/"), isDots)
}

func isDots(segment string) bool { return segment == "." || segment == ".." }

// places returns the URLs where the metadata of an authorization server may be, in order.
func places(issuer *url.URL) []string {
	const oauth, openid = "oauth-authorization-server", "openid-configuration"
	list := []string{wellKnown(issuer, oauth), wellKnown(issuer, openid)}
	if path := strings.TrimRight(issuer.EscapedPath(), "/"); path != "" {
		list = append(list, rooted(issuer, path+"/.well-known/"+openid))
	}
	return list
}

// server fetches the metadata of an authorization server, using the settings of c, and
// checks that it describes that server. Places that are unavailable or describe another
// server are skipped, because the root of a host may not know about an issuer below it.
func (e *egress) server(ctx context.Context, issuer string, c *call) (*serverMetadata, error) {
	u, err := parseURL(issuer)
	if err == nil && u.RawQuery != "" {
		err = fmt.Errorf("%w: issuer %.200q has a query", ErrUnsafeURL, issuer)
	}
	if err != nil {
		return nil, err
	}
	var problem error
	for _, place := range places(u) {
		var as serverMetadata
		this := *c
		this.url = place
		err := e.document(ctx, &this, &as, serverMembers...)
		switch {
		case errors.Is(err, errAbsent):
			continue
		case errors.Is(err, errUnavailable):
			problem = cmp.Or(problem, err)
			continue
		case err != nil:
			return nil, err
		case !sameIssuer(as.Issuer, issuer):
			problem = cmp.Or(problem, fmt.Errorf("%w: the metadata of %.200q says that it is of %.200q", ErrIssuer, issuer, redact.URL(as.Issuer)))
			continue
		case as.TokenEndpoint == "":
			return nil, fmt.Errorf("%w: the metadata of %.200q has no token_endpoint", ErrMetadata, issuer)
		}
		return &as, nil
	}
	return nil, cmp.Or(problem, fmt.Errorf("%w: authorization server %.200q has none", ErrMetadata, issuer))
}

// discoverConfigured uses the authorization server that the user named. The metadata of the
// MCP server is optional then.
func (t *Transport) discoverConfigured(ctx context.Context, d *demand, near reach) (*site, error) {
	at := t.opts.AuthorizationServerMetadata
	u, err := parseURL(at)
	if err != nil {
		return nil, err
	}
	wide := reach{near.loopback || network.IsLoopback(u.Hostname()), true, near.linkLocal}
	as := &serverMetadata{mayOmitPKCE: true}
	err = t.egress.document(ctx, &call{url: at, reach: wide}, as, serverMembers...)
	if err == nil {
		_, err = parseURL(as.Issuer)
	}
	switch {
	case errors.Is(err, errAbsent):
		return nil, fmt.Errorf("%w: Options.AuthorizationServerMetadata: %w", ErrMetadata, err)
	case err != nil:
		return nil, fmt.Errorf("oauth: Options.AuthorizationServerMetadata: %w", err)
	case as.TokenEndpoint == "":
		return nil, fmt.Errorf("%w: Options.AuthorizationServerMetadata: %.200q has no token_endpoint", ErrMetadata, withoutQuery(at))
	}
	s := &site{resource: canonical(t.server), as: as, reach: wide}
	prm, err := t.resource(ctx, d.metadata, near)
	switch {
	case err == nil:
		s.resource, s.scopes, s.dpop = prm.Resource, scopeSet(prm.Scopes), prm.DPoPRequired
	case ctx.Err() != nil:
		return nil, err
	case !errors.Is(err, errAbsent):
		t.opts.Logger.WarnContext(ctx, "oauth: the metadata of the server cannot be used", "error", err)
	}
	return s, nil
}

// discoverOld finds the authorization server of an MCP server of revision 2025-03-26. Such
// a server has no resource metadata and is its own authorization server.
func (t *Transport) discoverOld(ctx context.Context, near reach) (*site, error) {
	home := rooted(t.server, "")
	var as serverMetadata
	err := t.egress.document(ctx, &call{url: home + "/.well-known/oauth-authorization-server", reach: near, header: t.version()}, &as, serverMembers...)
	switch {
	case errors.Is(err, errAbsent):
		as = serverMetadata{
			Issuer:                home,
			AuthorizationEndpoint: home + "/authorize",
			TokenEndpoint:         home + "/token",
			RegistrationEndpoint:  home + "/register",
		}
	case err != nil:
		return nil, err
	case !sameIssuer(as.Issuer, home):
		return nil, fmt.Errorf("%w: the metadata of %.200q says that it is of %.200q", ErrIssuer, home, redact.URL(as.Issuer))
	case as.TokenEndpoint == "":
		return nil, fmt.Errorf("%w: the metadata of %.200q has no token_endpoint", ErrMetadata, home)
	}
	as.mayOmitPKCE = true
	return &site{resource: canonical(t.server), as: &as, reach: near}, nil
}

// canonical returns a server's URL as an identifier: scheme and host in lower case, without
// a fragment or trailing slash.
func canonical(u *url.URL) string {
	id := strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Host) + strings.TrimRight(u.EscapedPath(), "/")
	if u.RawQuery != "" {
		id += "?" + u.RawQuery
	}
	return id
}
