// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package host

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/go-psi/psi/internal/strictjson"
	"github.com/go-psi/psi/mcp/apps"
)

// Sandbox returns the handler of the sandbox, for the root of a dedicated origin. It serves
// the proxy between a host and the page of an app: a frame, under the policy of the page,
// that forwards messages. Any host of this protocol can use it. Its URL has the parameters
// host, the origin of the host, and csp, the CSP of the page as JSON.
func Sandbox() http.Handler { return http.HandlerFunc(serveProxy) }

// serveProxy serves the proxy with the policy of its page as a header: a meta element would
// come after whatever the page begins with. The page has an opaque origin; otherwise all
// pages of a host would share that of the proxy.
func serveProxy(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" || r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	origin, ok := originOf(r.FormValue("host"))
	if !ok {
		http.Error(w, "sandbox: the parameter host is not the origin of a host", http.StatusBadRequest)
		return
	}
	var meta apps.PageMeta
	if text := r.FormValue("csp"); text != "" && text != "null" {
		meta.CSP = new(apps.CSP)
		err := strictjson.Unmarshal([]byte(text), meta.CSP)
		if err == nil {
			err = meta.CSP.Validate()
		}
		if err != nil {
			http.Error(w, "sandbox: the parameter csp: "+err.Error(), http.StatusBadRequest)
			return
		}
	}
	w.Header().Set("Content-Security-Policy", meta.Policy()+"; frame-ancestors "+origin)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Referrer-Policy", "no-referrer")
	_ = pages.ExecuteTemplate(w, "proxy.html", map[string]string{"Host": origin, "Sandbox": apps.SandboxPage}) // if it fails, the browser is gone
}

// originOf returns the origin in text and reports whether text is an origin.
func originOf(text string) (string, bool) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.ContainsAny(u.Host, " ;,'\"*") {
		return "", false
	}
	return u.Scheme + "://" + u.Host, true
}
