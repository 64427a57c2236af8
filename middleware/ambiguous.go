// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package middleware

import (
	"net/netip"
	"slices"
	"strings"
)

// isAmbiguous reports whether a parser of the WHATWG URL standard may write a URI, which is in
// normal form, in another way: without control characters, dot segments and spaces at the ends
// and, in URLs of the web and of files, with other slashes, another host or no default port.
// The official TypeScript SDK looks up resources by that form. Policies refuse such a URI,
// because they cannot know which resource a server behind a gateway finds. Writing what the
// parser writes was tried: it takes four times as much code, and fails open where it is wrong.
func isAmbiguous(uri string) bool {
	for strings.HasPrefix(uri, "mount:") {
		_, inner, ok := strings.Cut(uri[len("mount:"):], ":")
		if !ok {
			break
		}
		uri = inner
	}
	scheme, rest, _ := strings.Cut(uri, ":")
	path, _, _ := strings.Cut(rest, "#")
	path, _, _ = strings.Cut(path, "?")
	isSpecial := slices.Contains([]string{"http", "https", "ws", "wss", "ftp", "file"}, scheme)
	return strings.HasPrefix(uri, "%20") || strings.HasSuffix(uri, "%20") || strings.ContainsFunc(uri, isControl) ||
		isSpecial && strings.Contains(path, "%5C") || hasDotSegment(path) || hasAmbiguousHost(scheme, path, isSpecial)
}

func isControl(r rune) bool { return r < ' ' }

// hasDotSegment reports whether a path has a segment "." or "..", encoded or not.
func hasDotSegment(path string) bool {
	if !strings.Contains(path, "/") {
		return false // the path of a URN, which parsers keep
	}
	for segment := range strings.SplitSeq(path, "/") {
		switch strings.ReplaceAll(segment, "%2E", ".") {
		case ".", "..":
			return true
		}
	}
	return false
}

// hasAmbiguousHost reports whether what follows the scheme has no host where one is expected,
// or one that can be written in another way.
func hasAmbiguousHost(scheme, rest string, isSpecial bool) bool {
	authority, found := strings.CutPrefix(rest, "//")
	if !found {
		return isSpecial
	}
	authority, _, _ = strings.Cut(authority, "/")
	if scheme == "file" {
		return authority != ""
	}
	host, port := authority, ""
	i := strings.LastIndexByte(authority, ':')
	if hasPort := i >= 0 && strings.Trim(authority[i+1:], "0123456789") == ""; hasPort {
		host, port = authority[:i], authority[i+1:]
		if port == "" || port[0] == '0' {
			return true
		}
	}
	if !isSpecial {
		return strings.HasPrefix(host, "@") || strings.HasPrefix(host, ":@")
	}
	return port == "80" || port == "443" || port == "21" || !isPlainHost(host)
}

// isPlainHost reports whether there is one way to write a host of the web.
func isPlainHost(host string) bool {
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return host == ip.String() || host == "["+ip.String()+"]"
	}
	const letters = "abcdefghijklmnopqrstuvwxyz"
	last := host[strings.LastIndexByte(host, '.')+1:]
	return strings.Trim(host, letters+"0123456789-.") == "" && strings.Trim(last, letters+"0123456789-") == "" && strings.ContainsAny(last[:min(1, len(last))], letters)
}
