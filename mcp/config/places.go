// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import (
	"cmp"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A place is a member of a file that lists servers, with their names as its members.
type place struct {
	path  string // names of members from the root, separated by dots; "" means the root
	trust trust
}

// A trust says whether a place lists servers although nothing in it looks like a server.
// Members that are called "servers" or "mcp" may have other meanings.
type trust int

const (
	always  trust = iota
	ifFirst       // if no other place lists servers
	never
)

// places are the places where hosts list servers. If several list a server of the same name,
// the first one is used.
var places = []place{
	{"mcpServers", always},      // most hosts
	{"mcp_servers", always},     // Copilot
	{"context_servers", always}, // Zed
	{"servers", ifFirst},        // VS Code: mcp.json
	{"mcp.servers", ifFirst},    // VS Code: settings.json
	{"mcp", never},              // opencode
	{"", never},                 // plugins of Claude Code
}

// readPlaces reads the servers and inputs of a file. It reports whether the file lists servers.
func (f *File) readPlaces(root object) (found bool) {
	first := map[string]*Server{}
	for _, p := range places {
		list, ok := f.list(root, p, found)
		if !ok {
			continue
		}
		found = true
		for _, s := range f.parseServers(list, p.path) {
			if other := first[s.Name]; other != nil {
				other.warnf("", "%q has another server of this name, which is left out", p.path)
				continue
			}
			first[s.Name] = s
			f.Servers = append(f.Servers, s)
		}
	}
	hasProjects := f.readProjects(root)
	return found || hasProjects
}

// list returns the servers at a place, and reports whether the place lists servers.
func (f *File) list(root object, p place, found bool) (list object, ok bool) {
	list, parent, err := root.at(p.path)
	switch {
	case errors.Is(err, errAbsent):
		return object{}, false
	case err != nil:
		if p.trust == always || p.trust == ifFirst && !found {
			f.addOddf("%s: %w", p.path, err)
		}
		return object{}, false
	case p.path == "":
		ok = !found && len(f.odd) == 0 && list.hasOnlyObjects() && list.hasServer()
	case p.trust == never, p.trust == ifFirst && found:
		ok = list.hasServer()
	default:
		ok = true
	}
	if ok {
		f.readInputs(parent)
	}
	return list, ok
}

var errAbsent = errors.New("absent")

// at returns the list of servers at a path, and the object that contains it. The error is
// errAbsent if the path leads nowhere.
func (o object) at(path string) (list, parent object, err error) {
	list, parent = o, o
	names := strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
	for i, name := range names {
		parent = list
		raw, ok := parent.get(name)
		if !ok || i < len(names)-1 && raw.Kind() != '{' {
			return object{}, object{}, errAbsent
		}
		if list, err = parseObject(raw); err != nil {
			return object{}, object{}, err
		}
	}
	if list.isServer() {
		return object{}, object{}, errors.New("want servers by name, not a server")
	}
	return list, parent, nil
}

// programs are the members that say where a server is, and the kinds of their values.
var programs = []struct{ name, kinds string }{{"command", "\"["}, {"url", "\""}, {"httpUrl", "\""}, {"serverUrl", "\""}}

// isServer reports whether an object looks like a server: a program or a URL is in it.
func (o object) isServer() bool {
	for _, p := range programs {
		if raw, ok := o.get(p.name); ok && strings.IndexByte(p.kinds, byte(raw.Kind())) >= 0 {
			return true
		}
	}
	return false
}

// hasServer reports whether a member looks like a server.
func (o object) hasServer() bool {
	return slices.ContainsFunc(o.names, func(name string) bool {
		member, err := parseObject(o.values[name])
		return err == nil && member.isServer()
	})
}

// hasOnlyObjects reports whether all members are objects, except for the URL of a schema.
// Settings of a host that has a command among other settings are not a list of servers.
func (o object) hasOnlyObjects() bool {
	return !slices.ContainsFunc(o.names, func(name string) bool { return name != "$schema" && o.values[name].Kind() != '{' })
}

// readInputs reads the inputs of VS Code, which are beside a list of servers.
func (f *File) readInputs(parent object) {
	raw, ok := parent.get("inputs")
	if !ok || f.Inputs != nil {
		return
	}
	list, err := decode[[]jsontext.Value](raw)
	if err != nil {
		f.addOddf("inputs: %w", err)
	}
	for i, raw := range list {
		w, err := decode[wireInput](raw)
		if err != nil {
			f.addOddf("inputs/%d: %w", i, err)
			continue
		}
		f.Inputs = append(f.Inputs, w.input())
	}
}

// parseServers parses the members of a list of servers, which is at a path of the file.
func (f *File) parseServers(list object, path string) []*Server {
	var servers []*Server
	for _, name := range list.names {
		if name == "$schema" {
			continue
		}
		s := f.parseServer(name, list.values[name])
		s.Place = path
		if slices.Contains(list.twice, name) {
			s.warnf("", "the file has a server of this name more than once, and the last one is used")
		}
		servers = append(servers, s)
	}
	return servers
}

// readProjects reads the servers that Claude Code limits to projects. It reports whether the
// file has projects.
func (f *File) readProjects(root object) bool {
	projects, _, err := root.at("projects")
	if err != nil {
		return false
	}
	f.projects = map[string][]*Server{}
	for _, dir := range projects.names {
		project, err := parseObject(projects.values[dir])
		if dir = filepath.FromSlash(dir); err != nil || !filepath.IsAbs(dir) {
			continue
		}
		if list, _, err := project.at("mcpServers"); err == nil {
			f.projects[filepath.Clean(dir)] = f.parseServers(list, "mcpServers")
		}
	}
	return true
}

// ForDirectory returns the file as it applies in a directory. It adds the servers that Claude
// Code stores for a single project, if dir is the project's directory or below it. Such a server
// replaces one of the same name that is stored for all directories or for a parent directory.
// dir "" means the working directory. f itself is not changed, and has no servers of projects.
func (f *File) ForDirectory(dir string) *File {
	// The nearest directory counts, not the root of a repository, which psi does not look
	// for. What is added is always from the user's own file.
	if f == nil || len(f.projects) == 0 {
		return f
	}
	used := map[string]*Server{}
	add := func(servers []*Server) {
		for _, s := range servers {
			if used[s.Name] == nil {
				used[s.Name] = s
			}
		}
	}
	dir, err := filepath.Abs(cmp.Or(dir, "."))
	if err != nil {
		return f
	}
	for above := ""; dir != above; dir, above = filepath.Dir(dir), dir {
		add(f.projects[dir])
		// Claude Code stores paths without symbolic links.
		if resolved, err := filepath.EvalSymlinks(dir); err == nil {
			add(f.projects[resolved])
		}
	}
	add(f.Servers)
	return &File{Path: f.Path, Servers: slices.SortedFunc(maps.Values(used), compareNames), Inputs: f.Inputs, odd: f.odd}
}
