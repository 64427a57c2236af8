// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package mcp

import "reflect"

// An Output is a value with content of its own, for a tool whose words differ from the JSON
// of its data: the Out of a [ToolFunc] or of [Call]. The schema of the tool is that of T, a type that has
// structured content (see [ToolFunc]); Value is validated against it.
type Output[T any] struct {
	Value   T
	Content Contents // what the model reads; nil means a block of text with the JSON of Value
	Meta    Meta     // of the result; may be nil
}

// WithContent returns an Output with the given content blocks. Models of clients that ignore
// structured content see only these, so they should say everything that matters.
func WithContent[T any](value T, content ...Content) Output[T] {
	return Output[T]{Value: value, Content: content}
}

// An output is a pointer to an Output.
type output interface {
	valueType() reflect.Type
	parts() (value any, content Contents, meta Meta) // value is a pointer
	setParts(content Contents, meta Meta)
}

func (*Output[T]) valueType() reflect.Type { return reflect.TypeFor[T]() }

func (o *Output[T]) parts() (value any, content Contents, meta Meta) {
	return &o.Value, o.Content, o.Meta
}

func (o *Output[T]) setParts(content Contents, meta Meta) { o.Content, o.Meta = content, meta }
