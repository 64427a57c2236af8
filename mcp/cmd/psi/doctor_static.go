// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/go-psi/psi/internal/lint"
	"github.com/go-psi/psi/mcp/config"
)

// A hostTrait is what is special about how a host treats its servers.
type hostTrait struct {
	// variables is how the host writes an environment variable. "" means that it has none,
	// and passes on such text as it is.
	variables string
	// isDesktop reports whether the host is started without a shell, and so without what the
	// shell adds to the PATH, and does not ask a shell for it.
	isDesktop bool
	// isStrict reports whether the host rejects files with comments or trailing commas.
	isStrict bool
}

// hostTraits are the traits of the hosts for which they are known.
var hostTraits = map[string]hostTrait{
	"Claude Desktop":   {isDesktop: true, isStrict: true},
	"Claude Code":      {variables: "${NAME}", isStrict: true},
	"Cursor":           {variables: "${env:NAME}"},
	"VS Code":          {variables: "${env:NAME}"},
	"VS Code Insiders": {variables: "${env:NAME}"},
	"Windsurf":         {variables: "${env:NAME}"},
	"opencode":         {variables: "{env:NAME}"},
}

var (
	variablePattern = regexp.MustCompile(`\$\{(env:)?([A-Za-z_][A-Za-z0-9_]*)(:-[^}]*)?\}`)
	// folders are variables of VS Code and Cursor that are not in the environment.
	folders = []string{"userHome", "workspaceFolder", "workspaceFolderBasename", "pathSeparator"}
	// placeholder matches values that examples have where the user's own belong.
	placeholder = regexp.MustCompile(`(?i)^(<.*>|\[.*\]|your[-_ ].*|.*[-_ ]here|x{3,}|change[-_ ]?me|todo|\.{3}|…)$`)
	// shellWord matches what only shells understand: at the beginning of a word, or as one.
	shellWord = regexp.MustCompile(`^(~([/\\]|$)|\$[A-Za-z_]|%[A-Za-z_]+%)`)
	operators = []string{"&&", "||", "|", ";", ">", ">>", "<", "&", "2>&1"}
	// twoArguments matches an option and its value in one argument.
	twoArguments = regexp.MustCompile(`^--?[A-Za-z][\w-]* \S+$`)
	// scriptFile matches arguments that are files to run.
	scriptFile = regexp.MustCompile(`^\.{1,2}[/\\]|\.(js|mjs|cjs|ts|py|rb|jar|sh)$`)
)

// checkValues checks what the host makes of the values of a server.
func (p patient) checkValues(s *config.Server) {
	trait, known := hostTraits[p.at.Host]
	values := map[string]string{"command": s.Command, "url": s.URL}
	for i, arg := range s.Args {
		values[fmt.Sprintf("args[%d]", i)] = arg
	}
	for name, value := range s.Env {
		values["env."+name] = value
	}
	for name, value := range s.Headers {
		values["headers."+name] = value
	}
	for _, member := range slices.Sorted(maps.Keys(values)) {
		value := values[member]
		for _, match := range variablePattern.FindAllStringSubmatch(value, -1) {
			written := strings.Replace(strings.Replace(match[0], match[2], "NAME", 1), match[3], "", 1)
			if !known || written == trait.variables || slices.Contains(folders, match[2]) {
				continue
			}
			advice := "write the value"
			if trait.variables != "" {
				advice = "write " + strings.Replace(trait.variables, "NAME", match[2], 1)
			}
			p.report(lint.Error, "variable", fmt.Sprintf("%s has %s, which the host passes on as it is", member, match[0]), advice)
		}
		isSecret := strings.HasPrefix(member, "env.") || strings.HasPrefix(member, "headers.")
		switch {
		case isSecret && placeholder.MatchString(strings.TrimPrefix(value, "Bearer ")):
			p.report(lint.Error, "placeholder", member+" still has the text of an example", "write your own value")
		case isSecret && value == "":
			p.report(lint.Note, "empty-value", member+" is empty", "write a value, or remove it")
		case isQuoted(value) || value != strings.TrimSpace(value):
			p.report(lint.Warning, "quotes", member+" begins or ends with quotes or spaces, which become part of the value", "remove them")
		}
	}
}

func isQuoted(text string) bool {
	return len(text) > 1 && (text[0] == '"' || text[0] == '\'') && text[len(text)-1] == text[0]
}

// checkURL checks a server with a URL.
func (p patient) checkURL(s *config.Server) {
	switch {
	case p.at.Host == "Claude Desktop":
		p.report(lint.Error, "url", "the host can only start commands",
			fmt.Sprintf("psi install %s -host claude-desktop -- psi gateway -stdio URL, or add a connector in its settings", s.Name))
	case p.at.Host == "Claude Code" && s.Members["type"] == nil:
		p.report(lint.Error, "type", "the host takes a server without a type for a command", `add "type": "http"`)
	}
}

// checkCommand checks a command without starting it.
func (p patient) checkCommand(s *config.Server) {
	_, err := os.Stat(s.Command)
	switch fields := strings.Fields(s.Command); {
	case err != nil && len(s.Args) == 0 && len(fields) > 1 && !shellWord.MatchString(s.Command):
		p.report(lint.Error, "quoting", "the command contains its arguments, so the host looks for a program with spaces in its name",
			fmt.Sprintf(`write "command": %q and the others in "args"`, strings.Trim(fields[0], `"'`)))
		return
	case shellWord.MatchString(s.Command):
		p.report(lint.Error, "shell", fmt.Sprintf("the command begins with %q, which only shells replace", shellWord.FindString(s.Command)), "write the whole path")
		return
	}
	p.checkArguments(s)
	if info, err := os.Stat(s.Dir); s.Dir != "" && !strings.Contains(s.Dir, "${") && (err != nil || !info.IsDir()) {
		p.report(lint.Error, "cwd", "the directory in which it is to run does not exist", "correct cwd")
	}
	p.checkProgram(s)
}

func (p patient) checkArguments(s *config.Server) {
	isShell := slices.Contains([]string{"sh", "bash", "zsh", "cmd", "cmd.exe", "powershell", "pwsh"}, filepath.Base(s.Command))
	for i, arg := range s.Args {
		switch where := fmt.Sprintf("args[%d]", i); {
		case isShell:
		case slices.Contains(operators, arg):
			p.report(lint.Error, "shell", fmt.Sprintf("%s is %q, which only shells understand", where, arg), `write "command": "sh" and "args": ["-c", "…"]`)
		case shellWord.MatchString(arg):
			p.report(lint.Error, "shell", fmt.Sprintf("%s begins with %q, which only shells replace", where, shellWord.FindString(arg)), "write the whole path or the value")
		case twoArguments.MatchString(arg):
			name, _, _ := strings.Cut(arg, " ")
			p.report(lint.Warning, "quoting", fmt.Sprintf("%s is one argument, %s together with its value", where, name), "write two, or put = between them")
		case scriptFile.MatchString(arg) && !filepath.IsAbs(arg) && s.Dir == "" && !strings.Contains(arg, "://"):
			p.report(lint.Warning, "relative", where+" is a path relative to a directory that the host chooses", "write the whole path")
		}
	}
}

// checkProgram checks that a program exists where the host looks for it, and what it needs.
func (p patient) checkProgram(s *config.Server) {
	path, isSet := s.Env["PATH"]
	if path = cmp.Or(path, os.Getenv("PATH")); filepath.Base(s.Command) != s.Command {
		p.checkPath(s, path, isSet)
		return
	}
	found := findProgram(s.Command, filepath.SplitList(path))
	if found == "" {
		if found = findProgram(s.Command, programDirs()); found != "" {
			p.report(lint.Error, "path", fmt.Sprintf("the program %q is not in the PATH, but in %s", s.Command, filepath.Dir(found)), fmt.Sprintf(`write "command": %q`, found))
		} else {
			p.report(lint.Error, "path", fmt.Sprintf("there is no program %q", s.Command), "install it, or write the whole path of it")
		}
		return
	}
	if !isSet && p.isBeyondReach(found) {
		p.report(lint.Warning, "path", fmt.Sprintf("%q is in %s, which is in the PATH of your shell but not in that of the host", s.Command, filepath.Dir(found)),
			fmt.Sprintf(`write "command": %q and "env": {"PATH": %q}`, found, filepath.Dir(found)+string(filepath.ListSeparator)+systemPath))
		return
	}
	p.checkInterpreter(found, path, isSet)
}

// checkPath checks a program that is given by its path.
func (p patient) checkPath(s *config.Server, path string, isSet bool) {
	program := s.Command
	if strings.Contains(program, "${") {
		return // the host knows what it stands for
	}
	if !filepath.IsAbs(program) {
		if s.Dir == "" {
			p.report(lint.Error, "relative", "the command is relative to a directory that the host chooses", "write the whole path")
			return
		}
		program = filepath.Join(s.Dir, program)
	}
	info, err := os.Stat(program)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.report(lint.Error, "path", "there is no file "+program, "build or install it, or correct the path")
	case err != nil:
		p.report(lint.Error, "path", err.Error(), "correct the path")
	case info.IsDir():
		p.report(lint.Error, "path", program+" is a directory", "write the path of the program in it")
	case findProgram(program, []string{""}) == "":
		p.report(lint.Error, "path", program+" is not executable", "chmod +x, or run it with its interpreter as the command")
	default:
		p.checkInterpreter(program, path, isSet)
	}
}

// checkInterpreter checks that the interpreter of a script exists, which it looks for by itself.
func (p patient) checkInterpreter(program, path string, isSet bool) {
	if ext := strings.ToLower(filepath.Ext(program)); ext == ".cmd" || ext == ".bat" {
		// Node refuses to start them without a shell, and so do hosts that are written in it.
		p.report(lint.Warning, "batch", program+" is a batch file, which some hosts cannot start by themselves",
			fmt.Sprintf(`write "command": "cmd" and "args": ["/c", %q, …]`, strings.TrimSuffix(filepath.Base(program), filepath.Ext(program))))
		return
	}
	name := interpreter(program)
	if name == "" {
		return
	}
	found := findProgram(name, filepath.SplitList(path))
	switch {
	case found == "":
		dir := "the directory of " + name
		if found = findProgram(name, programDirs()); found != "" {
			dir = filepath.Dir(found)
		}
		p.report(lint.Error, "interpreter", fmt.Sprintf("%s is a script for %q, which is not in the PATH", program, name),
			fmt.Sprintf(`add "env": {"PATH": %q}`, dir+string(filepath.ListSeparator)+systemPath))
	case !isSet && p.isBeyondReach(found):
		p.report(lint.Warning, "interpreter", fmt.Sprintf("%s is a script for %q, which is in the PATH of your shell but not in that of the host", program, name),
			fmt.Sprintf(`add "env": {"PATH": %q}`, filepath.Dir(found)+string(filepath.ListSeparator)+systemPath))
	}
}

// systemPath is the PATH of programs that no shell has started.
const systemPath = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

// isBeyondReach reports whether the host does not find a program that the user's shell finds.
func (p patient) isBeyondReach(program string) bool {
	return hostTraits[p.at.Host].isDesktop && runtime.GOOS != "windows" &&
		!slices.Contains(filepath.SplitList(systemPath), filepath.Dir(program))
}

// findProgram returns the path of a program in directories, or "".
func findProgram(name string, dirs []string) string {
	for _, dir := range dirs {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil && filepath.IsAbs(found) {
			return found
		}
	}
	return ""
}

// interpreter returns the program that a script asks env to find, or "".
func interpreter(script string) string {
	f, err := os.Open(script) //nolint:gosec // a program that the user's file names
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 128)
	n, _ := f.Read(head) // an empty file is no script
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) < 2 || filepath.Base(words[0]) != "env" {
		return ""
	}
	if words[1] == "-S" && len(words) > 2 {
		return words[2]
	}
	return words[1]
}

// programDirs returns the directories in which package and version managers put programs, and
// which shells add to the PATH.
func programDirs() (dirs []string) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	for _, pattern := range []string{
		".nvm/versions/node/*/bin", ".volta/bin", ".asdf/shims", ".local/share/mise/shims", ".local/share/fnm/node-versions/*/installation/bin",
		".fnm/node-versions/*/installation/bin", "Library/Application Support/fnm/node-versions/*/installation/bin", ".nodenv/shims", "n/bin", ".pyenv/shims",
		".local/bin", "go/bin", ".cargo/bin", ".bun/bin", ".deno/bin",
	} {
		matches, _ := filepath.Glob(filepath.Join(home, filepath.FromSlash(pattern))) // the patterns are valid
		slices.Reverse(matches)                                                       // newer versions are later
		dirs = append(dirs, matches...)
	}
	return append(dirs, "/opt/homebrew/bin", "/usr/local/bin", "/home/linuxbrew/.linuxbrew/bin", "/snap/bin")
}
