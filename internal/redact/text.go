// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redact

import (
	"regexp"
	"strings"
)

// textRules find secrets in the output of programs, in files of settings, in URLs and in
// headers. The two groups of each are what stays before and after the secret.
var textRules = []*regexp.Regexp{
	regexp.MustCompile(`(-----BEGIN [A-Z ]*PRIVATE KEY-----)(?:[^-]|-[^-])*(-----END|)`),
	regexp.MustCompile(`(?i)(\b(?:proxy-)?authorization["']?\s*[:=]\s*["']?)[^\r\n"']+()`),
	regexp.MustCompile(`(?i)(\b(?:set-)?cookie["']?\s*[:=]\s*["']?)[^\r\n"']+()`),
	regexp.MustCompile(`(?i)([\w.-]*(?:password|passwd|passphrase|pwd|secret|token|credentials?|(?:api|access|account|private|secret)[_-]?key)["']?\s*[:=]\s*["']?)[^\s"'&,;]+()`),
	regexp.MustCompile(`(\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@"']*:)[^\s/@"']+(@)`),
	regexp.MustCompile(`(?i)(\bbearer\s+)[a-z._~+/=-]*[0-9][a-z0-9._~+/=-]*()`),
	regexp.MustCompile(`()\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*()`), // a JSON Web Token
	regexp.MustCompile(`()\b(?:gh[oprsu]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[a-z]-[\w-]{10,}|[rs]k[-_][\w-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{30,}|npm_\w{30,}|hf_\w{20,})()`),
}

// Text returns a text without the secrets that can be recognised in it: the values of
// settings, headers and parameters of URLs whose names indicate secrets, passwords in URLs,
// private keys, JSON Web Tokens, and keys of well-known services.
func Text(text string) string {
	for _, rule := range textRules {
		text = rule.ReplaceAllString(text, "${1}"+Redacted+"${2}")
	}
	return strings.ToValidUTF8(text, "\ufffd")
}
