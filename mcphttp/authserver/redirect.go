// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package authserver

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/network"
)

// maxRedirect is the maximum length of a redirect URI.
const maxRedirect = 1 << 10

// loopback matches redirect URIs of programs on the user's machine. Their port changes with
// each login (RFC 8252, section 7.3).
var loopback = regexp.MustCompile(`^http://(127\.0\.0\.1|\[::1\]|localhost)(:[1-9][0-9]{0,4})?([/?].*)?$`)

// editors are schemes of well-known clients which are no reversed domain names, as those of
// other programs must be (RFC 8252, section 7.1).
var editors = []string{"cursor", "vscode", "vscode-insiders", "windsurf"}

// isRedirect reports whether clients may use a redirect URI. Whatever URL parsers and
// browsers disagree about is not allowed.
func isRedirect(uri string) bool {
	if len(uri) > maxRedirect || strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune(`\"<>#^{}|`+"`", r) }) {
		return false
	}
	u, err := url.Parse(uri)
	if err != nil || u.User != nil || u.Opaque != "" || u.Scheme != strings.ToLower(u.Scheme) || !strings.HasPrefix(uri, u.Scheme+":/") {
		return false
	}
	if query, err := url.ParseQuery(u.RawQuery); err != nil || hasAnswer(query) {
		return false
	}
	host := u.Hostname()
	switch u.Scheme {
	case "https":
		return host != "" && host == strings.ToLower(host) && !strings.HasSuffix(host, ".") && !strings.ContainsAny(host, "%@") && !network.IsOddAddress(host)
	case "http":
		return loopback.MatchString(uri)
	}
	return strings.Contains(u.Scheme, ".") || slices.Contains(editors, u.Scheme)
}

// answers are the parameters that this server adds to a redirect URI, and those that may come with
// them.
var answers = []string{"code", "state", "iss", "error", "error_description", "error_uri"}

// hasAnswer reports whether a redirect URI has a parameter that looks like one of our response. Many
// clients read the first of two: with an attacker's iss in front of ours, a client would send its
// code to the attacker (RFC 9207). Some do not tell upper case from lower.
func hasAnswer(query url.Values) bool {
	for name := range query {
		if slices.Contains(answers, strings.ToLower(name)) {
			return true
		}
	}
	return false
}

// matches reports whether a redirect URI is one of those registered: exactly, but for the
// port on the user's own machine.
func matches(registered []string, uri string) bool {
	if !isRedirect(uri) {
		return false
	}
	return slices.ContainsFunc(registered, func(r string) bool {
		return r == uri || withoutPort(uri) != "" && withoutPort(r) == withoutPort(uri)
	})
}

// withoutPort returns a loopback redirect URI without its port, and "" for any other.
func withoutPort(uri string) string {
	parts := loopback.FindStringSubmatch(uri)
	if parts == nil {
		return ""
	}
	return "http://" + parts[1] + parts[3]
}

// placeOf names, for people, where a redirect URI leads.
func placeOf(uri string) string {
	u, err := url.Parse(uri)
	switch {
	case err != nil: // cannot happen: it was checked
		return "an unknown place"
	case withoutPort(uri) != "":
		return "a program on this computer"
	case u.Scheme == "https":
		return u.Host
	}
	return "the program that opens " + u.Scheme + ": links"
}

// withParams returns a redirect URI with parameters added to its query.
func withParams(uri string, params url.Values) string {
	separator := "?"
	if strings.Contains(uri, "?") {
		separator = "&"
	}
	return uri + separator + params.Encode()
}
