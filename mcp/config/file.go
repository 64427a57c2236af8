// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/internal/nearest"
)

// ErrNoServers is wrapped by the errors of [Load] and [Parse] for a file in which nothing lists
// servers. Files in which hosts keep other settings as well may be of that kind.
var ErrNoServers = errors.New("there are no servers")

// A File is a configuration file. [Load] and [Parse] return it.
type File struct {
	Path    string
	Servers []*Server // sorted by name; see also ForDirectory
	Inputs  []Input   // inputs of VS Code, referenced by ${input:ID}

	projects map[string][]*Server // by directory; see ForDirectory
	odd      []error              // members that should list servers or inputs, but do not

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
	in.Default, _ = scalarText(w.Default) // anything else is no default
	for _, raw := range w.Options {
		if object, err := parseObject(raw); err == nil {
			raw = object.values["value"]
		}
		if option, err := scalarText(raw); err == nil && option != "" {
			in.Options = append(in.Options, option)
		}
	}
	return in
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

// Parse parses the contents of a file, in UTF-8 or UTF-16. The path is used in errors. Parse
// returns an error if the file is not a JSON object, apart from comments and trailing commas,
// and one that wraps [ErrNoServers] if it lists no servers.
//
// Anything else that is wrong concerns one server only. If a member is required to connect, or
// restricts what the host may use, [Server.Transport] returns an error. Otherwise, the member
// is left out, and Transport logs a warning. Of several members with the same name, the last
// one is used, as in all hosts.
func Parse(path string, data []byte) (*File, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("config: %s: the file has more than %d bytes", path, maxFile)
	}
	root, err := parseFile(data)
	if err != nil {
		return nil, fmt.Errorf("config: %s: %w", path, err)
	}
	f := &File{Path: path, answers: map[string]string{}}
	switch found := f.readPlaces(root); {
	case found:
	case len(f.odd) > 0:
		return nil, fmt.Errorf("config: %s: %w", path, f.odd[0])
	default:
		return nil, fmt.Errorf(`config: %s: %w: want them below "mcpServers" or "servers"`, path, ErrNoServers)
	}
	slices.SortFunc(f.Servers, compareNames)
	return f, nil
}

func compareNames(a, b *Server) int { return strings.Compare(a.Name, b.Name) }

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
	return nil, fmt.Errorf("config: %s: there is no server %q%s%s", f.Path, name, nearest.Hint(name, names), f.oddities())
}

// addOddf records that a member should list servers or inputs, but does not. A few such errors
// are enough to find the mistake.
func (f *File) addOddf(format string, args ...any) {
	if len(f.odd) < 4 {
		f.odd = append(f.odd, fmt.Errorf(format, args...))
	}
}

// oddities returns the end of an error about something that is missing from the file.
func (f *File) oddities() string {
	var text strings.Builder
	for _, err := range f.odd {
		text.WriteString("; " + err.Error())
	}
	return text.String()
}
