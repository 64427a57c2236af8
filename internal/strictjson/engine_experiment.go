// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build goexperiment.jsonv2 && !go1.27

package strictjson

import "encoding/json/v2"

// With the experiment, the JSON package is an alias of the standard library's, which in
// Go 1.26 has other names for the same things.

// ErrSkip is returned by the functions of jsonv2.MarshalToFunc and jsonv2.UnmarshalFromFunc
// to leave a value to the JSON package.
var ErrSkip = json.SkipFunc

// EmbedOption is the option in a json tag that embeds a field in the object around it.
const EmbedOption = "inline"
