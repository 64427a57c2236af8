// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package work

import "context"

// AddIn holds the arguments of the tool add.
type AddIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

// AddOut holds the result of the tool add.
type AddOut struct {
	Sum int `json:"sum"`
}

// Add implements the tool add.
func Add(_ context.Context, in AddIn) (AddOut, error) { return AddOut{in.A + in.B}, nil }

// Echo holds the arguments and the result of the tool echo.
type Echo struct {
	Text string `json:"text"`
}

// Repeat implements the tool echo.
func Repeat(_ context.Context, in Echo) (Echo, error) { return in, nil }
