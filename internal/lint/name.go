// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package lint

import (
	"fmt"
	"strings"
)

const (
	// maxName is the limit of OpenAI (the message is in
	// github.com/mastra-ai/mastra/issues/6302) and of Gemini's FunctionDeclaration.
	// Anthropic allows 128.
	maxName = 64
	// maxCursor is Cursor's limit for the name of a server and the name of a tool together
	// (github.com/ComposioHQ/composio/issues/2788).
	maxCursor = 60
)

const (
	letters   = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	nameChars = letters + "0123456789_-"
)

// names checks the names of tools, and finds names that collide.
type names struct {
	prefix string
	seen   map[string]int    // index of the tool by name
	mended map[string]string // name by mended name
}

func newNames(prefix string) *names {
	return &names{prefix: prefix, seen: map[string]int{}, mended: map[string]string{}}
}

func (n *names) check(it item, index int) {
	if it.name == "" {
		it.report(Error, "/name", "tool-name", "the name is empty", "give the tool a name")
		return
	}
	name := n.prefix + it.name
	n.characters(it, name)
	n.length(it, name)
	if first, ok := n.seen[name]; ok {
		it.report(Error, "/name", "tool-name-twice", fmt.Sprintf("the tool at index %d of the list has the same name", first), "rename one of them")
		return
	}
	n.seen[name] = index
	mended := mend(name)
	if other, ok := n.mended[mended]; ok {
		it.report(Warning, "/name", "tool-name-twice", fmt.Sprintf("hosts that mend names make %q of this one and of %q", mended, other), "rename one of them")
		return
	}
	n.mended[mended] = name
}

// characters checks a name against ^[a-zA-Z0-9_-]+$, the pattern of OpenAI and Anthropic
// (the message is in github.com/home-assistant/core/issues/147760).
func (n *names) characters(it item, name string) {
	if bad := strings.Trim(name, nameChars); bad != "" {
		it.report(Error, "/name", "tool-name", fmt.Sprintf("the name has %q; only A-Z, a-z, 0-9, '_' and '-' are accepted", []rune(bad)[0]),
			"rename the tool", "Anthropic", "OpenAI")
		return
	}
	// The reference of Vertex AI's FunctionDeclaration restricts the first character. The
	// reference of the Gemini API does not.
	if strings.IndexByte(letters+"_", name[0]) < 0 {
		it.report(Warning, "/name", "tool-name", "the name begins with neither a letter nor '_'", "begin it with a letter", "Vertex AI")
	}
}

func (n *names) length(it item, name string) {
	switch {
	case len(name) > maxName:
		it.report(Error, "/name", "tool-name", fmt.Sprintf("the name has %d characters%s; %d are accepted", len(name), n.including(), maxName),
			"shorten it; hosts put the server's name before it", "Gemini", "OpenAI")
	case len(name) > maxCursor:
		it.report(Warning, "/name", "tool-name", fmt.Sprintf("the name has %d characters%s; a server's name and a tool's may have %d together", len(name), n.including(), maxCursor),
			"shorten it", "Cursor")
	}
}

func (n *names) including() string {
	if n.prefix == "" {
		return ""
	}
	return fmt.Sprintf(" with its prefix %q", n.prefix)
}

// mend returns the name that hosts use instead of one that a provider does not accept: they
// replace characters and truncate it.
func mend(name string) string {
	mended := []byte(name[:min(len(name), maxName)])
	for i, c := range mended {
		if strings.IndexByte(nameChars, c) < 0 {
			mended[i] = '_'
		}
	}
	return string(mended)
}
