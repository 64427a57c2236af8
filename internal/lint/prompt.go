// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package lint

import (
	"fmt"
	"strings"

	"github.com/go-psi/psi/mcp"
)

// Prompts checks the prompts of a server. Nil prompts are ignored.
func Prompts(prompts []*mcp.Prompt) []Finding {
	var found []Finding
	seen := map[string]bool{}
	for _, p := range prompts {
		if p == nil {
			continue
		}
		it := item{KindPrompt, p.Name, &found}
		it.named("/name", p.Name, seen)
		if strings.ContainsAny(p.Name, " \t\n") {
			it.report(Note, "/name", "prompt-name", "the name has a space; users type it as a command", "use '-' or '_'")
		}
		it.hidden("/title", p.Title)
		it.described("/description", p.Description)
		arguments := map[string]bool{}
		for i, a := range p.Arguments {
			if a == nil {
				continue
			}
			at := fmt.Sprintf("/arguments/%d", i)
			it.named(at+"/name", a.Name, arguments)
			it.hidden(at+"/title", a.Title)
			it.described(at+"/description", a.Description)
		}
	}
	return ordered(found)
}

// named reports a name or a URI that is empty or a duplicate.
func (it item) named(pointer, name string, seen map[string]bool) {
	what := pointer[strings.LastIndexByte(pointer, '/')+1:]
	switch {
	case name == "":
		it.report(Error, pointer, "missing", "the "+what+" is empty", "set it")
	case seen[name]:
		it.report(Error, pointer, "twice", fmt.Sprintf("the %s %q is listed twice", what, name), "remove or rename one of them")
	}
	seen[name] = true
}

// described reports a missing description, and hidden text in a description.
func (it item) described(pointer, text string) {
	it.hidden(pointer, text)
	if strings.TrimSpace(text) == "" {
		it.report(Note, pointer, "description-missing", "there is no description, by which users and models choose", "add one")
	}
}
