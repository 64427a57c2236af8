// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/go-psi/psi/internal/nearest"
)

// ErrNoURLs is wrapped by the error of [Location.Set] for a server with a URL if the file can
// list only commands.
var ErrNoURLs = errors.New("the host can only start commands")

// Set returns the contents of the host's file with a server added, in the dialect of the
// host. If data is empty, it returns a new file. Everything else in the file stays as it is:
// comments, order, indentation and members that this package does not know.
//
// A server of the same name is changed. Only the members that say how to connect are replaced
// or removed; an Env or Headers that is nil leaves those in the file unchanged.
//
// Set returns an error if data is not valid, is UTF-16, or lists servers more than once, and
// if [Parse] does not find the server in the result.
func (l Location) Set(data []byte, s *Server) ([]byte, error) {
	if s == nil {
		return nil, errNoServer
	}
	set, err := l.settings(s)
	if err != nil {
		return nil, fmt.Errorf("config: %s: %w", l.Path, err)
	}
	t, err := newEditor(data)
	if err == nil {
		err = t.setServer(l.names(), s.Name, set)
	}
	if err != nil {
		return nil, fmt.Errorf("config: %s: %w", l.Path, err)
	}
	return l.check(t.bytes(), s)
}

// check returns an error unless the server is in the file.
func (l Location) check(data []byte, s *Server) ([]byte, error) {
	f, err := Parse(l.Path, data)
	if err != nil {
		return nil, err
	}
	got, err := f.Server(s.Name)
	if err == nil && (got.Command != s.Command || got.URL != s.URL) {
		err = fmt.Errorf("config: %s: another list of the file has a server %q, too", l.Path, s.Name)
	}
	return data, err
}

// Remove returns the contents of the host's file without a server. Comments stay, except those
// within the server. The error for an unknown name may suggest a similar one.
func (l Location) Remove(data []byte, name string) ([]byte, error) {
	t, err := newEditor(data)
	if err == nil {
		err = t.removeServer(l.names(), name)
	}
	if err != nil {
		return nil, fmt.Errorf("config: %s: %w", l.Path, err)
	}
	return t.bytes(), nil
}

// names returns the path of the list of servers.
func (l Location) names() []string { return strings.Split(cmp.Or(l.Place, "mcpServers"), ".") }

// A setting is a member to write. If its value is nil, the member is removed.
type setting struct {
	name  string
	value any  // a string, a list of strings or a map of strings
	ifNew bool // only if the file does not have the server
}

// connecting are the members that say how to connect. Those that a dialect does not use are
// removed.
var connecting = []string{"type", "transport", "transportType", "command", "args", "cwd", "url", "serverUrl", "httpUrl"}

// settings returns the members to write for a server in the dialect of the host.
func (l Location) settings(s *Server) ([]setting, error) {
	d := dialects[l.Host]
	env := cmp.Or(d.env, "env")
	var set []setting
	drop := slices.Clone(connecting)
	add := func(name string, value any) {
		set = append(set, setting{name: name, value: value})
		drop = slices.DeleteFunc(drop, func(other string) bool { return other == name })
	}
	addText := func(name, value string) {
		if value != "" {
			add(name, value)
		}
	}
	texts := slices.Concat([]string{s.Name, s.Command, s.Dir, s.URL}, s.Args)
	for _, pairs := range []map[string]string{s.Env, s.Headers} {
		texts = slices.AppendSeq(slices.AppendSeq(texts, maps.Keys(pairs)), maps.Values(pairs))
	}
	switch {
	case s.Name == "":
		return nil, errors.New("the server has no name")
	case !utf8.ValidString(strings.Join(texts, "\n")):
		return nil, fmt.Errorf("server %q: a name or a value is not valid UTF-8, and cannot be written as JSON", s.Name)
	case (s.Command == "") == (s.URL == ""):
		return nil, fmt.Errorf("server %q: want either a command or a url", s.Name)
	case s.URL != "" && d.noURLs:
		return nil, fmt.Errorf("server %q: %w", s.Name, ErrNoURLs)
	case s.Command != "":
		drop = append(drop, "headers", "oauth")
		addText("type", d.typeOfCommands)
		words := append([]string{s.Command}, s.Args...)
		if d.words {
			add("command", words)
		} else {
			add("command", s.Command)
			add("args", words[1:])
		}
		addText("cwd", s.Dir)
		if s.Env != nil {
			add(env, s.Env)
		}
	default:
		drop = append(drop, env, "envFile")
		kind := d.typeOfURLs
		if s.Type == "sse" && kind != "" {
			kind = "sse"
		}
		addText("type", kind)
		add(cmp.Or(d.url, "url"), s.URL)
		if s.Headers != nil {
			add("headers", s.Headers)
		}
	}
	if d.tools != nil {
		set = append(set, setting{"tools", d.tools, true})
	}
	for _, name := range drop {
		set = append(set, setting{name: name})
	}
	return set, nil
}

// An editor changes parts of a file.
type editor struct {
	mark    []byte // the byte order mark, or nil
	raw     []byte // the file
	bare    []byte // the file without comments and trailing commas; offsets are the same
	unit    string // one step of indentation
	newline string
}

// newEditor reads a file, which must be a JSON object or empty.
func newEditor(data []byte) (*editor, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		data = []byte("{}\n")
	}
	raw := bytes.TrimPrefix(data, []byte("\ufeff"))
	if !bytes.Equal(decodeText(data), raw) {
		return nil, errors.New("the file is UTF-16: save it as UTF-8 first")
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("the file has more than %d bytes", maxFile)
	}
	if _, err := parseFile(raw); err != nil {
		return nil, err
	}
	t := &editor{mark: data[:len(data)-len(raw)], raw: raw, bare: withoutComments(raw), unit: "  ", newline: "\n"}
	if bytes.Contains(raw, []byte("\r\n")) {
		t.newline = "\r\n"
	}
	root, err := t.object(t.skip(0))
	if err == nil && len(root.members) > 0 && t.lineBreakIn(root.start, root.members[0].start) {
		t.unit = cmp.Or(t.indentation(root.members[0].start), t.unit)
	}
	return t, err
}

func (t *editor) bytes() []byte { return append(slices.Clone(t.mark), t.raw...) }

// replace replaces a part of the file.
func (t *editor) replace(start, end int, with string) {
	t.raw = slices.Concat(t.raw[:start], []byte(with), t.raw[end:])
	t.bare = withoutComments(t.raw)
}

// An objectSpan is where an object is in a file, and where its members are.
type objectSpan struct {
	start, end int // of the braces, the second one not included
	members    []memberSpan
}

// A memberSpan is where a member is: its name begins at start, and its value ends at end.
type memberSpan struct {
	name              string
	start, value, end int
}

// object returns where the members of the object that begins at an offset are.
func (t *editor) object(start int) (objectSpan, error) {
	o := objectSpan{start: start}
	d := jsontext.NewDecoder(bytes.NewReader(t.bare[start:]), lenient)
	if token, err := d.ReadToken(); err != nil || token.Kind() != '{' {
		return o, errors.Join(errors.New("want an object"), err)
	}
	for d.PeekKind() == '"' {
		raw, err := d.ReadValue()
		if err != nil {
			return o, err
		}
		var m memberSpan
		if err := jsonv2.Unmarshal(raw, &m.name, lenient); err != nil {
			return o, err
		}
		m.start = start + int(d.InputOffset()) - len(raw)
		if raw, err = d.ReadValue(); err != nil {
			return o, err
		}
		m.end = start + int(d.InputOffset())
		m.value = m.end - len(raw)
		o.members = append(o.members, m)
	}
	_, err := d.ReadToken()
	o.end = start + int(d.InputOffset())
	return o, err
}

// find returns the index of a member, or -1. Of several members with the same name, hosts use
// the last one; which of them the user means is unknown.
func (o objectSpan) find(name string) (int, error) {
	found := -1
	for i, m := range o.members {
		if m.name == name && found >= 0 {
			return -1, fmt.Errorf("%.80q: more than once", name)
		}
		if m.name == name {
			found = i
		}
	}
	return found, nil
}

// at returns the object at a path. It makes the objects that are missing.
func (t *editor) at(names ...string) (objectSpan, error) {
	o, err := t.object(t.skip(0))
	if err != nil {
		return o, err
	}
	for i, name := range names {
		at, err := o.find(name)
		switch {
		case err != nil:
			return o, err
		case at < 0:
			t.insert(o, name, json.RawMessage("{}"))
			return t.at(names...)
		case t.bare[o.members[at].value] == 'n':
			t.replace(o.members[at].value, o.members[at].end, "{}")
			return t.at(names...)
		}
		if o, err = t.object(o.members[at].value); err != nil {
			return o, fmt.Errorf("%s: %w", strings.Join(names[:i+1], "."), err)
		}
	}
	return o, nil
}

// setServer sets the members of a server in the list at a path.
func (t *editor) setServer(path []string, name string, set []setting) error {
	list, err := t.at(path...)
	if err != nil {
		return err
	}
	switch at, err := list.find(name); {
	case err != nil:
		return err
	case at < 0:
		t.insert(list, name, newServer(set))
		return nil
	}
	for _, s := range set {
		if err := t.setMember(slices.Concat(path, []string{name}), s); err != nil {
			return err
		}
	}
	return nil
}

// newServer returns a server that the file does not have.
func newServer(set []setting) json.RawMessage {
	var out bytes.Buffer
	for _, s := range set {
		if s.value != nil {
			fmt.Fprintf(&out, ",%s:%s", encode(s.name), encode(s.value))
		}
	}
	return json.RawMessage("{" + strings.TrimPrefix(out.String(), ",") + "}")
}

// setMember sets or removes a member of the object at a path, unless it has that value.
func (t *editor) setMember(path []string, s setting) error {
	o, err := t.at(path...)
	if err != nil {
		return err
	}
	at, err := o.find(s.name)
	if err != nil {
		return err
	}
	switch {
	case s.ifNew || at < 0 && s.value == nil:
		return nil
	case at < 0:
		t.insert(o, s.name, encode(s.value))
		return nil
	case s.value == nil:
		t.remove(o, at)
		return nil
	}
	m := o.members[at]
	old, want := jsontext.Value(slices.Clone(t.bare[m.value:m.end])), jsontext.Value(encode(s.value))
	if old.Canonicalize() != nil || want.Canonicalize() != nil || !bytes.Equal(old, want) {
		t.replace(m.value, m.end, t.format(encode(s.value), t.indentation(m.start), t.lineBreakIn(o.start, m.start)))
	}
	return nil
}

// removeServer removes a server from the list at a path.
func (t *editor) removeServer(path []string, name string) error {
	list, err := t.at(path...)
	if err != nil {
		return err
	}
	at, err := list.find(name)
	if err != nil {
		return err
	}
	if at < 0 {
		names := make([]string, len(list.members))
		for i, m := range list.members {
			names[i] = m.name
		}
		return fmt.Errorf("%s: there is no server %q%s", strings.Join(path, "."), name, nearest.Hint(name, names))
	}
	t.remove(list, at)
	return nil
}

// insert adds a member to an object, in the style of the other members.
func (t *editor) insert(o objectSpan, name string, value json.RawMessage) {
	closing := o.end - 1
	isMultiLine, indent, comma := true, t.indentation(o.start)+t.unit, ""
	if n := len(o.members); n > 0 {
		last := o.members[n-1]
		isMultiLine = t.lineBreakIn(o.start, closing) // also if only a comment ends a line
		if t.lineBreakIn(o.start, last.start) {
			indent = t.indentation(last.start)
		}
		if at := t.skip(last.end); t.raw[at] == ',' {
			comma = ","
		} else {
			t.replace(last.end, last.end, ",")
			closing++
		}
	}
	member := string(encode(name)) + ": " + t.format(value, indent, isMultiLine) + comma
	after := t.endOfText(closing)
	switch {
	case isMultiLine && t.lineBreakIn(after, closing):
		t.replace(after, after, t.newline+indent+member)
	case isMultiLine:
		t.replace(after, closing, t.newline+indent+member+t.newline+t.indentation(o.start))
	default:
		t.replace(after, after, " "+member)
	}
}

// remove removes a member of an object, with its comma. Comments around it stay.
func (t *editor) remove(o objectSpan, at int) {
	m := o.members[at]
	start, end := m.start, m.end
	if comma := t.skip(end); t.raw[comma] == ',' {
		t.replace(comma, comma+1, "") // comments before the comma stay
	} else if at > 0 {
		comma := t.skip(o.members[at-1].end)
		t.replace(comma, comma+1, "")
		start, end = start-1, end-1
	}
	// The white space around it, which is between braces, goes with it, up to the end of the line.
	lineStart, lineEnd := start, end
	for isSpace(t.raw[lineStart-1]) {
		lineStart--
	}
	for isSpace(t.raw[lineEnd]) {
		lineEnd++
	}
	switch startsLine := t.raw[lineStart-1] == '\n'; {
	case startsLine && bytes.HasPrefix(t.raw[lineEnd:], []byte("\r\n")):
		t.replace(lineStart, lineEnd+2, "")
	case startsLine && bytes.HasPrefix(t.raw[lineEnd:], []byte("\n")):
		t.replace(lineStart, lineEnd+1, "")
	case startsLine:
		t.replace(start, lineEnd, "")
	default:
		t.replace(lineStart, end, "")
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

// format returns a value as it is written in the file.
func (t *editor) format(value json.RawMessage, indent string, isMultiLine bool) string {
	v := jsontext.Value(value)
	if !isMultiLine {
		_ = v.Format(jsontext.SpaceAfterColon(true), jsontext.SpaceAfterComma(true)) // it was just encoded
		return string(v)
	}
	_ = v.Format(jsontext.Multiline(true), jsontext.WithIndentPrefix(indent), jsontext.WithIndent(t.unit))
	return strings.ReplaceAll(string(v), "\n", t.newline)
}

// encode encodes the value of a setting.
func encode(v any) json.RawMessage {
	if m, ok := v.(map[string]string); ok {
		var out bytes.Buffer
		for _, name := range slices.Sorted(maps.Keys(m)) {
			fmt.Fprintf(&out, ",%s:%s", encode(name), encode(m[name]))
		}
		return json.RawMessage("{" + strings.TrimPrefix(out.String(), ",") + "}")
	}
	out, err := jsonv2.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("config: %T: %v", v, err)) // settings has checked the strings
	}
	return out
}

// skip returns the offset after the white space and comments that begin at an offset.
func (t *editor) skip(i int) int {
	for i < len(t.raw) {
		switch t.raw[i] {
		case ' ', '\t', '\r', '\n':
			i++
		case '/':
			end := endOfComment(t.raw, i)
			if end == i {
				return i
			}
			i = end
		default:
			return i
		}
	}
	return i
}

// endOfText returns the end of what precedes an offset, apart from white space.
func (t *editor) endOfText(i int) int { return len(bytes.TrimRight(t.raw[:i], " \t\r\n")) }

func (t *editor) lineBreakIn(start, end int) bool {
	return bytes.IndexByte(t.raw[start:end], '\n') >= 0
}

// indentation returns the white space at the beginning of the line of an offset.
func (t *editor) indentation(i int) string {
	line := t.raw[bytes.LastIndexByte(t.raw[:i], '\n')+1:]
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}
