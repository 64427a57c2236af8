// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/nearest"
)

// isNilHandler reports whether h is nil, or a HandlerFunc without a function.
func isNilHandler(h Handler) bool {
	f, isFunc := h.(HandlerFunc)
	return h == nil || isFunc && f == nil
}

// mustBeHandler panics if h is nil.
func mustBeHandler(function string, h Handler) {
	if isNilHandler(h) {
		panic(registrationErrorf("%s at %s: the handler is nil", function, callSite()))
	}
}

// mustBeFunc panics if the function that another one is called with is nil.
func mustBeFunc(function string, isNil bool) {
	if isNil {
		panic(registrationErrorf("%s at %s: the function is nil", function, callSite()))
	}
}

// mustBeMiddleware panics if one of mw is nil.
func mustBeMiddleware(function string, mw []Middleware) {
	for i, m := range mw {
		if m == nil {
			panic(registrationErrorf("%s at %s: middleware %d of %d is nil", function, callSite(), i+1, len(mw)))
		}
	}
}

// mustBeNamed panics if a server or client has no name.
func mustBeNamed(constructor, name string) {
	if name == "" {
		panic(registrationErrorf("%s at %s: the name is empty", constructor, callSite()))
	}
}

// checkNamed returns an error if a description has another name than it is registered
// under.
func (e *entry) checkNamed(field, given string) error {
	if given == "" || given == e.name {
		return nil
	}
	return e.errorf("%s is %q; leave it empty, or register the %s as %[2]q", field, given, e.kind)
}

// checkCompleters returns an error for a completer of an argument that does not exist.
// where says where arguments are declared.
func (e *entry) checkCompleters(completers map[string]Completer, known []string, where string) error {
	for _, name := range sortedKeys(completers) {
		if completers[name] == nil {
			return e.errorf("the completer of %q is nil", name)
		}
		if !slices.Contains(known, name) {
			return e.errorf("there is a completer for %q, but no such name in %s%s", name, where, knownNames(name, known))
		}
	}
	return nil
}

// knownNames says which of the known names was probably meant.
func knownNames(name string, known []string) string {
	if len(known) == 0 {
		return ", which has none"
	}
	return ", which has " + strings.Join(known, ", ") + nearest.Hint(name, known)
}

// checkScheme returns an error for a resource whose pattern does not begin with a scheme.
// A template may begin with a variable.
func checkScheme(pattern string) error {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	scheme := pattern[:max(strings.IndexAny(pattern, ":{"), 0)]
	isName := scheme != "" && strings.Trim(scheme[:1], letters) == "" && strings.Trim(scheme, letters+"0123456789+-.") == ""
	if isName || pattern[0] == '{' {
		return nil
	}
	return fmt.Errorf("a resource needs a URI with a scheme, such as notes://%s", strings.TrimLeft(pattern, ":/"))
}
