// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-psi/psi/internal/jsonscan"
	"github.com/go-psi/psi/internal/printable"
	"github.com/go-psi/psi/internal/sparse"
)

// This file converts the lists of mounted servers to lists of the mux. Items that cannot be
// reached by their outer names, or that clients could not read, are omitted: for many
// clients, one item that violates the protocol's schema makes the whole list unreadable.

// Reasons why an item is omitted from a mount's list.
var (
	errNameless    = errors.New("it has no name")
	errUnprintable = errors.New("its name has characters that cannot be seen")
	errListedTwice = errors.New("it is listed twice")
	errShadowed    = errors.New("the mux already has an item with this name")
)

// outerItems returns renamed copies of the items of a mount's list that can be passed on.
// rename returns a copy of an item and its outer name. own holds the items of the mux itself,
// which take precedence.
func outerItems[D any](mt *mount, kind string, own table, items []*D, rename func(*D) (renamed *D, name string, err error)) []*D {
	kept := make([]*D, 0, len(items))
	seen := make(map[string]bool, len(items))
	for _, d := range items {
		if d == nil {
			continue
		}
		renamed, name, err := rename(d)
		switch {
		case own.find(name) != nil:
			err = errShadowed
		case err != nil:
		case name == string(mt.prefix) || name == mt.uris() || name == mt.pages():
			err = errNameless
		case printable.Line(name) != name:
			err = errUnprintable
		case seen[name]:
			err = errListedTwice
		}
		if err != nil {
			mt.warn("mcp: left out of the list of a mounted server", kind, name, err)
			continue
		}
		seen[name] = true
		kept = append(kept, renamed)
	}
	return kept
}

// warn logs a problem with an item of the mount's lists. It logs each problem once, because
// lists are requested repeatedly.
func (mt *mount) warn(msg, kind, name string, problem error) {
	reason := problem.Error()
	if mt.warned.first(kind, name, reason) {
		mt.parent.opts.Logger.Warn(msg, kind, printable.Line(sparse.Excerpt(name)), "mounted", mt.site, "reason", sparse.Excerpt(reason))
	}
}

func (mt *mount) outerTools(s *snapshot, tools []*Tool) []*Tool {
	return outerItems(mt, "tool", s.tools, tools, func(t *Tool) (*Tool, string, error) {
		c := *t
		c.Name, c.Meta = mt.outer("tool", t.Name), mt.toolMeta(t.Meta)
		if t.encodings != nil && t.encodings.owner == t {
			return &c, c.Name, nil // checked at registration
		}
		return &c, c.Name, mt.completeTool(&c)
	})
}

func (mt *mount) outerPrompts(s *snapshot, prompts []*Prompt) []*Prompt {
	return outerItems(mt, "prompt", s.prompts, prompts, func(p *Prompt) (*Prompt, string, error) {
		c := *p
		c.Name = mt.outer("prompt", p.Name)
		return &c, c.Name, nil
	})
}

func (mt *mount) outerResources(_ *snapshot, resources []*Resource) []*Resource {
	return outerItems(mt, "resource", nil, resources, func(r *Resource) (*Resource, string, error) {
		c := *r
		c.URI = mt.outerURI(r.URI)
		return &c, c.URI, nil
	})
}

func (mt *mount) outerTemplates(_ *snapshot, templates []*ResourceTemplate) []*ResourceTemplate {
	return outerItems(mt, "resource", nil, templates, func(t *ResourceTemplate) (*ResourceTemplate, string, error) {
		c := *t
		c.URITemplate = mt.outerURI(t.URITemplate)
		return &c, c.URITemplate, nil
	})
}

// completeTool completes the description of a tool that was received from a server, or returns the
// reason why clients could not use the tool. Raw JSON in t is well-formed.
func (mt *mount) completeTool(t *Tool) error {
	if requiresTask(t) {
		return errRequiresTask
	}
	input, err := objectSchema(t.InputSchema)
	if err != nil {
		return fmt.Errorf("inputSchema %w", err)
	}
	if _, err := paramHeaders(input); err != nil {
		return err
	}
	if !bytes.Equal(input, t.InputSchema) {
		mt.warn("mcp: the schema of a mounted server's tool was corrected", "tool", t.Name, errors.New("inputSchema is not quite the schema of an object"))
	}
	t.InputSchema = input
	if t.OutputSchema == nil {
		return nil
	}
	output, err := clientSchema(t.OutputSchema) // in the modern era, its root may have any type
	if err != nil {
		mt.warn("mcp: the output schema of a mounted server's tool was dropped", "tool", t.Name, fmt.Errorf("outputSchema %w", err))
	}
	t.OutputSchema = output
	return nil
}

// objectSchema returns schema with the type "object". A missing schema allows any object. It
// returns an error if schema does not describe an object.
func objectSchema(schema json.RawMessage) (json.RawMessage, error) {
	if schema == nil || string(schema) == "null" {
		return json.RawMessage(`{"type":"object"}`), nil
	}
	schema, err := clientSchema(schema)
	if err != nil {
		return nil, err
	}
	switch kind := jsonscan.Member(schema, "type"); {
	case kind == nil:
		return jsonscan.AppendMembers([]byte(`{"type":"object"`), schema), nil
	case rootType(schema) != "object":
		return nil, fmt.Errorf(`has the type %.40s, not "object"`, kind)
	}
	return schema, nil
}

// clientSchema returns a tool's schema in the form that the protocol's schema requires: an
// object, with "properties" that are objects and "required" that is a list of names. Clients
// may reject a whole list because of one schema in another form. If schema already has that
// form, it is returned unchanged.
func clientSchema(schema json.RawMessage) (json.RawMessage, error) {
	if !jsonscan.IsObject(schema) {
		return nil, errors.New("is not an object")
	}
	if required := jsonscan.Member(schema, "required"); required != nil {
		var names []*string
		if unmarshal(required, &names) != nil || required[0] != '[' || slices.Contains(names, nil) {
			return nil, errors.New(`has "required" that is not a list of names`)
		}
	}
	properties := jsonscan.Member(schema, "properties")
	if properties == nil {
		return schema, nil
	}
	mended, err := objectProperties(properties)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(mended, properties) {
		return schema, nil
	}
	return jsonscan.AppendMembers(append([]byte(`{"properties":`), mended...), schema, "properties"), nil
}

// objectProperties returns the properties of a schema, with objects in place of the boolean
// schemas true and false.
func objectProperties(properties json.RawMessage) (json.RawMessage, error) {
	if !jsonscan.IsObject(properties) {
		return nil, errors.New(`has "properties" that are not an object`)
	}
	s := jsonscan.Get(properties, 0)
	defer s.Release()
	mended, changed := []byte{'{'}, false
	s.Object()
	for s.Member() {
		name := string(s.Name())
		value := s.Value()
		switch {
		case jsonscan.IsObject(value):
		case string(value) == "true":
			value, changed = []byte(`{}`), true
		case string(value) == "false":
			value, changed = []byte(`{"not":{}}`), true
		default:
			return nil, fmt.Errorf("has the property %q, whose schema is not one", name)
		}
		if len(mended) > 1 {
			mended = append(mended, ',')
		}
		mended = append(jsonscan.AppendString(mended, name), ':')
		mended = append(mended, value...)
	}
	if !changed {
		return properties, nil
	}
	return append(mended, '}'), nil
}
