// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package debug

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-psi/psi/mcp"
	"github.com/go-psi/psi/mcp/apps"
)

// originOfApps returns Options.Apps in the form that browsers use. It panics if Apps is not an
// origin.
func originOfApps(text string) string {
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.ContainsAny(u.Host, " ;,'\"*") ||
		strings.TrimSuffix(text, "/") != u.Scheme+"://"+u.Host {
		panic(fmt.Sprintf("debug: NewHandler: Options.Apps is %q, which is not an origin such as http://127.0.0.1:8081", text))
	}
	return u.Scheme + "://" + u.Host
}

// appOf returns the URI of the app of a tool that hosts show, or "" if there is none.
func appOf(t *mcp.Tool) string {
	m, err := apps.MetaOf(t)
	if err != nil || m == nil || !m.IsFor(apps.ForModel) {
		return ""
	}
	return m.ResourceURI
}

// actApp redirects to the app of a tool at Options.Apps. That host asks the user before it calls
// the tool with the arguments of the form. Serving the host's pages below this one was
// rejected: routes, policies and frames of two handlers would share an origin.
func (p *page) actApp(r *http.Request, caller *mcp.Principal) (*url.URL, error) {
	it, err := p.item(r.Context(), caller, "tool", r.PostForm.Get("name"))
	switch {
	case err != nil:
		return nil, err
	case p.opts.Apps == "":
		return nil, failure{http.StatusNotFound, "there is no host for apps (Options.Apps)"}
	case it.App == "":
		return nil, failure{http.StatusNotFound, fmt.Sprintf("the tool %.100q has no app", it.Name)}
	}
	arguments, err := objectOf(r.PostForm, it.Fields)
	if err != nil {
		return nil, err
	}
	query := url.Values{"tool": {it.Name}, "arguments": {string(arguments)}}
	return url.Parse(p.opts.Apps + "/?" + query.Encode())
}
