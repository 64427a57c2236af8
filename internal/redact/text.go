// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package redact

import (
	"regexp"
	"slices"
	"strings"
)

// A textRule finds secrets. The first two groups of its pattern are kept before and after
// the secret. Further groups are the quote before the secret, of which there may be several
// kinds. The rule can match only a text that contains one of the marks, in lower case:
// searching for the marks takes a hundredth of the time.
type textRule struct {
	marks   []string
	pattern *regexp.Regexp
}

// textRules find secrets in the output of programs, in configuration files, in URLs and in headers.
var textRules = []textRule{
	{[]string{"private key-----"}, regexp.MustCompile(`(-----BEGIN [A-Z ]*PRIVATE KEY-----)(?:[^-]|-[^-])*(-----END|)`)},
	{[]string{"authorization"}, regexp.MustCompile(`(?i)(\b(?:proxy-)?authorization\\*["']?\s*[:=]\s*\\*["']?)(?:[^\r\n"'\\]|\\+[^\r\n"'\\])+()`)},
	{[]string{"cookie"}, regexp.MustCompile(`(?i)(\b(?:set-)?cookie\\*["']?\s*[:=]\s*\\*["']?)(?:[^\r\n"'\\]|\\+[^\r\n"'\\])+()`)},
	{
		[]string{"passw", "passphrase", "pwd", "secret", "token", "credential", "key"},
		regexp.MustCompile(`(?i)([\w.-]*(?:password|passwd|passphrase|pwd|secret|token|credentials?|(?:api|access|account|private|secret)[_-]?key)\\*["']?\s*[:=]\s*)()` +
			`(?:(")(?:[^"\\\r\n]|\\[^\r\n])+|(')(?:[^'\\\r\n]|\\[^\r\n])+|(\\+["'])(?:[^"'\\\r\n]|\\+[^"'\\\r\n])+|(?:[^\s"'&,;\\]|\\+[^\s"'&,;\\])+)`),
	},
	{[]string{"://"}, regexp.MustCompile(`(\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@"']*:)[^\s/@"']+(@)`)},
	{ // parameters of URLs, also of a URL within another: signatures that stand for permissions, codes and keys
		[]string{"sig", "hmac", "code", "key", "auth", "assertion", "ticket"},
		regexp.MustCompile(`(?i)((?:[?&#;]|%3f|%26|%23)(?:[\w.-]*(?:sig|signature|hmac)|code|key|auth|assertion|ticket)(?:=|%3d))` +
			`(?:[^\s"'&#;<>\\%]|%(?:[013-9a-f][0-9a-f]|2[0-57-9a-f]))+()`),
	},
	{[]string{"bearer"}, regexp.MustCompile(`(?i)(\bbearer\s+)[a-z._~+/=-]*[0-9][a-z0-9._~+/=-]*()`)},
	{[]string{"eyj"}, regexp.MustCompile(`()\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*()`)}, // a JSON Web Token
	{
		[]string{"gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "glpat-", "xox", "sk-", "sk_", "rk-", "rk_", "akia", "asia", "aiza", "npm_", "hf_"},
		regexp.MustCompile(`()\b(?:gh[oprsu]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[a-z]-[\w-]{10,}|[rs]k[-_][\w-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{16}|AIza[\w-]{30,}|npm_\w{30,}|hf_\w{20,})()`),
	},
}

// Text returns a text without the secrets that can be recognised in it: the values of
// settings, headers and URL parameters whose names indicate secrets, passwords in URLs,
// private keys, JSON Web Tokens, and keys of well-known services.
func Text(text string) string {
	lower := strings.ToLower(text)
	for _, rule := range textRules {
		hasMark := func(mark string) bool { return strings.Contains(lower, mark) }
		if slices.ContainsFunc(rule.marks, hasMark) {
			text = rule.pattern.ReplaceAllString(text, "${1}${3}${4}${5}"+Redacted+"${2}")
		}
	}
	return strings.ToValidUTF8(text, "\ufffd")
}
