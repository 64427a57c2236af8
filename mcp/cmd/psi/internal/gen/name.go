// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package gen

import (
	"strconv"
	"strings"
	"unicode"
)

// initialisms maps words in upper case to their spelling in Go names.
var initialisms = map[string]string{
	"ACL": "ACL", "API": "API", "APIS": "APIs", "ASCII": "ASCII", "CPU": "CPU", "CSS": "CSS", "CSV": "CSV", "DB": "DB", "DNS": "DNS",
	"EOF": "EOF", "GUID": "GUID", "HTML": "HTML", "HTTP": "HTTP", "HTTPS": "HTTPS", "ID": "ID", "IDS": "IDs", "IO": "IO", "IP": "IP",
	"JSON": "JSON", "JWT": "JWT", "LLM": "LLM", "MCP": "MCP", "MIME": "MIME", "OS": "OS", "PDF": "PDF", "QPS": "QPS", "RAM": "RAM",
	"RPC": "RPC", "SHA": "SHA", "SQL": "SQL", "SSH": "SSH", "SVG": "SVG", "TCP": "TCP", "TLS": "TLS", "TTL": "TTL", "UDP": "UDP",
	"UI": "UI", "UID": "UID", "URI": "URI", "URIS": "URIs", "URL": "URL", "URLS": "URLs", "UTC": "UTC", "UTF": "UTF", "UUID": "UUID",
	"VM": "VM", "XML": "XML", "YAML": "YAML",
}

// maxName limits the length of names derived from one text, in characters.
const maxName = 60

// exported returns an exported identifier made of the letters and digits of a text.
func exported(text string) string {
	var name []rune
	for _, word := range words(text) {
		if known, ok := initialisms[strings.ToUpper(word)]; ok {
			name = append(name, []rune(known)...)
			continue
		}
		for i, r := range []rune(word) {
			if i == 0 {
				name = append(name, unicode.ToUpper(r))
			} else {
				name = append(name, unicode.ToLower(r))
			}
		}
	}
	name = name[:min(len(name), maxName)]
	if len(name) == 0 || !unicode.IsUpper(name[0]) { // a digit, or a letter without case
		name = append([]rune{'X'}, name...)
	}
	return string(name)
}

// words splits a text at everything that is not a letter or a digit, and at changes of case
// as in "camelCase" and "HTTPServer".
func words(text string) (list []string) {
	var word []rune
	flush := func() {
		if len(word) > 0 {
			list = append(list, string(word))
		}
		word = nil
	}
	runes := []rune(text)
	for i, r := range runes {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			flush()
			continue
		}
		if i > 0 && unicode.IsUpper(r) {
			startsWord := unicode.IsLower(runes[i-1]) ||
				unicode.IsUpper(runes[i-1]) && i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if startsWord {
				flush()
			}
		}
		word = append(word, r)
	}
	flush()
	return list
}

// A scope holds the names in use, each with the number last appended to make it unique.
type scope map[string]int

func (s scope) isFree(name string) bool { return s[name] == 0 }

// take reserves and returns the name, with a number appended if it is already in use.
func (s scope) take(name string) string {
	free := name
	for !s.isFree(free) {
		s[name]++
		free = name + strconv.Itoa(s[name])
	}
	s[free] = 1
	return free
}
