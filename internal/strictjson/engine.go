// Copyright 2026 The psi Authors.
// SPDX-License-Identifier: MIT

//go:build !goexperiment.jsonv2 || go1.27

package strictjson

import "errors"

// ErrSkip is returned by the functions of jsonv2.MarshalToFunc and jsonv2.UnmarshalFromFunc
// to leave a value to the JSON package.
var ErrSkip = errors.ErrUnsupported

// EmbedOption is the option in a json tag that embeds a field in the object around it.
const EmbedOption = "embed"
