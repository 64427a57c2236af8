// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// A member is a member of a server in a file.
type member struct {
	name string
	read func(s *Server, raw jsontext.Value) error // not called for null
}

// members are the members of servers in the dialects of all hosts. If several set the same
// field, the first one that is not empty is used.
var members = []member{
	{"command", readCommand},
	{"args", readArgs},
	{"env", readEnv},
	{"environment", readEnv}, // opencode
	{"envFile", text(func(s *Server) *string { return &s.EnvFile })},
	{"cwd", text(func(s *Server) *string { return &s.Dir })},
	{"httpUrl", text(func(s *Server) *string { return &s.URL })}, // Gemini CLI
	{"url", text(func(s *Server) *string { return &s.URL })},
	{"serverUrl", text(func(s *Server) *string { return &s.URL })}, // Windsurf
	{"headers", readHeaders},
	{"requestInit", nested("requestInit", []member{{"headers", readHeaders}})}, // as in fetch of JavaScript
	{"type", text(func(s *Server) *string { return &s.Type })},
	{"transport", text(func(s *Server) *string { return &s.Type })},
	{"transportType", text(func(s *Server) *string { return &s.Type })}, // Cline
	{"oauth", readOAuth},
	{"disabled", readDisabled},
	{"enabled", readEnabled},
	{"includeTools", readIncludeTools}, // Gemini CLI
	{"tools", readTools},               // Copilot
	{"excludeTools", readExcludeTools}, // Gemini CLI
	{"disabledTools", readExcludeTools},
}

// commandMembers are the members of a command that is an object, as in older files of Zed.
var commandMembers = []member{
	{"path", text(func(s *Server) *string { return &s.Command })},
	{"args", readArgs},
	{"env", readEnv},
}

// important matches the names of members without which a connection would probably fail or mean
// something else: headers, credentials and environments.
var important = regexp.MustCompile(`(?i)header|token|secret|password|credential|cookie|bearer|api_?key|env|auth([^o]|ori[sz]|$)`)

// read reads the members of an object that is at a path in the server. It passes the errors to
// fail, and warns about members that are likely to be missed.
func (s *Server) read(path string, o object, members []member, fail func(member string, err error)) {
	prefix, hint := "", `; headers are read from "headers", variables from "env"`
	if path != "" {
		prefix, hint = path+".", ""
	}
	unknown := slices.Clone(o.names)
	for _, m := range members {
		unknown = slices.DeleteFunc(unknown, func(name string) bool { return name == m.name })
		if raw, ok := o.get(m.name); ok {
			if err := m.read(s, raw); err != nil {
				fail(prefix+m.name, err)
			}
		}
	}
	if len(o.twice) > 0 {
		s.warnf(path, "%s: more than once; the last one is used", listed(o.twice))
	}
	if unknown = slices.DeleteFunc(unknown, func(name string) bool { return !important.MatchString(name) }); len(unknown) > 0 {
		s.warnf(path, "%s: unknown, and left out%s", listed(unknown), hint)
	}
}

// text returns a function that reads a string into a field, unless the field has a value.
func text(field func(s *Server) *string) func(s *Server, raw jsontext.Value) error {
	return func(s *Server, raw jsontext.Value) error {
		value, err := decode[string](raw)
		if to := field(s); *to == "" {
			*to = value
		}
		return err
	}
}

// nested returns a function that reads the members of an object.
func nested(path string, members []member) func(s *Server, raw jsontext.Value) error {
	return func(s *Server, raw jsontext.Value) error {
		o, err := parseObject(raw)
		if err == nil {
			s.read(path, o, members, s.fail)
		}
		return err
	}
}

// readCommand reads a program, a list of a program and arguments, or an object.
func readCommand(s *Server, raw jsontext.Value) error {
	switch raw.Kind() {
	case '{':
		return nested("command", commandMembers)(s, raw)
	case '[':
		words, err := decode[[]string](raw)
		if len(words) > 0 {
			s.Command, s.Args = words[0], words[1:]
		}
		return err
	}
	var err error
	s.Command, err = decode[string](raw)
	return err
}

func readArgs(s *Server, raw jsontext.Value) error {
	args, err := decode[[]string](raw)
	s.Args = append(s.Args, args...)
	return err
}

// readEnv reads variables. A variable that is null is removed from the default environment of
// the command.
func readEnv(s *Server, raw jsontext.Value) error {
	return s.readTexts(raw, &s.Env, func(name string) { s.unset = append(s.unset, name) })
}

func readHeaders(s *Server, raw jsontext.Value) error {
	return s.readTexts(raw, &s.Headers, func(string) {})
}

// readTexts adds the members of an object to a map. Values may be strings, numbers or booleans.
// It calls null for members that are null.
func (s *Server) readTexts(raw jsontext.Value, to *map[string]string, null func(name string)) error {
	o, err := parseObject(raw)
	if err != nil {
		return err
	}
	for _, name := range o.names {
		value := o.values[name]
		if value.Kind() == 'n' {
			null(name)
			continue
		}
		text, err := scalarText(value)
		if err != nil {
			return fmt.Errorf("%.80q: %w", name, err)
		}
		if *to == nil {
			*to = map[string]string{}
		}
		if _, ok := (*to)[name]; !ok {
			(*to)[name] = text
		}
	}
	return nil
}

func readDisabled(s *Server, raw jsontext.Value) error {
	disabled, err := decode[bool](raw)
	s.Disabled = s.Disabled || disabled
	return err
}

func readEnabled(s *Server, raw jsontext.Value) error {
	enabled, err := decode[bool](raw)
	s.Disabled = s.Disabled || err == nil && !enabled
	return err
}

func readIncludeTools(s *Server, raw jsontext.Value) (err error) {
	s.IncludeTools, err = decode[[]string](raw)
	return err
}

// readTools reads the tools that Copilot may use. "*" means all.
func readTools(s *Server, raw jsontext.Value) error {
	tools, err := decode[[]string](raw)
	if s.IncludeTools == nil && !slices.Contains(tools, "*") {
		s.IncludeTools = tools
	}
	return err
}

func readExcludeTools(s *Server, raw jsontext.Value) error {
	tools, err := decode[[]string](raw)
	s.ExcludeTools = append(s.ExcludeTools, tools...)
	return err
}

// rawMembers returns copies of the members of an object.
func rawMembers(o object) map[string]json.RawMessage {
	all := make(map[string]json.RawMessage, len(o.names))
	for _, name := range o.names {
		all[name] = json.RawMessage(o.values[name].Clone())
	}
	return all
}
