// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/internal/nearest"
	"github.com/go-psi/psi/internal/strictjson"
)

// A File is a configuration file. [Load] and [Parse] return it.
type File struct {
	Path    string
	Servers []*Server // sorted by name
	Inputs  []Input   // inputs of VS Code, referenced by ${input:ID}

	mu      sync.Mutex // guards answers; held while the user is asked
	answers map[string]string
}

// An Input is a value entered by the user, such as an API key.
type Input struct {
	ID          string   `json:"id"`
	Type        string   `json:"type"` // "promptString", "pickString" or another type of VS Code
	Description string   `json:"description"`
	Default     string   `json:"default"`
	Password    bool     `json:"password"` // do not display the value
	Options     []string `json:"options"`  // the choices
}

// wireInput is an input as it appears in files. An option may be an object with a label and a
// value.
type wireInput struct {
	Input

	Default jsontext.Value   `json:"default"`
	Options []jsontext.Value `json:"options"`
}

func (w *wireInput) input() Input {
	in := w.Input
	in.Default = scalarText(w.Default)
	for _, raw := range w.Options {
		var object struct {
			Value jsontext.Value `json:"value"`
		}
		if strictjson.Unmarshal(raw, &object) == nil {
			raw = object.Value
		}
		if option := scalarText(raw); option != "" {
			in.Options = append(in.Options, option)
		}
	}
	return in
}

// scalarText returns the text of a string, a number or a boolean, or "" for anything else.
func scalarText(raw jsontext.Value) (text string) {
	switch raw.Kind() {
	case '"':
		_ = strictjson.Unmarshal(raw, &text)
	case '0', 't', 'f':
		text = string(raw)
	}
	return text
}

// maxFile is the maximum size of a file in bytes. It is large because some hosts store other
// data in the same file.
const maxFile = 64 << 20

// Load reads and parses a file; see [Parse].
func Load(path string) (*File, error) {
	f, err := os.Open(path) //nolint:gosec // the caller chooses the file
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return Parse(path, data)
}

// Parse parses the contents of a file. The path is used in errors. Parse returns an error if
// the file is not a JSON object, apart from comments and trailing commas, or has no servers.
// An invalid server does not make Parse fail; its [Server.Transport] returns the error.
func Parse(path string, data []byte) (*File, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("config: %s: the file has more than %d bytes", path, maxFile)
	}
	plain := withoutComments(data)
	var root struct {
		MCPServers map[string]jsontext.Value `json:"mcpServers"`
		Servers    map[string]jsontext.Value `json:"servers"` // VS Code
		Inputs     []wireInput               `json:"inputs"`
	}
	// Be lenient here, because hosts store other data in their files. Servers are decoded
	// strictly, one by one.
	if err := strictjson.UnmarshalWith(jsontext.AllowInvalidUTF8(true), plain, &root); err != nil {
		return nil, fmt.Errorf("config: %s: %s", path, problem(plain, err))
	}
	if root.MCPServers == nil && root.Servers == nil {
		return nil, fmt.Errorf(`config: %s: want servers below "mcpServers" or "servers"`, path)
	}
	f := &File{Path: path, answers: map[string]string{}}
	for _, w := range root.Inputs {
		f.Inputs = append(f.Inputs, w.input())
	}
	for _, servers := range []map[string]jsontext.Value{root.MCPServers, root.Servers} {
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			f.Servers = append(f.Servers, f.parseServer(name, servers[name]))
		}
	}
	slices.SortStableFunc(f.Servers, func(a, b *Server) int { return strings.Compare(a.Name, b.Name) })
	for i := range f.Servers[:max(len(f.Servers)-1, 0)] {
		if name := f.Servers[i].Name; name == f.Servers[i+1].Name {
			return nil, fmt.Errorf(`config: %s: server %q is below "mcpServers" and below "servers"`, path, name)
		}
	}
	return f, nil
}

// problem describes why a file could not be decoded. It includes the line number of a syntax
// error.
func problem(data []byte, err error) string {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return strictjson.Problem(err)
	}
	before := data[:min(max(int(syntax.ByteOffset), 0), len(data))]
	line := 1 + strings.Count(string(before), "\n")
	if syntax.Err == nil {
		return fmt.Sprintf("line %d: malformed JSON", line)
	}
	return fmt.Sprintf("line %d: %v", line, syntax.Err)
}

// Server returns the server with the given name. The error for an unknown name may suggest a
// similar one.
func (f *File) Server(name string) (*Server, error) {
	var names []string
	if f == nil {
		return nil, errors.New("config: there is no file")
	}
	for _, s := range f.Servers {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return nil, fmt.Errorf("config: %s: there is no server %q%s", f.Path, name, nearest.Hint(name, names))
}
