// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

package work

import "context"

// AddIn are the arguments of the tool add.
type AddIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

// AddOut is the result of the tool add.
type AddOut struct {
	Sum int `json:"sum"`
}

// Add is the tool add.
func Add(_ context.Context, in AddIn) (AddOut, error) { return AddOut{in.A + in.B}, nil }

// Echo are the arguments and the result of the tool echo.
type Echo struct {
	Text string `json:"text"`
}

// Repeat is the tool echo.
func Repeat(_ context.Context, in Echo) (Echo, error) { return in, nil }
