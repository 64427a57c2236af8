// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// scripts make a shell ask psi for completions.
var scripts = map[string]string{
	"bash": `_psi() {
	local IFS=$'\n'
	COMPREPLY=($(psi __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _psi psi
`,
	"zsh": `#compdef psi
_psi() {
	local -a suggestions
	suggestions=("${(@f)$(psi __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	compadd -a suggestions || _files
}
compdef _psi psi
`,
	"fish": `complete -c psi -a '(psi __complete (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
}

func completionCommand() *command {
	shells := slices.Sorted(maps.Keys(scripts))
	c := &command{
		name: "completion", usage: strings.Join(shells, "|"), summary: "print the completion of a shell",
		help: `completion prints a script that has a shell complete subcommands, flags and the names of servers.
Load it where the shell starts:

  source <(psi completion bash)    in ~/.bashrc
  source <(psi completion zsh)     in ~/.zshrc, after compinit
  psi completion fish | source     in ~/.config/fish/config.fish`,
		example: "$ psi completion bash\n",
	}
	c.run = func(_ context.Context, e *env, words []string) error {
		if len(words) != 1 || scripts[words[0]] == "" {
			return c.wrongWords("want one of %s", strings.Join(shells, ", "))
		}
		_, err := io.WriteString(e.stdout, scripts[words[0]])
		return err
	}
	return c
}

// suggestCommand returns the command that the scripts call with the words of the line after
// psi. The last word is the one to complete.
func suggestCommand() *command {
	return &command{
		name: "__complete", usage: "[WORD ...]", summary: "complete a line", hidden: true,
		help:    "__complete prints how the last word could continue. The scripts of psi completion call it.",
		example: "$ psi __complete lis\nlist\n$ psi __complete completion f\nfish\n",
		raw:     true,
		run: func(_ context.Context, e *env, words []string) error {
			if len(words) == 0 {
				words = []string{""}
			}
			last := words[len(words)-1]
			for _, s := range e.suggest(words[:len(words)-1], last) {
				if strings.HasPrefix(s, last) && s != last {
					fmt.Fprintln(e.stdout, s)
				}
			}
			return nil
		},
	}
}

// plainName matches names that shells do not split or interpret.
var plainName = regexp.MustCompile(`^[\w.-]+$`)

// suggest returns the words that may follow the words before on a line.
func (e *env) suggest(before []string, last string) []string {
	var names []string
	for _, c := range commands() {
		if !c.hidden {
			names = append(names, c.name)
		}
	}
	if len(before) == 0 {
		return names
	}
	c, err := findCommand(before[0])
	switch {
	case err != nil || slices.Contains(before, "--"):
		return nil
	case strings.HasPrefix(last, "-"):
		var flags []string
		e.flagSet(c).VisitAll(func(f *flag.Flag) { flags = append(flags, "-"+f.Name) })
		return flags
	case len(before) > 1:
		return nil
	case c.name == "help":
		return names
	case c.name == "completion":
		return slices.Sorted(maps.Keys(scripts))
	case c.connects:
		return e.serverNames()
	}
	return nil
}

// serverNames returns the names of servers in the configuration files of the user's hosts.
func (e *env) serverNames() (names []string) {
	files, _ := e.configFiles("", e.log.Info) // unreadable files have no names
	for _, f := range files {
		for _, s := range f.Servers {
			if plainName.MatchString(s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	return names
}
