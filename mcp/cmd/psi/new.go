// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
)

//go:embed template/*.tmpl
var templates embed.FS

func newCommand() *command {
	var module string
	c := &command{
		name: "new", usage: "NAME", summary: "write a small server to start from",
		help: `new writes the files of a small server into the new directory NAME: a tool and its test, a README, a
Dockerfile, and the server.json of the MCP Registry. The server serves on standard input and output
or, with its flag -http, over HTTP. NAME may be a path, such as "."; the name of the directory is that
of the server. The directory must not exist, or be empty.`,
		example: "$ psi new -module github.com/ada/counter counter\n",
		flags: func(f *flag.FlagSet) {
			f.StringVar(&module, "module", "", "the `path` of the Go module (default \"example.com/NAME\")")
		},
	}
	c.run = func(_ context.Context, e *env, words []string) error {
		if len(words) != 1 {
			return c.wrongWords("want a name")
		}
		p, err := newProject(words[0], module)
		if err != nil {
			return err
		}
		if err := p.write(words[0]); err != nil {
			return err
		}
		e.term.printf("%s is in %s. Now run:\n\n", p.Name, words[0])
		if filepath.Clean(words[0]) != "." {
			e.term.printf("  cd %s\n", words[0])
		}
		e.term.printf("  go mod tidy\n  go test ./...\n  psi dev -inspect -- go run .\n")
		return nil
	}
	return c
}

// A project is what the templates of psi new are filled in with.
type project struct {
	Name      string
	Module    string
	Psi       string // the version of psi; "" if go mod tidy has to find it
	Registry  string // the name in the MCP Registry
	Image     string
	IsExample bool // the module path is to be replaced
}

var (
	// projectName matches the names that hosts, Go, Docker and the MCP Registry accept.
	projectName = regexp.MustCompile(`^[a-z][a-z0-9]*([-_][a-z0-9]+)*$`)
	modulePath  = regexp.MustCompile(`^[a-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9_-])?(/[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_-])?)*$`)
	// deviceName matches an element of a path that Windows, and therefore Go, takes for a device.
	deviceName = regexp.MustCompile(`(?i)(^|/)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.[^/]*)?(/|$)`)
	release    = regexp.MustCompile(`^v[0-9][0-9A-Za-z.-]*$`) // not "(devel)", and not what was changed: "v1.0.0+dirty"
)

func newProject(dir, module string) (*project, error) {
	whole := dir
	if filepath.Clean(dir) == "." { // the name is that of the current directory
		if at, err := filepath.Abs(dir); err == nil {
			whole = at
		}
	}
	p := &project{Name: filepath.Base(whole), Module: module}
	if !projectName.MatchString(p.Name) || len(p.Name) > 63 {
		return nil, usagef("new: %q is not a name: want lower-case letters and digits, with single - and _ between them, at most 63", p.Name)
	}
	if module == "" {
		p.Module, p.IsExample = "example.com/"+p.Name, true
	}
	switch {
	case deviceName.MatchString(p.Name) && p.IsExample:
		return nil, usagef("new: %q is not a name: Go refuses it, because it is that of a device of Windows", p.Name)
	case !modulePath.MatchString(p.Module) || deviceName.MatchString(p.Module):
		return nil, usagef("new: -module %q is not the path of a module, such as github.com/ada/counter", module)
	}
	if version, _ := buildVersion(); release.MatchString(version) {
		p.Psi = version
	}
	host, rest, _ := strings.Cut(p.Module, "/")
	owner, _, _ := strings.Cut(rest, "/")
	labels := strings.Split(host, ".")
	slices.Reverse(labels)
	p.Registry, p.Image = strings.Join(labels, ".")+"/"+p.Name, "ghcr.io/OWNER/"+p.Name
	if host == "github.com" && owner != "" {
		p.Registry, p.Image = "io.github."+owner+"/"+p.Name, "ghcr.io/"+strings.ToLower(owner)+"/"+p.Name
	}
	p.IsExample = p.IsExample || strings.Contains(p.Image, "OWNER")
	return p, nil
}

// write writes the files of the project into a directory.
func (p *project) write(dir string) error {
	switch entries, err := os.ReadDir(dir); {
	case err == nil && len(entries) > 0:
		return usagef("new: %s exists, and is not empty", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return &usageError{err}
	}
	all, err := template.New("").Delims("[[", "]]").Option("missingkey=error").ParseFS(templates, "template/*.tmpl")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // source code is not secret
		return err
	}
	for _, t := range all.Templates() {
		var text bytes.Buffer
		if err := t.Execute(&text, p); err != nil {
			return fmt.Errorf("the template %s: %w", t.Name(), err)
		}
		name := strings.TrimSuffix(path.Base(t.Name()), ".tmpl")
		if name == "gitignore" {
			name = ".gitignore"
		}
		if err := writeNew(filepath.Join(dir, name), text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
